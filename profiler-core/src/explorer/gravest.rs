//! Where a session that ran out of memory is to be opened.
//!
//! Owns: which finding that is. Refuses: figures: they are the finding's.

use crate::findings::{Detail, Finding, Largest};
use crate::journal::entry::Nanoseconds;
use crate::report::nanoseconds;

use super::answer::{DeviceView, ProcessView};

/// The out-of-memory that met the most live memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gravest {
    /// Position of its finding.
    pub finding: usize,
    /// When.
    pub time: Nanoseconds,
    /// Position of its device among the answer's.
    pub device: Option<u16>,
    /// Position of its process among the answer's.
    pub process: Option<u32>,
    /// Bytes asked for.
    pub requested: u64,
    /// The category that held most then, where most of it was made, and its holder; `None` when nothing was live.
    pub largest: Option<Largest>,
    /// Where the last steps before it begin, its own among them: what is to be seen of time first. `None` where there are no steps.
    pub since: Option<Nanoseconds>,
}

/// So many steps are the last ones.
const LAST_STEPS: usize = 3;

impl Gravest {
    /// Finds it among the findings.
    pub(super) fn of(findings: &[Finding], devices: &[DeviceView], processes: &[ProcessView]) -> Option<Gravest> {
        let ooms = findings.iter().enumerate().filter_map(|(position, finding)| match &finding.detail {
            Detail::Oom(oom) => Some((position, oom)),
            _ => None,
        });
        let (finding, oom) = ooms.max_by_key(|(position, oom)| (oom.live, std::cmp::Reverse(*position)))?;
        let device = devices.iter().position(|device| device.uuid == oom.device);
        let process = processes.iter().position(|process| process.pid == oom.pid);
        Some(Gravest {
            finding,
            time: nanoseconds(oom.time_s),
            device: device.map(|device| device as u16),
            process: process.map(|process| process as u32),
            requested: oom.requested,
            largest: oom.largest.clone(),
            since: None,
        })
    }

    /// The same with where its last steps begin, of the beginnings of all steps of its device, in the order of time.
    pub(super) fn among(self, begins: impl DoubleEndedIterator<Item = Nanoseconds>) -> Gravest {
        let before = begins.rev().filter(|begin| *begin <= self.time);
        Gravest { since: before.take(LAST_STEPS).last(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_steps_are_those_up_to_the_refusal() {
        let at = |time| Gravest {
            finding: 0,
            time: Nanoseconds(time),
            device: None,
            process: None,
            requested: 1,
            largest: None,
            since: None,
        };
        let since =
            |time, steps: &[u64]| at(time).among(steps.iter().copied().map(Nanoseconds)).since.map(|since| since.0);
        assert_eq!(
            since(45, &[10, 20, 30, 40, 50, 60]),
            Some(20),
            "of steps 2, 3 and 4; later ones came after it was caught"
        );
        assert_eq!(since(40, &[10, 20, 30, 40]), Some(20), "the step that begins with it is its own");
        assert_eq!(since(15, &[10, 20]), Some(10));
        assert_eq!(since(5, &[10, 20]), None, "before the first step");
        assert_eq!(since(5, &[]), None);
    }
}
