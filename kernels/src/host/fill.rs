//! Host references of cu/fill.cu.

use super::memory::{Memory, for_pieces};
use crate::{Arguments, Launch};

/// See cu/fill.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn fill(_: &Launch, arguments: &Arguments<'_>) {
    let output = Memory::<f32>::new(arguments.pointer(0));
    let value = arguments.f32(2);
    for_pieces(arguments.u64(1) as usize, |range| {
        // SAFETY: the caller's promise; the ranges are disjoint.
        unsafe { output.write(range) }.fill(value);
    });
}

/// See cu/fill.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn init_normal(_: &Launch, arguments: &Arguments<'_>) {
    let output = Memory::<f32>::new(arguments.pointer(0));
    let (deviation, seed) = (arguments.f32(2), arguments.u64(3));
    for_pieces(arguments.u64(1) as usize, |range| {
        // SAFETY: the caller's promise; the ranges are disjoint.
        let values = unsafe { output.write(range.clone()) };
        // A range begins at an even element, so that its pairs are those of the whole.
        for (pair, values) in values.chunks_mut(2).enumerate() {
            let both = normal_pair(random_bits(seed, (range.start / 2 + pair) as u64));
            for (value, normal) in values.iter_mut().zip(both) {
                *value = deviation * normal;
            }
        }
    });
}

/// 64 random bits for `counter` (SplitMix64).
fn random_bits(seed: u64, counter: u64) -> u64 {
    let mut bits = seed.wrapping_add(counter.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Two independent values of the standard normal distribution (Box-Muller).
fn normal_pair(bits: u64) -> [f32; 2] {
    const UNIT: f32 = 1.0 / 16_777_216.0;
    let radius_uniform = ((bits >> 40) as u32 + 1) as f32 * UNIT;
    let angle_uniform = ((bits >> 8) as u32 & 0xff_ffff) as f32 * UNIT;
    let radius = (-2.0 * radius_uniform.ln()).sqrt();
    let (sine, cosine) = (2.0 * std::f32::consts::PI * angle_uniform).sin_cos();
    [radius * cosine, radius * sine]
}
