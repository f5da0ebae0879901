//! How to get from a place in machine code to its caller, as one word.
//!
//! Owns: the three registers that a walk needs, the word, and the step. Refuses: to decide which rule holds where
//! (`call_frame/`), and any read outside the piece of the stack that it is given.

/// What a walk knows of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registers {
    pub instruction: usize,
    pub stack: usize,
    pub frame: usize,
}

/// Where the frame's canonical address (the stack pointer before the call) comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// The stack pointer plus the offset.
    Stack,
    /// The frame register plus the offset.
    Frame,
    /// What lies at the stack pointer plus the offset.
    AtStack,
    /// What lies at the frame register plus the offset.
    AtFrame,
}

/// Where the caller's frame register is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Saved {
    /// Still in the register.
    Same,
    /// On the stack, at the canonical address plus the offset.
    AtBase(i32),
    /// On the stack, at the frame register plus the offset.
    AtFrame(i32),
}

/// What holds at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// As the tables of the module say. The return address is right below the canonical address.
    Frame { base: Base, offset: i32, saved: Saved },
    /// By the chain of frame registers: no table says anything.
    Chain,
    /// The kernel called a signal's handler here; what was interrupted is in the frame that it left on the stack.
    Signal,
    /// Nobody called this: a thread begins here.
    Outermost,
    /// Not known.
    Lost,
}

/// A [`Way`] in a word, never 0. Offsets have 28 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule(u64);

const BITS: u32 = 28;
const FRAME: u64 = 1;
const CHAIN: u64 = 2;
const SIGNAL: u64 = 3;
const OUTERMOST: u64 = 4;
const LOST: u64 = 5;

fn fits(offset: i32) -> bool {
    (-(1 << (BITS - 1))..1 << (BITS - 1)).contains(&offset)
}

impl Rule {
    pub fn of(way: Way) -> Rule {
        Rule(match way {
            Way::Frame { base, offset, saved } => {
                let base = match base {
                    Base::Stack => 0,
                    Base::Frame => 1,
                    Base::AtStack => 2,
                    Base::AtFrame => 3,
                };
                let (kind, at) = match saved {
                    Saved::Same => (0, 0),
                    Saved::AtBase(at) => (1, at),
                    Saved::AtFrame(at) => (2, at),
                };
                if !fits(offset) || !fits(at) {
                    return Rule(LOST);
                }
                let field = |offset: i32| (offset as u32 as u64) & ((1 << BITS) - 1);
                FRAME | base << 3 | kind << 5 | field(offset) << 8 | field(at) << 36
            }
            Way::Chain => CHAIN,
            Way::Signal => SIGNAL,
            Way::Outermost => OUTERMOST,
            Way::Lost => LOST,
        })
    }

    #[inline(always)]
    pub fn way(self) -> Way {
        let field = |shift: u32| ((self.0 << (64 - BITS - shift)) as i64 >> (64 - BITS)) as i32;
        match self.0 & 7 {
            FRAME => Way::Frame {
                base: match self.0 >> 3 & 3 {
                    0 => Base::Stack,
                    1 => Base::Frame,
                    2 => Base::AtStack,
                    _ => Base::AtFrame,
                },
                offset: field(8),
                saved: match self.0 >> 5 & 3 {
                    0 => Saved::Same,
                    1 => Saved::AtBase(field(36)),
                    _ => Saved::AtFrame(field(36)),
                },
            },
            CHAIN => Way::Chain,
            SIGNAL => Way::Signal,
            OUTERMOST => Way::Outermost,
            _ => Way::Lost,
        }
    }

    /// The word.
    pub fn word(self) -> u64 {
        self.0
    }

    /// The rule that is this word.
    pub fn of_word(word: u64) -> Rule {
        Rule(word)
    }
}

/// The calling thread's stack from a lowest address, which it is using, to its end.
#[derive(Clone, Copy, Debug)]
pub struct Stack {
    pub low: usize,
    pub high: usize,
}

impl Stack {
    /// The word at an address, if it lies in the used part of the stack and is aligned as all that compilers put there.
    #[inline(always)]
    pub fn word(&self, address: usize) -> Option<usize> {
        const LAST: usize = size_of::<usize>() - 1;
        if address < self.low || address >= self.high.saturating_sub(LAST) || address & LAST != 0 {
            return None;
        }
        // SAFETY: between the stack pointer of the calling thread and the end of its stack, which is mapped while the thread is on
        // it; nobody else writes to a word that is read here, except what the program shares on purpose, which is not used.
        Some(unsafe { (address as *const usize).read_volatile() })
    }
}

/// How a step ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// At the caller, whose instruction is the one behind the call.
    Caller(Registers),
    /// At what a signal interrupted, whose instruction has not run yet.
    Interrupted(Registers),
    /// There is no caller.
    Outermost,
    /// It could not be found.
    Lost,
}

/// Goes to the caller.
#[inline(always)]
pub fn step(rule: Rule, now: Registers, stack: &Stack) -> Step {
    let found = match rule.way() {
        Way::Frame { base, offset, saved } => by_table(base, offset, saved, now, stack),
        Way::Chain => by_chain(now, stack),
        Way::Signal => return interrupted(now, stack).map_or(Step::Lost, Step::Interrupted),
        Way::Outermost => return Step::Outermost,
        Way::Lost => None,
    };
    match found {
        Some(caller) if caller.instruction == 0 => Step::Outermost,
        // A walk only goes up, so it ends.
        Some(caller) if caller.stack > now.stack => Step::Caller(caller),
        _ => Step::Lost,
    }
}

#[inline(always)]
fn by_table(base: Base, offset: i32, saved: Saved, now: Registers, stack: &Stack) -> Option<Registers> {
    let offset = offset as isize as usize;
    let canonical = match base {
        Base::Stack => now.stack.wrapping_add(offset),
        Base::Frame => now.frame.wrapping_add(offset),
        Base::AtStack => stack.word(now.stack.wrapping_add(offset))?,
        Base::AtFrame => stack.word(now.frame.wrapping_add(offset))?,
    };
    let frame = match saved {
        Saved::Same => now.frame,
        Saved::AtBase(at) => stack.word(canonical.wrapping_add(at as isize as usize))?,
        Saved::AtFrame(at) => stack.word(now.frame.wrapping_add(at as isize as usize))?,
    };
    let instruction = stack.word(canonical.wrapping_sub(size_of::<usize>()))?;
    Some(Registers { instruction, stack: canonical, frame })
}

fn by_chain(now: Registers, stack: &Stack) -> Option<Registers> {
    if now.frame < now.stack {
        return None;
    }
    let above = now.frame.wrapping_add(size_of::<usize>());
    let (frame, instruction) = (stack.word(now.frame)?, stack.word(above)?);
    Some(Registers { instruction, stack: above.wrapping_add(size_of::<usize>()), frame })
}

/// What a signal interrupted: the kernel's `struct ucontext` lies at the stack pointer.
fn interrupted(now: Registers, stack: &Stack) -> Option<Registers> {
    const REGISTERS: usize = core::mem::offset_of!(libc::ucontext_t, uc_mcontext);
    let register = |number: i32| stack.word(now.stack.wrapping_add(REGISTERS).wrapping_add(number as usize * 8));
    Some(Registers {
        instruction: register(libc::REG_RIP)?,
        stack: register(libc::REG_RSP)?,
        frame: register(libc::REG_RBP)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_the_same_after_it_was_a_word() {
        let saved = [Saved::Same, Saved::AtBase(-16), Saved::AtBase(1 << 20), Saved::AtFrame(0), Saved::AtFrame(-8)];
        let mut ways = vec![Way::Chain, Way::Signal, Way::Outermost, Way::Lost];
        for base in [Base::Stack, Base::Frame, Base::AtStack, Base::AtFrame] {
            for offset in [0, 8, -8, (1 << 27) - 1, -(1 << 27)] {
                ways.extend(saved.map(|saved| Way::Frame { base, offset, saved }));
            }
        }
        for way in ways {
            assert_eq!(Rule::of(way).way(), way);
            assert_ne!(Rule::of(way).word(), 0);
        }
        let far = Way::Frame { base: Base::Stack, offset: 1 << 27, saved: Saved::Same };
        assert_eq!(Rule::of(far).way(), Way::Lost);
    }

    #[test]
    fn nothing_outside_the_used_stack_is_read() {
        let words = [1_usize, 2, 3, 4];
        let low = words.as_ptr() as usize;
        let stack = Stack { low: low + 8, high: low + 24 };
        let read: Vec<_> = (0..4).map(|index| stack.word(low + index * 8)).collect();
        assert_eq!(read, [None, Some(2), Some(3), None]);
        for address in [0, low + 9, low + 17, low + 23, usize::MAX, usize::MAX - 7, 8] {
            assert_eq!(stack.word(address), None);
        }
        assert_eq!(Stack { low: 0, high: 0 }.word(0), None);
        assert_eq!(Stack { low: 0, high: 7 }.word(0), None);
    }

    #[test]
    fn a_step_never_goes_down() {
        let words = [0_usize; 16];
        let low = words.as_ptr() as usize;
        let stack = Stack { low, high: low + 128 };
        let now = Registers { instruction: 1, stack: low + 64, frame: low + 16 };
        assert_eq!(step(Rule::of(Way::Chain), now, &stack), Step::Lost);
        let back = Way::Frame { base: Base::Stack, offset: -8, saved: Saved::Same };
        let mut words = words;
        words[6] = 77;
        let low = words.as_ptr() as usize;
        let stack = Stack { low, high: low + 128 };
        let now = Registers { instruction: 1, stack: low + 64, frame: 0 };
        assert_eq!(step(Rule::of(back), now, &stack), Step::Lost);
    }
}
