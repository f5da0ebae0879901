//! The thread's own words: its id for the log that it writes to, and whether it is inside a hook.
//!
//! Owns: fifteen words of thread-local memory, reached in one instruction. They are declared in assembly because stable Rust
//! cannot ask for the initial-exec model, and the default one costs a call for each access. They have no initialiser and no
//! destructor, so they are right at any time of a thread's life. Refuses: everything else.

use core::cell::Cell;

use crate::{confinement, system};

/// What a thread remembers. All zero at its beginning.
#[repr(C)]
pub struct Thread {
    /// Generation of the log that `id` was announced in; a forked child has another log.
    pub generation: Cell<u64>,
    /// Kernel's thread id.
    pub id: Cell<u32>,
    /// Number of the category of what the thread makes, where the shim has said so; 0 where not.
    pub making: Cell<u32>,
    /// Address of the [`Frame`] of the outermost hook that the thread is in; 0 when it is in none.
    outermost: Cell<usize>,
    /// Id of the path of the module that the thread is in, written by the shim; 0 is none.
    pub scope: Cell<u64>,
    /// What the log knows of it.
    pub recorded_scope: Cell<u64>,
    /// Where on the stacks of the program the log knows it to be.
    pub recorded_stack: Cell<u64>,
    /// 1 while the thread is in a call of a module.
    pub inside: Cell<u64>,
    /// Id of what the shim calls that which the thread makes; 0 is none.
    pub making_name: Cell<u64>,
    /// The context that the log knows the thread to allocate in; 0 is none.
    pub context: Cell<u64>,
    /// Ordinal of its device.
    pub context_device: Cell<u32>,
    /// How many contexts had ended then: one that is made later may have the same handle.
    pub contexts_ended: Cell<u32>,
    /// Bounds of the stack that the thread was last seen on; zeroes when that is not known.
    pub stack_low: Cell<usize>,
    pub stack_high: Cell<usize>,
    /// Open NVTX ranges of the thread, the innermost in the lowest bits: see nvtx/.
    pub ranges: Cell<u64>,
    /// Return address of the hook that was entered last.
    pub caller: Cell<usize>,
    /// What the log knows of whose code calls the driver.
    pub recorded_owner: Cell<u8>,
}

/// Where in a thread's words the hooks put their return address.
pub const CALLER: usize = core::mem::offset_of!(Thread, caller);

const _: () = assert!(size_of::<Thread>() == 120);

core::arch::global_asm!(
    ".section .tbss.memscope_thread,\"awT\",@nobits",
    ".globl memscope_thread",
    ".hidden memscope_thread",
    ".type memscope_thread,@object",
    ".size memscope_thread,120",
    ".balign 8",
    "memscope_thread:",
    ".zero 120",
    ".text",
);

/// The calling thread's words.
#[inline(always)]
pub fn current<'a>() -> &'a Thread {
    let address: *const Thread;
    // SAFETY: reads the thread pointer and adds the offset of the variable above, as the x86-64 TLS ABI says.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr fs:[0]",
            "add {0}, qword ptr [rip + memscope_thread@GOTTPOFF]",
            out(reg) address,
            options(nostack, pure, readonly),
        );
    }
    // SAFETY: the words live as long as the thread, and only the thread itself uses them, through Cells.
    unsafe { &*address }
}

/// The thread pointer: the address of what glibc keeps for the thread.
#[inline(always)]
pub fn pointer() -> usize {
    let address: usize;
    // SAFETY: reads the thread pointer, as the x86-64 TLS ABI says.
    unsafe { core::arch::asm!("mov {0}, qword ptr fs:[0]", out(reg) address, options(nostack, pure, readonly)) };
    address
}

/// A word in the stack frame of a hook. While the hook runs, its content tells that the frame is still that of the hook.
#[derive(Default)]
pub struct Frame(Cell<usize>);

impl Frame {
    #[inline(always)]
    fn address(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    /// What stands in the word of a hook that runs: no other value of the program's is likely to be this one at this place.
    #[inline(always)]
    fn mark(address: usize) -> usize {
        const MARK: usize = 0x6d65_6d73_636f_7065;
        address ^ MARK
    }
}

impl Thread {
    /// The kernel's id of the thread; in a program that filters its system calls a number that no id of the kernel's is, and no
    /// other thread's either.
    pub fn number(&self) -> u32 {
        /// Above the kernel's largest id, 2^22.
        const NOT_AN_ID: u32 = 1 << 31;
        if confinement::is_confined() {
            (core::ptr::from_ref(self) as usize >> 6) as u32 | NOT_AN_ID
        } else {
            system::thread_id()
        }
    }

    /// Enters a hook, whose stack frame holds `frame`; false when the thread is inside one already: the driver (or another
    /// library between us and it) called a hooked function itself, and the outer call is the one that is recorded.
    ///
    /// A frame that was left by longjmp or by an exception does not count. A stack grows downwards, so a hook that begins at a
    /// higher address than the remembered one was not called from it; and where one begins below, the remembered frame holds
    /// its mark only while nobody has used its place since.
    #[inline(always)]
    pub fn enter(&self, frame: &Frame) -> bool {
        let here = frame.address();
        let outer = self.outermost.get();
        if outer != 0 && here < outer && lives(outer) {
            return false;
        }
        // SAFETY: the word is the caller's own. Volatile, because nobody reads it by this name.
        unsafe { frame.0.as_ptr().write_volatile(Frame::mark(here)) };
        self.outermost.set(here);
        true
    }

    /// True while the thread is in a hook.
    #[inline(always)]
    pub fn is_inside(&self) -> bool {
        self.outermost.get() != 0
    }

    /// Leaves the outermost hook.
    #[inline(always)]
    pub fn leave(&self) {
        self.outermost.set(0);
    }
}

/// True when the frame at `address` is still that of a hook. It may have been on a stack that is gone.
#[cold]
#[inline(never)]
fn lives(address: usize) -> bool {
    // Where the kernel cannot be asked, a call too few is recorded rather than the program ended.
    // SAFETY: it can be read, and it is aligned, as every frame's address is. Volatile: whose it is now, nobody knows.
    confinement::is_confined()
        || system::can_read(address) && unsafe { (address as *const usize).read_volatile() } == Frame::mark(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn deeper(thread: &Thread) -> bool {
        std::hint::black_box([0_u8; 4096]);
        thread.enter(&Frame::default())
    }

    #[test]
    fn only_the_outermost_hook_counts() {
        let (thread, frame) = (current(), Frame::default());
        assert!(thread.enter(&frame));
        assert!(!deeper(thread));
        thread.leave();
        assert!(thread.enter(&frame));
        thread.leave();
    }

    #[test]
    fn a_frame_that_was_jumped_out_of_is_forgotten() {
        let thread = current();
        assert!(deeper(thread));
        assert!(thread.enter(&Frame::default()));
        thread.leave();
    }

    #[test]
    fn a_frame_whose_place_was_used_since_is_forgotten_by_a_deeper_hook_too() {
        let (thread, frame) = (current(), Frame::default());
        assert!(thread.enter(&frame));
        frame.0.set(1);
        assert!(deeper(thread));
        thread.leave();
    }

    #[test]
    fn a_frame_on_a_stack_that_is_gone_is_not_touched() {
        let thread = current();
        // Nothing is ever mapped in the last page of a process's address space.
        thread.outermost.set(0x7fff_ffff_f008);
        assert!(deeper(thread));
        thread.leave();
    }

    #[test]
    fn threads_have_their_own_words() {
        current().id.set(7);
        std::thread::spawn(|| assert_eq!(current().id.get(), 0)).join().unwrap();
    }
}
