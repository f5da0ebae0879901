//! The exported `dlopen`: a jump to the real one.
//!
//! Owns: the one flag in it that makes a library find the driver past every preload, RTLD_DEEPBIND: it leaves a mark,
//! for the reason why nothing was captured; and when the user has asked for it, it is taken away. Refuses: everything else. The
//! jump leaves the stack as the caller made it, because glibc looks at the return address to know whose search path counts.

use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;

use memscope_wire::log::Mark;

use crate::linker::Function;
use crate::{creation, marks};

static REAL: Function = Function::next(c"dlopen");

/// What the real function is called with.
#[repr(C)]
struct Call {
    function: *mut c_void,
    flags: usize,
}

/// Stands in the way of the C library's `dlopen`.
///
/// # Safety
/// As dlopen(3).
#[unsafe(naked)]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "push rdi",
        ".cfi_def_cfa_offset 16",
        "mov edi, esi",
        "call {prepare}",
        "pop rdi",
        ".cfi_def_cfa_offset 8",
        "mov rsi, rdx",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "ret",
        ".cfi_endproc",
        prepare = sym prepare,
    )
}

extern "C" fn prepare(flags: c_int) -> Call {
    let mut flags = flags;
    if flags & libc::RTLD_DEEPBIND != 0 {
        if creation::is_asked_for() && creation::forbids_deep_binding() {
            flags &= !libc::RTLD_DEEPBIND;
        } else {
            marks::leave(Mark::BoundDeeply);
        }
    }
    Call { function: REAL.find(), flags: flags as usize }
}

/// The real function, for ourselves; null when there is none.
///
/// # Safety
/// As dlopen(3).
#[inline(always)]
pub unsafe fn ask(file: *const c_char, flags: c_int) -> *mut c_void {
    type Dlopen = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
    let function = REAL.find();
    if function.is_null() {
        return null_mut();
    }
    // SAFETY: the caller's promise.
    unsafe { core::mem::transmute::<*mut c_void, Dlopen>(function)(file, flags) }
}
