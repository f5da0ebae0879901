//! Host reference of cu/adamw8bit.cu.

use super::dynamic_map::{Map, SIGNED, UNSIGNED, nearest_code};
use super::memory::{Memory, for_each};
use crate::{Arguments, Launch};

/// Elements with one scale.
const STATE_BLOCK: usize = 256;

/// Blocks that one core takes together.
const TOGETHER: usize = 64;

/// See cu/adamw8bit.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn adamw8bit(_: &Launch, arguments: &Arguments<'_>) {
    let weight = Memory::<f32>::new(arguments.pointer(0));
    let first_codes = Memory::<u8>::new(arguments.pointer(1));
    let second_codes = Memory::<u8>::new(arguments.pointer(2));
    let first_absmax = Memory::<f32>::new(arguments.pointer(3));
    let second_absmax = Memory::<f32>::new(arguments.pointer(4));
    let gradient = Memory::<f32>::new(arguments.pointer(5));
    let elements = arguments.u64(6) as usize;
    let (rate, beta1, beta2) = (arguments.f32(7), arguments.f32(8), arguments.f32(9));
    let (epsilon, decay) = (arguments.f32(10), arguments.f32(11));
    let (correction1, correction2) = (arguments.f32(12), arguments.f32(13));
    let (signed, unsigned) = (&*SIGNED, &*UNSIGNED);
    for_each(elements.div_ceil(STATE_BLOCK), TOGETHER, |block| {
        let range = block * STATE_BLOCK..elements.min((block + 1) * STATE_BLOCK);
        // SAFETY: the caller's promise; each block belongs to one call.
        let (weight, first_codes, second_codes, first_absmax, second_absmax, gradient) = unsafe {
            (
                weight.write(range.clone()),
                first_codes.write(range.clone()),
                second_codes.write(range.clone()),
                &mut *first_absmax.at(block),
                &mut *second_absmax.at(block),
                gradient.read(range),
            )
        };
        let (mut first, mut second) = ([0.0_f32; STATE_BLOCK], [0.0_f32; STATE_BLOCK]);
        for (i, (w, g)) in weight.iter_mut().zip(gradient).enumerate() {
            let m = beta1 * (signed[usize::from(first_codes[i])] * *first_absmax) + (1.0 - beta1) * g;
            let v = beta2 * (unsigned[usize::from(second_codes[i])] * *second_absmax) + (1.0 - beta2) * g * g;
            *w -= rate * decay * *w;
            *w -= rate * (m / correction1) / ((v / correction2).sqrt() + epsilon);
            (first[i], second[i]) = (m, v);
        }
        *first_absmax = quantise(signed, &first[..first_codes.len()], first_codes);
        *second_absmax = quantise(unsigned, &second[..second_codes.len()], second_codes);
    });
}

/// The codes of a block's values; their scale.
fn quantise(map: &Map, values: &[f32], codes: &mut [u8]) -> f32 {
    let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    for (code, value) in codes.iter_mut().zip(values) {
        *code = nearest_code(map, if largest > 0.0 { value / largest } else { 0.0 });
    }
    largest
}
