//! Memory of devices, and the processes that hold it.
//!
//! Version 2 keeps the firmware's bytes apart as `reserved`; version 1 counts them as used, as the real one does.

use super::{Device, Return, Status, exports, physical, state, store};
use crate::driver::Out;
use std::ffi::c_uint;

/// nvmlMemory_t.
#[repr(C)]
struct Memory1 {
    total: u64,
    free: u64,
    used: u64,
}

/// nvmlMemory_v2_t.
#[repr(C)]
struct Memory2 {
    version: c_uint,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// What nvmlMemory_v2_t.version must hold.
const MEMORY_2: c_uint = size_of::<Memory2>() as c_uint | 2 << 24;

/// nvmlProcessInfo_v1_t.
#[repr(C)]
struct Process1 {
    pid: c_uint,
    used: u64,
}

/// nvmlProcessInfo_v2_t, also that of version 3.
#[repr(C)]
struct Process2 {
    pid: c_uint,
    used: u64,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

/// Instance of a device that is not divided.
const NO_INSTANCE: c_uint = u32::MAX;

impl From<(u32, u64)> for Process1 {
    fn from((pid, used): (u32, u64)) -> Process1 {
        Process1 { pid, used }
    }
}

impl From<(u32, u64)> for Process2 {
    fn from((pid, used): (u32, u64)) -> Process2 {
        Process2 { pid, used, gpu_instance: NO_INSTANCE, compute_instance: NO_INSTANCE }
    }
}

/// Fills a list of processes. With too little room, says how much is needed.
///
/// # Safety
/// `list` must be null or have room for `count` entries.
unsafe fn processes<T: From<(u32, u64)>>(device: Device, count: Option<&mut c_uint>, list: *mut T) -> Status {
    let physical = physical(device)?;
    let count = count.ok_or(Return::INVALID_ARGUMENT)?;
    let room = std::mem::replace(count, 0) as usize;
    let found = state()?.processes(physical);
    *count = found.len() as c_uint;
    if found.len() > room {
        return Err(Return::INSUFFICIENT_SIZE);
    }
    if list.is_null() && !found.is_empty() {
        return Err(Return::INVALID_ARGUMENT);
    }
    for (index, process) in found.into_iter().enumerate() {
        // SAFETY: there is room, as the caller says and the count above.
        unsafe { list.add(index).write(process.into()) };
    }
    Ok(())
}

/// A simulated device draws nothing.
fn none(device: Device, count: Option<&mut c_uint>) -> Status {
    physical(device)?;
    *count.ok_or(Return::INVALID_ARGUMENT)? = 0;
    Ok(())
}

exports! {
    fn nvmlDeviceGetMemoryInfo(device: Device, memory: Out<'_, Memory1>) {
        let usage = state()?.usage(physical(device)?);
        let used = usage.used() + usage.reserved;
        store(memory, Memory1 { total: usage.capacity, free: usage.free(), used })
    }
    fn nvmlDeviceGetMemoryInfo_v2(device: Device, memory: Option<&mut Memory2>) {
        let physical = physical(device)?;
        let memory = memory.ok_or(Return::INVALID_ARGUMENT)?;
        if memory.version != MEMORY_2 {
            return Err(Return::ARGUMENT_VERSION_MISMATCH);
        }
        let usage = state()?.usage(physical);
        memory.total = usage.capacity;
        memory.reserved = usage.reserved;
        memory.free = usage.free();
        memory.used = usage.used();
        Ok(())
    }
    fn nvmlDeviceGetComputeRunningProcesses(device: Device, count: Option<&mut c_uint>, list: *mut Process1) {
        // SAFETY: the program gives room for `count` entries.
        unsafe { processes(device, count, list) }
    }
    fn nvmlDeviceGetComputeRunningProcesses_v2(device: Device, count: Option<&mut c_uint>, list: *mut Process2) {
        // SAFETY: the program gives room for `count` entries.
        unsafe { processes(device, count, list) }
    }
    fn nvmlDeviceGetComputeRunningProcesses_v3(device: Device, count: Option<&mut c_uint>, list: *mut Process2) {
        // SAFETY: the program gives room for `count` entries.
        unsafe { processes(device, count, list) }
    }
    fn nvmlDeviceGetGraphicsRunningProcesses(device: Device, count: Option<&mut c_uint>, _list: *mut Process1) {
        none(device, count)
    }
    fn nvmlDeviceGetGraphicsRunningProcesses_v2(device: Device, count: Option<&mut c_uint>, _list: *mut Process2) {
        none(device, count)
    }
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(device: Device, count: Option<&mut c_uint>, _list: *mut Process2) {
        none(device, count)
    }
    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(device: Device, count: Option<&mut c_uint>, _list: *mut Process2) {
        none(device, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_have_the_sizes_of_the_header() {
        assert_eq!(MEMORY_2, 40 | 2 << 24);
        assert_eq!(size_of::<Process1>(), 16);
        assert_eq!(size_of::<Process2>(), 24);
    }
}
