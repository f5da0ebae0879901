//! What the CUDA runtime keeps for each thread: its device and its last error.
//!
//! Owns: making a context current when the thread first needs one. Refuses: to retain a primary context before.

use crate::driver::{Driver, driver};
use crate::status::CudaError;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

thread_local! {
    static DEVICE: Cell<i32> = const { Cell::new(0) };
    static LAST: Cell<i32> = const { Cell::new(0) };
}

/// Primary contexts retained by this runtime, by device: one reference each, never released.
static PRIMARIES: Mutex<BTreeMap<i32, usize>> = Mutex::new(BTreeMap::new());

/// Keeps an error for cudaGetLastError; success leaves the last one.
pub fn note_error(error: CudaError) {
    // Not ready is an answer, not an error.
    if error.0 != 0 && error != CudaError::NOT_READY {
        LAST.set(error.0);
    }
}

/// The last error; `take` forgets it.
pub fn last_error(take: bool) -> CudaError {
    CudaError(if take { LAST.take() } else { LAST.get() })
}

/// The thread's device: that of its current context, else the one that it chose.
pub fn device() -> Result<i32, CudaError> {
    let driver = driver()?;
    Ok(if current(driver)? == 0 { DEVICE.get() } else { device_of_context(driver)? })
}

/// Chooses a device and makes its primary context current.
pub fn set_device(device: i32) -> Result<(), CudaError> {
    let driver = driver()?;
    if device < 0 || device >= driver.device_count()? {
        return Err(CudaError::INVALID_DEVICE);
    }
    DEVICE.set(device);
    bind(driver, device)
}

/// The driver, with a context current in this thread.
pub fn ready() -> Result<&'static Driver, CudaError> {
    let driver = driver()?;
    if current(driver)? == 0 {
        bind(driver, DEVICE.get())?;
    }
    Ok(driver)
}

/// The primary context of a device, retained.
pub fn primary(device: i32) -> Result<usize, CudaError> {
    let driver = driver()?;
    let mut primaries = PRIMARIES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&context) = primaries.get(&device) {
        return Ok(context);
    }
    let mut context = 0;
    // SAFETY: `context` is good for a write.
    unsafe { driver.cuDevicePrimaryCtxRetain(&mut context, device)? };
    primaries.insert(device, context);
    Ok(context)
}

fn bind(driver: &Driver, device: i32) -> Result<(), CudaError> {
    let context = primary(device)?;
    // SAFETY: the context was retained and is never released.
    unsafe { driver.cuCtxSetCurrent(context) }
}

fn current(driver: &Driver) -> Result<usize, CudaError> {
    let mut context = 0;
    // SAFETY: `context` is good for a write.
    unsafe { driver.cuCtxGetCurrent(&mut context)? };
    Ok(context)
}

fn device_of_context(driver: &Driver) -> Result<i32, CudaError> {
    let mut device = 0;
    // SAFETY: `device` is good for a write.
    unsafe { driver.cuCtxGetDevice(&mut device)? };
    Ok(device)
}
