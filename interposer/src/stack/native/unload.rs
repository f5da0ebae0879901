//! The exported `dlclose`, which counts.
//!
//! Owns: the generation: what was read of modules holds only in the one in which it was read, since another module may lie at the
//! same addresses after an unload. Refuses: anything else; the real function decides what is unloaded.

use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicPtr, AtomicU64};

use crate::module;

static UNLOADS: AtomicU64 = AtomicU64::new(0);
static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
const NAME: &CStr = c"dlclose";

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
    let mut real = REAL.load(Acquire);
    if real.is_null() {
        real = module::next_symbol(NAME);
        REAL.store(real, Release);
    }
    if real.is_null() {
        return -1;
    }
    // SAFETY: the C library's function of this name, with the program's argument.
    let result = unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> c_int>(real)(handle) };
    // Behind it: what another thread reads meanwhile may be gone.
    UNLOADS.fetch_add(1, Release);
    result
}
