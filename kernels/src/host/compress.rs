//! Host references of cu/compress.cu.

use super::memory::{Memory, for_each, for_pieces};
use crate::{Arguments, Launch};

/// Elements with one scale.
const COMPRESSED_BLOCK: usize = 256;

/// Blocks that one core takes together.
const TOGETHER: usize = 64;

/// See cu/compress.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn compress(_: &Launch, arguments: &Arguments<'_>) {
    let codes = Memory::<u8>::new(arguments.pointer(0));
    let absmaxes = Memory::<f32>::new(arguments.pointer(1));
    let input = Memory::<f32>::new(arguments.pointer(2));
    let elements = arguments.u64(3) as usize;
    for_each(elements.div_ceil(COMPRESSED_BLOCK), TOGETHER, |block| {
        let range = block * COMPRESSED_BLOCK..elements.min((block + 1) * COMPRESSED_BLOCK);
        // SAFETY: the caller's promise; each block belongs to one call.
        let (codes, absmax, input) =
            unsafe { (codes.write(range.clone()), &mut *absmaxes.at(block), input.read(range)) };
        let largest = input.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        for (code, x) in codes.iter_mut().zip(input) {
            let share = if largest > 0.0 { x / largest * 127.0 } else { 0.0 };
            *code = (128.0 + share.round_ties_even()) as u8;
        }
        *absmax = largest;
    });
}

/// See cu/compress.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn decompress(_: &Launch, arguments: &Arguments<'_>) {
    let output = Memory::<f32>::new(arguments.pointer(0));
    let codes = Memory::<u8>::new(arguments.pointer(1));
    let absmaxes = Memory::<f32>::new(arguments.pointer(2));
    let elements = arguments.u64(3) as usize;
    for_pieces(elements, |range| {
        // SAFETY: the caller's promise; each piece belongs to one call.
        let (output, codes) = unsafe { (output.write(range.clone()), codes.read(range.clone())) };
        for ((i, output), &code) in range.zip(output).zip(codes) {
            // SAFETY: the caller's promise.
            let absmax = unsafe { *absmaxes.at(i / COMPRESSED_BLOCK) };
            *output = (f32::from(code) - 128.0) * (1.0 / 127.0) * absmax;
        }
    });
}
