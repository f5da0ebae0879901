//! Look-up by `cuGetProcAddress`, as every CUDA runtime does it.
//!
//! Owns: the exchange of a driver function's address for that of its hook. The driver answers first, so that versions and
//! per-thread variants are its own decision; the answer is compared with the driver's exports. Refuses: to change what the
//! driver says about names that are not in the table.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;

use crate::driver::{self, SUCCESS};
use crate::table::{self, FUNCTIONS, Function, Row};
use crate::{hooks, linker, log, module, state};

/// CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM.
const PER_THREAD: u64 = 2;

type Real = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64) -> c_int;
type RealAndTell = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> c_int;

/// The look-up function of CUDA 11.3.
///
/// # Safety
/// As the driver's documentation demands of the caller.
#[allow(non_snake_case, reason = "NVIDIA's spelling")]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn cuGetProcAddress(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> c_int {
    let Some(real) = Row::cuGetProcAddress.real() else { return hooks::no_driver() };
    // SAFETY: the driver's function of this name, with the program's arguments.
    let result = unsafe { transmute::<*const c_void, Real>(real)(symbol, function, version, flags) };
    if result == SUCCESS {
        // SAFETY: the driver accepted both pointers.
        driver::preserving_errno(|| unsafe { exchange(symbol, function, version, flags) });
    }
    result
}

/// The look-up function since CUDA 12.0, which also tells why a symbol was not found.
///
/// # Safety
/// As the driver's documentation demands of the caller.
#[allow(non_snake_case, reason = "NVIDIA's spelling")]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn cuGetProcAddress_v2(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> c_int {
    let Some(real) = Row::cuGetProcAddress_v2.real() else { return hooks::no_driver() };
    // SAFETY: the driver's function of this name, with the program's arguments.
    let result = unsafe { transmute::<*const c_void, RealAndTell>(real)(symbol, function, version, flags, status) };
    if result == SUCCESS {
        // SAFETY: the driver accepted both pointers.
        driver::preserving_errno(|| unsafe { exchange(symbol, function, version, flags) });
    }
    result
}

/// Puts a hook in the place of the driver's answer, if it is a function of the table.
///
/// # Safety
/// `symbol` and `function` are what the driver accepted: a terminated string, and a place for an address. Since CUDA 13 the
/// address may be null after a success.
unsafe fn exchange(symbol: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64) {
    // A look-up is a CUDA call: the process shows up in the session even if it allocates nothing.
    state::recording();
    if symbol.is_null() || function.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    let (name, answer) = unsafe { (CStr::from_ptr(symbol), *function) };
    if answer.is_null() {
        return;
    }
    if let Some(hook) = hook_of(name, answer, version, flags) {
        // SAFETY: the driver has just written there.
        unsafe { *function = hook };
    }
}

fn hook_of(name: &CStr, answer: *mut c_void, version: c_int, flags: u64) -> Option<*mut c_void> {
    let is_named = |row: &&Function| row.base == name || row.name == name;
    // Only rows of this name are looked up, so that a driver is not asked for what it does not have.
    for row in FUNCTIONS.iter().filter(is_named) {
        row.driver_export();
    }
    if let Some(row) = FUNCTIONS.iter().find(|row| row.known() == Some(answer.cast_const())) {
        return Some(row.hook());
    }
    // A function that the driver exports under another name is another function, or a row that is known by other names too. To
    // take it for a row of this name would call one function with the arguments of another: a version that is still to come.
    if let Some(name) = linker::export_at(answer) {
        let row = table::find(name)?;
        return (row.driver_export() == Some(answer.cast_const())).then(|| row.hook());
    }
    // The driver gave something that it does not export at all: go by name, version and kind of stream.
    let suits = |row: &&Function| is_named(row) && row.since <= version;
    let per_thread = flags & PER_THREAD != 0;
    let row = FUNCTIONS
        .iter()
        .filter(suits)
        .filter(|row| row.per_thread == per_thread)
        .max_by_key(|row| row.since)
        .or_else(|| FUNCTIONS.iter().filter(suits).filter(|row| !row.per_thread).max_by_key(|row| row.since))?;
    match row.known() {
        None => Some(row.adopt(answer)),
        // Another entry of the same driver into the same function.
        Some(real) if module::is_same(real, answer) => Some(row.hook()),
        // Another library's function: to call the driver's instead would go round it.
        Some(_) => {
            log::fault();
            None
        }
    }
}
