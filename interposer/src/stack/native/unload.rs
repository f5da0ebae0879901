//! The exported `dlclose`, which counts.
//!
//! Owns: the generation: what was read of modules holds only in the one in which it was read, since another module may lie at the
//! same addresses after an unload. Refuses: anything else; the real function decides what is unloaded.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Release};

use crate::linker::Function;

static REAL: Function = Function::next(c"dlclose");

static UNLOADS: AtomicU64 = AtomicU64::new(0);

/// Changes with every unload.
#[inline(always)]
pub fn generation() -> u64 {
    UNLOADS.load(Acquire)
}

/// `int dlclose(void *handle)`.
///
/// # Safety
/// As dlclose(3).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    let real = REAL.find();
    if real.is_null() {
        return -1;
    }
    // SAFETY: the C library's function of this name, with the program's argument.
    let result = unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> c_int>(real)(handle) };
    // Behind it: what another thread reads meanwhile may be gone.
    UNLOADS.fetch_add(1, Release);
    result
}
