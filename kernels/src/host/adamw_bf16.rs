//! Host reference of cu/adamw_bf16.cu.

use super::memory::{Memory, for_pieces};
use crate::{Arguments, Launch};
use half::bf16;

/// The 64 random bits of an element.
pub(super) fn rounding_bits(seed: u64, counter: u64) -> u64 {
    let mut bits = seed.wrapping_add((counter + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Rounded up with the probability that is the value's share of the step, by the lower 16 bits of `uniform`.
pub(super) fn stochastically_rounded(value: f32, uniform: u64) -> bf16 {
    match value.is_finite() {
        true => bf16::from_bits((value.to_bits().wrapping_add(uniform as u32 & 0xffff) >> 16) as u16),
        false => bf16::from_f32(value),
    }
}

/// See cu/adamw_bf16.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn adamw_bf16(_: &Launch, arguments: &Arguments<'_>) {
    let array = |index: usize| Memory::<bf16>::new(arguments.pointer(index));
    let (weight, first_moment, second_moment, gradient) = (array(0), array(1), array(2), array(3));
    let (rate, beta1, beta2) = (arguments.f32(5), arguments.f32(6), arguments.f32(7));
    let (epsilon, decay) = (arguments.f32(8), arguments.f32(9));
    let (correction1, correction2) = (arguments.f32(10), arguments.f32(11));
    let seed = arguments.u64(12);
    for_pieces(arguments.u64(4) as usize, |range| {
        let start = range.start as u64;
        // SAFETY: the caller's promise; the ranges are disjoint.
        let (weight, first, second, gradient) = unsafe {
            let (first, second) = (first_moment.write(range.clone()), second_moment.write(range.clone()));
            (weight.write(range.clone()), first, second, gradient.read(range))
        };
        for (i, (((weight, first), second), gradient)) in
            weight.iter_mut().zip(first).zip(second).zip(gradient).enumerate()
        {
            let g = gradient.to_f32();
            let m = beta1 * first.to_f32() + (1.0 - beta1) * g;
            let v = beta2 * second.to_f32() + (1.0 - beta2) * g * g;
            let mut w = weight.to_f32();
            w -= rate * decay * w;
            w -= rate * (m / correction1) / ((v / correction2).sqrt() + epsilon);
            let bits = rounding_bits(seed, start + i as u64);
            *weight = stochastically_rounded(w, bits);
            *first = stochastically_rounded(m, bits >> 16);
            *second = stochastically_rounded(v, bits >> 32);
        }
    });
}
