//! Which machine code a thread is at: its chain of callers, as files and addresses in them.
//!
//! Owns: the switch (`memscope run --stacks native`), and the walk. Memscope itself finds the functions and lines behind the
//! addresses, afterwards. Refuses: locks, the heap, the dynamic linker; to read outside of the calling thread's stack, whatever its
//! registers and tables say; names and lines, which are long.
//!
//! How to get from a place to its caller is looked up once for each place, in the tables for exceptions that compilers write, and
//! kept as one word; a walk is then a look-up and two or three reads a frame. A module that is unloaded makes all of these
//! words void: see [`generation`].
//!
//! | file | what it owns |
//! | --- | --- |
//! | `rule.rs` | the word, and the step that it stands for |
//! | `call_frame/` | the tables for exceptions (`.eh_frame`) |
//! | `modules.rs` | the files of machine code |
//! | `maps.rs` | what is mapped where |
//! | `memory.rs` | reads that cannot fault, and the stack's bounds |
//! | `unload.rs` | the exported `dlclose`, which counts |

mod call_frame;
mod maps;
mod memory;
mod modules;
mod rule;
mod unload;

use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};

use super::frames::Hash;
use super::known::{Known, Node};
use super::{CUT, DEEPEST, LOST, Place};
use crate::system;
pub use maps::PATH_BYTES;
use modules::Modules;
use rule::{Registers, Rule, Step, Way};
pub use unload::generation;

/// Places in code whose rule is kept.
const RULE_PLACES: usize = 1 << 15;
/// Frames of this library that are passed over at most.
const PASSED_OVER: usize = 32;

/// What is kept of the code that was met. All zero is empty.
#[repr(C)]
struct Tables {
    modules: Modules,
    /// A place in code and the rule that holds there: a pair that two threads wrote at once fits no place.
    rules: [[AtomicU64; 2]; RULE_PLACES],
}

static TABLES: AtomicPtr<Tables> = AtomicPtr::new(null_mut());
/// Where the code of this library is, which is not the program's.
static OWN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Makes the tables; false when there is no memory, or a kernel (before 4.14) that would hand them to a child.
pub fn make() -> bool {
    if !TABLES.load(Acquire).is_null() {
        return true;
    }
    const BYTES: u64 = size_of::<Tables>() as u64;
    let Some(own) = maps::find(make as *const () as usize) else { return false };
    let Some(fresh) = system::map_zeroes(BYTES) else { return false };
    // SAFETY: the mapping is new, and wiping it in a child is what it is for: there, the log does not know the modules.
    if !unsafe { system::advise(fresh, BYTES, libc::MADV_WIPEONFORK) } {
        // SAFETY: nobody has seen it.
        unsafe { system::unmap(fresh, BYTES) };
        return false;
    }
    for (place, address) in OWN.iter().zip([own.addresses.start, own.addresses.end]) {
        place.store(address, Relaxed);
    }
    TABLES.store(fresh.cast(), Release);
    true
}

/// The program's frames of a thread, the innermost first: the place of each, and why there are no more.
struct Walk {
    places: [usize; DEEPEST],
    depth: usize,
    end: End,
    /// What tells this stack from others.
    hash: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    Deeper,
    Lost,
}

/// Where the calling thread is.
#[inline(never)]
pub fn own(known: &Known) -> Place {
    // SAFETY: the tables are never unmapped.
    let Some(tables) = (unsafe { TABLES.load(Acquire).as_ref() }) else { return Place::NOWHERE };
    let generation = generation();
    let walk = tables.walk(registers(), generation);
    if let Some(place) = known.place(walk.hash) {
        return place;
    }
    let place = tables.tell(&walk, known, generation);
    known.remember(walk.hash, place);
    place
}

/// The registers here.
#[inline(always)]
fn registers() -> Registers {
    let (instruction, stack, frame): (usize, usize, usize);
    // SAFETY: reads registers.
    unsafe {
        core::arch::asm!(
            "lea {0}, [rip]",
            "mov {1}, rsp",
            "mov {2}, rbp",
            out(reg) instruction, out(reg) stack, out(reg) frame,
            options(nomem, nostack, preserves_flags),
        );
    }
    Registers { instruction, stack, frame }
}

/// The innermost place of the program in the calling thread's stack for which `wanted` holds, of so many at most.
#[inline(never)]
pub fn innermost(most: usize, mut wanted: impl FnMut(usize) -> bool) -> Option<usize> {
    if !make() {
        return None;
    }
    // SAFETY: the tables are never unmapped.
    let tables = unsafe { TABLES.load(Acquire).as_ref() }?;
    let (mut found, mut left) = (None, most);
    tables.climb(registers(), generation(), |place| {
        found = Some(place).filter(|place| wanted(*place));
        left = left.saturating_sub(1);
        found.is_none() && left > 0
    });
    found
}

/// Fills `path` with that of the file which is mapped at an address; `None` when there is none, and in a program that filters its
/// system calls.
pub fn file_at(address: usize, path: &mut [u8; PATH_BYTES]) -> Option<&[u8]> {
    let mapping = maps::find(address)?;
    // One that fills all of the room may have been cut, and its end tells the file.
    let found = mapping.path();
    for (place, byte) in path.iter_mut().zip(found) {
        *place = *byte;
    }
    path.get(..found.len()).filter(|path| path.len() < PATH_BYTES)
}

impl Tables {
    #[inline(always)]
    fn walk(&self, now: Registers, generation: u64) -> Walk {
        let mut walk = Walk { places: [0; DEEPEST], depth: 0, end: End::Deeper, hash: 0 };
        let mut hash = Hash::new();
        hash.add(generation);
        let (places, depth) = (&mut walk.places, &mut walk.depth);
        walk.end = self.climb(now, generation, |place| {
            let Some(free) = places.get_mut(*depth) else { return false };
            *free = place;
            *depth += 1;
            hash.add(place as u64);
            true
        });
        hash.add(walk.end as u64);
        walk.hash = hash.get();
        walk
    }

    /// Shows `see` the program's frames of the calling thread, the innermost first, as long as it wants more.
    #[inline(always)]
    fn climb(&self, mut now: Registers, generation: u64, mut see: impl FnMut(usize) -> bool) -> End {
        let own = OWN[0].load(Relaxed)..OWN[1].load(Relaxed);
        let (mut stack, mut place, mut passed) = (memory::stack(now.stack), now.instruction, 0);
        loop {
            if own.contains(&place) {
                passed += 1;
                if passed > PASSED_OVER {
                    return End::Lost;
                }
            } else if !see(place) {
                return End::Deeper;
            }
            match rule::step(self.rule(place, generation), now, &stack) {
                // What a call returns to may belong to something else already: a function that never returns ends with a call.
                Step::Caller(caller) => (now, place) = (caller, caller.instruction.wrapping_sub(1)),
                Step::Interrupted(before) => {
                    (now, place) = (before, before.instruction);
                    if before.stack < stack.low || before.stack >= stack.high {
                        // The handler has a stack of its own.
                        stack = memory::stack(before.stack);
                    }
                }
                Step::Outermost => return End::Whole,
                Step::Lost => return End::Lost,
            }
        }
    }

    /// The rule at a place in code.
    #[inline(always)]
    fn rule(&self, place: usize, generation: u64) -> Rule {
        // Addresses of programs have 47 bits.
        let key = place as u64 | generation << 48;
        let index = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % RULE_PLACES;
        let Some([both, rule]) = self.rules.get(index) else { return Rule::of(Way::Lost) };
        let word = rule.load(Relaxed);
        if word != 0 && both.load(Relaxed) ^ word == key {
            return Rule::of_word(word);
        }
        let found = self.find_rule(place, generation);
        both.store(key ^ found.word(), Relaxed);
        rule.store(found.word(), Relaxed);
        found
    }

    #[cold]
    #[inline(never)]
    fn find_rule(&self, place: usize, generation: u64) -> Rule {
        Rule::of(match self.modules.find(place, generation) {
            Some(module) => call_frame::way(module.table, place).unwrap_or(Way::Chain),
            None if modules::is_code(place) => Way::Chain,
            None => Way::Lost,
        })
    }

    /// Puts the nodes of a stack into the log, as far as there is room.
    #[cold]
    #[inline(never)]
    fn tell(&self, walk: &Walk, known: &Known, generation: u64) -> Place {
        let mut place = match walk.end {
            End::Whole => Place::NOWHERE,
            End::Deeper => known.remark(Place::NOWHERE, CUT),
            End::Lost => known.remark(Place::NOWHERE, LOST),
        };
        for code in walk.places.iter().take(walk.depth).rev() {
            place = match self.modules.find(*code, generation) {
                Some(module) => {
                    let offset = code.wrapping_sub(module.bias) as u64;
                    known.go(place, Node::Address { module: module.name, offset })
                }
                None => known.remark(place, super::NO_FILE),
            };
            if !place.is_whole() {
                break;
            }
        }
        place
    }
}
