//! Adafactor, a matrix in six kernels and a vector in one.

use crate::case::{Case, Expected, Random, Value, exactly, output, wide};
use memscope_kernels::geometry;

/// The distance from 1 to the next fp32 number, below which nothing is divided.
const TINY: f64 = 1.0 / 8_388_608.0;

pub fn cases(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    for (rows, columns) in [(1, 1), (3, 7), (70, 65), (9, 1003), (601, 5)] {
        cases.extend(states(random, rows, columns));
        cases.extend(update(random, rows, columns, 1.0));
    }
    // Gradients so small that the smallest divisor is met.
    cases.extend(update(random, 3, 7, 1e-5));
    cases.extend([1, 100, 257, 4001].map(|n| vector(random, n)));
    cases
}

fn positive(random: &mut Random, count: usize, scale: f32) -> Vec<f32> {
    random.floats(count, scale).iter().map(|x| x.abs()).collect()
}

fn root_mean_square(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    values.for_each(|value| (sum, count) = (sum + value * value, count + 1.0));
    f64::sqrt(sum / count)
}

/// state + blend · (mean - state), whose terms are all positive but one.
fn blended(state: f32, blend: f32, squares: impl Iterator<Item = f64>) -> Expected {
    let (mut sum, mut count) = (0.0, 0.0);
    squares.for_each(|square| (sum, count) = (sum + square, count + 1.0));
    let (state, blend, mean) = (f64::from(state), f64::from(blend), sum / count);
    Expected { value: state + blend * (mean - state), magnitude: state + blend * (mean + state) }
}

/// adafactor_rows, adafactor_columns, adafactor_mean.
fn states(random: &mut Random, rows: usize, columns: usize) -> [Case; 3] {
    let gradient = random.floats(rows * columns, 0.5);
    let squares: Vec<f64> = wide(&gradient).iter().map(|g| g * g).collect();
    let (of_rows, of_columns) = (positive(random, rows, 0.1), positive(random, columns, 0.1));
    let blend = 0.37_f32;
    let size = |size: usize| Value::U32(size as u32);

    let after = of_rows.iter().zip(squares.chunks(columns));
    let after = after.map(|(&state, row)| blended(state, blend, row.iter().copied())).collect();
    let before = of_rows.clone();
    let arguments = vec![
        Value::Output { before, after, roundings: columns as f64 + 6.0 },
        Value::Input(gradient.clone()),
        size(columns),
        Value::F32(blend),
    ];
    let by_rows = Case::new("adafactor_rows", geometry::rows(rows as u64), arguments);

    let column = |column: usize| squares.iter().skip(column).step_by(columns).copied();
    let after = of_columns.iter().enumerate().map(|(i, &state)| blended(state, blend, column(i))).collect();
    let arguments = vec![
        Value::Output { before: of_columns, after, roundings: rows as f64 + 38.0 },
        Value::Input(gradient),
        size(rows),
        size(columns),
        Value::F32(blend),
    ];
    let by_columns = Case::new("adafactor_columns", geometry::columns(columns as u32), arguments);

    let mean = wide(&of_rows).iter().sum::<f64>() / rows as f64;
    let mean = Expected { value: mean.max(TINY), magnitude: mean.max(TINY) };
    let scalars =
        Value::Output { before: vec![f32::NAN, 3.5], after: vec![mean, exactly(3.5)], roundings: rows as f64 + 2.0 };
    let arguments = vec![scalars, Value::Input(of_rows), size(rows)];
    [by_rows, by_columns, Case::new("adafactor_mean", geometry::one_block(), arguments)]
}

/// adafactor_partials, adafactor_step, adafactor_apply.
fn update(random: &mut Random, rows: usize, columns: usize, scale: f32) -> [Case; 3] {
    let elements = rows * columns;
    let (weight, gradient) = (random.floats(elements, 0.3), random.floats(elements, scale));
    let square = |scale: f32| scale * scale;
    let (of_rows, of_columns) = (positive(random, rows, square(scale)), positive(random, columns, square(scale)));
    let mean = (wide(&of_rows).iter().sum::<f64>() / rows as f64).max(TINY) as f32;
    let scaled: Vec<f64> = wide(&gradient)
        .iter()
        .enumerate()
        .map(|(i, g)| {
            let of_row = f64::from(of_rows[i / columns]) / f64::from(mean);
            g / (of_row * f64::from(of_columns[i % columns])).max(TINY * TINY).sqrt()
        })
        .collect();
    let size = |size: usize| Value::U32(size as u32);
    let states = |scalars: Vec<f32>| [of_rows.clone(), of_columns.clone(), scalars].map(Value::Input);

    let mut sums = Vec::new();
    for (updates, weights) in scaled.chunks(columns).zip(wide(&weight).chunks(columns)) {
        for row in [updates, weights] {
            let total = row.iter().map(|x| x * x).sum();
            sums.push(Expected { value: total, magnitude: total });
        }
    }
    let partials: Vec<f32> = sums.iter().map(|expected| expected.value as f32).collect();
    let mut arguments = vec![output(columns as f64 + 12.0, sums)];
    arguments.extend([weight.clone(), gradient.clone()].map(Value::Input));
    arguments.extend(states(vec![mean, f32::NAN]));
    arguments.push(size(columns));
    let of_partials = Case::new("adafactor_partials", geometry::rows(rows as u64), arguments);

    let (rate, floor) = (0.01_f32, 1e-3_f32);
    let total = |which: usize| wide(&partials).iter().skip(which).step_by(2).sum::<f64>() / elements as f64;
    let size_of_weights = total(1).sqrt().max(f64::from(floor));
    let step = size_of_weights * f64::from(rate) / total(0).sqrt().max(1.0);
    let after = vec![exactly(mean), Expected { value: step, magnitude: step }];
    let arguments = vec![
        Value::Output { before: vec![mean, f32::NAN], after, roundings: rows as f64 + 12.0 },
        Value::Input(partials),
        size(rows),
        Value::U64(elements as u64),
        Value::F32(rate),
        Value::F32(floor),
    ];
    let of_step = Case::new("adafactor_step", geometry::one_block(), arguments);

    let by = f64::from(step as f32);
    let moved = wide(&weight).into_iter().zip(&scaled);
    let after = moved.map(|(w, u)| Expected { value: w - by * u, magnitude: w.abs() + (by * u).abs() }).collect();
    let mut arguments = vec![Value::Output { before: weight, after, roundings: 10.0 }, Value::Input(gradient)];
    arguments.extend(states(vec![mean, step as f32]));
    arguments.extend([size(rows), size(columns)]);
    [of_partials, of_step, Case::new("adafactor_apply", geometry::elementwise(elements as u64), arguments)]
}

fn vector(random: &mut Random, n: usize) -> Case {
    let (weight, gradient) = (random.floats(n, 0.3), random.floats(n, 0.5));
    let state = positive(random, n, 0.1);
    let (blend, rate, floor) = (0.37_f32, 0.01_f32, 1e-3_f32);
    let seconds: Vec<Expected> =
        state.iter().zip(wide(&gradient)).map(|(&state, g)| blended(state, blend, std::iter::once(g * g))).collect();
    let scaled = || wide(&gradient).into_iter().zip(&seconds).map(|(g, v)| g / v.value.max(TINY * TINY).sqrt());
    let size_of_weights = root_mean_square(wide(&weight).into_iter()).max(f64::from(floor));
    let step = size_of_weights * f64::from(rate) / root_mean_square(scaled()).max(1.0);
    let moved = wide(&weight).into_iter().zip(scaled()).zip(&seconds);
    let after = moved.map(|((w, u), v)| {
        // Where the blend cancels, the root has the relative error of what is left.
        let magnitude = w.abs() + (step * u).abs() * (v.magnitude / v.value);
        Expected { value: w - step * u, magnitude }
    });
    let after = after.collect();
    let arguments = vec![
        Value::Output { before: weight, after, roundings: 2.0 * n as f64 + 32.0 },
        Value::Output { before: state, after: seconds.clone(), roundings: 6.0 },
        Value::Input(gradient),
        Value::U32(n as u32),
        Value::F32(blend),
        Value::F32(rate),
        Value::F32(floor),
    ];
    Case::new("adafactor_vector", geometry::one_block(), arguments)
}
