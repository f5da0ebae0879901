//! Pools of stream-ordered memory.

use super::{Out, given, store};
use crate::error::{CUresult, Status};
use crate::memory::MEMORY;
use crate::memory::pool::Value;
use crate::process::process;
use crate::registry::Handle;
use std::ffi::{c_int, c_uint, c_void};

/// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.
pub const DESCRIPTOR: c_int = 1;

/// CUmemLocation: kind (1 is a device) and number.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Location {
    kind: c_int,
    id: c_int,
}

impl Location {
    /// The location that is this device.
    pub fn device(ordinal: c_int) -> Location {
        Location { kind: 1, id: ordinal }
    }

    /// CUDA ordinal of the device that this location is; anything else is not simulated.
    pub fn ordinal(self) -> Result<c_int, CUresult> {
        if self.kind == 1 { Ok(self.id) } else { Err(CUresult::NOT_SIMULATED) }
    }
}

/// CUmemPoolProps: its size is 88 bytes in every version.
#[repr(C)]
struct Properties {
    allocation_type: c_int,
    handle_types: c_int,
    location: Location,
    security: *const c_void,
    limit: usize,
    reserved: [u8; 56],
}

fn default_pool(pool: Out<'_, Handle>, device: c_int) -> Status {
    let device = process()?.device(device)?;
    store(pool, MEMORY.lock().pools.default_of(device.ordinal, device.physical))
}

fn current_pool(pool: Out<'_, Handle>, device: c_int) -> Status {
    let device = process()?.device(device)?;
    store(pool, MEMORY.lock().pools.current_of(device.ordinal, device.physical))
}

fn of(location: Option<&Location>) -> Result<c_int, CUresult> {
    given(location)?.ordinal()
}

exports! {
    11020 fn cuDeviceGetDefaultMemPool(pool: Out<'_, Handle>, device: c_int) { default_pool(pool, device) }
    11020 fn cuDeviceGetMemPool(pool: Out<'_, Handle>, device: c_int) { current_pool(pool, device) }
    11020 fn cuDeviceSetMemPool(device: c_int, pool: Handle) {
        let device = process()?.device(device)?;
        MEMORY.lock().pools.set_current(device.ordinal, pool)
    }
    13000 fn cuMemGetDefaultMemPool(pool: Out<'_, Handle>, location: Option<&Location>, _kind: c_int) {
        default_pool(pool, of(location)?)
    }
    13000 fn cuMemGetMemPool(pool: Out<'_, Handle>, location: Option<&Location>, _kind: c_int) {
        current_pool(pool, of(location)?)
    }
    13000 fn cuMemSetMemPool(location: Option<&Location>, _kind: c_int, pool: Handle) {
        let device = process()?.device(of(location)?)?;
        MEMORY.lock().pools.set_current(device.ordinal, pool)
    }
    11020 fn cuMemPoolCreate(pool: Out<'_, Handle>, properties: Option<&Properties>) {
        let (pool, properties) = (given(pool)?, given(properties)?);
        let device = process()?.device(properties.location.ordinal()?)?;
        if properties.allocation_type != 1 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let is_exportable = match properties.handle_types {
            0 => false,
            DESCRIPTOR => true,
            _ => return Err(CUresult::NOT_SIMULATED),
        };
        let mut memory = MEMORY.lock();
        pool.write(memory.pools.create(device.ordinal, device.physical, properties.limit as u64, is_exportable));
        Ok(())
    }
    11020 fn cuMemPoolDestroy(pool: Handle) { MEMORY.lock().pools.destroy(process()?, pool) }
    11020 fn cuMemPoolTrimTo(pool: Handle, keep: usize) { MEMORY.lock().pools.trim(process()?, pool, keep as u64) }
    11020 fn cuMemPoolGetAttribute(pool: Handle, number: c_int, value: *mut c_void) {
        if value.is_null() {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        match MEMORY.lock().pools.attribute(pool, number)? {
            // SAFETY: the documentation makes this attribute an int at `value`.
            Value::Int(number) => unsafe { value.cast::<c_int>().write(number) },
            // SAFETY: the documentation makes this attribute a cuuint64_t at `value`.
            Value::Long(number) => unsafe { value.cast::<u64>().write(number) },
        }
        Ok(())
    }
    11020 fn cuMemPoolSetAttribute(pool: Handle, number: c_int, value: *const c_void) {
        let process = process()?;
        if value.is_null() {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        // SAFETY: the documentation gives the width of each attribute's value.
        let value = unsafe {
            if Value::is_int(number) { Value::Int(*value.cast()) } else { Value::Long(*value.cast()) }
        };
        MEMORY.lock().pools.set_attribute(process, pool, number, value)
    }
    11020 fn cuMemPoolSetAccess(pool: Handle, access: *const c_void, _count: usize) {
        if access.is_null() {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        MEMORY.lock().pools.ordinal(pool).map(|_| ())
    }
    11020 fn cuMemPoolGetAccess(flags: Out<'_, c_uint>, pool: Handle, location: Option<&Location>) {
        process()?.device(of(location)?)?;
        MEMORY.lock().pools.ordinal(pool)?;
        store(flags, 3) // readable and writable
    }
}
