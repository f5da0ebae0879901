//! Layer normalisation.
//!
//! Roundings. A mean or variance of a row of w elements goes through w + 2 of them. They move a centred element by (w + 2)
//! units of the mean magnitude of its row, and everything after by as many of what that is multiplied with; half of the
//! relative error of the variance goes into rstd. So 2·w + 16 covers each output, with the magnitudes below.

use crate::case::{Case, Expected, Random, Value, output, sum, wide};
use memscope_kernels::geometry;

const EPSILON: f32 = 1e-5;

pub fn cases(random: &mut Random) -> Vec<Case> {
    // A width of 1 has no variance: its rstd is 1/√ε, and any rounding is multiplied by it.
    let mut cases = Vec::new();
    for (rows, width) in [(1, 2), (3, 7), (5, 257), (70, 65), (33, 768)] {
        cases.extend(of_size(random, rows, width, false));
        cases.extend(of_size(random, rows, width, true));
    }
    cases
}

/// A row's mean and 1/√(variance + ε), and the mean of its absolute values.
fn statistics(row: &[f64]) -> (f64, f64, f64) {
    let width = row.len() as f64;
    let mean = row.iter().sum::<f64>() / width;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width;
    (mean, (variance + f64::from(EPSILON)).powf(-0.5), row.iter().map(|x| x.abs()).sum::<f64>() / width)
}

fn of_size(random: &mut Random, rows: usize, width: usize, accumulate: bool) -> Vec<Case> {
    let roundings = 2.0 * width as f64 + 16.0;
    let (input, grad) = (random.floats(rows * width, 2.0), random.floats(rows * width, 1.0));
    let (weight, bias) = (random.floats(width, 1.5), random.floats(width, 1.0));
    let (x, dy, w, b) = (wide(&input), wide(&grad), wide(&weight), wide(&bias));

    let (mut forward, mut means, mut rstds) = (Vec::new(), Vec::new(), Vec::new());
    for row in x.chunks(width) {
        let (mean, rstd, size) = statistics(row);
        // How much a rounding in the mean or variance weighs in a normalised element.
        means.push(Expected { value: mean, magnitude: size });
        rstds.push(Expected { value: rstd, magnitude: rstd * (1.0 + (size * rstd).powi(2)) });
        for column in 0..width {
            let normal = (row[column] - mean) * rstd;
            let magnitude = (row[column].abs() + size) * rstd * (1.0 + (size * rstd).powi(2));
            forward.push(Expected {
                value: normal * w[column] + b[column],
                magnitude: magnitude * w[column].abs() + b[column].abs(),
            });
        }
    }
    // Backward takes the statistics as they are in fp32, and is checked from there.
    let to_narrow = |expected: &[Expected]| expected.iter().map(|expected| expected.value as f32).collect::<Vec<f32>>();
    let (mean, rstd) = (to_narrow(&means), to_narrow(&rstds));
    let launch = geometry::rows(rows as u64);
    let arguments = vec![
        output(roundings, forward),
        output(roundings, means),
        output(roundings, rstds),
        Value::Input(input.clone()),
        Value::Input(weight.clone()),
        Value::Input(bias),
        Value::U32(width as u32),
        Value::F32(EPSILON),
    ];
    let mut cases = vec![Case::new("layernorm_forward", launch, arguments)];

    let normal = |row: usize, column: usize| (x[row * width + column] - wide(&mean)[row]) * wide(&rstd)[row];
    let mut for_input = Vec::new();
    for row in 0..rows {
        let scale = f64::from(rstd[row]);
        let normals: Vec<f64> = (0..width).map(|column| normal(row, column)).collect();
        let g: Vec<f64> = (0..width).map(|column| dy[row * width + column] * w[column]).collect();
        let mean_g = sum(g.iter().map(|g| g / width as f64));
        let mean_gn = sum(g.iter().zip(&normals).map(|(g, n)| g * n / width as f64));
        for (g, n) in g.iter().zip(&normals) {
            for_input.push(Expected {
                value: (g - mean_g.value - n * mean_gn.value) * scale,
                // A normalised element has rounded by a unit of x · rstd, which is at most 2 · rstd here.
                magnitude: (g.abs() + mean_g.magnitude + (n.abs() + 2.0 * scale) * mean_gn.magnitude) * scale,
            });
        }
    }
    let (stats, shape) = ([Value::Input(mean.clone()), Value::Input(rstd.clone())], Value::U32(width as u32));
    let mut arguments = vec![output(roundings, for_input), Value::Input(grad.clone()), Value::Input(input.clone())];
    arguments.push(Value::Input(weight));
    arguments.extend(stats);
    arguments.push(shape);
    cases.push(Case::new("layernorm_backward_input", launch, arguments));

    let before = [random.floats(width, 1.0), random.floats(width, 1.0)];
    let start = |which: usize, column: usize| if accumulate { f64::from(before[which][column]) } else { 0.0 };
    let (mut for_weight, mut for_bias) = (Vec::new(), Vec::new());
    for column in 0..width {
        let dy_here = |row: usize| dy[row * width + column];
        let terms = (0..rows).map(|row| dy_here(row) * normal(row, column));
        let mut expected = sum(std::iter::once(start(0, column)).chain(terms));
        expected.magnitude += (0..rows).map(|row| dy_here(row).abs() * 2.0 * f64::from(rstd[row])).sum::<f64>();
        for_weight.push(expected);
        for_bias.push(sum(std::iter::once(start(1, column)).chain((0..rows).map(dy_here))));
    }
    let [weight_before, bias_before] = before;
    let gradient = |before: Vec<f32>, after| match accumulate {
        true => Value::Output { before, after, roundings: rows as f64 + 8.0 },
        false => output(rows as f64 + 8.0, after),
    };
    let arguments = vec![
        gradient(weight_before, for_weight),
        gradient(bias_before, for_bias),
        Value::Input(grad),
        Value::Input(input),
        Value::Input(mean),
        Value::Input(rstd),
        Value::U32(rows as u32),
        Value::U32(width as u32),
        Value::U32(accumulate.into()),
    ];
    cases.push(Case::new("layernorm_backward_parameters", geometry::columns(width as u32), arguments));
    cases
}
