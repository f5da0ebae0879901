//! Host reference of cu/round_bf16.cu.

use super::adamw_bf16::{rounding_bits, stochastically_rounded};
use super::memory::{Memory, for_pieces};
use crate::{Arguments, Launch};
use half::bf16;

/// See cu/round_bf16.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn round_bf16(_: &Launch, arguments: &Arguments<'_>) {
    let (output, input) = (Memory::<bf16>::new(arguments.pointer(0)), Memory::<f32>::new(arguments.pointer(1)));
    let seed = arguments.u64(3);
    for_pieces(arguments.u64(2) as usize, |range| {
        // SAFETY: the caller's promise; the ranges are disjoint.
        let (output, input) = unsafe { (output.write(range.clone()), input.read(range.clone())) };
        for ((i, output), &value) in range.zip(output).zip(input) {
            *output = stochastically_rounded(value, rounding_bits(seed, i as u64));
        }
    });
}
