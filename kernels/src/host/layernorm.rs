//! Host references of cu/layernorm.cu.

use super::lanes::{sum, sum_of_pairs};
use super::memory::{Memory, for_each, for_rows};
use crate::{Arguments, Launch};

/// Rows of a launch with one block a row.
fn rows_of(launch: &Launch) -> usize {
    launch.grid[0] as usize
}

/// See cu/layernorm.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn layernorm_forward(launch: &Launch, arguments: &Arguments<'_>) {
    let output = Memory::<f32>::new(arguments.pointer(0));
    let mean = Memory::<f32>::new(arguments.pointer(1));
    let rstd = Memory::<f32>::new(arguments.pointer(2));
    let input = Memory::<f32>::new(arguments.pointer(3));
    let (weight, bias) = (Memory::<f32>::new(arguments.pointer(4)), Memory::<f32>::new(arguments.pointer(5)));
    let (width, epsilon) = (arguments.u32(6) as usize, arguments.f32(7));
    for_rows(rows_of(launch), width, |row| {
        // SAFETY: the caller's promise; each row belongs to one call.
        unsafe {
            let x = input.read(row * width..(row + 1) * width);
            let average = sum(x, |x| x) / width as f32;
            let variance = sum(x, |x| (x - average) * (x - average)) / width as f32;
            let scale = 1.0 / (variance + epsilon).sqrt();
            let output = output.write(row * width..(row + 1) * width);
            let (weight, bias) = (weight.read(0..width), bias.read(0..width));
            for (((output, x), weight), bias) in output.iter_mut().zip(x).zip(weight).zip(bias) {
                *output = (x - average) * scale * weight + bias;
            }
            *mean.at(row) = average;
            *rstd.at(row) = scale;
        }
    });
}

/// See cu/layernorm.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn layernorm_backward_input(launch: &Launch, arguments: &Arguments<'_>) {
    let grad_input = Memory::<f32>::new(arguments.pointer(0));
    let grad_output = Memory::<f32>::new(arguments.pointer(1));
    let input = Memory::<f32>::new(arguments.pointer(2));
    let weight = Memory::<f32>::new(arguments.pointer(3));
    let (mean, rstd) = (Memory::<f32>::new(arguments.pointer(4)), Memory::<f32>::new(arguments.pointer(5)));
    let width = arguments.u32(6) as usize;
    for_rows(rows_of(launch), width, |row| {
        // SAFETY: the caller's promise; each row belongs to one call.
        unsafe {
            let range = row * width..(row + 1) * width;
            let (x, dy, weight) = (input.read(range.clone()), grad_output.read(range.clone()), weight.read(0..width));
            let (average, scale) = (*mean.at(row), *rstd.at(row));
            let grad_input = grad_input.write(range);
            // g = dy · weight waits where the result will be.
            grad_input.iter_mut().zip(dy).zip(weight).for_each(|((g, dy), weight)| *g = dy * weight);
            let mean_g = sum(grad_input, |g| g) / width as f32;
            let mean_gn = sum_of_pairs(grad_input, x, |g, x| g * (x - average) * scale) / width as f32;
            for (g, x) in grad_input.iter_mut().zip(x) {
                *g = (*g - mean_g - (x - average) * scale * mean_gn) * scale;
            }
        }
    });
}

/// See cu/layernorm.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn layernorm_backward_parameters(_: &Launch, arguments: &Arguments<'_>) {
    let grad_weight = Memory::<f32>::new(arguments.pointer(0));
    let grad_bias = Memory::<f32>::new(arguments.pointer(1));
    let grad_output = Memory::<f32>::new(arguments.pointer(2));
    let input = Memory::<f32>::new(arguments.pointer(3));
    let (mean, rstd) = (Memory::<f32>::new(arguments.pointer(4)), Memory::<f32>::new(arguments.pointer(5)));
    let (rows, width) = (arguments.u32(6) as usize, arguments.u32(7) as usize);
    let accumulate = arguments.u32(8) != 0;
    const COLUMNS: usize = 64;
    for_each(width.div_ceil(COLUMNS), 1, |part| {
        let (first, end) = (part * COLUMNS, width.min((part + 1) * COLUMNS));
        // SAFETY: the caller's promise; these columns belong to this call.
        unsafe {
            let (for_weight, for_bias) = (grad_weight.write(first..end), grad_bias.write(first..end));
            if !accumulate {
                for_weight.fill(0.0);
                for_bias.fill(0.0);
            }
            for row in 0..rows {
                let range = row * width + first..row * width + end;
                let (dy, x) = (grad_output.read(range.clone()), input.read(range));
                let (average, scale) = (*mean.at(row), *rstd.at(row));
                for (((weight, bias), dy), x) in for_weight.iter_mut().zip(for_bias.iter_mut()).zip(dy).zip(x) {
                    *weight += dy * (x - average) * scale;
                    *bias += dy;
                }
            }
        }
    });
}
