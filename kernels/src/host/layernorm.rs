//! Host references of cu/layernorm.cu.

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
            let average = x.iter().sum::<f32>() / width as f32;
            let variance = x.iter().map(|x| (x - average) * (x - average)).sum::<f32>() / width as f32;
            let scale = 1.0 / (variance + epsilon).sqrt();
            let output = output.write(row * width..(row + 1) * width);
            let (weight, bias) = (weight.read(0..width), bias.read(0..width));
            for column in 0..width {
                output[column] = (x[column] - average) * scale * weight[column] + bias[column];
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
            let (mut sum, mut sum_with_normal) = (0.0, 0.0);
            for column in 0..width {
                let g = dy[column] * weight[column];
                sum += g;
                sum_with_normal += g * (x[column] - average) * scale;
            }
            let (mean_g, mean_gn) = (sum / width as f32, sum_with_normal / width as f32);
            let grad_input = grad_input.write(range);
            for column in 0..width {
                let normal = (x[column] - average) * scale;
                grad_input[column] = (dy[column] * weight[column] - mean_g - normal * mean_gn) * scale;
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
                for column in 0..end - first {
                    for_weight[column] += dy[column] * (x[column] - average) * scale;
                    for_bias[column] += dy[column];
                }
            }
        }
    });
}
