//! cuDNN: the graph API that PyTorch's frontend uses, the descriptors of the older one, and sizes.
//!
//! Owns: handles and versions. Refuses: workspace sizes, which only the real engines know: they are 0 here, and docs/dry-run.md
//! says so.

mod backend;
mod descriptor;
mod legacy;
mod rnn;

use crate::api::{Out, store};
use crate::status::CudnnStatus;
use crate::version;
use std::ffi::{c_char, c_int};

/// The version whose interface we follow.
const VERSION: [c_int; 3] = [9, 26, 0];

#[derive(Default)]
struct Handle {
    stream: usize,
}

/// What a handle or descriptor points to.
///
/// # Safety
/// The pointer must be null or one that was made here, used by one thread at a time.
unsafe fn given<'a, T>(pointer: *mut T) -> Result<&'a mut T, CudnnStatus> {
    // SAFETY: as the caller says.
    unsafe { pointer.as_mut() }.ok_or(CudnnStatus::BAD_PARAM)
}

api! {
    simulated fn cudnnCreate(place: Out<'_, *mut Handle>) -> CudnnStatus {
        store(place, Box::into_raw(Box::default()));
        Ok(())
    }
    simulated fn cudnnDestroy(pointer: *mut Handle) -> CudnnStatus {
        // SAFETY: the program gives its handle back, once.
        unsafe {
            given(pointer)?;
            drop(Box::from_raw(pointer));
        }
        Ok(())
    }
    simulated fn cudnnSetStream(pointer: *mut Handle, stream: usize) -> CudnnStatus {
        // SAFETY: the program gives its handle.
        unsafe { given(pointer)? }.stream = stream;
        Ok(())
    }
    simulated fn cudnnGetStream(pointer: *mut Handle, stream: Out<'_, usize>) -> CudnnStatus {
        // SAFETY: the program gives its handle.
        store(stream, unsafe { given(pointer)? }.stream);
        Ok(())
    }
    simulated fn cudnnGetProperty(part: c_int, value: Out<'_, c_int>) -> CudnnStatus {
        let value_of = usize::try_from(part).ok().and_then(|part| VERSION.get(part));
        store(value, *value_of.ok_or(CudnnStatus::BAD_PARAM)?);
        Ok(())
    }
}

plain! {
    simulated fn cudnnGetVersion() -> usize { (VERSION[0] * 10_000 + VERSION[1] * 100 + VERSION[2]) as usize }
    simulated fn cudnnGetCudartVersion() -> usize { version::runtime() as usize }
    simulated fn cudnnGetErrorString(status: c_int) -> *const c_char {
        match status {
            0 => c"CUDNN_STATUS_SUCCESS",
            2000..=2999 => c"CUDNN_STATUS_BAD_PARAM",
            3000..=3999 => c"CUDNN_STATUS_NOT_SUPPORTED (not simulated by memscope)",
            _ => c"CUDNN_STATUS_INTERNAL_ERROR",
        }.as_ptr()
    }
    simulated fn cudnnGetLastErrorString(text: *mut c_char, bytes: usize) {
        if !text.is_null() && bytes > 0 {
            // SAFETY: the program gives a buffer of that size.
            unsafe { text.write(0) };
        }
    }
}
