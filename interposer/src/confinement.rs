//! Programs that give themselves a filter of system calls (seccomp), and the exported `prctl` by which they say so.
//!
//! Such a filter usually allows what its author knows of, and ends the process at anything else. So from the moment at which a
//! program prepares one, this library makes no system call that it can do without: a log that is not open yet is opened just
//! before, if a driver is loaded; the file grows no more by itself (memscope does it while it records).
//! Filters that came with the process are made for any program, and count for nothing.
//!
//! Owns: that moment. Refuses: everything else of prctl, by jumping to the real one with all its arguments; programs that make the
//! system call themselves are not seen.

use core::ffi::c_int;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use memscope_wire::log::Refusal;

use crate::linker::Function;
use crate::{creation, module, state};

static REAL: Function = Function::next(c"prctl");

static CONFINED: AtomicBool = AtomicBool::new(false);

/// True once the program has prepared a filter: no system call is harmless any more.
#[inline(always)]
pub fn is_confined() -> bool {
    CONFINED.load(Relaxed)
}

/// Stands in the way of the C library's `prctl`.
///
/// # Safety
/// As prctl(2).
#[unsafe(naked)]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn prctl(option: c_int) -> c_int {
    core::arch::naked_asm!(
        "endbr64",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "call {prepare}",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "mov eax, -1",
        "ret",
        prepare = sym prepare,
    )
}

extern "C" fn prepare(option: c_int) -> *mut core::ffi::c_void {
    // Without privileges the one must come before the other.
    if matches!(option, libc::PR_SET_SECCOMP | libc::PR_SET_NO_NEW_PRIVS) && !is_confined() && creation::is_asked_for()
    {
        confine();
    }
    REAL.find()
}

#[cold]
fn confine() {
    let errno = crate::driver::preserving_errno;
    errno(|| {
        if module::driver_came() {
            state::recording();
        } else {
            state::end_without_a_log(Refusal::Filter);
        }
    });
    CONFINED.store(true, Relaxed);
}
