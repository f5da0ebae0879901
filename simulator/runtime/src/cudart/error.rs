//! Errors: the last one of each thread, names and sentences.

use crate::driver::driver;
use crate::generated::error_name;
use crate::status::CudaError;
use crate::thread::last_error;
use std::ffi::{c_char, c_int};

plain! {
    simulated fn cudaGetLastError() -> CudaError { last_error(true) }
    simulated fn cudaPeekAtLastError() -> CudaError { last_error(false) }
    simulated fn cudaGetErrorName(error: c_int) -> *const c_char { error_name(error).as_ptr() }
    simulated fn cudaGetErrorString(error: c_int) -> *const c_char {
        let mut text = std::ptr::null();
        let plain = match error {
            35 => Some(c"CUDA driver version is insufficient for CUDA runtime version"),
            801 => Some(c"operation not supported (not simulated by memscope)"),
            _ => None,
        };
        if let Some(plain) = plain {
            return plain.as_ptr();
        }
        // The sentences of the driver are those of the runtime.
        // SAFETY: `text` is good for a write.
        let known = driver().is_ok_and(|driver| unsafe { driver.cuGetErrorString(error, &mut text) }.is_ok());
        if known && !text.is_null() { text } else { c"unrecognized error code".as_ptr() }
    }
}
