//! Events.

use super::graph;
use crate::nccl;
use crate::status::CudaError;
use crate::thread::ready;
use std::ffi::c_uint;

api! {
    simulated fn cudaEventCreate(event: *mut usize) -> CudaError {
        // SAFETY: the program gives a place for a handle.
        unsafe { ready()?.cuEventCreate(event, 0) }
    }
    simulated fn cudaEventCreateWithFlags(event: *mut usize, flags: c_uint) -> CudaError {
        // SAFETY: the program gives a place for a handle.
        unsafe { ready()?.cuEventCreate(event, flags) }
    }
    simulated fn cudaEventDestroy(event: usize) -> CudaError {
        nccl::event_destroyed(event);
        // SAFETY: the driver checks the handle.
        unsafe { ready()?.cuEventDestroy(event) }
    }
    simulated fn cudaEventRecord(event: usize, stream: usize) -> CudaError {
        graph::recorded(event, stream);
        nccl::recorded(event, stream);
        // SAFETY: the driver checks the handles.
        unsafe { ready()?.cuEventRecord(event, stream) }
    }
    simulated fn cudaEventRecordWithFlags(event: usize, stream: usize, _flags: c_uint) -> CudaError {
        graph::recorded(event, stream);
        nccl::recorded(event, stream);
        // SAFETY: the driver checks the handles.
        unsafe { ready()?.cuEventRecord(event, stream) }
    }
    simulated fn cudaEventQuery(event: usize) -> CudaError {
        nccl::event_is_done(event)?;
        // SAFETY: the driver checks the handle.
        unsafe { ready()?.cuEventQuery(event) }
    }
    simulated fn cudaEventSynchronize(event: usize) -> CudaError {
        nccl::wait_for_event(event);
        // SAFETY: the driver checks the handle.
        unsafe { ready()?.cuEventSynchronize(event) }
    }
    simulated fn cudaEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) -> CudaError {
        [start, end].into_iter().try_for_each(nccl::event_is_done)?;
        // SAFETY: the program gives a place for a number.
        unsafe { ready()?.cuEventElapsedTime(milliseconds, start, end) }
    }
    simulated fn cudaStreamWaitEvent(stream: usize, event: usize, flags: c_uint) -> CudaError {
        graph::joined_by(stream, event);
        nccl::joined_by(stream, event);
        // SAFETY: the driver checks the handles.
        unsafe { ready()?.cuStreamWaitEvent(stream, event, flags) }
    }
}
