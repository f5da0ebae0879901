//! What memscope's simulated CUDA libraries have to say of a run: it goes to the log, which survives whatever the program does.
//!
//! Owns: the functions that those libraries look up and call; no program does. Refuses: to sum up: each fact is an event.

use core::ffi::{c_char, c_int};
use memscope_wire::Event;

use crate::log::append;
use crate::names::identify;

/// The CUDA libraries of this process are simulated: nothing is computed in it.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_simulation_not_computed() {
    append(&Event::NotComputed);
}

/// The program called a function that is not simulated.
///
/// # Safety
/// `function` is null or a terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn memscope_simulation_missed(function: *const c_char) {
    // SAFETY: the caller's promise.
    let function = unsafe { identify(function) };
    append(&Event::NotSimulated { function });
}

/// The program read `bytes` of the device at `line`; `known` unless a GPU would have computed them.
///
/// # Safety
/// `line` is null or a terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn memscope_simulation_read(line: *const c_char, bytes: u64, known: c_int) {
    // SAFETY: the caller's promise.
    let line = unsafe { identify(line) };
    append(&Event::DeviceRead { line, bytes, known: known != 0 });
}
