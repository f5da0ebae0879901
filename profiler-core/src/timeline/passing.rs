//! When the use of a device passes a threshold.
//!
//! Owns: how much is used between two looks at NVML, and what counts as passing again. Refuses: words (`findings`), and to keep
//! every one of many: the first ones and the last.
//!
//! Use is what NVML says at a sample. Between samples, and where there is no NVML, it is what the driver has granted to the
//! session, and what the last exact sample saw used beside that.

use serde::{Deserialize, Serialize};

use crate::allocation::Model;
use crate::journal::entry::{Nanoseconds, Threshold};

use super::State;
use super::samples::WINDOW_NS;

/// So many are kept in full, besides the last.
const FIRST: usize = 3;
/// A threshold is passed again only after the use fell by this part of it.
const FALL: u64 = 20;

/// The use of a device is larger than a threshold from here on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Passing {
    /// The ledger right after the change, or at the sample, that passed it.
    pub state: State,
    /// Bytes used on the device then.
    pub used: u64,
}

/// One threshold of one device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Passings {
    /// As the user said it.
    pub threshold: Threshold,
    /// In bytes.
    pub limit: u64,
    /// Total memory of the device, if it is known.
    pub total: Option<u64>,
    /// How often it was passed.
    pub times: u64,
    /// The first ones.
    pub first: Vec<Passing>,
    /// The last one.
    pub last: Option<Passing>,
    above: bool,
}

/// What is used on a device beside what the driver has granted to the session, as samples saw it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Outside {
    known: u64,
    /// Of the last sample: a driver event may yet show that it was in the middle of one.
    latest: Option<(Nanoseconds, u64)>,
}

impl Outside {
    /// A sample was taken, and no driver event was near before it.
    pub fn sampled(&mut self, time: Nanoseconds, outside: u64) {
        self.settle(None);
        self.latest = Some((time, outside));
    }

    /// The driver changes the device's memory now.
    pub fn driver_event(&mut self, time: Nanoseconds) {
        self.settle(Some(time));
    }

    fn settle(&mut self, event: Option<Nanoseconds>) {
        let Some((sampled, outside)) = self.latest.take() else { return };
        if event.is_none_or(|event| event.0.saturating_sub(sampled.0) > WINDOW_NS) {
            self.known = outside;
        }
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.known
    }
}

impl Passings {
    fn of(threshold: Threshold, total: Option<u64>) -> Option<Passings> {
        let limit = threshold.bytes_of(total)?;
        Some(Passings { threshold, limit, total, times: 0, first: Vec::new(), last: None, above: false })
    }

    /// So much is used from now on.
    pub(super) fn note(&mut self, used: u64, state: &State) {
        if self.above {
            self.above = used > self.limit - self.limit / FALL;
        } else if used > self.limit {
            self.above = true;
            self.times += 1;
            let passing = Passing { state: *state, used };
            if self.first.len() < FIRST {
                self.first.push(passing);
            }
            self.last = Some(passing);
        }
    }

    /// Every state that is kept.
    pub(super) fn states(&mut self) -> impl Iterator<Item = &mut State> {
        self.first.iter_mut().chain(&mut self.last).map(|passing| &mut passing.state)
    }
}

/// The thresholds of a session in bytes of one device; none of a share where the total is not known.
pub(super) fn thresholds(model: &Model, device: usize) -> impl Iterator<Item = Passings> + use<'_> {
    let total = model.devices[device].capacity;
    model.session.alerts.iter().filter_map(move |threshold| Passings::of(*threshold, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_passed_again_after_the_use_has_fallen_by_a_twentieth_of_it() {
        let mut passings = Passings::of(Threshold::Share(500), Some(2_000)).expect("the total is known");
        let mut times = Vec::new();
        for used in [1_000, 1_001, 2_000, 951, 1_500, 950, 1_000, 1_001, 0, 1_700] {
            passings.note(used, &State::default());
            times.push(passings.times);
        }
        // 1,000 is not more than 1,000; 951 has not fallen far enough.
        assert_eq!(times, [0, 1, 1, 1, 1, 1, 1, 2, 2, 3]);
        assert_eq!(passings.last.map(|passing| passing.used), Some(1_700));
        assert_eq!(Passings::of(Threshold::Share(500), None), None);
    }

    #[test]
    fn a_sample_in_the_middle_of_a_call_says_nothing_of_what_is_outside() {
        let mut outside = Outside::default();
        outside.sampled(Nanoseconds(10_000_000), 70);
        outside.driver_event(Nanoseconds(10_000_000 + WINDOW_NS + 1));
        assert_eq!(outside.bytes(), 70);
        // The driver had given memory, and its record comes after the sample.
        outside.sampled(Nanoseconds(20_000_000), 900);
        outside.driver_event(Nanoseconds(20_000_000 + WINDOW_NS));
        assert_eq!(outside.bytes(), 70);
    }
}
