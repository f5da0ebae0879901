//! Memory: device, managed, pinned and stream-ordered; pools; what a pointer is.
//!
//! Owns: which driver function stands behind which. Every byte is allocated by the driver, where the interposer sees it.

use crate::api::{Out, store};
use crate::status::CudaError;
use crate::thread::{primary, ready};
use crate::version;
use std::ffi::{c_int, c_uint, c_void};

/// `cudaPointerAttributes`; CUDA 13 has eight more reserved words behind it.
#[repr(C)]
#[derive(Default)]
struct PointerAttributes {
    kind: c_int,
    device: c_int,
    device_pointer: u64,
    host_pointer: u64,
}

/// Reserved bytes behind the attributes in CUDA 13.
const RESERVED: usize = 64;

/// cudaMemoryType of what the driver says: unregistered 0, host 1, device 2, managed 3.
fn attributes(address: u64) -> Result<PointerAttributes, CudaError> {
    const NUMBERS: [c_int; 5] = [2, 9, 3, 4, 8];
    let (mut kind, mut device, mut on_device, mut on_host, mut managed) = (0_u32, 0_i32, 0_u64, 0_u64, 0_u8);
    let places: [*mut c_void; 5] = [
        (&raw mut kind).cast(),
        (&raw mut device).cast(),
        (&raw mut on_device).cast(),
        (&raw mut on_host).cast(),
        (&raw mut managed).cast(),
    ];
    // SAFETY: each place is of its attribute's type.
    unsafe { ready()?.cuPointerGetAttributes(5, NUMBERS.as_ptr(), places.as_ptr(), address)? };
    Ok(match (kind, managed) {
        (0, _) => PointerAttributes { device: -2, ..PointerAttributes::default() },
        (_, 1..) => PointerAttributes { kind: 3, device, device_pointer: on_device, host_pointer: on_host },
        (kind, _) => {
            PointerAttributes { kind: kind as c_int, device, device_pointer: on_device, host_pointer: on_host }
        }
    })
}

api! {
    simulated fn cudaMalloc(address: *mut u64, bytes: usize) -> CudaError {
        if bytes == 0 {
            // The driver refuses what the runtime answers with a null pointer.
            // SAFETY: the program gives a place for an address.
            return unsafe { address.as_mut() }.map(|place| *place = 0).ok_or(CudaError::INVALID_VALUE);
        }
        // SAFETY: the program gives a place for an address.
        unsafe { ready()?.cuMemAlloc(address, bytes) }
    }
    simulated fn cudaMallocPitch(address: *mut u64, pitch: *mut usize, width: usize, height: usize) -> CudaError {
        // SAFETY: the program gives places for address and pitch.
        unsafe { ready()?.cuMemAllocPitch(address, pitch, width, height, 4) }
    }
    simulated fn cudaMallocManaged(address: *mut u64, bytes: usize, flags: c_uint) -> CudaError {
        // SAFETY: the program gives a place for an address.
        unsafe { ready()?.cuMemAllocManaged(address, bytes, flags) }
    }
    simulated fn cudaFree(address: u64) -> CudaError {
        // SAFETY: the driver checks the address.
        unsafe { ready()?.cuMemFree(address) }
    }
    simulated fn cudaMallocAsync(address: *mut u64, bytes: usize, stream: usize) -> CudaError {
        // SAFETY: the program gives a place for an address.
        unsafe { ready()?.cuMemAllocAsync(address, bytes, stream) }
    }
    simulated fn cudaMallocFromPoolAsync(address: *mut u64, bytes: usize, pool: usize, stream: usize) -> CudaError {
        // SAFETY: the program gives a place for an address.
        unsafe { ready()?.cuMemAllocFromPoolAsync(address, bytes, pool, stream) }
    }
    simulated fn cudaFreeAsync(address: u64, stream: usize) -> CudaError {
        // SAFETY: the driver checks the address.
        unsafe { ready()?.cuMemFreeAsync(address, stream) }
    }
    simulated fn cudaMallocHost(pointer: *mut u64, bytes: usize) -> CudaError {
        // SAFETY: the program gives a place for an address.
        unsafe { ready()?.cuMemHostAlloc(pointer, bytes, 0) }
    }
    simulated fn cudaHostAlloc(pointer: *mut u64, bytes: usize, flags: c_uint) -> CudaError {
        // SAFETY: the program gives a place for an address.
        unsafe { ready()?.cuMemHostAlloc(pointer, bytes, flags) }
    }
    simulated fn cudaFreeHost(pointer: u64) -> CudaError {
        // SAFETY: the driver checks the address.
        unsafe { ready()?.cuMemFreeHost(pointer) }
    }
    simulated fn cudaHostRegister(pointer: u64, bytes: usize, flags: c_uint) -> CudaError {
        // SAFETY: the range is the program's.
        unsafe { ready()?.cuMemHostRegister(pointer, bytes, flags) }
    }
    simulated fn cudaHostUnregister(pointer: u64) -> CudaError {
        // SAFETY: the driver checks the address.
        unsafe { ready()?.cuMemHostUnregister(pointer) }
    }
    simulated fn cudaHostGetDevicePointer(address: *mut u64, pointer: u64, flags: c_uint) -> CudaError {
        // SAFETY: the program gives a place for an address.
        unsafe { ready()?.cuMemHostGetDevicePointer(address, pointer, flags) }
    }
    simulated fn cudaMemGetInfo(free: *mut usize, total: *mut usize) -> CudaError {
        // SAFETY: the program gives places for sizes.
        unsafe { ready()?.cuMemGetInfo(free, total) }
    }
    simulated fn cudaPointerGetAttributes(place: *mut u8, address: u64) -> CudaError {
        if place.is_null() {
            return Err(CudaError::INVALID_VALUE);
        }
        let found = attributes(address)?;
        // SAFETY: the program gives a structure of its CUDA version.
        unsafe {
            place.cast::<PointerAttributes>().write(found);
            if !version::is_twelve() {
                place.add(size_of::<PointerAttributes>()).write_bytes(0, RESERVED);
            }
        }
        Ok(())
    }
    simulated fn cudaMemPoolGetAttribute(pool: usize, attribute: c_int, value: *mut c_void) -> CudaError {
        // SAFETY: the program gives a place for the attribute's value.
        unsafe { ready()?.cuMemPoolGetAttribute(pool, attribute, value) }
    }
    simulated fn cudaMemPoolSetAttribute(pool: usize, attribute: c_int, value: *mut c_void) -> CudaError {
        // SAFETY: the program gives the attribute's value.
        unsafe { ready()?.cuMemPoolSetAttribute(pool, attribute, value) }
    }
    simulated fn cudaMemPoolSetAccess(pool: usize, descriptions: *const c_void, count: usize) -> CudaError {
        // SAFETY: cudaMemAccessDesc is CUmemAccessDesc.
        unsafe { ready()?.cuMemPoolSetAccess(pool, descriptions, count) }
    }
    simulated fn cudaMemPoolTrimTo(pool: usize, bytes: usize) -> CudaError {
        // SAFETY: the driver checks the handle.
        unsafe { ready()?.cuMemPoolTrimTo(pool, bytes) }
    }
    no_op fn cudaMemPrefetchAsync() -> CudaError { Ok(()) }
    no_op fn cudaMemAdvise() -> CudaError { Ok(()) }
    simulated fn cudaInitDevice(device: c_int, _device_flags: c_uint, _flags: c_uint) -> CudaError {
        primary(device).map(|_| ())
    }
    simulated fn cudaHostGetFlags(flags: Out<'_, c_uint>, pointer: u64) -> CudaError {
        if attributes(pointer)?.kind != 1 {
            return Err(CudaError::INVALID_VALUE);
        }
        store(flags, 0);
        Ok(())
    }
}
