//! Host references of cu/relu.cu.

use super::memory::{Memory, for_pieces};
use crate::{Arguments, Launch};

/// See cu/relu.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn relu_forward(_: &Launch, arguments: &Arguments<'_>) {
    let (output, input) = (Memory::<f32>::new(arguments.pointer(0)), Memory::<f32>::new(arguments.pointer(1)));
    for_pieces(arguments.u64(2) as usize, |range| {
        for i in range {
            // SAFETY: the caller's promise. No slices, because the output may be the input.
            unsafe { *output.at(i) = if *input.at(i) > 0.0 { *input.at(i) } else { 0.0 } };
        }
    });
}

/// See cu/relu.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn relu_backward(_: &Launch, arguments: &Arguments<'_>) {
    let grad_input = Memory::<f32>::new(arguments.pointer(0));
    let (grad_output, output) = (Memory::<f32>::new(arguments.pointer(1)), Memory::<f32>::new(arguments.pointer(2)));
    for_pieces(arguments.u64(3) as usize, |range| {
        // SAFETY: the caller's promise; the ranges are disjoint.
        let (grad_input, grad_output, output) =
            unsafe { (grad_input.write(range.clone()), grad_output.read(range.clone()), output.read(range)) };
        for ((grad_input, &grad_output), &output) in grad_input.iter_mut().zip(grad_output).zip(output) {
            *grad_input = if output > 0.0 { grad_output } else { 0.0 };
        }
    });
}
