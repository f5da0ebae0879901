//! Batch normalisation.
//!
//! Roundings as in layer normalisation (layernorm.rs): with v values in a channel, the mean and variance go through v + 2 of
//! them, and everything after is multiplied with what they are.

use crate::case::{Case, Expected, Random, Value, output, sum, wide};
use memscope_kernels::geometry;

const EPSILON: f32 = 1e-5;
const MOMENTUM: f32 = 0.1;

pub fn cases(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    for (images, channels, positions) in [(2, 1, 1), (1, 3, 2), (3, 5, 7), (5, 2, 257), (4, 33, 60)] {
        cases.push(forward(random, images, channels, positions));
        cases.push(backward(random, images, channels, positions, false));
        cases.push(backward(random, images, channels, positions, true));
    }
    cases
}

/// The values of a channel, and where they are.
fn places(channel: usize, images: usize, channels: usize, positions: usize) -> Vec<usize> {
    (0..images * channels * positions).filter(|at| at / positions % channels == channel).collect()
}

struct Statistics {
    mean: f64,
    variance: f64,
    rstd: f64,
    /// Mean of the absolute values.
    size: f64,
}

fn statistics(values: &[f64]) -> Statistics {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    let size = values.iter().map(|x| x.abs()).sum::<f64>() / count;
    Statistics { mean, variance, rstd: (variance + f64::from(EPSILON)).powf(-0.5), size }
}

fn forward(random: &mut Random, images: usize, channels: usize, positions: usize) -> Case {
    let values = images * positions;
    let roundings = 2.0 * values as f64 + 16.0;
    let input = random.floats(images * channels * positions, 2.0);
    let (weight, bias) = (random.floats(channels, 1.5), random.floats(channels, 1.0));
    let running = [random.floats(channels, 1.0), random.floats(channels, 1.0)];
    let (x, w, b) = (wide(&input), wide(&weight), wide(&bias));
    let mut after = vec![Expected { value: f64::NAN, magnitude: 0.0 }; x.len()];
    let (mut means, mut rstds, mut running_after) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    for channel in 0..channels {
        let places = places(channel, images, channels, positions);
        let here = statistics(&places.iter().map(|&at| x[at]).collect::<Vec<f64>>());
        let Statistics { mean, variance, rstd, size } = here;
        let sensitive = 1.0 + (size * rstd).powi(2);
        means.push(Expected { value: mean, magnitude: size });
        rstds.push(Expected { value: rstd, magnitude: rstd * sensitive });
        for at in places {
            let magnitude = (x[at].abs() + size) * rstd * sensitive * w[channel].abs() + b[channel].abs();
            after[at] = Expected { value: (x[at] - mean) * rstd * w[channel] + b[channel], magnitude };
        }
        let unbiased = variance * values as f64 / (values as f64 - 1.0);
        for (which, new, new_size) in [(0, mean, size), (1, unbiased, unbiased + 4.0 * size * size)] {
            let momentum = f64::from(MOMENTUM);
            let before = f64::from(running[which][channel]);
            running_after[which].push(Expected {
                value: (1.0 - momentum) * before + momentum * new,
                magnitude: before.abs() + momentum * new_size,
            });
        }
    }
    let [mean_after, variance_after] = running_after;
    let [mean_before, variance_before] = running;
    let updated = |before, after| Value::Output { before, after, roundings };
    let mut arguments = vec![output(roundings, after), output(roundings, means), output(roundings, rstds)];
    arguments.extend([updated(mean_before, mean_after), updated(variance_before, variance_after)]);
    arguments.extend([input, weight, bias].map(Value::Input));
    arguments.extend([images, channels, positions].map(|size| Value::U32(size as u32)));
    arguments.extend([Value::F32(MOMENTUM), Value::F32(EPSILON)]);
    Case::new("batchnorm_forward", geometry::rows(channels as u64), arguments)
}

/// Takes the statistics as they are in fp32, and is checked from there.
fn backward(random: &mut Random, images: usize, channels: usize, positions: usize, accumulate: bool) -> Case {
    let count = images * channels * positions;
    let values = (images * positions) as f64;
    let roundings = values + 16.0;
    let (input, grad, weight) = (random.floats(count, 2.0), random.floats(count, 1.0), random.floats(channels, 1.5));
    let before = [random.floats(channels, 1.0), random.floats(channels, 1.0)];
    let (x, dy, w) = (wide(&input), wide(&grad), wide(&weight));
    let mut after = vec![Expected { value: f64::NAN, magnitude: 0.0 }; count];
    let (mut means, mut rstds, mut gradients) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    for channel in 0..channels {
        let places = places(channel, images, channels, positions);
        let Statistics { mean, rstd, .. } = statistics(&places.iter().map(|&at| x[at]).collect::<Vec<f64>>());
        let (mean, rstd) = (mean as f32, rstd as f32);
        means.push(mean);
        rstds.push(rstd);
        let (mean, rstd) = (f64::from(mean), f64::from(rstd));
        let normal = |at: usize| (x[at] - mean) * rstd;
        // A normalised element has rounded by a unit of x · rstd, which is at most 2 · rstd here.
        let size = |at: usize| normal(at).abs() + 2.0 * rstd;
        let of_grad = sum(places.iter().map(|&at| dy[at]));
        let mut with_normal = sum(places.iter().map(|&at| dy[at] * normal(at)));
        with_normal.magnitude = places.iter().map(|&at| dy[at].abs() * size(at)).sum();
        for &at in &places {
            let value = dy[at] - of_grad.value / values - normal(at) * with_normal.value / values;
            let magnitude = dy[at].abs() + of_grad.magnitude / values + size(at) * with_normal.magnitude / values;
            let by = rstd * w[channel];
            after[at] = Expected { value: value * by, magnitude: magnitude * by.abs() };
        }
        for (which, total) in [(0, with_normal), (1, of_grad)] {
            let start = if accumulate { f64::from(before[which][channel]) } else { 0.0 };
            let (value, magnitude) = (total.value + start, total.magnitude + start.abs());
            gradients[which].push(Expected { value, magnitude });
        }
    }
    let gradient = |before, after| match accumulate {
        true => Value::Output { before, after, roundings },
        false => output(roundings, after),
    };
    let ([for_weight, for_bias], [weight_before, bias_before]) = (gradients, before);
    let mut arguments = vec![output(roundings, after)];
    arguments.extend([gradient(weight_before, for_weight), gradient(bias_before, for_bias)]);
    arguments.extend([grad, input, weight, means, rstds].map(Value::Input));
    arguments.extend([images, channels, positions].map(|size| Value::U32(size as u32)));
    arguments.push(Value::U32(accumulate.into()));
    Case::new("batchnorm_backward", geometry::rows(channels as u64), arguments)
}
