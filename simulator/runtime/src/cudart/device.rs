//! Devices: which there are, which is the thread's, their attributes.

use super::properties::{Layout, properties};
use crate::api::{Out, store};
use crate::driver::driver;
use crate::status::CudaError;
use crate::thread::{device, primary, ready, set_device};
use crate::version;
use std::ffi::{c_char, c_int, c_uint, c_void};

api! {
    simulated fn cudaGetDeviceCount(count: Out<'_, c_int>) -> CudaError {
        store(count, driver()?.device_count()?);
        Ok(())
    }
    simulated fn cudaGetDevice(number: Out<'_, c_int>) -> CudaError {
        store(number, device()?);
        Ok(())
    }
    simulated fn cudaSetDevice(number: c_int) -> CudaError { set_device(number) }
    no_op fn cudaSetDeviceFlags(_flags: c_uint) -> CudaError { Ok(()) }
    simulated fn cudaGetDeviceFlags(flags: Out<'_, c_uint>) -> CudaError {
        store(flags, 0);
        Ok(())
    }
    simulated fn cudaDeviceGetAttribute(value: Out<'_, c_int>, attribute: c_int, device: c_int) -> CudaError {
        store(value, driver()?.attribute(attribute, device)?);
        Ok(())
    }
    simulated fn cudaGetDeviceProperties(place: *mut u8, device: c_int) -> CudaError {
        if place.is_null() {
            return Err(CudaError::INVALID_VALUE);
        }
        // SAFETY: a program of CUDA 13 gives a structure of that layout; in CUDA 12 this name is cudaGetDeviceProperties_v2.
        unsafe { properties(place, driver()?, device, Layout::Thirteen) }
    }
    simulated fn cudaGetDeviceProperties_v2(place: *mut u8, device: c_int) -> CudaError {
        if place.is_null() {
            return Err(CudaError::INVALID_VALUE);
        }
        // SAFETY: a program of CUDA 12 gives a structure of that layout.
        unsafe { properties(place, driver()?, device, Layout::Twelve) }
    }
    simulated fn cudaDeviceGetPCIBusId(text: *mut c_char, bytes: c_int, device: c_int) -> CudaError {
        // SAFETY: the program gives a buffer of that size.
        unsafe { driver()?.cuDeviceGetPCIBusId(text, bytes, device) }
    }
    simulated fn cudaDeviceGetByPCIBusId(device: *mut c_int, text: *const c_char) -> CudaError {
        // SAFETY: the program gives a terminated string and a place for a number.
        unsafe { driver()?.cuDeviceGetByPCIBusId(device, text) }
    }
    simulated fn cudaDeviceSynchronize() -> CudaError {
        crate::nccl::wait_for_all();
        // SAFETY: no preconditions.
        unsafe { ready()?.cuCtxSynchronize() }
    }
    simulated fn cudaDeviceReset() -> CudaError {
        // SAFETY: no preconditions.
        unsafe { ready()?.cuDevicePrimaryCtxReset(device()?) }
    }
    simulated fn cudaDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) -> CudaError {
        // SAFETY: the program gives a place for a number.
        unsafe { driver()?.cuDeviceCanAccessPeer(can, device, peer) }
    }
    simulated fn cudaDeviceEnablePeerAccess(peer: c_int, flags: c_uint) -> CudaError {
        // SAFETY: the context is retained.
        unsafe { ready()?.cuCtxEnablePeerAccess(primary(peer)?, flags) }
    }
    simulated fn cudaDeviceDisablePeerAccess(peer: c_int) -> CudaError {
        // SAFETY: the context is retained.
        unsafe { ready()?.cuCtxDisablePeerAccess(primary(peer)?) }
    }
    simulated fn cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> CudaError {
        // SAFETY: the program gives places for numbers, or null.
        unsafe { ready()?.cuCtxGetStreamPriorityRange(least, greatest) }
    }
    simulated fn cudaDeviceGetLimit(value: *mut usize, limit: c_int) -> CudaError {
        // SAFETY: the program gives a place for a size.
        unsafe { ready()?.cuCtxGetLimit(value, limit) }
    }
    simulated fn cudaDeviceSetLimit(limit: c_int, value: usize) -> CudaError {
        // SAFETY: no preconditions.
        unsafe { ready()?.cuCtxSetLimit(limit, value) }
    }
    no_op fn cudaDeviceSetCacheConfig(_configuration: c_int) -> CudaError { Ok(()) }
    simulated fn cudaDeviceGetDefaultMemPool(pool: *mut usize, device: c_int) -> CudaError {
        // SAFETY: the program gives a place for a handle.
        unsafe { driver()?.cuDeviceGetDefaultMemPool(pool, device) }
    }
    simulated fn cudaDeviceGetMemPool(pool: *mut usize, device: c_int) -> CudaError {
        // SAFETY: the program gives a place for a handle.
        unsafe { driver()?.cuDeviceGetMemPool(pool, device) }
    }
    simulated fn cudaDeviceSetMemPool(device: c_int, pool: usize) -> CudaError {
        // SAFETY: the driver checks the handle.
        unsafe { driver()?.cuDeviceSetMemPool(device, pool) }
    }
    simulated fn cudaDeviceGetGraphMemAttribute(device: c_int, attribute: c_int, value: *mut c_void) -> CudaError {
        // SAFETY: the program gives a place for the attribute's value.
        unsafe { driver()?.cuDeviceGetGraphMemAttribute(device, attribute, value) }
    }
    simulated fn cudaDeviceSetGraphMemAttribute(device: c_int, attribute: c_int, value: *mut c_void) -> CudaError {
        // SAFETY: the program gives the attribute's value.
        unsafe { driver()?.cuDeviceSetGraphMemAttribute(device, attribute, value) }
    }
    simulated fn cudaDriverGetVersion(number: Out<'_, c_int>) -> CudaError {
        store(number, driver()?.version()?);
        Ok(())
    }
    simulated fn cudaRuntimeGetVersion(number: Out<'_, c_int>) -> CudaError {
        store(number, version::runtime());
        Ok(())
    }
    no_op fn cudaProfilerStart() -> CudaError { Ok(()) }
    no_op fn cudaProfilerStop() -> CudaError { Ok(()) }
}
