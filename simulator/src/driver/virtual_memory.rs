//! Virtual memory management.

use super::pool::{DESCRIPTOR, Location};
use super::{Out, given, store};
use crate::error::{CUresult, Status};
use crate::memory::MEMORY;
use crate::memory::virtual_memory::{GRANULARITY, Released};
use crate::process::process;
use crate::stream;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

/// CU_MEM_ALLOCATION_TYPE_PINNED.
const PINNED: c_int = 1;

/// CUmemAllocationProp.
#[repr(C)]
#[derive(Clone, Copy)]
struct Properties {
    allocation_type: c_int,
    handle_types: c_int,
    location: Location,
    metadata: *const c_void,
    flags: [u8; 8],
}

/// CUmemAccessDesc.
#[repr(C)]
struct Access {
    location: Location,
    flags: c_int,
}

fn checked(properties: Option<&Properties>) -> Result<&Properties, CUresult> {
    let properties = given(properties)?;
    process()?.device(properties.location.ordinal()?)?;
    match properties {
        Properties { allocation_type: PINNED, handle_types: 0 | DESCRIPTOR, .. } => Ok(properties),
        Properties { allocation_type: PINNED, .. } => Err(CUresult::ERROR_NOT_SUPPORTED),
        _ => Err(CUresult::ERROR_INVALID_VALUE),
    }
}

/// Gives back what handles that nobody holds any more were charged.
pub(super) fn release(charges: Released) -> Status {
    let process = process()?;
    for (physical, bytes) in charges {
        process.release(physical, bytes);
    }
    Ok(())
}

exports! {
    10020 fn cuMemGetAllocationGranularity(
        granularity: Out<'_, usize>, properties: Option<&Properties>, option: c_uint,
    ) {
        checked(properties)?;
        if option > 1 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        store(granularity, GRANULARITY as usize)
    }
    10020 fn cuMemAddressReserve(
        address: Out<'_, u64>, bytes: usize, alignment: usize, _hint: u64, flags: c_ulonglong,
    ) {
        process()?;
        let address = given(address)?;
        if flags != 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        address.write(MEMORY.lock().virtual_memory.reserve(bytes as u64, alignment as u64)?);
        Ok(())
    }
    10020 fn cuMemAddressFree(address: u64, bytes: usize) {
        process()?;
        MEMORY.lock().virtual_memory.free(address, bytes as u64)
    }
    10020 fn cuMemCreate(handle: Out<'_, u64>, bytes: usize, properties: Option<&Properties>, flags: c_ulonglong) {
        let (process, handle) = (process()?, given(handle)?);
        let device = process.device(checked(properties)?.location.ordinal()?)?;
        let bytes = bytes as u64;
        if flags != 0 || bytes == 0 || !bytes.is_multiple_of(GRANULARITY) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let mut memory = MEMORY.lock();
        memory.charge(process, device.physical, bytes)?;
        match memory.virtual_memory.create(bytes, device.physical, device.ordinal) {
            Ok(created) => handle.write(created),
            Err(result) => {
                process.release(device.physical, bytes);
                return Err(result);
            }
        };
        Ok(())
    }
    10020 fn cuMemRelease(handle: u64) {
        process()?;
        let released = MEMORY.lock().virtual_memory.release(handle)?;
        release(released)
    }
    10020 fn cuMemMap(address: u64, bytes: usize, offset: usize, handle: u64, flags: c_ulonglong) {
        process()?;
        if flags != 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        MEMORY.lock().virtual_memory.map(address, bytes as u64, offset as u64, handle)
    }
    10020 fn cuMemUnmap(address: u64, bytes: usize) {
        process()?;
        stream::finish_all();
        let released = {
            let mut memory = MEMORY.lock();
            memory.side_table.erase(address, bytes as u64);
            memory.virtual_memory.unmap(address, bytes as u64)?
        };
        release(released)
    }
    10020 fn cuMemSetAccess(address: u64, bytes: usize, access: *const Access, count: usize) {
        let process = process()?;
        if access.is_null() || count == 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        // SAFETY: the program gives `count` descriptions.
        let access = unsafe { std::slice::from_raw_parts(access, count) };
        for one in access {
            process.device(one.location.ordinal()?)?;
        }
        let accessible = access.iter().any(|one| one.flags != 0);
        MEMORY.lock().virtual_memory.set_access(address, bytes as u64, accessible)
    }
    10020 fn cuMemGetAccess(flags: Out<'_, c_ulonglong>, location: Option<&Location>, address: u64) {
        process()?.device(given(location)?.ordinal()?)?;
        MEMORY.lock().virtual_memory.region(address).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        store(flags, 3) // readable and writable
    }
    11000 fn cuMemRetainAllocationHandle(handle: Out<'_, u64>, address: u64) {
        process()?;
        store(handle, MEMORY.lock().virtual_memory.retain(address)?)
    }
    10020 fn cuMemExportToShareableHandle(shared: Out<'_, c_int>, handle: u64, kind: c_int, flags: c_ulonglong) {
        process()?;
        match (kind, flags) {
            (DESCRIPTOR, 0) => store(shared, MEMORY.lock().virtual_memory.export(handle)?),
            (_, 0) => Err(CUresult::ERROR_NOT_SUPPORTED),
            _ => Err(CUresult::ERROR_INVALID_VALUE),
        }
    }
    10020 fn cuMemImportFromShareableHandle(handle: Out<'_, u64>, shared: usize, kind: c_int) {
        if kind != DESCRIPTOR {
            return Err(CUresult::ERROR_NOT_SUPPORTED);
        }
        let process = process()?;
        let ordinal = |physical| Ok(process.physical_device(physical)?.ordinal);
        store(handle, MEMORY.lock().virtual_memory.import(shared as c_int, ordinal)?)
    }
    10020 fn cuMemGetAllocationPropertiesFromHandle(properties: Out<'_, Properties>, handle: u64) {
        process()?;
        let ordinal = MEMORY.lock().virtual_memory.physical(handle)?.ordinal;
        let location = Location::device(ordinal);
        let (metadata, flags) = (std::ptr::null(), [0; 8]);
        store(properties, Properties { allocation_type: PINNED, handle_types: DESCRIPTOR, location, metadata, flags })
    }
}
