//! What only memscope's simulated CUDA runtime (simulator/runtime/) tells the driver, as exports of our own.
//!
//! Owns: a process that computes nothing whatever its environment says, because its kernels are of libraries that are not
//! here; what is known of device memory, which ends when such a
//! kernel would have run. Refuses: to be part of the driver API:
//! no program calls these.

use crate::memory::MEMORY;
use std::ffi::c_int;

/// From now on this process touches no device memory.
#[unsafe(no_mangle)]
extern "C" fn memscope_simulator_memory_only() {
    crate::process::stop_computing();
}

/// Something ran that may have written anywhere: no byte of device memory is known any more.
#[unsafe(no_mangle)]
extern "C" fn memscope_simulator_launched() {
    MEMORY.lock().side_table.clear();
}

/// 1 if the bytes at a device address are those that the program wrote there, and then they are put at `place`.
///
/// # Safety
/// `place` must be null or have room for them.
#[unsafe(no_mangle)]
unsafe extern "C" fn memscope_simulator_look(address: u64, bytes: u64, place: *mut u8) -> c_int {
    let mut memory = MEMORY.lock();
    let Some(data) = memory.side_table.read(address, bytes) else { return 0 };
    if !place.is_null() {
        // SAFETY: the caller vouches for the place.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), place, data.len()) };
    }
    1
}

/// A collective left these bytes at a device address, or, if `data` is null, bytes that are not known.
///
/// # Safety
/// `data` must be null or have so many bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memscope_simulator_note(address: u64, bytes: u64, data: *const u8) {
    let mut memory = MEMORY.lock();
    if data.is_null() {
        memory.side_table.erase(address, bytes);
    } else if memory.covers(address, bytes) {
        // SAFETY: the caller vouches for the data.
        memory.side_table.write(address, unsafe { std::slice::from_raw_parts(data, bytes as usize) });
    }
}
