//! What a pointer is: address ranges and pointer attributes.

use super::{Out, store_if};
use crate::error::{CUresult, Status};
use crate::memory::{Kind, MEMORY, Region};
use crate::process::process;
use std::ffi::{c_int, c_uint, c_void};

/// Value of a pointer attribute, in the width that its documentation gives.
enum Value {
    Byte(bool),
    Int(i32),
    Long(u64),
    /// Two zeros: no peer-to-peer tokens.
    Tokens,
}

impl Value {
    /// # Safety
    /// `target` must be good for a write of the attribute's type.
    unsafe fn write(&self, target: *mut c_void) {
        // SAFETY: as the caller says.
        unsafe {
            match *self {
                Value::Byte(value) => target.cast::<u8>().write(u8::from(value)),
                Value::Int(value) => target.cast::<i32>().write(value),
                Value::Long(value) => target.cast::<u64>().write(value),
                Value::Tokens => target.cast::<[u64; 2]>().write([0; 2]),
            }
        }
    }
}

/// Value of an attribute; for a pointer that the driver does not know, the value that cuPointerGetAttributes gives.
fn attribute(number: c_int, address: u64, region: Option<&Region>) -> Result<(Value, bool), CUresult> {
    let allocation = region.and_then(|region| region.allocation);
    let kind = allocation.map(|allocation| allocation.kind);
    let pinned = matches!(kind, Some(Kind::Host(_) | Kind::Registered(_)));
    let on_host = region.is_some_and(Region::on_host);
    let known = region.is_some();
    Ok(match number {
        1 => (Value::Long(allocation.map_or(0, |allocation| allocation.context as u64)), allocation.is_some()),
        2 => (
            Value::Int(if !known {
                0
            } else if pinned {
                1
            } else {
                2
            }),
            known,
        ),
        3 => (Value::Long(if known { address } else { 0 }), known),
        4 => (Value::Long(if on_host { address } else { 0 }), on_host),
        5 => (Value::Tokens, false),
        6 => (Value::Byte(false), known),
        7 => (Value::Long(allocation.map_or(0, |allocation| allocation.id)), known),
        8 => (Value::Byte(kind == Some(Kind::Managed)), known),
        9 => (Value::Int(region.map_or(-2, |region| region.ordinal)), known),
        10 | 15 | 21 => (Value::Byte(false), true),
        11 => (Value::Long(region.map_or(0, |region| region.start)), known),
        12 => (Value::Long(region.map_or(0, |region| region.bytes)), known),
        13 => (Value::Byte(known), true),
        14 => (Value::Long(u64::from(known && allocation.is_none())), true),
        16 => (Value::Int(if known { 3 } else { 0 }), known),
        17 => match kind {
            Some(Kind::Pool(pool)) => (Value::Long(pool as u64), true),
            _ => (Value::Long(0), known),
        },
        18 => (Value::Long(region.map_or(0, |region| region.bytes)), known),
        19 => (Value::Long(region.map_or(0, |region| region.start)), known),
        20 => (Value::Long(allocation.map_or(0, |allocation| allocation.id)), known),
        _ => return Err(CUresult::ERROR_INVALID_VALUE),
    })
}

exports! {
    3020 fn cuMemGetAddressRange_v2(start: Out<'_, u64>, bytes: Out<'_, usize>, address: u64) {
        process()?;
        let region = MEMORY.lock().region(address).ok_or(CUresult::ERROR_NOT_FOUND)?;
        store_if(start, region.start);
        store_if(bytes, region.bytes as usize);
        Ok(())
    }
    4000 fn cuPointerGetAttribute(value: *mut c_void, number: c_int, address: u64) {
        process()?;
        if value.is_null() {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let region = MEMORY.lock().region(address);
        let (found, known) = attribute(number, address, region.as_ref())?;
        if !known {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        // SAFETY: the program gives a place of the attribute's type.
        unsafe { found.write(value) };
        Ok(())
    }
    7000 fn cuPointerGetAttributes(count: c_uint, numbers: *const c_int, values: *const *mut c_void, address: u64) {
        process()?;
        if numbers.is_null() || values.is_null() {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let region = MEMORY.lock().region(address);
        for index in 0..count as usize {
            // SAFETY: the program gives `count` numbers and places of their types.
            unsafe { attribute(*numbers.add(index), address, region.as_ref())?.0.write(*values.add(index)) };
        }
        Ok(())
    }
    6000 fn cuPointerSetAttribute(value: *const c_void, number: c_int, address: u64) {
        process()?;
        MEMORY.lock().region(address).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        // Only CU_POINTER_ATTRIBUTE_SYNC_MEMOPS can be set; every copy is synchronous here.
        if number == 6 && !value.is_null() { Ok(()) } else { Err(CUresult::ERROR_INVALID_VALUE) }
    }
    8000 fn cuMemRangeGetAttribute(value: *mut c_int, size: usize, number: c_int, address: u64, bytes: usize) {
        // SAFETY: the program gives a place of `size` bytes.
        unsafe { range_attribute(value, size, number, address, bytes) }
    }
    8000 fn cuMemRangeGetAttributes(
        values: *const *mut c_int, sizes: *const usize, numbers: *const c_int, count: usize, address: u64, bytes: usize,
    ) {
        if values.is_null() || sizes.is_null() || numbers.is_null() {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        for index in 0..count {
            // SAFETY: the program gives `count` numbers and places of their sizes.
            unsafe { range_attribute(*values.add(index), *sizes.add(index), *numbers.add(index), address, bytes)? };
        }
        Ok(())
    }
}

/// Attributes of managed memory, for which no advice was ever taken and nothing was prefetched.
///
/// # Safety
/// `value` must be good for writes of `size` bytes.
unsafe fn range_attribute(value: *mut c_int, size: usize, number: c_int, address: u64, bytes: usize) -> Status {
    const INVALID_DEVICE: c_int = -2;
    process()?;
    let memory = MEMORY.lock();
    let region = memory.region(address).ok_or(CUresult::ERROR_INVALID_VALUE)?;
    let managed = region.allocation.is_some_and(|allocation| allocation.kind == Kind::Managed);
    if !managed || !memory.covers(address, bytes as u64) || value.is_null() || size < 4 {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    let entry = match number {
        1 | 5 | 7 => 0,
        2 | 4 | 6 | 8 => INVALID_DEVICE,
        3 => {
            for index in 0..size / 4 {
                // SAFETY: inside the place of `size` bytes.
                unsafe { value.add(index).write(INVALID_DEVICE) };
            }
            return Ok(());
        }
        _ => return Err(CUresult::ERROR_INVALID_VALUE),
    };
    // SAFETY: the place has at least four bytes.
    unsafe { value.write(entry) };
    Ok(())
}
