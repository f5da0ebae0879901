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
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Release};

use crate::{module, table};

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// What the program gets: returned in rax and rdx.
#[repr(C)]
struct Answer {
    value: *mut c_void,
    /// 0: ask the real dlsym in the caller's name. 1: `value` is the answer.
    decided: usize,
}

const ASK_THE_REAL_ONE: Answer = Answer { value: null_mut(), decided: 0 };

/// Stands in the way of the C library's `dlsym`.
///
/// # Safety
/// As dlsym(3).
#[unsafe(naked)]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    core::arch::naked_asm!(
        "endbr64",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        // The return address: who asks.
        "mov rdx, qword ptr [rsp + 24]",
        "call {answer}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rdx, rdx",
        "jnz 2f",
        "jmp qword ptr [rip + {real}]",
        "2:",
        "ret",
        answer = sym answer,
        real = sym REAL,
    )
}

/// Decides a look-up of the code at `caller`.
unsafe extern "C" fn answer(handle: *mut c_void, name: *const c_char, caller: usize) -> Answer {
    let nothing = Answer { value: null_mut(), decided: 1 };
    if find_real().is_null() {
        return nothing;
    }
    // SAFETY: dlsym's name is terminated; a null one is the real dlsym's to judge.
    let Some(function) = (unsafe { in_table(name) }) else { return ASK_THE_REAL_ONE };
    if module::is_driver_or_ours(caller) {
        return ASK_THE_REAL_ONE;
    }
    if handle == libc::RTLD_NEXT {
        // What follows the caller may be this library, whose hook is then right, if there is a driver to hook.
        if module::driver_is_loaded() || !module::next_then_driver(function.name).is_null() {
            return ASK_THE_REAL_ONE;
        }
        return undefined(function.name);
    }
    let found = real(handle, function.name);
    if found.is_null() {
        // Once more in the caller's name, for its dlerror().
        return ASK_THE_REAL_ONE;
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
    Answer { value: real(libc::RTLD_NEXT, name), decided: 1 }
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

/// The real dlsym, in the name of this library.
#[inline(never)]
pub fn real(handle: *mut c_void, name: &CStr) -> *mut c_void {
    let real = find_real();
    if real.is_null() {
        return null_mut();
    }
    // SAFETY: the address is that of a dlsym, and the name is terminated.
    let found = unsafe { core::mem::transmute::<*mut c_void, Dlsym>(real)(handle, name.as_ptr()) };
    // The call must not become a jump: RTLD_NEXT would see our caller's return address, which is in this library too only as
    // long as nobody inlines or exports it.
    core::hint::black_box(found)
}

/// Address of the real dlsym: that of the next library in the order of look-up.
fn find_real() -> *mut c_void {
    let known = REAL.load(Acquire);
    if !known.is_null() {
        return known;
    }
    search()
}

#[cold]
#[inline(never)]
fn search() -> *mut c_void {
    // glibc since 2.34, x86-64 before, aarch64 before.
    for version in [c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"] {
        // SAFETY: terminated strings; dlvsym is not ours, so this reaches the C library.
        let found = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
        let found = core::hint::black_box(found);
        if !found.is_null() {
            REAL.store(found, Release);
            return found;
        }
    }
    null_mut()
}
