//! CUDA arrays: pitched storage with a description of its elements; mipmapped ones are several of them in one allocation.
//!
//! Owns: their size. Storage is linear here, row after row; a real device tiles it, which no copy can tell.

use super::{Kind, MEMORY};
use crate::context::Context;
use crate::error::{CUresult, Status};
use crate::process::process;
use crate::registry::{Handle, Registry};
use std::sync::Arc;

/// A live array.
pub struct Array {
    /// Elements in a row, rows (0 for one dimension), slices (0 for two).
    pub extent: [usize; 3],
    /// CUarray_format.
    pub format: u32,
    /// Channels of an element: 1, 2 or 4.
    pub channels: u32,
    /// Flags of its creation.
    pub flags: u32,
    /// Where its storage begins.
    pub address: u64,
    /// Bytes of a row.
    pub pitch: usize,
    /// It is a level of a mipmapped array, which it lives and dies with.
    level: bool,
}

/// A live mipmapped array.
struct Mipmapped {
    address: u64,
    levels: Vec<Handle>,
}

static ARRAYS: Registry<Array> = Registry::new();
static MIPMAPPED: Registry<Mipmapped> = Registry::new();

/// CUDA_ARRAY3D_LAYERED and CUDA_ARRAY3D_CUBEMAP: the depth counts layers, which do not shrink from level to level.
const LAYERED: u32 = 1 | 4;

/// Bytes of a row, and of all rows.
fn size(extent: [usize; 3], format: u32, channels: u32) -> Result<(usize, u64), CUresult> {
    let component = match format {
        1 | 8 => 1,
        2 | 9 | 16 => 2,
        3 | 10 | 32 => 4,
        _ => return Err(CUresult::ERROR_INVALID_VALUE),
    };
    if extent[0] == 0 || !matches!(channels, 1 | 2 | 4) {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    let pitch = extent[0].checked_mul(component * channels as usize).ok_or(CUresult::ERROR_INVALID_VALUE)?;
    let rows = extent[1].max(1).checked_mul(extent[2].max(1)).ok_or(CUresult::ERROR_INVALID_VALUE)?;
    let bytes = pitch.checked_mul(rows).ok_or(CUresult::ERROR_INVALID_VALUE)? as u64;
    Ok((pitch, bytes))
}

/// Makes an array.
pub fn create(
    context: &Context,
    extent: [usize; 3],
    format: u32,
    channels: u32,
    flags: u32,
) -> Result<Handle, CUresult> {
    let (pitch, bytes) = size(extent, format, channels)?;
    let address = MEMORY.lock().allocate(process()?, context, bytes, Kind::Array)?;
    Ok(ARRAYS.insert(Array { extent, format, channels, flags, address, pitch, level: false }))
}

/// Makes a mipmapped array of at most `levels` levels; there are never more than halvings of the longest side.
pub fn create_mipmapped(
    context: &Context,
    extent: [usize; 3],
    format: u32,
    channels: u32,
    (flags, levels): (u32, u32),
) -> Result<Handle, CUresult> {
    let sides = if flags & LAYERED == 0 { 3 } else { 2 };
    let longest = extent.iter().take(sides).max().copied().unwrap_or_default();
    if levels == 0 || longest == 0 {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    let halved = |level: u32| {
        let mut of = extent;
        of.iter_mut().take(sides).filter(|side| **side > 0).for_each(|side| *side = (*side >> level).max(1));
        of
    };
    let levels = levels.min(longest.ilog2() + 1);
    let sizes: Vec<(usize, u64)> =
        (0..levels).map(|level| size(halved(level), format, channels)).collect::<Result<_, _>>()?;
    let bytes = sizes.iter().map(|(_, bytes)| bytes).sum();
    let address = MEMORY.lock().allocate(process()?, context, bytes, Kind::Array)?;
    let mut at = address;
    let level = |(number, (pitch, bytes)): (u32, (usize, u64))| {
        let array = Array { extent: halved(number), format, channels, flags, address: at, pitch, level: true };
        at += bytes;
        ARRAYS.insert(array)
    };
    let levels = (0..).zip(sizes).map(level).collect();
    Ok(MIPMAPPED.insert(Mipmapped { address, levels }))
}

/// The array that is a level of a mipmapped one.
pub fn level(handle: Handle, number: u32) -> Result<Handle, CUresult> {
    MIPMAPPED.find(handle)?.levels.get(number as usize).copied().ok_or(CUresult::ERROR_INVALID_VALUE)
}

/// Destroys a mipmapped array with its levels.
pub fn destroy_mipmapped(handle: Handle) -> Status {
    let array = MIPMAPPED.remove(handle)?;
    array.levels.iter().for_each(|level| drop(ARRAYS.remove(*level)));
    MEMORY.lock().free(process()?, array.address, |kind| kind == Kind::Array)
}

/// The array with this handle.
pub fn find(handle: Handle) -> Result<Arc<Array>, CUresult> {
    ARRAYS.find(handle)
}

/// Destroys an array.
pub fn destroy(handle: Handle) -> Status {
    if ARRAYS.find(handle)?.level {
        return Err(CUresult::ERROR_INVALID_HANDLE);
    }
    let array = ARRAYS.remove(handle)?;
    MEMORY.lock().free(process()?, array.address, |kind| kind == Kind::Array)
}
