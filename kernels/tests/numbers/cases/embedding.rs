//! Embeddings and the gradients of their tables.

use crate::case::{Case, Random, Value, exactly, output, sum, wide};
use memscope_kernels::geometry;

pub fn cases(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    for (batch, sequence, width) in [(1, 1, 1), (3, 5, 7), (2, 33, 130)] {
        cases.extend([forward(random, batch, sequence, width, false), forward(random, batch, sequence, width, true)]);
        cases.push(backward_table(random, batch * sequence, width));
        cases.extend([false, true].map(|accumulate| backward_position(random, [batch, sequence, width], accumulate)));
    }
    cases
}

const VOCABULARY: usize = 11;
const KINDS: usize = 2;

fn forward(random: &mut Random, batch: usize, sequence: usize, width: usize, with_types: bool) -> Case {
    let rows = batch * sequence;
    let (tokens, types) = (random.indices(rows, 0, VOCABULARY as i64), random.indices(rows, 0, KINDS as i64));
    let token_table = random.floats(VOCABULARY * width, 1.0);
    let position_table = random.floats((sequence + 2) * width, 1.0);
    let type_table = random.floats(KINDS * width, 1.0);
    let mut after = Vec::new();
    for row in 0..rows {
        for column in 0..width {
            let at = |table: &[f32], index: usize| f64::from(table[index * width + column]);
            let word = at(&token_table, tokens[row] as usize);
            let position = at(&position_table, row % sequence);
            let kind = if with_types { at(&type_table, types[row] as usize) } else { 0.0 };
            after.push(sum([word, position, kind]));
        }
    }
    let launch = geometry::elementwise((rows * width) as u64);
    let mut arguments =
        vec![output(2.0, after), Value::Indices(tokens), Value::Input(token_table), Value::Input(position_table)];
    arguments.extend(match with_types {
        true => [Value::Indices(types), Value::Input(type_table)],
        false => [Value::Null, Value::Null],
    });
    arguments.extend([rows, sequence, width].map(|size| Value::U32(size as u32)));
    Case::new("embedding_forward", launch, arguments)
}

fn backward_table(random: &mut Random, rows: usize, width: usize) -> Case {
    let indices = random.indices(rows, 0, VOCABULARY as i64);
    let (before, grad) = (random.floats(VOCABULARY * width, 1.0), random.floats(rows * width, 1.0));
    let wide_grad = wide(&grad);
    let mut after = Vec::new();
    for entry in 0..VOCABULARY {
        for column in 0..width {
            let rows_here = (0..rows).filter(|&row| indices[row] == entry as i64);
            let there = f64::from(before[entry * width + column]);
            let mut expected = sum(std::iter::once(there).chain(rows_here.map(|row| wide_grad[row * width + column])));
            if !indices.contains(&(entry as i64)) {
                expected = exactly(before[entry * width + column]);
            }
            after.push(expected);
        }
    }
    let arguments = vec![
        Value::Output { before, after, roundings: rows as f64 },
        Value::Input(grad),
        Value::Indices(indices),
        Value::U32(rows as u32),
        Value::U32(width as u32),
    ];
    Case::new("embedding_backward_table", geometry::rows(rows as u64), arguments)
}

fn backward_position(random: &mut Random, [batch, sequence, width]: [usize; 3], accumulate: bool) -> Case {
    let (rows, positions) = (batch * sequence, sequence + 2);
    let grad = random.floats(rows * width, 1.0);
    let before = random.floats(positions * width, 1.0);
    let mut after = Vec::new();
    for position in 0..positions {
        for column in 0..width {
            let rows_here = (0..rows).filter(|row| row % sequence == position);
            let there = accumulate.then(|| f64::from(before[position * width + column]));
            after.push(sum(there.into_iter().chain(rows_here.map(|row| f64::from(grad[row * width + column])))));
        }
    }
    let roundings = batch as f64 + 1.0;
    let table = if accumulate { Value::Output { before, after, roundings } } else { output(roundings, after) };
    let mut arguments = vec![table, Value::Input(grad)];
    arguments.extend([rows, sequence, positions, width, accumulate.into()].map(|size| Value::U32(size as u32)));
    Case::new("embedding_backward_position", geometry::elementwise((positions * width) as u64), arguments)
}
