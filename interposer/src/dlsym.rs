//! The exported `dlsym`, and the real one.
//!
//! Owns: the decision which look-ups get a hook instead of the driver's function. Refuses: everything else, by jumping to the
//! real dlsym with the stack as the caller left it: glibc looks at the return address to know who asks (RTLD_NEXT,
//! RTLD_DEFAULT, namespaces), so an ordinary function around dlsym breaks it for every library of the program.
//!
//! A name counts only if it is exactly in the table. Nothing here uses std, a lock or the heap: the C library and the
//! language runtimes call dlsym in states in which none of these work.

use core::ffi::{CStr, c_char, c_void};
use core::ptr::null_mut;

use crate::linker::{self, Function};
use crate::{module, table};

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The real one in the eyes of the program: another preloaded library may stand in the way too.
static REAL: Function = Function::next(c"dlsym");

/// What the program gets: returned in rax and rdx.
#[repr(C)]
struct Answer {
    value: *mut c_void,
    /// 0: ask the real dlsym, at `value`, in the caller's name. 1: `value` is the answer.
    decided: usize,
}

/// Stands in the way of the C library's `dlsym`.
///
/// # Safety
/// As dlsym(3).
#[unsafe(naked)]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        ".cfi_def_cfa_offset 32",
        // The return address: who asks.
        "mov rdx, qword ptr [rsp + 24]",
        "call {answer}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        ".cfi_def_cfa_offset 8",
        "test rdx, rdx",
        "jnz 2f",
        "jmp rax",
        "2:",
        "ret",
        ".cfi_endproc",
        answer = sym answer,
    )
}

/// Decides a look-up of the code at `caller`.
unsafe extern "C" fn answer(handle: *mut c_void, name: *const c_char, caller: usize) -> Answer {
    let nothing = Answer { value: null_mut(), decided: 1 };
    let real_one = REAL.find();
    if real_one.is_null() {
        return nothing;
    }
    let ask_the_real_one = Answer { value: real_one, decided: 0 };
    // SAFETY: dlsym's name is terminated; a null one is the real dlsym's to judge.
    let Some(function) = (unsafe { in_table(name) }) else { return ask_the_real_one };
    if module::is_driver_or_ours(caller) {
        return ask_the_real_one;
    }
    if handle == libc::RTLD_NEXT {
        // What follows the caller may be this library, whose hook is then right, if there is a driver to hook.
        if module::driver_is_loaded() || !module::next_then_driver(function.name).is_null() {
            return ask_the_real_one;
        }
        return undefined(function.name);
    }
    // SAFETY: the address is that of a dlsym, and the name is terminated.
    let found = unsafe { core::mem::transmute::<*mut c_void, Dlsym>(real_one)(handle, function.name.as_ptr()) };
    if found.is_null() {
        // Once more in the caller's name, for its dlerror().
        return ask_the_real_one;
    }
    let found = if module::is_ours(found as usize) {
        // RTLD_DEFAULT or dlopen(NULL): found our export, which is there even if no driver is.
        module::next_then_driver(function.name)
    } else {
        found
    };
    if found.is_null() { undefined(function.name) } else { Answer { value: function.adopt(found), decided: 1 } }
}

/// Null, with a dlerror() that says so.
fn undefined(name: &CStr) -> Answer {
    Answer { value: linker::look_up(libc::RTLD_NEXT, name), decided: 1 }
}

/// The row of a name.
///
/// # Safety
/// `name` is null or terminated.
#[inline]
unsafe fn in_table(name: *const c_char) -> Option<&'static table::Function> {
    if name.is_null() {
        return None;
    }
    // SAFETY: terminated, so the second byte can be read when the first is not the terminator.
    unsafe {
        if *name != b'c' as c_char || *name.add(1) != b'u' as c_char {
            return None;
        }
        table::find(CStr::from_ptr(name))
    }
}
