//! Streams.

use super::graph::is_capturing;
use crate::nccl;
use crate::status::CudaError;
use crate::thread::ready;
use std::ffi::{c_int, c_uint, c_void};

api! {
    simulated fn cudaStreamCreate(stream: *mut usize) -> CudaError {
        // SAFETY: the program gives a place for a handle.
        unsafe { ready()?.cuStreamCreateWithPriority(stream, 0, 0) }
    }
    simulated fn cudaStreamCreateWithFlags(stream: *mut usize, flags: c_uint) -> CudaError {
        // SAFETY: the program gives a place for a handle.
        unsafe { ready()?.cuStreamCreateWithPriority(stream, flags, 0) }
    }
    simulated fn cudaStreamCreateWithPriority(stream: *mut usize, flags: c_uint, priority: c_int) -> CudaError {
        // SAFETY: the program gives a place for a handle.
        unsafe { ready()?.cuStreamCreateWithPriority(stream, flags, priority) }
    }
    simulated fn cudaStreamDestroy(stream: usize) -> CudaError {
        nccl::stream_destroyed(stream);
        // SAFETY: the driver checks the handle.
        unsafe { ready()?.cuStreamDestroy(stream) }
    }
    simulated fn cudaStreamSynchronize(stream: usize) -> CudaError {
        nccl::wait_for_stream(stream);
        // SAFETY: the driver checks the handle.
        unsafe { ready()?.cuStreamSynchronize(stream) }
    }
    simulated fn cudaStreamQuery(stream: usize) -> CudaError {
        nccl::stream_is_done(stream)?;
        // SAFETY: the driver checks the handle.
        unsafe { ready()?.cuStreamQuery(stream) }
    }
    simulated fn cudaStreamGetPriority(stream: usize, priority: *mut c_int) -> CudaError {
        // SAFETY: the program gives a place for a number.
        unsafe { ready()?.cuStreamGetPriority(stream, priority) }
    }
    simulated fn cudaStreamGetFlags(stream: usize, flags: *mut c_uint) -> CudaError {
        // SAFETY: the program gives a place for a number.
        unsafe { ready()?.cuStreamGetFlags(stream, flags) }
    }
    simulated fn cudaStreamAddCallback(
        stream: usize, callback: *const c_void, data: *mut c_void, flags: c_uint,
    ) -> CudaError {
        // cudaStreamCallback_t is CUstreamCallback: the numbers of its error are the same.
        // SAFETY: the program's function and data, as documented.
        unsafe { ready()?.cuStreamAddCallback(stream, callback, data, flags) }
    }
    simulated fn cudaLaunchHostFunc(stream: usize, function: *const c_void, data: *mut c_void) -> CudaError {
        if is_capturing(stream) {
            // It would run when the graph does, and graphs do nothing here.
            return Ok(());
        }
        // SAFETY: the program's function and data, as documented.
        unsafe { ready()?.cuLaunchHostFunc(stream, function, data) }
    }
}
