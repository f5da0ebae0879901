//! Matrix products with every way an operand can lie, and the gradient of a bias.

use crate::case::{Case, Expected, Random, Value, exactly, output, sum};
use memscope_kernels::geometry;

pub fn cases(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    let sizes = [(1, 1, 1, 1), (3, 5, 7, 2), (64, 64, 16, 1), (65, 33, 17, 3), (130, 70, 33, 1), (40, 50, 300, 1)];
    for (m, n, k, batches) in sizes {
        for variant in 0..8 {
            let [a_transposed, b_transposed, plain] = [1, 2, 4].map(|bit| variant & bit != 0);
            let shape = Shape { m, n, k, batches, a_transposed, b_transposed };
            cases.push(product(random, shape, plain));
        }
    }
    for (rows, width) in [(1, 1), (70, 65), (33, 300)] {
        cases.extend([bias_backward(random, rows, width, false), bias_backward(random, rows, width, true)]);
    }
    cases
}

#[derive(Clone, Copy)]
struct Shape {
    m: usize,
    n: usize,
    k: usize,
    batches: usize,
    a_transposed: bool,
    b_transposed: bool,
}

/// `plain` is a · b. Otherwise it is scaled, biased, added to what is there, and its rows lie apart with something between
/// that must stay.
fn product(random: &mut Random, shape: Shape, plain: bool) -> Case {
    let Shape { m, n, k, batches, a_transposed, b_transposed } = shape;
    let (alpha, beta) = if plain { (1.0, 0.0) } else { (-0.7_f32, 1.0_f32) };
    let row = if plain { n } else { n + 3 };
    let (a, b) = (random.floats(batches * m * k, 1.0), random.floats(batches * k * n, 1.0));
    let (bias, before) = (random.floats(n, 1.0), random.floats(batches * m * row, 1.0));
    let a_strides = if a_transposed { (1, m) } else { (k, 1) };
    let b_strides = if b_transposed { (1, k) } else { (n, 1) };
    let mut after: Vec<Expected> = before.iter().map(|&value| exactly(value)).collect();
    for z in 0..batches {
        for i in 0..m {
            for j in 0..n {
                let term = |d: usize| {
                    let left = a[z * m * k + i * a_strides.0 + d * a_strides.1];
                    let right = b[z * k * n + d * b_strides.0 + j * b_strides.1];
                    f64::from(alpha) * f64::from(left) * f64::from(right)
                };
                let cell = (z * m + i) * row + j;
                let around = if plain { [0.0; 2] } else { [f64::from(beta * before[cell]), bias[j].into()] };
                after[cell] = sum((0..k).map(term).chain(around));
            }
        }
    }
    let roundings = k as f64 + 4.0;
    let target = if plain { output(roundings, after) } else { Value::Output { before, after, roundings } };
    let mut arguments = vec![target, Value::Input(a), Value::Input(b)];
    arguments.push(if plain { Value::Null } else { Value::Input(bias) });
    arguments.extend([m, n, k, batches].map(|size| Value::U32(size as u32)));
    let strides = [a_strides.0, a_strides.1, m * k, b_strides.0, b_strides.1, k * n, row, m * row];
    arguments.extend(strides.map(|stride| Value::U64(stride as u64)));
    arguments.extend([Value::F32(alpha), Value::F32(beta)]);
    Case::new("matmul", geometry::matmul(m as u32, n as u32, batches as u32), arguments)
}

fn bias_backward(random: &mut Random, rows: usize, width: usize, accumulate: bool) -> Case {
    let (grad, before) = (random.floats(rows * width, 1.0), random.floats(width, 1.0));
    let expected = |column: usize| {
        let start = if accumulate { before[column].into() } else { 0.0 };
        sum(std::iter::once(start).chain((0..rows).map(|row| f64::from(grad[row * width + column]))))
    };
    let after = (0..width).map(expected).collect();
    let roundings = rows as f64 + 1.0;
    let target = if accumulate { Value::Output { before, after, roundings } } else { output(roundings, after) };
    let mut arguments = vec![target, Value::Input(grad)];
    arguments.extend([rows as u32, width as u32, accumulate.into()].map(Value::U32));
    Case::new("bias_backward", geometry::columns(width as u32), arguments)
}
