//! Host references of cu/adamw_foreach.cu.

use super::memory::{Memory, for_pieces};
use crate::{Arguments, Launch};

/// See cu/adamw_foreach.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn adamw_moments(_: &Launch, arguments: &Arguments<'_>) {
    let first_moment = Memory::<f32>::new(arguments.pointer(0));
    let second_moment = Memory::<f32>::new(arguments.pointer(1));
    let gradient = Memory::<f32>::new(arguments.pointer(2));
    let (beta1, beta2) = (arguments.f32(4), arguments.f32(5));
    for_pieces(arguments.u64(3) as usize, |range| {
        // SAFETY: the caller's promise; the ranges are disjoint.
        let (first, second, gradient) =
            unsafe { (first_moment.write(range.clone()), second_moment.write(range.clone()), gradient.read(range)) };
        for ((m, v), g) in first.iter_mut().zip(second).zip(gradient) {
            *m = beta1 * *m + (1.0 - beta1) * g;
            *v = beta2 * *v + (1.0 - beta2) * g * g;
        }
    });
}

/// See cu/adamw_foreach.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn adamw_denominator(_: &Launch, arguments: &Arguments<'_>) {
    let denominator = Memory::<f32>::new(arguments.pointer(0));
    let second_moment = Memory::<f32>::new(arguments.pointer(1));
    let (epsilon, correction2) = (arguments.f32(3), arguments.f32(4));
    for_pieces(arguments.u64(2) as usize, |range| {
        // SAFETY: the caller's promise; the ranges are disjoint.
        let (denominator, second) = unsafe { (denominator.write(range.clone()), second_moment.read(range)) };
        for (d, v) in denominator.iter_mut().zip(second) {
            *d = (v / correction2).sqrt() + epsilon;
        }
    });
}

/// See cu/adamw_foreach.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn adamw_apply(_: &Launch, arguments: &Arguments<'_>) {
    let weight = Memory::<f32>::new(arguments.pointer(0));
    let first_moment = Memory::<f32>::new(arguments.pointer(1));
    let denominator = Memory::<f32>::new(arguments.pointer(2));
    let (rate, decay, correction1) = (arguments.f32(4), arguments.f32(5), arguments.f32(6));
    for_pieces(arguments.u64(3) as usize, |range| {
        // SAFETY: the caller's promise; the ranges are disjoint.
        let (weight, first, denominator) =
            unsafe { (weight.write(range.clone()), first_moment.read(range.clone()), denominator.read(range)) };
        for ((w, m), d) in weight.iter_mut().zip(first).zip(denominator) {
            *w -= rate * decay * *w;
            *w -= rate * (m / correction1) / d;
        }
    });
}
