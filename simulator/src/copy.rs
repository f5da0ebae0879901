//! Moving and filling bytes.
//!
//! Owns: which side a pointer is on, checks of ranges, and what a memory-only run does instead of touching device
//! memory. Refuses: ordering; the caller has waited for the stream.

use crate::error::{CUresult, Status};
use crate::memory::MEMORY;
use crate::process::computes;

/// Which side an address is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Host memory, pinned or not, and managed memory.
    Host,
    /// Device memory.
    Device,
}

/// What the caller says about an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// Host memory (CU_MEMORYTYPE_HOST).
    Host,
    /// Device memory (CU_MEMORYTYPE_DEVICE): managed, or pinned memory's device address, passes too.
    Device,
    /// Either (CU_MEMORYTYPE_UNIFIED).
    Any,
}

/// The side of `bytes` bytes at `address`; CUDA_ERROR_INVALID_VALUE when they are not what the caller claims.
pub fn side(address: u64, bytes: u64, claim: Claim) -> Result<Side, CUresult> {
    let memory = MEMORY.lock();
    let Some(region) = memory.region(address) else {
        let plain_host = claim != Claim::Device && address != 0;
        return if plain_host { Ok(Side::Host) } else { Err(CUresult::ERROR_INVALID_VALUE) };
    };
    // A copy may run from registered host memory into memory beside it, but not out of a device allocation.
    let open_ended = region.on_host() && claim != Claim::Device;
    match (region.on_host(), open_ended || memory.covers(address, bytes)) {
        (_, false) => Err(CUresult::ERROR_INVALID_VALUE),
        (true, true) => Ok(Side::Host),
        (false, true) => Ok(Side::Device),
    }
}

/// Copies `bytes` bytes; the ranges may overlap.
///
/// # Safety
/// A host range must be readable (source) or writable (destination).
pub unsafe fn copy(destination: (u64, Claim), source: (u64, Claim), bytes: u64) -> Status {
    if bytes == 0 {
        return Ok(());
    }
    let sides = (side(destination.0, bytes, destination.1)?, side(source.0, bytes, source.1)?);
    // SAFETY: device ranges are live allocations of ours; the caller vouches for host ranges.
    unsafe { copy_between((destination.0, sides.0), (source.0, sides.1), bytes) };
    Ok(())
}

/// Copies between ranges whose sides are known.
///
/// # Safety
/// Both ranges must be live.
unsafe fn copy_between(destination: (u64, Side), source: (u64, Side), bytes: u64) {
    let (to, from) = (destination.0 as *mut u8, source.0 as *const u8);
    if computes() || (destination.1, source.1) == (Side::Host, Side::Host) {
        // SAFETY: the caller vouches for both ranges.
        unsafe { std::ptr::copy(from, to, bytes as usize) };
        return;
    }
    let mut memory = MEMORY.lock();
    let table = &mut memory.side_table;
    match (destination.1, source.1) {
        (Side::Device, Side::Host) if bytes <= crate::side_table::LARGEST => {
            // SAFETY: the caller vouches for the source.
            table.write(destination.0, unsafe { std::slice::from_raw_parts(from, bytes as usize) });
        }
        (Side::Device, Side::Host) => table.erase(destination.0, bytes),
        (Side::Device, Side::Device) => match table.read(source.0, bytes).map(<[u8]>::to_vec) {
            Some(data) => table.write(destination.0, &data),
            None => table.erase(destination.0, bytes),
        },
        (Side::Host, _) => {
            // SAFETY: the caller vouches for the destination.
            let target = unsafe { std::slice::from_raw_parts_mut(to, bytes as usize) };
            match table.read(source.0, bytes) {
                Some(data) => target.copy_from_slice(data),
                None => target.fill(0),
            }
        }
    }
}

/// Writes `pattern` again and again over `count` elements at `address`.
///
/// # Safety
/// The range must be live; it is checked to be memory of the driver.
pub unsafe fn fill(address: u64, pattern: &[u8], count: u64) -> Status {
    // SAFETY: as the caller says.
    unsafe { fill_rows(address, 0, pattern, count, 1) }
}

/// Fills `rows` rows of `count` elements, `pitch` bytes apart.
///
/// # Safety
/// The ranges must be live; they are checked to be memory of the driver.
pub unsafe fn fill_rows(address: u64, pitch: u64, pattern: &[u8], count: u64, rows: u64) -> Status {
    let size = pattern.len() as u64;
    let width = count.checked_mul(size).ok_or(CUresult::ERROR_INVALID_VALUE)?;
    if !address.is_multiple_of(size) || (rows > 1 && (pitch < width || !pitch.is_multiple_of(size))) {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    if width == 0 || rows == 0 {
        return Ok(());
    }
    let length = pitch.checked_mul(rows - 1).and_then(|last| last.checked_add(width));
    let length = length.ok_or(CUresult::ERROR_INVALID_VALUE)?;
    if side(address, length, Claim::Device)? == Side::Device && !computes() {
        MEMORY.lock().side_table.erase(address, length);
        return Ok(());
    }
    for row in 0..rows {
        let start = (address + row * pitch) as *mut u8;
        // SAFETY: the whole range was found to be live above.
        let target = unsafe { std::slice::from_raw_parts_mut(start, width as usize) };
        match pattern {
            [byte] => target.fill(*byte),
            _ => target.chunks_exact_mut(pattern.len()).for_each(|element| element.copy_from_slice(pattern)),
        }
    }
    Ok(())
}

/// One side of a 2D or 3D copy.
#[derive(Clone, Copy, Debug)]
pub struct Box3 {
    /// Address of the element at the box's corner.
    pub address: u64,
    /// What the caller says about it.
    pub claim: Claim,
    /// Bytes from a row to the next.
    pub pitch: u64,
    /// Bytes from a slice to the next.
    pub slice: u64,
}

/// Copies `rows` rows of `width` bytes in each of `slices` slices.
///
/// # Safety
/// Host ranges must be readable (source) or writable (destination).
pub unsafe fn copy_box(destination: Box3, source: Box3, width: u64, rows: u64, slices: u64) -> Status {
    if (rows > 1 || slices > 1) && (destination.pitch < width || source.pitch < width) {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    for slice in 0..slices {
        for row in 0..rows {
            let at = |side: &Box3| (side.address + slice * side.slice + row * side.pitch, side.claim);
            // SAFETY: as the caller says.
            unsafe { copy(at(&destination), at(&source), width)? };
        }
    }
    Ok(())
}
