//! Host references of cu/loss.cu.

use super::exponential::exp;
use super::lanes::{largest, sum};
use super::memory::{Memory, for_rows};
use crate::{Arguments, Launch};

/// See cu/loss.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn log_softmax_forward(launch: &Launch, arguments: &Arguments<'_>) {
    let log_probabilities = Memory::<f32>::new(arguments.pointer(0));
    let logits = Memory::<f32>::new(arguments.pointer(1));
    let vocabulary = arguments.u32(2) as usize;
    for_rows(launch.grid[0] as usize, vocabulary, |row| {
        let range = row * vocabulary..(row + 1) * vocabulary;
        // SAFETY: the caller's promise; each row belongs to one call.
        let (output, logits) = unsafe { (log_probabilities.write(range.clone()), logits.read(range)) };
        let largest = largest(logits);
        let normaliser = sum(logits, |logit| exp(logit - largest)).ln();
        for (output, logit) in output.iter_mut().zip(logits) {
            *output = logit - largest - normaliser;
        }
    });
}

/// See cu/loss.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn log_softmax_backward(launch: &Launch, arguments: &Arguments<'_>) {
    let grad_logits = Memory::<f32>::new(arguments.pointer(0));
    let grad_log_probabilities = Memory::<f32>::new(arguments.pointer(1));
    let log_probabilities = Memory::<f32>::new(arguments.pointer(2));
    let vocabulary = arguments.u32(3) as usize;
    for_rows(launch.grid[0] as usize, vocabulary, |row| {
        let range = row * vocabulary..(row + 1) * vocabulary;
        // SAFETY: the caller's promise; each row belongs to one call.
        let (output, grad, log_probabilities) = unsafe {
            let (grad, log) = (grad_log_probabilities.read(range.clone()), log_probabilities.read(range.clone()));
            (grad_logits.write(range), grad, log)
        };
        let sum = sum(grad, |grad| grad);
        for ((output, grad), log_probability) in output.iter_mut().zip(grad).zip(log_probabilities) {
            *output = grad - exp(*log_probability) * sum;
        }
    });
}

/// See cu/loss.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn nll_forward(_: &Launch, arguments: &Arguments<'_>) {
    let loss = Memory::<f32>::new(arguments.pointer(0));
    let log_probabilities = Memory::<f32>::new(arguments.pointer(1));
    let targets = Memory::<i64>::new(arguments.pointer(2));
    let (rows, vocabulary, scale) = (arguments.u32(3) as usize, arguments.u32(4) as usize, arguments.f32(5));
    // SAFETY: the caller's promise.
    unsafe {
        let mut sum = 0.0;
        for (row, &target) in targets.read(0..rows).iter().enumerate() {
            if target >= 0 {
                sum += *log_probabilities.at(row * vocabulary + target as usize);
            }
        }
        *loss.at(0) = -scale * sum;
    }
}

/// See cu/loss.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn nll_backward(_: &Launch, arguments: &Arguments<'_>) {
    let grad_log_probabilities = Memory::<f32>::new(arguments.pointer(0));
    let targets = Memory::<i64>::new(arguments.pointer(1));
    let (rows, vocabulary, scale) = (arguments.u32(2) as usize, arguments.u32(3) as usize, arguments.f32(4));
    for_rows(rows, vocabulary, |row| {
        // SAFETY: the caller's promise; each row belongs to one call.
        let (grad, target) =
            unsafe { (grad_log_probabilities.write(row * vocabulary..(row + 1) * vocabulary), *targets.at(row)) };
        grad.fill(0.0);
        if target >= 0 {
            grad[target as usize] = -scale;
        }
    });
}
