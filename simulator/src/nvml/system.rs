//! Initialisation, versions and error texts.

use super::{Return, Status, USERS, exports, state, store};
use crate::driver::Out;
use crate::process;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::atomic::Ordering;

/// What nvmlSystemGetDriverVersion says: the release family of CUDA 13.0, and that no driver is there.
const DRIVER_VERSION: &str = "580.00 (simulated)";
const NVML_VERSION: &str = "13.580.00";

fn begin() -> Status {
    process::state().map_err(|_| Return::DRIVER_NOT_LOADED)?;
    USERS.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Copies a text with its terminator into a buffer of the program.
///
/// # Safety
/// The buffer must be null or writable for `capacity` bytes.
pub(super) unsafe fn store_text(buffer: *mut c_char, capacity: c_uint, text: &str) -> Status {
    if buffer.is_null() {
        return Err(Return::INVALID_ARGUMENT);
    }
    if text.len() >= capacity as usize {
        return Err(Return::INSUFFICIENT_SIZE);
    }
    // SAFETY: text and terminator fit, as the caller says.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), text.len());
        *buffer.add(text.len()) = 0;
    }
    Ok(())
}

exports! {
    fn nvmlInit_v2() { begin() }
    fn nvmlInit() { begin() }
    fn nvmlInitWithFlags(_flags: c_uint) { begin() }
    fn nvmlShutdown() {
        state()?;
        USERS.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }
    fn nvmlSystemGetDriverVersion(buffer: *mut c_char, capacity: c_uint) {
        state()?;
        // SAFETY: the program gives a buffer of `capacity` bytes.
        unsafe { store_text(buffer, capacity, DRIVER_VERSION) }
    }
    fn nvmlSystemGetNVMLVersion(buffer: *mut c_char, capacity: c_uint) {
        // SAFETY: the program gives a buffer of `capacity` bytes.
        unsafe { store_text(buffer, capacity, NVML_VERSION) }
    }
    fn nvmlSystemGetCudaDriverVersion(version: Out<'_, c_int>) { store(version, process::driver_version()) }
    fn nvmlSystemGetCudaDriverVersion_v2(version: Out<'_, c_int>) { store(version, process::driver_version()) }
    fn nvmlSystemGetProcessName(pid: c_uint, buffer: *mut c_char, capacity: c_uint) {
        state()?;
        let name = std::fs::read_link(format!("/proc/{pid}/exe")).map_err(|_| Return::NOT_FOUND)?;
        let name = name.to_string_lossy();
        let most = name.len().min(capacity.saturating_sub(1) as usize);
        let end = (0..=most).rev().find(|&end| name.is_char_boundary(end));
        // SAFETY: the program gives a buffer of `capacity` bytes.
        unsafe { store_text(buffer, capacity, &name[..end.unwrap_or(0)]) }
    }
}

/// The sentence of a result.
#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(result: Return) -> *const c_char {
    let text: &CStr = match result {
        Return::SUCCESS => c"Success",
        Return::UNINITIALIZED => c"Uninitialized",
        Return::INVALID_ARGUMENT => c"Invalid Argument",
        Return::NOT_SUPPORTED => c"Not Supported",
        Return(4) => c"Insufficient Permissions",
        Return(5) => c"Already Initialized",
        Return::NOT_FOUND => c"Not Found",
        Return::INSUFFICIENT_SIZE => c"Insufficient Size",
        Return::DRIVER_NOT_LOADED => c"Driver Not Loaded",
        Return(10) => c"Timeout",
        Return(13) => c"Function Not Found",
        Return(15) => c"GPU is lost",
        Return::ARGUMENT_VERSION_MISMATCH => c"Argument version mismatch",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}
