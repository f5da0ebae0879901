//! Convolutions of every kind that a network has: strided or not, padded or not, 1 × 1 and larger, planes that the filter
//! fits into once or does not divide; against plain loops over the definition.

use crate::case::{Case, Expected, Random, Value, exactly, output, wide};
use memscope_kernels::geometry;

#[derive(Clone, Copy)]
struct Shape {
    images: usize,
    channels: usize,
    height: usize,
    width: usize,
    filters: usize,
    side: usize,
    stride: usize,
    padding: usize,
}

pub fn cases(random: &mut Random) -> Vec<Case> {
    let shapes = [
        (1, 1, 1, 1, 1, 1, 1, 0),
        (2, 3, 13, 9, 5, 7, 2, 3),
        (3, 5, 6, 7, 4, 3, 1, 1),
        (2, 4, 7, 5, 3, 3, 2, 1),
        (2, 19, 4, 5, 70, 1, 1, 0),
        (3, 6, 5, 8, 7, 1, 2, 0),
        (1, 70, 3, 3, 2, 3, 3, 0),
        (2, 2, 9, 11, 3, 2, 3, 1),
        (1, 17, 40, 91, 3, 3, 1, 1),
    ];
    let mut cases = Vec::new();
    for (images, channels, height, width, filters, side, stride, padding) in shapes {
        let shape = Shape { images, channels, height, width, filters, side, stride, padding };
        cases.extend(of_shape(random, shape));
    }
    cases
}

impl Shape {
    fn out(&self) -> (usize, usize) {
        let out = |size: usize| (size + 2 * self.padding - self.side) / self.stride + 1;
        (out(self.height), out(self.width))
    }

    /// Every product of the definition: the indices of its output, input and weight.
    fn terms(&self, mut term: impl FnMut(usize, usize, usize)) {
        let &Shape { images, channels, height, width, filters, side, stride, padding } = self;
        let (out_height, out_width) = self.out();
        for (n, f, c) in triples(images, filters, channels) {
            for (y, x) in pairs(out_height, out_width) {
                for (v, u) in pairs(side, side) {
                    let (from_y, from_x) = (y * stride + v, x * stride + u);
                    let inside = |from: usize, size: usize| (padding..padding + size).contains(&from);
                    if inside(from_y, height) && inside(from_x, width) {
                        term(
                            ((n * filters + f) * out_height + y) * out_width + x,
                            ((n * channels + c) * height + from_y - padding) * width + from_x - padding,
                            ((f * channels + c) * side + v) * side + u,
                        );
                    }
                }
            }
        }
    }
}

fn pairs(first: usize, second: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..first).flat_map(move |a| (0..second).map(move |b| (a, b)))
}

fn triples(first: usize, second: usize, third: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    pairs(first, second).flat_map(move |(a, b)| (0..third).map(move |c| (a, b, c)))
}

fn add(to: &mut Expected, term: f64) {
    to.value += term;
    to.magnitude += term.abs();
}

fn of_shape(random: &mut Random, shape: Shape) -> Vec<Case> {
    let Shape { images, channels, height, width, filters, side, stride, padding } = shape;
    let (out_height, out_width) = shape.out();
    let inputs = images * channels * height * width;
    let (outputs, weights) = (images * filters * out_height * out_width, filters * channels * side * side);
    let (input, weight) = (random.floats(inputs, 1.0), random.floats(weights, 1.0));
    let (grad, before) = (random.floats(outputs, 1.0), random.floats(weights, 1.0));
    let (x, w, dy) = (wide(&input), wide(&weight), wide(&grad));
    let mut forward = vec![exactly(0.0); outputs];
    let mut for_input = vec![exactly(0.0); inputs];
    let mut for_weight = vec![exactly(0.0); weights];
    shape.terms(|to, from, by| {
        add(&mut forward[to], x[from] * w[by]);
        add(&mut for_input[from], dy[to] * w[by]);
        add(&mut for_weight[by], dy[to] * x[from]);
    });
    let mut added = for_weight.clone();
    added.iter_mut().zip(&before).for_each(|(to, &before)| add(to, before.into()));
    let area = side * side;
    let (positions, pixels) = (images * out_height * out_width, images * height * width);
    let case = |kernel: &str, [rows, columns]: [usize; 2], target, [first, second]: [&Vec<f32>; 2], last| {
        let mut arguments = vec![target, Value::Input(first.clone()), Value::Input(second.clone())];
        let sizes = [images, channels, height, width, filters, side, stride, padding];
        arguments.extend(sizes.map(|size| Value::U32(size as u32)));
        arguments.extend(last);
        Case::new(kernel, geometry::matmul(rows as u32, columns as u32, 1), arguments)
    };
    let roundings = |terms: usize| terms as f64 + 2.0;
    let forward = output(roundings(channels * area), forward);
    let for_input = output(roundings(filters * area), for_input);
    let for_weight = output(roundings(positions), for_weight);
    let added = Value::Output { before, after: added, roundings: roundings(positions) };
    let (by_weight, to_weight) = ([channels * area, filters], "convolution_backward_weight");
    vec![
        case("convolution_forward", [positions, filters], forward, [&input, &weight], None),
        case("convolution_backward_input", [pixels, channels], for_input, [&grad, &weight], None),
        case(to_weight, by_weight, for_weight, [&grad, &input], Some(Value::U32(0))),
        case(to_weight, by_weight, added, [&grad, &input], Some(Value::U32(1))),
    ]
}
