//! Ticks: the processor's time-stamp counter where it is invariant, else CLOCK_MONOTONIC.
//!
//! A program can take every clock away from itself: the counter (prctl PR_SET_TSC), with which the C library's clock reads too, and
//! with seccomp's strict mode also the kernel's. Reading one then ends the program. In a log that is open by then time stands still:
//! its order is that of the slots.
//!
//! Owns: the choice, the reading, and a calibration (ticks and nanoseconds read together). Refuses: to convert; the reader
//! of the log does.

use core::arch::x86_64::{__cpuid, _rdtsc};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};
use memscope_wire::log::{CLOCK_MONOTONIC, CLOCK_TSC};

use crate::system;

/// The clock of a process that has taken its clocks away from itself, in the place of the log's.
const STANDS: u32 = u32::MAX;

/// What [`STANDS`] shows.
static MOMENT: AtomicU64 = AtomicU64::new(0);

/// The C library's clock reads the counter, and the program has forbidden that.
static ONLY_THE_KERNELS: AtomicBool = AtomicBool::new(false);

/// The clock that takes the place of `clock`, which cannot be read from now on: it shows this moment.
pub fn stop(clock: u32) -> u32 {
    MOMENT.store(ticks(clock), Relaxed);
    STANDS
}

/// From now on the counter must not be read, nor the C library's clock.
pub fn forbid_the_counter() {
    ONLY_THE_KERNELS.store(true, Relaxed);
}

/// The clock to use in this process: one of [`CLOCK_TSC`] and [`CLOCK_MONOTONIC`].
pub fn choose() -> u32 {
    const EXTENDED: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    let invariant = __cpuid(EXTENDED).eax >= POWER && __cpuid(POWER).edx & INVARIANT_TSC != 0;
    if system::time_stamp_counter_is_forbidden() {
        forbid_the_counter();
        return CLOCK_MONOTONIC;
    }
    if invariant { CLOCK_TSC } else { CLOCK_MONOTONIC }
}

/// Now, in ticks of `clock`.
#[inline(always)]
pub fn ticks(clock: u32) -> u64 {
    if clock == CLOCK_TSC {
        // SAFETY: every x86-64 processor has the instruction, and `choose` has asked whether the program forbids it.
        unsafe { _rdtsc() }
    } else {
        others(clock)
    }
}

#[inline(never)]
fn others(clock: u32) -> u64 {
    if clock == STANDS { MOMENT.load(Relaxed) } else { nanoseconds(libc::CLOCK_MONOTONIC) }
}

/// Now, in nanoseconds of a POSIX clock. Every Linux has the clocks that are asked for here.
pub fn nanoseconds(clock: libc::clockid_t) -> u64 {
    if ONLY_THE_KERNELS.load(Relaxed) {
        return system::nanoseconds(clock);
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(clock, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Ticks of `clock` and nanoseconds of CLOCK_MONOTONIC at one moment, as near as a few attempts bring them.
pub fn calibrate(clock: u32) -> (u64, u64) {
    let mut best = (0, 0);
    let mut smallest = u64::MAX;
    for _ in 0..5 {
        let before = ticks(clock);
        let nanoseconds = nanoseconds(libc::CLOCK_MONOTONIC);
        let gap = ticks(clock).wrapping_sub(before);
        if gap < smallest {
            smallest = gap;
            best = (before.wrapping_add(gap / 2), nanoseconds);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_nanoseconds_advance_together() {
        let clock = choose();
        let (ticks, nanoseconds) = calibrate(clock);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (later_ticks, later_nanoseconds) = calibrate(clock);
        assert!(later_ticks > ticks);
        assert!(later_nanoseconds - nanoseconds >= 20_000_000);
    }
}
