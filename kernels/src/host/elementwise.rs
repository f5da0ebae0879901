//! Host references of cu/elementwise.cu.

use super::exponential::logistic;
use super::memory::{Memory, for_pieces};
use crate::{Arguments, Launch};

/// See cu/elementwise.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn add(_: &Launch, arguments: &Arguments<'_>) {
    let output = Memory::<f32>::new(arguments.pointer(0));
    let (a, b) = (Memory::<f32>::new(arguments.pointer(1)), Memory::<f32>::new(arguments.pointer(2)));
    for_pieces(arguments.u64(3) as usize, |range| {
        for i in range {
            // SAFETY: the caller's promise. No slices, because the output may be one of the inputs.
            unsafe { *output.at(i) = *a.at(i) + *b.at(i) };
        }
    });
}

/// √(2/π). GELU is x · (1 + tanh(√(2/π) · (x + 0.044715 · x³))) / 2, and (1 + tanh(y)) / 2 = logistic(2 · y).
const SLOPE: f32 = 0.797_884_6;
const CUBE: f32 = 0.044_715;

/// See cu/elementwise.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn gelu_forward(_: &Launch, arguments: &Arguments<'_>) {
    let output = Memory::<f32>::new(arguments.pointer(0));
    let input = Memory::<f32>::new(arguments.pointer(1));
    for_pieces(arguments.u64(2) as usize, |range| {
        // SAFETY: the caller's promise; the ranges are disjoint.
        let (output, input) = unsafe { (output.write(range.clone()), input.read(range)) };
        for (output, &x) in output.iter_mut().zip(input) {
            *output = x * logistic(2.0 * SLOPE * (x + CUBE * x * x * x));
        }
    });
}

/// See cu/elementwise.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn gelu_backward(_: &Launch, arguments: &Arguments<'_>) {
    let grad_input = Memory::<f32>::new(arguments.pointer(0));
    let grad_output = Memory::<f32>::new(arguments.pointer(1));
    let input = Memory::<f32>::new(arguments.pointer(2));
    for_pieces(arguments.u64(3) as usize, |range| {
        // SAFETY: the caller's promise; the ranges are disjoint.
        let (grad_input, grad_output, input) =
            unsafe { (grad_input.write(range.clone()), grad_output.read(range.clone()), input.read(range)) };
        for ((grad_input, &grad_output), &x) in grad_input.iter_mut().zip(grad_output).zip(input) {
            let share = logistic(2.0 * SLOPE * (x + CUBE * x * x * x));
            let slope_of_inner = 2.0 * SLOPE * (1.0 + 3.0 * CUBE * x * x);
            *grad_input = grad_output * (share + x * share * (1.0 - share) * slope_of_inner);
        }
    });
}
