//! Clocks: reading the ones that logs use, and turning their ticks into time.
//!
//! Owns: the arithmetic of [`Calibration`] and the joint reading of two clocks. Refuses: to guess; a clock that this
//! machine does not have gives `None`.

use std::sync::OnceLock;
use std::time::Duration;

use memscope_wire::log::{CLOCK_MONOTONIC, CLOCK_TSC};
use rustix::time::{ClockId, clock_gettime};

use crate::journal::entry::{Calibration, Nanoseconds};

/// Tries of a joint reading; the tightest one is taken.
const TRIES: usize = 5;

/// CLOCK_MONOTONIC now, in nanoseconds: the time line of a session.
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// CLOCK_REALTIME now, in nanoseconds since 1970.
pub fn realtime_ns() -> u64 {
    nanoseconds(ClockId::Realtime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Neither clock is before 1970 or after 2500 on a working machine; a broken one reads 0 here.
    Duration::try_from(time).map_or(0, |time| time.as_nanos() as u64)
}

/// The boot id of this machine (16 bytes), by which monotonic times of two boots are told apart; zeros when there is none.
pub fn boot_id() -> [u8; 16] {
    static BOOT_ID: OnceLock<[u8; 16]> = OnceLock::new();
    *BOOT_ID.get_or_init(|| {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or([0; 16], |text| boot_id_from(&text))
    })
}

/// Name of this machine; `None` when it is not UTF-8 or has none.
pub fn host() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

fn boot_id_from(text: &str) -> [u8; 16] {
    let mut id = [0; 16];
    let digits: Vec<u8> = text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    if digits.len() == 32 {
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
    }
    id
}

/// Two clocks read together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Ticks of a log's clock.
    pub ticks: u64,
    /// CLOCK_MONOTONIC, nanoseconds.
    pub monotonic_ns: u64,
}

/// Reads the clock with this number ([`memscope_wire::LogHeader::clock`]) together with CLOCK_MONOTONIC; `None` when this
/// machine has no such clock.
pub fn read(clock: u32) -> Option<Reading> {
    match clock {
        CLOCK_MONOTONIC => {
            let now = monotonic_ns();
            Some(Reading { ticks: now, monotonic_ns: now })
        }
        CLOCK_TSC => (0..TRIES).map(|_| read_counter_once()).min_by_key(|(spread, _)| *spread)?.1,
        _ => None,
    }
}

/// The counter before and after CLOCK_MONOTONIC: how far apart, and the middle as the reading.
fn read_counter_once() -> (u64, Option<Reading>) {
    let (Some(before), monotonic_ns, Some(after)) = (counter(), monotonic_ns(), counter()) else {
        return (u64::MAX, None);
    };
    let spread = after.wrapping_sub(before);
    (spread, Some(Reading { ticks: before.wrapping_add(spread / 2), monotonic_ns }))
}

/// The processor's time-stamp counter, as the interposer reads it: a plain `rdtsc`.
fn counter() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: rdtsc exists on every x86-64 processor, touches no memory, and is allowed to programs on Linux unless a
        // program forbids it to itself (prctl PR_SET_TSC), which memscope does not.
        Some(unsafe { core::arch::x86_64::_rdtsc() })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        None
    }
}

impl Calibration {
    /// CLOCK_MONOTONIC nanoseconds at `ticks`, exact and rounded down; outside of what 64 bits hold, the nearest end.
    pub fn monotonic_ns(&self, ticks: u64) -> u64 {
        let (span_ticks, span_ns) = if self.last_ticks == self.first_ticks {
            (1, 1)
        } else {
            (self.last_ticks.abs_diff(self.first_ticks), self.last_ns.abs_diff(self.first_ns))
        };
        // Both spans normally point forwards; a header with nonsense must give nonsense, not a panic.
        let rising = (self.last_ticks >= self.first_ticks) == (self.last_ns >= self.first_ns);
        let distance = ticks.abs_diff(self.first_ticks) as u128 * span_ns as u128;
        if (ticks >= self.first_ticks) == rising {
            let forward = u64::try_from(divided(distance, span_ticks)).unwrap_or(u64::MAX);
            self.first_ns.saturating_add(forward)
        } else {
            let backward = u64::try_from(distance.div_ceil(span_ticks as u128)).unwrap_or(u64::MAX);
            self.first_ns.saturating_sub(backward)
        }
    }

    /// Time in the session that began at `start_monotonic_ns`; 0 for what happened before.
    #[inline]
    pub fn time(&self, ticks: u64, start_monotonic_ns: u64) -> Nanoseconds {
        Nanoseconds(self.monotonic_ns(ticks).saturating_sub(start_monotonic_ns))
    }
}

/// Rounded down. Millions of times are asked for at once, and most distances are short or are nanoseconds already.
fn divided(distance: u128, by: u64) -> u128 {
    match u64::try_from(distance) {
        _ if by == 1 => distance,
        Ok(short) => u128::from(short / by),
        Err(_) => distance / u128::from(by),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_three_gigahertz_counter_is_converted_exactly_after_a_year() {
        let year = 365 * 86_400 * 1_000_000_000_u64;
        let clock = Calibration { first_ticks: 7, first_ns: 1_000, last_ticks: 7 + 3 * year, last_ns: 1_000 + year };
        assert_eq!(clock.monotonic_ns(7), 1_000);
        assert_eq!(clock.monotonic_ns(7 + 3 * (year - 1)), 1_000 + year - 1);
        assert_eq!(clock.monotonic_ns(7 + 3 * (year - 1) + 2), 1_000 + year - 1);
        assert_eq!(clock.monotonic_ns(4), 999);
        assert_eq!(clock.monotonic_ns(5), 999, "rounded down before the first reading too");
        assert_eq!(clock.time(7 + 3_000, 1_500), Nanoseconds(500));
        assert_eq!(clock.time(7, 1_500), Nanoseconds(0));
    }

    #[test]
    fn equal_ticks_mean_the_monotonic_clock_itself() {
        let clock = Calibration { first_ticks: 50, first_ns: 50, last_ticks: 50, last_ns: 50 };
        assert_eq!(clock.monotonic_ns(12_345), 12_345);
        assert_eq!(clock.monotonic_ns(12), 12);
    }

    #[test]
    fn the_clocks_of_this_machine_run_at_the_rate_they_show() {
        for clock in [CLOCK_MONOTONIC, CLOCK_TSC] {
            let Some(first) = read(clock) else { continue };
            std::thread::sleep(Duration::from_millis(20));
            let middle = read(clock).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            let last = read(clock).unwrap();
            let calibration = Calibration {
                first_ticks: first.ticks,
                first_ns: first.monotonic_ns,
                last_ticks: last.ticks,
                last_ns: last.monotonic_ns,
            };
            let error = calibration.monotonic_ns(middle.ticks).abs_diff(middle.monotonic_ns);
            assert!(error < 1_000_000, "clock {clock}: off by {error} ns");
        }
        assert_eq!(read(99), None);
    }

    #[test]
    fn a_boot_id_is_sixteen_bytes() {
        let text = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\n";
        assert_eq!(boot_id_from(text)[..4], [0x0f, 0x1e, 0x2d, 0x3c]);
        assert_eq!(boot_id_from("rubbish"), [0; 16]);
    }

    proptest! {
        #[test]
        fn order_is_kept_and_nothing_overflows(first: u64, ns: u64, span in 1_u64.., span_ns: u64, a: u64, b: u64) {
            let clock = Calibration {
                first_ticks: first, first_ns: ns,
                last_ticks: first.saturating_add(span), last_ns: ns.saturating_add(span_ns),
            };
            let (low, high) = (a.min(b), a.max(b));
            prop_assert!(clock.monotonic_ns(low) <= clock.monotonic_ns(high));
        }
    }
}
