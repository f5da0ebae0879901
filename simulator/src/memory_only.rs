//! What only memscope's simulated CUDA runtime (simulator/runtime/) tells the driver, as exports of our own.
//!
//! Owns: a process that computes nothing whatever its environment says, because its kernels are of libraries that are not
//! here; the end of what is known of device memory when such a kernel would have run. Refuses: to be part of the driver API:
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

/// 1 if the bytes at a device address are those that the program wrote there.
#[unsafe(no_mangle)]
extern "C" fn memscope_simulator_knows(address: u64, bytes: u64) -> c_int {
    c_int::from(MEMORY.lock().side_table.read(address, bytes).is_some())
}
