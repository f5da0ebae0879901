//! The rectifier, and pooling with windows that overlap, that leave a rest, and whose values are equal.

use crate::case::{Case, Expected, Random, Value, exactly, output, sum};
use memscope_kernels::geometry;

pub fn cases(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    for n in [1, 257, 40_001] {
        cases.extend(relu(random, n));
    }
    let windows = [
        (1, 1, 1, 1, 1, 0),
        (3, 8, 9, 3, 2, 1),
        (70, 5, 6, 2, 2, 0),
        (2, 7, 7, 3, 1, 1),
        (2, 11, 5, 4, 3, 2),
        (1, 150, 140, 3, 2, 1),
    ];
    for (planes, height, width, side, stride, padding) in windows {
        for ties in [false, true] {
            cases.extend(largest(random, Windows { planes, height, width, side, stride, padding }, ties));
        }
    }
    for (planes, positions) in [(1, 1), (3, 7), (70, 49), (5, 300)] {
        cases.extend(mean(random, planes, positions));
    }
    cases
}

fn relu(random: &mut Random, n: usize) -> Vec<Case> {
    let (input, grad) = (random.floats(n, 1.0), random.floats(n, 1.0));
    let after: Vec<f32> = input.iter().map(|x| x.max(0.0)).collect();
    let launch = geometry::elementwise(n as u64);
    let expected: Vec<Expected> = after.iter().map(|&value| exactly(value)).collect();
    let size = || Value::U64(n as u64);
    let in_place = Value::Output { before: input.clone(), after: expected.clone(), roundings: 0.0 };
    let backward = input.iter().zip(&grad).map(|(&x, &dy)| exactly(if x > 0.0 { dy } else { 0.0 })).collect();
    vec![
        Case::new("relu_forward", launch, vec![output(0.0, expected), Value::Input(input), size()]),
        Case::new("relu_forward", launch, vec![in_place, Value::Same(0), size()]),
        Case::new(
            "relu_backward",
            launch,
            vec![output(0.0, backward), Value::Input(grad), Value::Input(after), size()],
        ),
    ]
}

#[derive(Clone, Copy)]
struct Windows {
    planes: usize,
    height: usize,
    width: usize,
    side: usize,
    stride: usize,
    padding: usize,
}

/// With `ties` the input has four values only, so that most windows have their largest more than once: the first counts.
fn largest(random: &mut Random, windows: Windows, ties: bool) -> [Case; 2] {
    let Windows { planes, height, width, side, stride, padding } = windows;
    let input: Vec<f32> = match ties {
        false => random.floats(planes * height * width, 1.0),
        true => random.indices(planes * height * width, -2, 2).iter().map(|&value| value as f32).collect(),
    };
    let out = |size: usize| (size + 2 * padding - side) / stride + 1;
    let (mut after, mut indices) = (Vec::new(), Vec::new());
    let windows_of_plane = out(height) * out(width);
    for window in 0..planes * windows_of_plane {
        let (plane, window) = (window / windows_of_plane, window % windows_of_plane);
        let (top, left) = (window / out(width) * stride, window % out(width) * stride);
        let mut best: Option<(f32, usize)> = None;
        for place in 0..side * side {
            let (y, x) = (top + place / side, left + place % side);
            if (padding..padding + height).contains(&y) && (padding..padding + width).contains(&x) {
                let at = (y - padding) * width + x - padding;
                let value = input[plane * height * width + at];
                if best.is_none_or(|(largest, _)| value > largest) {
                    best = Some((value, at));
                }
            }
        }
        let (value, at) = best.expect("padding is less than a window");
        after.push(exactly(value));
        indices.push(at as i64);
    }
    let sizes = || [planes, height, width, side, stride, padding].map(|size| Value::U32(size as u32));
    let grad = random.floats(after.len(), 1.0);
    let mut terms = vec![Vec::new(); input.len()];
    for (window, (&at, &grad)) in indices.iter().zip(&grad).enumerate() {
        terms[window / windows_of_plane * height * width + at as usize].push(f64::from(grad));
    }
    let for_input = terms.into_iter().map(sum).collect();
    let launch = geometry::elementwise(after.len() as u64);
    let mut arguments = vec![output(0.0, after), Value::IndicesOutput(indices.clone()), Value::Input(input)];
    arguments.extend(sizes());
    let forward = Case::new("maxpool_forward", launch, arguments);
    // At most ⌈side / stride⌉² windows meet in an element.
    let meeting = (side.div_ceil(stride)).pow(2) as f64;
    let mut arguments = vec![output(meeting, for_input), Value::Input(grad), Value::Indices(indices)];
    arguments.extend(sizes());
    let launch = geometry::elementwise((planes * height * width) as u64);
    [forward, Case::new("maxpool_backward", launch, arguments)]
}

fn mean(random: &mut Random, planes: usize, positions: usize) -> [Case; 2] {
    let (input, grad) = (random.floats(planes * positions, 1.0), random.floats(planes, 1.0));
    let of_plane = |plane: &[f32]| sum(plane.iter().map(|&x| f64::from(x) / positions as f64));
    let after = input.chunks(positions).map(of_plane).collect();
    let spread = |&grad: &f32| vec![sum([f64::from(grad) / positions as f64]); positions];
    let for_input = grad.iter().flat_map(spread).collect();
    let arguments = vec![output(positions as f64 + 1.0, after), Value::Input(input), Value::U32(positions as u32)];
    let forward = Case::new("averagepool_forward", geometry::rows(planes as u64), arguments);
    let mut arguments = vec![output(1.0, for_input), Value::Input(grad)];
    arguments.extend([planes, positions].map(|size| Value::U32(size as u32)));
    let launch = geometry::elementwise((planes * positions) as u64);
    [forward, Case::new("averagepool_backward", launch, arguments)]
}
