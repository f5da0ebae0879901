//! `cudaDeviceProp`, in the layouts of CUDA 12 and CUDA 13.
//!
//! Owns: the order of its fields, which differs: CUDA 13 left ten fields out and named some that were reserved. Every value is
//! an attribute of the driver, name, UUID or capacity. Refuses: fields that the simulated driver has no value for; they are 0.

use crate::driver::Driver;
use crate::status::CudaError;

/// Bytes of the structure, reserved fields included.
const TWELVE: usize = 1032;
const THIRTEEN: usize = 1008;

/// Which CUDA's structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// CUDA 12 (`cudaGetDeviceProperties_v2`).
    Twelve,
    /// CUDA 13.
    Thirteen,
}

/// Fields of `int` in a row: attribute numbers; 0 stands for a field without value.
enum Field {
    Ints(&'static [i32]),
    /// Fields that only CUDA 12 has.
    OldInts(&'static [i32]),
    /// `size_t` of an attribute.
    Size(i32),
    /// `size_t` of the capacity.
    Capacity,
    /// Name, UUID, and the LUID, which Linux has not.
    Identity,
}

use Field::{Capacity, Identity, Ints, OldInts, Size};

const FIELDS: &[Field] = &[
    Identity,
    Ints(&[0]), // luidDeviceNodeMask
    Capacity,
    Size(8),
    Ints(&[12, 10]),
    Size(11),
    Ints(&[1, 2, 3, 4, 5, 6, 7]),
    OldInts(&[13]), // clockRate
    Size(9),
    Ints(&[75, 76]),
    Size(14),
    Size(51),
    OldInts(&[15]), // deviceOverlap
    Ints(&[16]),
    OldInts(&[17]), // kernelExecTimeoutEnabled
    Ints(&[18, 19]),
    OldInts(&[20]),                                                          // computeMode
    Ints(&[21, 77]),                                                         // maxTexture1D, its mipmap
    OldInts(&[69]),                                                          // maxTexture1DLinear
    Ints(&[22, 23, 73, 74, 70, 71, 72, 45, 46, 24, 25, 26, 47, 48, 49, 52]), // other textures, cube map last
    Ints(&[42, 43, 27, 28, 29, 53, 54]),                                     // layered textures
    Ints(&[55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68]),         // surfaces
    Size(30),
    Ints(&[31, 32, 33, 34, 50, 35, 40, 41]),
    OldInts(&[36]), // memoryClockRate
    Ints(&[37, 38, 108, 39, 78, 79, 80]),
    Size(81),
    Ints(&[82, 83, 84, 85, 86]),
    OldInts(&[87]), // singleToDoublePrecisionPerfRatio
    Ints(&[88, 89, 90, 91, 95]),
    OldInts(&[96]), // cooperativeMultiDeviceLaunch
    Size(97),
    Ints(&[100, 101, 106, 109]),
    Size(111),
    // hostRegisterSupported, sparse arrays, read-only registration, semaphores, pools, RDMA (three), pool handle types, deferred
    // arrays, IPC events, clusters, unified function pointers
    Ints(&[99, 112, 113, 114, 115, 116, 117, 118, 119, 121, 125, 120, 129]),
];

struct Writer {
    place: *mut u8,
    offset: usize,
}

impl Writer {
    /// # Safety
    /// The place must have room for the value at the next offset of its alignment.
    unsafe fn put<T>(&mut self, value: T) {
        let at = self.offset.next_multiple_of(align_of::<T>());
        // SAFETY: as the caller says.
        unsafe { self.place.add(at).cast::<T>().write_unaligned(value) };
        self.offset = at + size_of::<T>();
    }
}

/// Writes the properties of a device.
///
/// # Safety
/// `place` must be good for a write of the layout's structure.
pub unsafe fn properties(place: *mut u8, driver: &Driver, device: i32, layout: Layout) -> Result<(), CudaError> {
    let size = if layout == Layout::Twelve { TWELVE } else { THIRTEEN };
    let (mut name, mut uuid, mut capacity) = ([0_u8; 256], [0_u8; 16], 0);
    // SAFETY: the places are good for writes of their sizes.
    unsafe {
        driver.cuDeviceGetName(name.as_mut_ptr().cast(), 256, device)?;
        driver.cuDeviceGetUuid(&mut uuid, device)?;
        driver.cuDeviceTotalMem(&mut capacity, device)?;
    }
    let value = |number: i32| if number == 0 { Ok(0) } else { driver.attribute(number, device) };
    // SAFETY: the structure is that large.
    unsafe { place.write_bytes(0, size) };
    let mut writer = Writer { place, offset: 0 };
    for field in FIELDS {
        // SAFETY: the fields, in their order, lie inside the structure (a test adds them up).
        unsafe {
            match *field {
                Identity => {
                    writer.put(name);
                    writer.put(uuid);
                    writer.put([0_u8; 8]);
                }
                Capacity => writer.put(capacity),
                Size(number) => writer.put(usize::try_from(value(number)?).unwrap_or(0)),
                OldInts(_) if layout == Layout::Thirteen => {}
                Ints(numbers) | OldInts(numbers) => {
                    for &number in numbers {
                        writer.put(value(number)?);
                    }
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(layout: Layout) -> usize {
        let put = |offset: usize, size: usize, align: usize| offset.next_multiple_of(align) + size;
        FIELDS.iter().fold(0, |offset, field| match field {
            Identity => offset + 256 + 16 + 8,
            Capacity | Size(_) => put(offset, 8, 8),
            OldInts(_) if layout == Layout::Thirteen => offset,
            Ints(numbers) | OldInts(numbers) => put(offset, 4 * numbers.len(), 4),
        })
    }

    #[test]
    fn the_named_fields_end_where_the_reserved_ones_begin() {
        // CUDA 12.0 has 63 reserved ints; CUDA 13 names eight more (zero here) and has 56.
        assert_eq!((end(Layout::Twelve) + 63 * 4).next_multiple_of(8), TWELVE);
        assert_eq!((end(Layout::Thirteen) + (8 - 1) * 4 + 56 * 4).next_multiple_of(8), THIRTEEN);
    }
}
