//! Host reference of cu/momentum.cu.

use super::memory::{Memory, for_pieces};
use crate::{Arguments, Launch};

/// See cu/momentum.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn sgd_momentum(_: &Launch, arguments: &Arguments<'_>) {
    let [weight, velocity, gradient] = [0, 1, 2].map(|index| Memory::<f32>::new(arguments.pointer(index)));
    let (rate, momentum, decay) = (arguments.f32(4), arguments.f32(5), arguments.f32(6));
    for_pieces(arguments.u64(3) as usize, |range| {
        // SAFETY: the caller's promise; the ranges are disjoint.
        let (weight, velocity, gradient) =
            unsafe { (weight.write(range.clone()), velocity.write(range.clone()), gradient.read(range)) };
        for ((w, v), g) in weight.iter_mut().zip(velocity).zip(gradient) {
            *v = momentum * *v + (g + decay * *w);
            *w -= rate * *v;
        }
    });
}
