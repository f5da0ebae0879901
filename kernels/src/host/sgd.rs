//! Host reference of cu/sgd.cu.

use super::memory::{Memory, for_pieces};
use crate::{Arguments, Launch};

/// See cu/sgd.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn sgd(_: &Launch, arguments: &Arguments<'_>) {
    let weight = Memory::<f32>::new(arguments.pointer(0));
    let gradient = Memory::<f32>::new(arguments.pointer(1));
    let rate = arguments.f32(3);
    for_pieces(arguments.u64(2) as usize, |range| {
        // SAFETY: the caller's promise; the ranges are disjoint.
        let (weight, gradient) = unsafe { (weight.write(range.clone()), gradient.read(range)) };
        for (w, g) in weight.iter_mut().zip(gradient) {
            *w -= rate * g;
        }
    });
}
