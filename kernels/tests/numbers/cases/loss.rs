//! The loss: log-softmax and negative log-likelihood.

use crate::case::{Case, Expected, Random, Value, exactly, output, sum, wide};
use memscope_kernels::geometry;

pub fn cases(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    for (rows, vocabulary) in [(1, 1), (3, 7), (70, 65), (9, 1003)] {
        cases.extend(log_softmax(random, rows, vocabulary));
        cases.extend(nll(random, rows, vocabulary));
    }
    cases
}

fn log_softmax(random: &mut Random, rows: usize, vocabulary: usize) -> [Case; 2] {
    let logits = random.floats(rows * vocabulary, 8.0);
    let mut after = Vec::new();
    for row in wide(&logits).chunks(vocabulary) {
        let normaliser = row.iter().map(|logit| logit.exp()).sum::<f64>().ln();
        // The logarithm turns the sum's relative error into an absolute one, beside which stand the terms' roundings.
        let magnitude = |logit: f64| logit.abs() + 2.0 * 8.0 + normaliser.abs() + 1.0;
        after.extend(row.iter().map(|&logit| Expected { value: logit - normaliser, magnitude: magnitude(logit) }));
    }
    let log_probabilities: Vec<f32> = after.iter().map(|expected| expected.value as f32).collect();
    let launch = geometry::rows(rows as u64);
    let roundings = vocabulary as f64 + 16.0;
    let arguments = vec![output(roundings, after), Value::Input(logits), Value::U32(vocabulary as u32)];
    let forward = Case::new("log_softmax_forward", launch, arguments);

    let grad = random.floats(rows * vocabulary, 1.0);
    let mut after = Vec::new();
    for (grad, log) in wide(&grad).chunks(vocabulary).zip(wide(&log_probabilities).chunks(vocabulary)) {
        let total = sum(grad.iter().copied());
        for (grad, log) in grad.iter().zip(log) {
            after.push(Expected {
                value: grad - log.exp() * total.value,
                magnitude: grad.abs() + log.exp() * total.magnitude,
            });
        }
    }
    let arguments = vec![
        output(roundings, after),
        Value::Input(grad),
        Value::Input(log_probabilities),
        Value::U32(vocabulary as u32),
    ];
    [forward, Case::new("log_softmax_backward", launch, arguments)]
}

fn nll(random: &mut Random, rows: usize, vocabulary: usize) -> [Case; 2] {
    let log_probabilities: Vec<f32> = random.floats(rows * vocabulary, 5.0).iter().map(|x| -x.abs()).collect();
    // Some rows do not count; a row that does is not needed, since the scale is given.
    let targets = random.indices(rows, -1, vocabulary as i64);
    let scale = 1.0 / rows as f32;
    let counted = targets.iter().enumerate().filter(|(_, target)| **target >= 0);
    let loss = sum(counted
        .map(|(row, &target)| -f64::from(scale) * f64::from(log_probabilities[row * vocabulary + target as usize])));
    let sizes = || [Value::U32(rows as u32), Value::U32(vocabulary as u32), Value::F32(scale)];
    let mut arguments = vec![output(rows as f64 + 2.0, vec![loss])];
    arguments.extend([Value::Input(log_probabilities), Value::Indices(targets.clone())]);
    arguments.extend(sizes());
    let forward = Case::new("nll_forward", geometry::one_block(), arguments);

    let mut after = vec![exactly(0.0); rows * vocabulary];
    for (row, &target) in targets.iter().enumerate().filter(|(_, target)| **target >= 0) {
        after[row * vocabulary + target as usize] = exactly(-scale);
    }
    let mut arguments = vec![output(0.0, after), Value::Indices(targets)];
    arguments.extend(sizes());
    let launch = geometry::elementwise((rows * vocabulary) as u64);
    [forward, Case::new("nll_backward", launch, arguments)]
}
