//! NVTX ranges: what the program says of its own parts to any profiler.
//!
//! Owns: what a range is in the log: a push is a scope; one named after a pass, the optimizer or a step is a phase or a step too; a
//! range that begins and ends anywhere is a phase. Refuses: marks, categories, colours and payloads of NVTX, names of threads and of
//! CUDA's objects; phases and steps where memscope's shim tells them, which knows them itself.
//!
//! | file | what it owns |
//! | --- | --- |
//! | `inject.rs` | how NVTX finds this library, and the functions that it calls |
//! | `strings.rs` | what NVTX is given for a string or a domain, which it hands back |

mod inject;
mod strings;

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};
use memscope_wire::{Event, TextId};

use crate::{log, names, state, thread};

/// True in a process whose phases and steps the shim tells, for good.
static FRAMEWORK: AtomicBool = AtomicBool::new(false);
/// Steps that had no number of their own.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// Ranges that were begun by `start`.
static STARTED: AtomicU64 = AtomicU64::new(1);

/// From now on, phases and steps are the shim's.
pub fn leave_phases_to_the_shim() {
    FRAMEWORK.store(true, Relaxed);
}

/// What a range's name says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meaning {
    Nothing,
    /// One of [`PHASES`], from 1.
    Phase(u8),
    /// A step, and its number where the name has one.
    Step(Option<u64>),
}

/// The phases whose names mean something to memscope.
const PHASES: [&[u8]; 3] = [b"forward", b"backward", b"optimizer"];

/// The first word decides, whatever its case: `Optimizer.step#AdamW.step`, `forward-compute`, `Step 12`.
fn meaning(name: &[u8]) -> Meaning {
    let letters = name.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (Some(word), Some(rest)) = (name.get(..letters), name.get(letters..)) else { return Meaning::Nothing };
    for (number, phase) in (1..).zip(PHASES) {
        if word.eq_ignore_ascii_case(phase) {
            return Meaning::Phase(number);
        }
    }
    if [&b"step"[..], b"iteration"].iter().any(|step| word.eq_ignore_ascii_case(step)) {
        let digits = rest.iter().skip_while(|byte| !byte.is_ascii_digit()).take_while(|byte| byte.is_ascii_digit());
        let number = digits.fold(None, |number: Option<u64>, digit| {
            Some(number.unwrap_or(0).saturating_mul(10).saturating_add((digit - b'0') as u64))
        });
        return Meaning::Step(number);
    }
    Meaning::Nothing
}

/// Bits of a level of open ranges in the thread's word: the number of its phase.
const LEVEL_BITS: u32 = 2;
const LEVEL: u64 = (1 << LEVEL_BITS) - 1;

/// The innermost phase of these open ranges; 0 where there is none.
fn innermost(mut ranges: u64) -> u8 {
    while ranges != 0 && ranges & LEVEL == 0 {
        ranges >>= LEVEL_BITS;
    }
    (ranges & LEVEL) as u8
}

/// A range begins in the calling thread; `message` is its name without its domain.
fn push(name: &[u8], message: &[u8]) {
    if state::recording().is_none() {
        return;
    }
    log::append(&Event::ScopePush { name: names::identify_text(name) });
    let thread = thread::current();
    let open = thread.ranges.get();
    let phase = match meaning(message) {
        Meaning::Phase(phase) => {
            tell_phase(phase);
            phase
        }
        // A step of the optimizer's is none of the program's.
        Meaning::Step(number) if innermost(open) == 0 => {
            tell_step(number);
            0
        }
        _ => 0,
    };
    thread.ranges.set(open << LEVEL_BITS | phase as u64);
}

/// The innermost range of the thread ends.
fn pop() {
    if state::recording().is_none() {
        return;
    }
    log::append(&Event::ScopePop);
    let thread = thread::current();
    let open = thread.ranges.get();
    thread.ranges.set(open >> LEVEL_BITS);
    if open & LEVEL != 0 {
        tell_phase(innermost(open >> LEVEL_BITS));
    }
}

/// A range begins that any thread may end: what is to be said at its end. `own` unless it is in a library's domain.
fn start(name: &[u8], message: &[u8], own: bool) -> u64 {
    let number = STARTED.fetch_add(1, Relaxed) << 1;
    if state::recording().is_none() {
        return number;
    }
    let is_phase = match meaning(message) {
        Meaning::Phase(phase) => {
            tell_phase(phase);
            true
        }
        Meaning::Step(step) => {
            tell_step(step);
            false
        }
        // What a library does at the same time is no phase of the program.
        Meaning::Nothing => {
            if own {
                tell_phase_named(names::identify_text(name));
            }
            own
        }
    };
    number | is_phase as u64
}

/// It ends.
fn end(range: u64) {
    if range & 1 != 0 && state::recording().is_some() {
        tell_phase(0);
    }
}

/// The phase with this number, from 1, begins; 0 is none.
fn tell_phase(phase: u8) {
    let name = (phase as usize).checked_sub(1).and_then(|index| PHASES.get(index));
    tell_phase_named(name.map_or(TextId::NONE, |name| names::identify_text(name)));
}

fn tell_phase_named(name: TextId) {
    if !FRAMEWORK.load(Relaxed) {
        log::append(&Event::Ranges);
        log::append(&Event::Phase { name });
    }
}

fn tell_step(number: Option<u64>) {
    if !FRAMEWORK.load(Relaxed) {
        let number = number.unwrap_or_else(|| STEPS.fetch_add(1, Relaxed));
        log::append(&Event::Step { number });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_says_what_a_range_is() {
        for (name, expected) in [
            ("forward", Meaning::Phase(1)),
            ("Forward pass", Meaning::Phase(1)),
            ("backward-compute", Meaning::Phase(2)),
            ("Optimizer.step#AdamW.step", Meaning::Phase(3)),
            ("forwarding", Meaning::Nothing),
            ("my forward", Meaning::Nothing),
            ("step", Meaning::Step(None)),
            ("STEP_12/100", Meaning::Step(Some(12))),
            ("iteration 7", Meaning::Step(Some(7))),
            ("step 99999999999999999999999", Meaning::Step(Some(u64::MAX))),
            ("steps", Meaning::Nothing),
            ("", Meaning::Nothing),
            ("\u{e9}", Meaning::Nothing),
        ] {
            assert_eq!(meaning(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn the_innermost_phase_is_found_below_ranges_without_one() {
        assert_eq!(innermost(0), 0);
        // A backward pass, in it two ranges of other names.
        assert_eq!(innermost(0b10_00_00), 2);
        assert_eq!(innermost(0b01_10), 2);
        assert_eq!(innermost(1 << 62), 1);
    }
}
