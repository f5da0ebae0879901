//! The hooks of CUDA arrays, and how many bytes an array takes.
//!
//! Owns: the arithmetic from an array's description to bytes. The driver tells the size of no ordinary array:
//! cuArrayGetMemoryRequirements answers for those with deferred mapping alone, which have no memory of their own. So the bytes
//! are computed, marked as computed, and are those of the elements: what the driver adds for its tiles is not in them. Refuses:
//! to guess the size of an element whose format it does not know.

use core::ffi::{c_int, c_uint};
use memscope_wire::Measure;

/// CUDA_ARRAY_DESCRIPTOR.
#[repr(C)]
pub struct Flat {
    width: usize,
    height: usize,
    format: c_int,
    channels: c_uint,
}

/// CUDA_ARRAY3D_DESCRIPTOR.
#[repr(C)]
pub struct Solid {
    width: usize,
    height: usize,
    depth: usize,
    format: c_int,
    channels: c_uint,
    flags: c_uint,
}

/// CUDA_ARRAY3D_LAYERED and CUDA_ARRAY3D_CUBEMAP: the depth counts layers, which do not shrink from level to level.
const LAYERED: c_uint = 1 | 4;
/// CUDA_ARRAY3D_SPARSE and CUDA_ARRAY3D_DEFERRED_MAPPING: memory of cuMemCreate is mapped into it, and it has none itself.
const WITHOUT_MEMORY: c_uint = 0x40 | 0x80;

/// A description of either kind.
pub trait Described {
    /// All that the longer one says.
    fn solid(&self) -> Solid;

    /// Bytes of `levels` levels, each half as wide, high and deep as the one before, and how they are known.
    fn bytes(&self, levels: c_uint) -> (u64, Measure) {
        let of = self.solid();
        if of.flags & WITHOUT_MEMORY != 0 {
            return (0, Measure::Computed);
        }
        match sum_of_levels(&of, levels) {
            Some(bytes) => (bytes, Measure::Computed),
            None => (0, Measure::Unknown),
        }
    }
}

impl Described for Flat {
    fn solid(&self) -> Solid {
        let Flat { width, height, format, channels } = *self;
        Solid { width, height, depth: 0, format, channels, flags: 0 }
    }
}

impl Described for Solid {
    fn solid(&self) -> Solid {
        Solid { ..*self }
    }
}

fn sum_of_levels(of: &Solid, levels: c_uint) -> Option<u64> {
    let (side, unit) = element(of.format, of.channels)?;
    let layers = if of.flags & LAYERED != 0 { of.depth.max(1) } else { 1 };
    let mut bytes = 0_u64;
    for level in 0..levels.clamp(1, usize::BITS) {
        let at = |extent: usize| (extent >> level).max(1);
        let deep = if of.flags & LAYERED != 0 { layers } else { at(of.depth) };
        let units = at(of.width).div_ceil(side).checked_mul(at(of.height).div_ceil(side))?.checked_mul(deep)?;
        bytes = bytes.checked_add((units as u64).checked_mul(unit)?)?;
    }
    Some(bytes)
}

/// Elements along the side of a unit of storage, and bytes of the unit.
fn element(format: c_int, channels: c_uint) -> Option<(usize, u64)> {
    let channels = channels as u64;
    Some(match format {
        // Integers of 8, 16 and 32 bits, half and single precision.
        0x01 | 0x08 => (1, channels),
        0x02 | 0x09 | 0x10 => (1, 2 * channels),
        0x03 | 0x0a | 0x20 => (1, 4 * channels),
        // Normalised integers: the format itself says 1, 2 or 4 channels.
        0xc0 | 0xc6 => (1, 1),
        0xc1 | 0xc3 | 0xc7 | 0xc9 => (1, 2),
        0xc2 | 0xc4 | 0xc8 | 0xca => (1, 4),
        0xc5 | 0xcb => (1, 8),
        // Compressed blocks of 4 by 4 elements: BC1 and BC4 in 8 bytes, the others in 16.
        0x91 | 0x92 | 0x97 | 0x98 => (4, 8),
        0x93..=0x96 | 0x99..=0x9e => (4, 16),
        _ => return None,
    })
}

macro_rules! array {
    ($name:ident $form:ident) => {
        hook! { $name(out: *mut u64, description: *const arrays::$form) |call| {
            observe(Row::$name, call, |state, result| {
                // SAFETY: of these arguments the driver has read and filled what it needs.
                unsafe { made_array(Row::$name, state, out, description, 1, result) }
            })
        } }
    };
}
pub(super) use array;

macro_rules! levels {
    ($name:ident) => {
        hook! { $name(out: *mut u64, description: *const arrays::Solid, levels: c_uint) |call| {
            observe(Row::$name, call, |state, result| {
                // SAFETY: of these arguments the driver has read and filled what it needs.
                unsafe { made_array(Row::$name, state, out, description, levels, result) }
            })
        } }
    };
}
pub(super) use levels;

#[cfg(test)]
mod tests {
    use super::*;

    fn solid(extent: [usize; 3], format: c_int, channels: c_uint, flags: c_uint) -> Solid {
        let [width, height, depth] = extent;
        Solid { width, height, depth, format, channels, flags }
    }

    #[test]
    fn an_extent_of_0_is_a_missing_dimension() {
        assert_eq!(Flat { width: 1000, height: 0, format: 0x20, channels: 1 }.bytes(1), (4000, Measure::Computed));
        assert_eq!(solid([7, 5, 3], 0x10, 4, 0).bytes(1), (7 * 5 * 3 * 8, Measure::Computed));
    }

    #[test]
    fn levels_halve_and_layers_do_not() {
        // 8×4×4, 4×2×2, 2×1×1, 1×1×1 elements of 4 bytes; layers stay 4 of 8×4, 4×2, 2×1, 1×1.
        assert_eq!(solid([8, 4, 4], 0x20, 1, 0).bytes(4), ((128 + 16 + 2 + 1) * 4, Measure::Computed));
        assert_eq!(solid([8, 4, 4], 0x20, 1, 1).bytes(4), (4 * (32 + 8 + 2 + 1) * 4, Measure::Computed));
    }

    #[test]
    fn compressed_elements_come_in_whole_blocks() {
        assert_eq!(solid([10, 5, 0], 0x91, 4, 0).bytes(1), (3 * 2 * 8, Measure::Computed));
        assert_eq!(solid([4, 4, 0], 0x9d, 4, 0).bytes(3), (3 * 16, Measure::Computed));
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        assert_eq!(solid([16, 16, 0], 0xb0, 3, 0).bytes(1), (0, Measure::Unknown));
        assert_eq!(solid([usize::MAX, usize::MAX, 0], 1, 1, 0).bytes(1), (0, Measure::Unknown));
    }

    #[test]
    fn an_array_that_memory_is_mapped_into_has_none() {
        assert_eq!(solid([64, 64, 0], 0x20, 1, 0x80).bytes(1), (0, Measure::Computed));
        assert_eq!(solid([64, 64, 0], 0x20, 1, 0x40).bytes(3), (0, Measure::Computed));
    }
}
