//! Host reference of cu/loss_scale.cu.

use super::memory::{Memory, for_pieces};
use crate::{Arguments, Launch};
use std::sync::atomic::{AtomicBool, Ordering};

/// See cu/loss_scale.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn unscale(_: &Launch, arguments: &Arguments<'_>) {
    let gradient = Memory::<f32>::new(arguments.pointer(0));
    let factor = arguments.f32(3);
    let found = AtomicBool::new(false);
    for_pieces(arguments.u64(2) as usize, |range| {
        // SAFETY: the caller's promise; the ranges are disjoint.
        let gradient = unsafe { gradient.write(range) };
        if gradient.iter().any(|value| !value.is_finite()) {
            found.store(true, Ordering::Relaxed);
        }
        gradient.iter_mut().for_each(|value| *value *= factor);
    });
    if found.load(Ordering::Relaxed) {
        // SAFETY: the caller's promise; this alone writes it.
        unsafe { *Memory::<f32>::new(arguments.pointer(1)).at(0) = 1.0 };
    }
}
