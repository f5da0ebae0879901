//! Host references of cu/batchnorm.cu. Sums are taken in f64: a channel has hundreds of thousands of values, which one fp32
//! sum from first to last would round more than the kernel's many partial sums do.

use super::memory::{Memory, for_each};
use crate::{Arguments, Launch};
use std::ops::Range;

/// The planes of a channel, one an image.
fn planes(channel: usize, images: usize, channels: usize, positions: usize) -> impl Iterator<Item = Range<usize>> {
    (0..images).map(move |image| {
        let start = (image * channels + channel) * positions;
        start..start + positions
    })
}

/// See cu/batchnorm.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn batchnorm_forward(_: &Launch, arguments: &Arguments<'_>) {
    let [output, mean, rstd, running_mean, running_variance, input, weight, bias] =
        [0, 1, 2, 3, 4, 5, 6, 7].map(|index| Memory::<f32>::new(arguments.pointer(index)));
    let [images, channels, positions] = [8, 9, 10].map(|index| arguments.u32(index) as usize);
    let (momentum, epsilon) = (arguments.f32(11), arguments.f32(12));
    let values = (images * positions) as f64;
    for_each(channels, 1, |channel| {
        let planes = || planes(channel, images, channels, positions);
        // SAFETY: the caller's promise; each channel belongs to one call.
        unsafe {
            let sum: f64 = planes().flat_map(|plane| input.read(plane)).map(|&x| f64::from(x)).sum();
            let average = (sum / values) as f32;
            let squares: f64 =
                planes().flat_map(|plane| input.read(plane)).map(|&x| f64::from(x - average).powi(2)).sum();
            let scale = 1.0 / ((squares / values) as f32 + epsilon).sqrt();
            let (weight, bias) = (*weight.at(channel), *bias.at(channel));
            for plane in planes() {
                let (output, input) = (output.write(plane.clone()), input.read(plane));
                for (output, x) in output.iter_mut().zip(input) {
                    *output = (x - average) * scale * weight + bias;
                }
            }
            *mean.at(channel) = average;
            *rstd.at(channel) = scale;
            let blend = |running: *mut f32, new: f32| *running = (1.0 - momentum) * *running + momentum * new;
            blend(running_mean.at(channel), average);
            blend(running_variance.at(channel), (squares / (values - 1.0)) as f32);
        }
    });
}

/// See cu/batchnorm.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn batchnorm_backward(_: &Launch, arguments: &Arguments<'_>) {
    let [grad_input, grad_weight, grad_bias, grad_output, input, weight, mean, rstd] =
        [0, 1, 2, 3, 4, 5, 6, 7].map(|index| Memory::<f32>::new(arguments.pointer(index)));
    let [images, channels, positions] = [8, 9, 10].map(|index| arguments.u32(index) as usize);
    let accumulate = arguments.u32(11) != 0;
    let values = (images * positions) as f64;
    for_each(channels, 1, |channel| {
        // SAFETY: the caller's promise; each channel belongs to one call.
        unsafe {
            let (average, scale, weight) = (*mean.at(channel), *rstd.at(channel), *weight.at(channel));
            let (mut sum, mut sum_with_normal) = (0.0, 0.0);
            for plane in planes(channel, images, channels, positions) {
                for (dy, x) in grad_output.read(plane.clone()).iter().zip(input.read(plane)) {
                    sum += f64::from(*dy);
                    sum_with_normal += f64::from(dy * (x - average) * scale);
                }
            }
            let (mean_dy, mean_with_normal) = ((sum / values) as f32, (sum_with_normal / values) as f32);
            for plane in planes(channel, images, channels, positions) {
                let (grad_output, input) = (grad_output.read(plane.clone()), input.read(plane.clone()));
                for ((grad_input, dy), x) in grad_input.write(plane).iter_mut().zip(grad_output).zip(input) {
                    let normal = (x - average) * scale;
                    *grad_input = (dy - mean_dy - normal * mean_with_normal) * scale * weight;
                }
            }
            let add = |gradient: *mut f32, sum: f64| {
                let before = if accumulate { *gradient } else { 0.0 };
                *gradient = before + sum as f32;
            };
            add(grad_weight.at(channel), sum_with_normal);
            add(grad_bias.at(channel), sum);
        }
    });
}
