//! cuBLAS: handles and their settings. What computes is a row of [`crate::generated`]: success, nothing written.
//!
//! Refuses: workspaces of its own: PyTorch gives the handle one from its allocator. A real handle takes device memory too.

use crate::api::{Out, store};
use crate::status::CublasStatus;
use crate::version;
use std::ffi::{c_char, c_int, c_uint, c_void};

#[derive(Default)]
struct Handle {
    stream: usize,
    pointer_mode: c_int,
    math_mode: c_uint,
}

/// The handle behind a pointer of [`cublasCreate_v2`].
///
/// # Safety
/// The pointer must be null or such a handle, used by one thread at a time.
unsafe fn handle<'a>(pointer: *mut Handle) -> Result<&'a mut Handle, CublasStatus> {
    // SAFETY: as the caller says.
    unsafe { pointer.as_mut() }.ok_or(CublasStatus(1))
}

api! {
    simulated fn cublasCreate_v2(place: Out<'_, *mut Handle>) -> CublasStatus {
        crate::thread::ready().map_err(|_| CublasStatus(1))?;
        store(place, Box::into_raw(Box::default()));
        Ok(())
    }
    simulated fn cublasDestroy_v2(pointer: *mut Handle) -> CublasStatus {
        // SAFETY: the program gives its handle back, once.
        unsafe {
            handle(pointer)?;
            drop(Box::from_raw(pointer));
        }
        Ok(())
    }
    simulated fn cublasSetStream_v2(pointer: *mut Handle, stream: usize) -> CublasStatus {
        // SAFETY: the program gives its handle.
        unsafe { handle(pointer)? }.stream = stream;
        Ok(())
    }
    simulated fn cublasGetStream_v2(pointer: *mut Handle, stream: Out<'_, usize>) -> CublasStatus {
        // SAFETY: the program gives its handle.
        store(stream, unsafe { handle(pointer)? }.stream);
        Ok(())
    }
    simulated fn cublasSetPointerMode_v2(pointer: *mut Handle, mode: c_int) -> CublasStatus {
        // SAFETY: the program gives its handle.
        unsafe { handle(pointer)? }.pointer_mode = mode;
        Ok(())
    }
    simulated fn cublasGetPointerMode_v2(pointer: *mut Handle, mode: Out<'_, c_int>) -> CublasStatus {
        // SAFETY: the program gives its handle.
        store(mode, unsafe { handle(pointer)? }.pointer_mode);
        Ok(())
    }
    simulated fn cublasSetMathMode(pointer: *mut Handle, mode: c_uint) -> CublasStatus {
        // SAFETY: the program gives its handle.
        unsafe { handle(pointer)? }.math_mode = mode;
        Ok(())
    }
    simulated fn cublasGetMathMode(pointer: *mut Handle, mode: Out<'_, c_uint>) -> CublasStatus {
        // SAFETY: the program gives its handle.
        store(mode, unsafe { handle(pointer)? }.math_mode);
        Ok(())
    }
    no_op fn cublasSetWorkspace_v2(_pointer: *mut Handle, _workspace: *mut c_void, _bytes: usize) -> CublasStatus { Ok(()) }
    no_op fn cublasSetSmCountTarget(_pointer: *mut Handle, _count: c_int) -> CublasStatus { Ok(()) }
    no_op fn cublasSetAtomicsMode(_pointer: *mut Handle, _mode: c_int) -> CublasStatus { Ok(()) }
    no_op fn cublasSetEmulationStrategy(_pointer: *mut Handle, _strategy: c_int) -> CublasStatus { Ok(()) }
    simulated fn cublasGetVersion_v2(_pointer: *mut Handle, number: Out<'_, c_int>) -> CublasStatus {
        store(number, version());
        Ok(())
    }
}

/// cuBLAS version of the CUDA that the program was built for, as the library writes it.
pub fn version() -> c_int {
    if version::is_twelve() { 120_804 } else { 130_400 }
}

plain! {
    simulated fn cublasGetStatusString(status: c_int) -> *const c_char {
        match status {
            0 => c"CUBLAS_STATUS_SUCCESS",
            1 => c"CUBLAS_STATUS_NOT_INITIALIZED",
            7 => c"CUBLAS_STATUS_INVALID_VALUE",
            15 => c"CUBLAS_STATUS_NOT_SUPPORTED (not simulated by memscope)",
            _ => c"CUBLAS_STATUS_INTERNAL_ERROR",
        }.as_ptr()
    }
}
