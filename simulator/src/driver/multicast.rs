//! Multicast objects, in one process.

use super::virtual_memory::release;
use super::{Out, given, store};
use crate::device::has_multicast;
use crate::error::CUresult;
use crate::memory::MEMORY;
use crate::memory::virtual_memory::GRANULARITY;
use crate::process::{Process, process};
use std::ffi::{c_int, c_uint, c_ulonglong};

/// CUmulticastObjectProp.
#[repr(C)]
struct Properties {
    devices: c_uint,
    bytes: usize,
    handle_types: c_ulonglong,
    flags: c_ulonglong,
}

/// This process, or CUDA_ERROR_NOT_SUPPORTED on devices without multicast.
fn multicasting() -> Result<&'static Process, CUresult> {
    let process = process()?;
    if has_multicast(process.state.device()) { Ok(process) } else { Err(CUresult::ERROR_NOT_SUPPORTED) }
}

exports! {
    12010 fn cuMulticastCreate(object: Out<'_, u64>, properties: Option<&Properties>) {
        let (process, of, object) = (multicasting()?, given(properties)?, given(object)?);
        if of.flags != 0 || of.devices as usize > process.visible.len() {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let first = process.device(0)?;
        let mut memory = MEMORY.lock();
        let (bytes, size) = (of.bytes as u64, of.devices as usize);
        object.write(memory.virtual_memory.create_team(bytes, size, first.physical, first.ordinal)?);
        Ok(())
    }
    12010 fn cuMulticastAddDevice(object: u64, device: c_int) {
        let device = multicasting()?.device(device)?;
        MEMORY.lock().virtual_memory.join(object, device.physical)
    }
    12010 fn cuMulticastBindMem(
        object: u64, offset: usize, memory: u64, memory_offset: usize, bytes: usize, flags: c_ulonglong,
    ) {
        multicasting()?;
        if flags != 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let memory = (memory, memory_offset as u64);
        MEMORY.lock().virtual_memory.bind(object, offset as u64, memory, bytes as u64)
    }
    12010 fn cuMulticastBindAddr(object: u64, offset: usize, address: u64, bytes: usize, flags: c_ulonglong) {
        multicasting()?;
        if flags != 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        MEMORY.lock().virtual_memory.bind_mapped(object, offset as u64, address, bytes as u64)
    }
    12010 fn cuMulticastUnbind(object: u64, device: c_int, offset: usize, bytes: usize) {
        let device = multicasting()?.device(device)?;
        let mut memory = MEMORY.lock();
        let released = memory.virtual_memory.unbind(object, device.physical, offset as u64, bytes as u64)?;
        drop(memory);
        release(released)
    }
    12010 fn cuMulticastGetGranularity(granularity: Out<'_, usize>, properties: Option<&Properties>, option: c_uint) {
        multicasting()?;
        given(properties)?;
        if option > 1 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        store(granularity, GRANULARITY as usize)
    }
}
