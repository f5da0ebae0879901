//! When the program of this process began.
//!
//! A log begins with the first CUDA call, which may come long after the program: whether two programs ran at the same time cannot be
//! told from their logs' beginnings.
//!
//! Owns: the moment at which this library was loaded, and what it means in a forked child. Refuses: any call of the kernel at load:
//! the clock is the C library's, which reads it without one.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::{clock, creation};

/// A tick of the start times in /proc, in nanoseconds.
const TICK: u64 = 10_000_000;

/// When the library was loaded into this program, or into the one that was forked; 0 when nobody asked for a log.
static LOADED: AtomicU64 = AtomicU64::new(0);

extern "C" fn load() {
    if creation::is_asked_for() {
        LOADED.store(clock::nanoseconds(libc::CLOCK_MONOTONIC), Relaxed);
    }
}

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
static LOAD: extern "C" fn() = load;

/// When the program of this process began, in nanoseconds of CLOCK_MONOTONIC, seen from `now`. `start_time` is the process's, in ticks
/// since boot.
pub fn of_program(start_time: u64, now: u64) -> u64 {
    let since_boot = clock::nanoseconds(libc::CLOCK_BOOTTIME);
    began(LOADED.load(Relaxed), start_time, now, since_boot)
}

fn began(loaded: u64, start_time: u64, now: u64, since_boot: u64) -> u64 {
    let age = since_boot.saturating_sub(start_time.saturating_mul(TICK));
    let tick = now.saturating_sub(age);
    // What was loaded before the process began was loaded into another, which forked this one.
    if loaded >= tick { loaded } else { now.min(tick.saturating_add(TICK)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_begins_when_it_is_loaded_and_a_forked_process_with_its_tick() {
        const SECOND: u64 = 1_000_000_000;
        // The machine has slept for 50 s; the process began at 120 s since boot, which is 70 s of the clock.
        for (loaded, now, expected) in [
            (70 * SECOND + 3, 90 * SECOND, 70 * SECOND + 3),
            // exec long after the process began.
            (80 * SECOND, 90 * SECOND, 80 * SECOND),
            // Loaded into its parent.
            (30 * SECOND, 90 * SECOND, 70 * SECOND + TICK),
            (30 * SECOND, 70 * SECOND + 5, 70 * SECOND + 5),
            // Nobody noted it.
            (0, 90 * SECOND, 70 * SECOND + TICK),
        ] {
            assert_eq!(began(loaded, 12_000, now, now + 50 * SECOND), expected, "{loaded} {now}");
        }
    }
}
