//! Heads apart and together, and the softmax of the scores.

use crate::case::{Case, Expected, Random, Value, exactly, output, sum, wide};
use memscope_kernels::geometry;

pub fn cases(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    for shape in [[1, 1, 1, 1], [2, 3, 5, 7], [3, 17, 2, 33]] {
        cases.extend(permutations(random, shape));
    }
    for (sequence, rows) in [(1, 1), (5, 10), (67, 134), (300, 300)] {
        for causal in [false, true] {
            cases.push(softmax_forward(random, sequence, rows, causal));
        }
        cases.push(softmax_backward(random, sequence, rows));
    }
    cases
}

/// Index of an element in (B, H, T, D), and in (B, T, 3, H, D) for each of the three; for (B, T, H, D), `of` is 1.
fn places([batch, sequence, heads, width]: [usize; 4], of: usize) -> Vec<(usize, [usize; 3])> {
    let mut all = Vec::new();
    for b in 0..batch {
        for h in 0..heads {
            for t in 0..sequence {
                for d in 0..width {
                    let together = [0, 1, 2].map(|which| (((b * sequence + t) * of + which) * heads + h) * width + d);
                    all.push((all.len(), together));
                }
            }
        }
    }
    all
}

fn permutations(random: &mut Random, shape: [usize; 4]) -> Vec<Case> {
    let elements: usize = shape.iter().product();
    let launch = geometry::elementwise(elements as u64);
    let sizes = || shape.map(|size| Value::U32(size as u32));
    let poisoned = |count: usize| vec![exactly(f32::NAN); count];
    let mut cases = Vec::new();

    let qkv = random.floats(3 * elements, 1.0);
    let mut apart = [poisoned(elements), poisoned(elements), poisoned(elements)];
    for (place, together) in places(shape, 3) {
        for which in 0..3 {
            apart[which][place] = exactly(qkv[together[which]]);
        }
    }
    let mut arguments: Vec<Value> = apart.into_iter().map(|after| output(0.0, after)).collect();
    arguments.push(Value::Input(qkv));
    arguments.extend(sizes());
    cases.push(Case::new("split_qkv", launch, arguments));

    let grads = [0; 3].map(|_| random.floats(elements, 1.0));
    let mut joined = poisoned(3 * elements);
    for (place, together) in places(shape, 3) {
        for which in 0..3 {
            joined[together[which]] = exactly(grads[which][place]);
        }
    }
    let mut arguments = vec![output(0.0, joined)];
    arguments.extend(grads.map(Value::Input));
    arguments.extend(sizes());
    cases.push(Case::new("split_qkv_backward", launch, arguments));

    let input = random.floats(elements, 1.0);
    let (mut merged, mut unmerged) = (poisoned(elements), poisoned(elements));
    for (place, [together, ..]) in places(shape, 1) {
        merged[together] = exactly(input[place]);
        unmerged[place] = exactly(input[together]);
    }
    for (name, after) in [("merge_heads", merged), ("merge_heads_backward", unmerged)] {
        let mut arguments = vec![output(0.0, after), Value::Input(input.clone())];
        arguments.extend(sizes());
        cases.push(Case::new(name, launch, arguments));
    }
    cases
}

fn softmax_forward(random: &mut Random, sequence: usize, rows: usize, causal: bool) -> Case {
    const LARGEST: f32 = 8.0;
    let scores = random.floats(rows * sequence, LARGEST);
    let mut after = Vec::new();
    for (row, scores) in wide(&scores).chunks(sequence).enumerate() {
        let keys = if causal { row % sequence + 1 } else { sequence };
        let total: f64 = scores[..keys].iter().map(|score| score.exp()).sum();
        for (key, score) in scores.iter().enumerate() {
            let value = if key < keys { score.exp() / total } else { 0.0 };
            after.push(Expected { value, magnitude: value });
        }
    }
    // The exponent is at most 2 · 8 in size and rounds by a unit of that, in numerator and sum; the sum has its own.
    let roundings = sequence as f64 + 4.0 * f64::from(LARGEST) + 16.0;
    let arguments =
        vec![output(roundings, after), Value::Input(scores), Value::U32(sequence as u32), Value::U32(causal.into())];
    Case::new("softmax_forward", geometry::rows(rows as u64), arguments)
}

fn softmax_backward(random: &mut Random, sequence: usize, rows: usize) -> Case {
    let grad = random.floats(rows * sequence, 1.0);
    let p = random.floats(rows * sequence, 1.0).iter().map(|x| x.abs() / sequence as f32).collect();
    let p = random.of_kind(p);
    let mut after = Vec::new();
    for (grad, p) in wide(&grad).chunks(sequence).zip(wide(&p).chunks(sequence)) {
        let inner = sum(grad.iter().zip(p).map(|(grad, p)| grad * p));
        for (grad, p) in grad.iter().zip(p) {
            after.push(Expected { value: p * (grad - inner.value), magnitude: p * (grad.abs() + inner.magnitude) });
        }
    }
    let arguments =
        vec![output(sequence as f64 + 4.0, after), Value::Input(grad), Value::Input(p), Value::U32(sequence as u32)];
    Case::new("softmax_backward", geometry::rows(rows as u64), arguments)
}
