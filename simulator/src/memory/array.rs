//! CUDA arrays: pitched storage with a description of its elements.
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
}

static ARRAYS: Registry<Array> = Registry::new();

/// Makes an array.
pub fn create(
    context: &Context,
    extent: [usize; 3],
    format: u32,
    channels: u32,
    flags: u32,
) -> Result<Handle, CUresult> {
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
    let address = MEMORY.lock().allocate(process()?, context, bytes, Kind::Array)?;
    Ok(ARRAYS.insert(Array { extent, format, channels, flags, address, pitch }))
}

/// The array with this handle.
pub fn find(handle: Handle) -> Result<Arc<Array>, CUresult> {
    ARRAYS.find(handle)
}

/// Destroys an array.
pub fn destroy(handle: Handle) -> Status {
    let array = ARRAYS.remove(handle)?;
    MEMORY.lock().free(process()?, array.address, |kind| kind == Kind::Array)
}
