//! Host reference of cu/adamw.cu.

use super::memory::{Memory, for_pieces};
use crate::{Arguments, Launch};

/// See cu/adamw.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn adamw(_: &Launch, arguments: &Arguments<'_>) {
    let weight = Memory::<f32>::new(arguments.pointer(0));
    let first_moment = Memory::<f32>::new(arguments.pointer(1));
    let second_moment = Memory::<f32>::new(arguments.pointer(2));
    let gradient = Memory::<f32>::new(arguments.pointer(3));
    let (rate, beta1, beta2) = (arguments.f32(5), arguments.f32(6), arguments.f32(7));
    let (epsilon, decay) = (arguments.f32(8), arguments.f32(9));
    let (correction1, correction2) = (arguments.f32(10), arguments.f32(11));
    for_pieces(arguments.u64(4) as usize, |range| {
        // SAFETY: the caller's promise; the ranges are disjoint.
        let (weight, first, second, gradient) = unsafe {
            let (first, second) = (first_moment.write(range.clone()), second_moment.write(range.clone()));
            (weight.write(range.clone()), first, second, gradient.read(range))
        };
        for (((w, m), v), g) in weight.iter_mut().zip(first).zip(second).zip(gradient) {
            *m = beta1 * *m + (1.0 - beta1) * g;
            *v = beta2 * *v + (1.0 - beta2) * g * g;
            *w -= rate * decay * *w;
            *w -= rate * (*m / correction1) / ((*v / correction2).sqrt() + epsilon);
        }
    });
}
