//! Kernels: launches, attributes, occupancy.
//!
//! Owns: that a launch does nothing and is told to the driver, for which the contents of device memory are then unknown.
//! Occupancy follows the device's documented limits, with the registers of no kernel in particular.

use crate::api::{Out, store};
use crate::calls;
use crate::driver::driver;
use crate::status::CudaError;
use crate::thread::{device, ready};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// `dim3`
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Dim3 {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

/// `cudaFuncAttributes`
#[repr(C)]
#[derive(Default)]
struct FunctionAttributes {
    shared_bytes: usize,
    constant_bytes: usize,
    local_bytes: usize,
    max_threads: c_int,
    registers: c_int,
    ptx_version: c_int,
    binary_version: c_int,
    cache_mode: c_int,
    max_dynamic_shared: c_int,
    carveout: c_int,
    cluster: [c_int; 6],
    reserved: [c_int; 16],
}

const _: () = assert!(size_of::<FunctionAttributes>() == 144);

/// Blocks of `threads` threads and `shared` bytes that fit on a multiprocessor.
fn resident_blocks(threads: c_int, shared: usize) -> Result<c_int, CudaError> {
    if threads <= 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    let (driver, device) = (driver()?, device()?);
    let limit = |attribute| driver.attribute(attribute, device);
    let by_threads = limit(39)? / (threads as u32).next_multiple_of(32) as c_int;
    let shared = shared + usize::try_from(limit(111)?).unwrap_or(0);
    let by_shared = usize::try_from(limit(81)?).unwrap_or(0).checked_div(shared).unwrap_or(usize::MAX);
    Ok(by_threads.min(limit(106)?).min(c_int::try_from(by_shared).unwrap_or(c_int::MAX)))
}

fn launched(name: &'static str) -> Result<(), CudaError> {
    ready()?;
    calls::computed::<CudaError>(name).result()
}

api! {
    no_op fn cudaLaunchKernel(
        _function: *const c_void, _grid: Dim3, _block: Dim3, _arguments: *mut *mut c_void, _shared: usize,
        _stream: usize,
    ) -> CudaError { launched("cudaLaunchKernel") }
    no_op fn cudaLaunchKernelExC(
        _configuration: *const c_void, _function: *const c_void, _arguments: *mut *mut c_void,
    ) -> CudaError { launched("cudaLaunchKernelExC") }
    no_op fn cudaLaunchCooperativeKernel(
        _function: *const c_void, _grid: Dim3, _block: Dim3, _arguments: *mut *mut c_void, _shared: usize,
        _stream: usize,
    ) -> CudaError { launched("cudaLaunchCooperativeKernel") }
    no_op fn __cudaLaunchKernel(
        _kernel: *const c_void, _grid: Dim3, _block: Dim3, _arguments: *mut *mut c_void, _shared: usize,
        _stream: usize,
    ) -> CudaError { launched("__cudaLaunchKernel") }
    no_op fn cudaFuncSetAttribute(_function: *const c_void, _attribute: c_int, _value: c_int) -> CudaError { Ok(()) }
    no_op fn cudaFuncSetCacheConfig(_function: *const c_void, _configuration: c_int) -> CudaError { Ok(()) }
    no_op fn cudaKernelSetAttributeForDevice(
        _kernel: *const c_void, _attribute: c_int, _value: c_int, _device: c_int,
    ) -> CudaError { Ok(()) }
    simulated fn cudaFuncGetAttributes(attributes: Out<'_, FunctionAttributes>, _function: *const c_void) -> CudaError {
        let (driver, device) = (driver()?, device()?);
        let version = driver.attribute(75, device)? * 10 + driver.attribute(76, device)?;
        store(attributes, FunctionAttributes {
            max_threads: driver.attribute(1, device)?,
            // Registers are assigned by a compiler: a number at which 1024 threads fit.
            registers: 32,
            ptx_version: version,
            binary_version: version,
            max_dynamic_shared: driver.attribute(8, device)?,
            carveout: -1,
            ..FunctionAttributes::default()
        });
        Ok(())
    }
    simulated fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<'_, c_int>, _function: *const c_void, threads: c_int, shared: usize,
    ) -> CudaError {
        store(blocks, resident_blocks(threads, shared)?);
        Ok(())
    }
    simulated fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<'_, c_int>, _function: *const c_void, threads: c_int, shared: usize, _flags: c_uint,
    ) -> CudaError {
        store(blocks, resident_blocks(threads, shared)?);
        Ok(())
    }
    simulated fn cudaLibraryLoadData(
        library: *mut usize, image: *const c_void, options: *const c_void, values: *const c_void, count: c_uint,
        library_options: *const c_void, library_values: *const c_void, library_count: c_uint,
    ) -> CudaError {
        // SAFETY: the arguments are those of cuLibraryLoadData.
        unsafe {
            ready()?.cuLibraryLoadData(
                library, image, options, values, count, library_options, library_values, library_count,
            )
        }
    }
    simulated fn cudaLibraryUnload(library: usize) -> CudaError {
        // SAFETY: the driver checks the handle.
        unsafe { ready()?.cuLibraryUnload(library) }
    }
    simulated fn cudaLibraryGetKernel(kernel: *mut usize, library: usize, name: *const c_char) -> CudaError {
        // SAFETY: the program gives a terminated name and a place for a handle.
        unsafe { ready()?.cuLibraryGetKernel(kernel, library, name) }
    }
}
