//! Memory of the process that may not be there, read so that it cannot fault; and where the calling thread's stack ends.
//!
//! Owns: a copy by the kernel, and the bounds of a stack. Refuses: to be fast: this is for what is met for the first time.

use super::maps;
use super::rule::Stack;
use crate::{system, thread};

/// A main thread's stack grows as far as the limit says, but this is enough to know that an address is on it.
const MOST_STACK_BYTES: u64 = 1 << 30;

/// Fills the buffer from an address; false when not all of it can be read, and in a program that filters its system calls.
pub fn copy(address: usize, buffer: &mut [u8]) -> bool {
    system::copy_memory(address, buffer)
}

/// The number at an address.
pub fn number<const BYTES: usize>(address: usize) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    copy(address, &mut bytes).then_some(bytes)
}

/// The calling thread's stack from its stack pointer on. Known after the first question of a thread; asked for each time while the
/// pointer is elsewhere (a handler on a stack of its own, a coroutine), since such memory comes and goes.
#[inline(always)]
pub fn stack(pointer: usize) -> Stack {
    let thread = thread::current();
    if pointer < thread.stack_low.get() || pointer >= thread.stack_high.get() {
        return look_up(pointer, thread);
    }
    Stack { low: pointer, high: thread.stack_high.get() }
}

#[cold]
#[inline(never)]
fn look_up(pointer: usize, thread: &thread::Thread) -> Stack {
    let Some(mapping) = maps::find(pointer) else { return Stack { low: pointer, high: 0 } };
    let (mut low, mut high) = (mapping.addresses.start, mapping.addresses.end);
    let mut own = true;
    if mapping.path() == b"[stack]" {
        low = high.saturating_sub(system::limit(libc::RLIMIT_STACK).min(MOST_STACK_BYTES) as usize).min(low);
    } else if (pointer..high).contains(&thread::pointer()) {
        // What glibc keeps for a thread lies right above its stack.
        high = thread::pointer();
    } else {
        own = false;
    }
    if own {
        thread.stack_low.set(low);
        thread.stack_high.set(high);
    }
    Stack { low: pointer, high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_copied() {
        assert_eq!(number::<4>(b"here".as_ptr() as usize), Some(*b"here"));
        assert_eq!(number::<8>(0), None);
        assert_eq!(number::<8>(usize::MAX - 3), None);
    }

    #[test]
    fn a_threads_stack_holds_its_frames_and_ends_below_what_glibc_keeps() {
        let outer = 0_usize;
        let outer = &raw const outer as usize;
        let check = move || {
            let local = 0_usize;
            let here = &raw const local as usize;
            let stack = stack(here);
            assert!(stack.low == here && stack.high > here, "{stack:?}");
            assert_eq!(stack.word(here & !7), Some(0));
            stack.high
        };
        assert!(check() > outer);
        std::thread::spawn(move || assert!(check() <= thread::pointer())).join().unwrap();
    }
}
