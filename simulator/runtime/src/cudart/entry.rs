//! Driver functions that a program asks the runtime for.

use crate::api::{Out, store};
use crate::driver::driver;
use crate::status::CudaError;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

/// The driver's function; null, and why, where there is none. A version beyond the driver's is cut to the driver's.
///
/// # Safety
/// `name` must be a terminated string.
unsafe fn look_up(
    name: *const c_char,
    function: Out<'_, *mut c_void>,
    version: c_int,
    flags: u64,
    word: Out<'_, c_int>,
) -> Result<(), CudaError> {
    if name.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    let driver = driver()?;
    // SAFETY: as the caller says.
    let (address, answer) = unsafe { driver.entry(name, version.min(driver.version()?), flags) };
    store(function, address);
    store(word, answer);
    Ok(())
}

api! {
    simulated fn cudaGetDriverEntryPointByVersion(
        name: *const c_char, function: Out<'_, *mut c_void>, version: c_uint, flags: c_ulonglong,
        word: Out<'_, c_int>,
    ) -> CudaError {
        // SAFETY: the program gives a terminated string.
        unsafe { look_up(name, function, c_int::try_from(version).unwrap_or(c_int::MAX), flags, word) }
    }
    simulated fn cudaGetDriverEntryPoint(
        name: *const c_char, function: Out<'_, *mut c_void>, flags: c_ulonglong, word: Out<'_, c_int>,
    ) -> CudaError {
        // SAFETY: the program gives a terminated string.
        unsafe { look_up(name, function, crate::version::runtime(), flags, word) }
    }
}
