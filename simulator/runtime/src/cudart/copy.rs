//! Copies and fills.
//!
//! Owns: counting what is read back from the device. Refuses: to move bytes; the driver keeps small host-to-device copies and
//! answers reads of them until something runs on the device, and zeros else.

use crate::calls;
use crate::driver::Driver;
use crate::nccl::{settle, wait_for_stream};
use crate::status::CudaError;
use crate::thread::ready;
use std::ffi::{c_int, c_void};

/// CU_MEMORYTYPE_UNIFIED.
const UNIFIED: u32 = 4;

/// CUDA_MEMCPY2D.
#[repr(C)]
struct Side {
    x: usize,
    y: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: usize,
    pitch: usize,
}

#[repr(C)]
struct Rows {
    source: Side,
    destination: Side,
    width: usize,
    height: usize,
}

/// True for device memory (neither pinned nor managed nor unknown to the driver).
fn on_device(driver: &Driver, address: u64) -> bool {
    const NUMBERS: [c_int; 2] = [2, 8];
    let (mut kind, mut managed) = (0_u32, 0_u8);
    let places: [*mut c_void; 2] = [(&raw mut kind).cast(), (&raw mut managed).cast()];
    // SAFETY: each place is of its attribute's type.
    let known = unsafe { driver.cuPointerGetAttributes(2, NUMBERS.as_ptr(), places.as_ptr(), address) };
    known.is_ok() && kind == 2 && managed == 0
}

/// Before a copy: what collectives left at either side is settled, and a read of the device is counted.
fn count(driver: &Driver, destination: u64, source: u64, bytes: usize) {
    settle(&[(destination, bytes), (source, bytes)]);
    if bytes > 0 && on_device(driver, source) && !on_device(driver, destination) {
        calls::read_back(bytes, driver.knows(source, bytes));
    }
}

api! {
    simulated fn cudaMemcpy(destination: u64, source: u64, bytes: usize, _kind: c_int) -> CudaError {
        let driver = ready()?;
        count(driver, destination, source, bytes);
        wait_for_stream(0);
        // SAFETY: the program vouches for host ranges; the driver checks device ranges.
        unsafe { driver.cuMemcpy(destination, source, bytes) }
    }
    simulated fn cudaMemcpyAsync(
        destination: u64, source: u64, bytes: usize, _kind: c_int, stream: usize,
    ) -> CudaError {
        let driver = ready()?;
        count(driver, destination, source, bytes);
        // SAFETY: as above.
        unsafe { driver.cuMemcpyAsync(destination, source, bytes, stream) }
    }
    simulated fn cudaMemcpyPeer(
        destination: u64, _to: c_int, source: u64, _from: c_int, bytes: usize,
    ) -> CudaError {
        settle(&[(destination, bytes), (source, bytes)]);
        // SAFETY: as above; addresses are unified.
        unsafe { ready()?.cuMemcpy(destination, source, bytes) }
    }
    simulated fn cudaMemcpyPeerAsync(
        destination: u64, _to: c_int, source: u64, _from: c_int, bytes: usize, stream: usize,
    ) -> CudaError {
        settle(&[(destination, bytes), (source, bytes)]);
        // SAFETY: as above.
        unsafe { ready()?.cuMemcpyAsync(destination, source, bytes, stream) }
    }
    simulated fn cudaMemcpy2DAsync(
        destination: u64, destination_pitch: usize, source: u64, source_pitch: usize, width: usize, height: usize,
        _kind: c_int, stream: usize,
    ) -> CudaError {
        let driver = ready()?;
        settle(&[(destination, destination_pitch * height), (source, source_pitch * height)]);
        count(driver, destination, source, width * height);
        let side =
            |address, pitch| Side { x: 0, y: 0, kind: UNIFIED, host: 0, device: address, array: 0, pitch };
        let rows = Rows {
            source: side(source, source_pitch),
            destination: side(destination, destination_pitch),
            width,
            height,
        };
        // SAFETY: the description is complete; the program vouches for host ranges.
        unsafe { driver.cuMemcpy2DAsync((&raw const rows).cast(), stream) }
    }
    simulated fn cudaMemset(address: u64, value: c_int, bytes: usize) -> CudaError {
        settle(&[(address, bytes)]);
        // SAFETY: the driver checks the range.
        unsafe { ready()?.cuMemsetD8(address, value as u8, bytes) }
    }
    simulated fn cudaMemsetAsync(address: u64, value: c_int, bytes: usize, stream: usize) -> CudaError {
        settle(&[(address, bytes)]);
        // SAFETY: the driver checks the range.
        unsafe { ready()?.cuMemsetD8Async(address, value as u8, bytes, stream) }
    }
}
