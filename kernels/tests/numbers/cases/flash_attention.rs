//! Attention without its matrix, against an implementation that has it.
//!
//! A score is a sum of D products, which rounds D + 2 times; the exponential turns that into a relative error of the
//! probability as large as the score's terms. What is summed from probabilities has that error and its own roundings.

use crate::case::{Case, Expected, Random, Value, output, sum, wide};
use crate::kind::Kind;
use memscope_kernels::geometry;
use std::ops::Range;

pub fn cases(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    // Tiles that are not full, one that is, and the widest head.
    let shapes = [[1, 1, 1, 1], [2, 5, 3, 7], [1, 33, 2, 20], [2, 17, 1, 128], [1, 70, 2, 33], [1, 32, 1, 16]];
    // 16 bits take the same ways: the first shapes are enough.
    let count = if random.kind.is_some() { 3 } else { shapes.len() };
    for shape in shapes.into_iter().take(count) {
        for causal in [false, true] {
            cases.extend(Attention::new(random, shape, causal).cases());
        }
    }
    cases
}

struct Attention {
    batch: usize,
    sequence: usize,
    heads: usize,
    width: usize,
    causal: bool,
    scale: f32,
    /// What tensors are, where it is not fp32.
    kind: Option<Kind>,
    /// q, k, v (B, H, T, D) and the output's gradient (B, T, H, D).
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    grad: Vec<f32>,
}

impl Attention {
    fn new(random: &mut Random, [batch, sequence, heads, width]: [usize; 4], causal: bool) -> Attention {
        let elements = batch * sequence * heads * width;
        let [q, k, v, grad] = [2.0, 2.0, 1.0, 1.0].map(|scale| random.floats(elements, scale));
        let scale = 1.0 / (width as f32).sqrt();
        Attention { batch, sequence, heads, width, causal, scale, kind: random.kind, q, k, v, grad }
    }

    /// A row in (B, H, T, D).
    fn apart(&self, head: usize, row: usize) -> Range<usize> {
        let first = (head * self.sequence + row) * self.width;
        first..first + self.width
    }

    /// A row in (B, T, H, D).
    fn together(&self, head: usize, row: usize) -> Range<usize> {
        let first = ((head / self.heads * self.sequence + row) * self.heads + head % self.heads) * self.width;
        first..first + self.width
    }

    fn keys(&self, query: usize) -> usize {
        if self.causal { query + 1 } else { self.sequence }
    }

    /// The score of a query and a key.
    fn score(&self, head: usize, query: usize, key: usize) -> Expected {
        let (q, k) = (wide(&self.q[self.apart(head, query)]), wide(&self.k[self.apart(head, key)]));
        sum(q.iter().zip(&k).map(|(q, k)| f64::from(self.scale) * q * k))
    }

    /// Roundings of a probability, relative to it: of its score's terms, of the largest, and of the sum.
    fn roundings(&self) -> f64 {
        let all = (0..self.batch * self.heads).flat_map(|head| {
            (0..self.sequence).flat_map(move |query| (0..self.keys(query)).map(move |key| (head, query, key)))
        });
        let largest = all.map(|(head, query, key)| self.score(head, query, key).magnitude).fold(0.0, f64::max);
        2.0 * (self.width as f64 + 6.0) * largest + self.sequence as f64 + 16.0
    }

    fn log_sum(&self, head: usize, query: usize) -> f64 {
        let scores = (0..self.keys(query)).map(|key| self.score(head, query, key).value.exp());
        scores.sum::<f64>().ln()
    }

    fn sizes(&self) -> [Value; 5] {
        let size = |size: usize| Value::U32(size as u32);
        let causal = Value::U32(self.causal.into());
        [size(self.heads), size(self.sequence), size(self.width), causal, Value::F32(self.scale)]
    }

    fn rows(&self) -> impl Iterator<Item = (usize, usize)> {
        let sequence = self.sequence;
        (0..self.batch * self.heads).flat_map(move |head| (0..sequence).map(move |row| (head, row)))
    }

    fn cases(&self) -> [Case; 4] {
        let nothing = || vec![Expected { value: 0.0, magnitude: 0.0 }; self.q.len()];
        let launch = geometry::attention_tiles((self.batch * self.heads) as u64, self.sequence as u64);
        let roundings = self.roundings();
        let (mut forward, mut log_sums) = (nothing(), Vec::new());
        for (head, query) in self.rows() {
            let log_sum = self.log_sum(head, query);
            log_sums.push(Expected { value: log_sum, magnitude: log_sum.abs() + 1.0 });
            let place = self.together(head, query);
            for (key, d) in (0..self.keys(query)).flat_map(|key| (0..self.width).map(move |d| (key, d))) {
                let p = (self.score(head, query, key).value - log_sum).exp();
                let term = p * f64::from(self.v[self.apart(head, key)][d]);
                forward[place.start + d].value += term;
                forward[place.start + d].magnitude += term.abs();
            }
        }
        let narrow = |values: &[Expected]| values.iter().map(|expected| expected.value as f32).collect::<Vec<_>>();
        // As it is given: of the tensors' kind.
        let nearest = |value: f32| self.kind.map_or(value, |kind| kind.nearest(value.into()) as f32);
        let context: Vec<f32> = narrow(&forward).into_iter().map(nearest).collect();
        let of_row = |place: Range<usize>| sum(place.map(|i| f64::from(context[i]) * f64::from(self.grad[i])));
        let inner: Vec<Expected> = self.rows().map(|(head, query)| of_row(self.together(head, query))).collect();
        let (given_sums, given_inner) = (narrow(&log_sums), narrow(&inner));
        let input = |values: &[f32]| Value::Input(values.to_vec());

        let mut arguments = vec![output(roundings, forward), output(roundings, log_sums)];
        arguments.extend([input(&self.q), input(&self.k), input(&self.v)]);
        arguments.extend(self.sizes());
        let forward = Case::new("flash_forward", launch, arguments);

        let mut arguments = vec![output(self.width as f64 + 1.0, inner), input(&context), input(&self.grad)];
        let sizes = [self.batch, self.heads, self.sequence, self.width];
        arguments.extend(sizes.map(|size| Value::U32(size as u32)));
        let rows = (self.batch * self.heads * self.sequence) as u64;
        let inner = Case::new("flash_inner", geometry::elementwise(rows), arguments);

        let [of_q, of_k, of_v] = self.gradients(&given_sums, &given_inner);
        let inputs = || {
            let statistics = [input(&given_sums), input(&given_inner)];
            let tensors = [input(&self.grad), input(&self.q), input(&self.k), input(&self.v)];
            tensors.into_iter().chain(statistics).chain(self.sizes())
        };
        let roundings = roundings + self.width as f64;
        let mut arguments = vec![output(roundings, of_q)];
        arguments.extend(inputs());
        let queries = Case::new("flash_backward_queries", launch, arguments);
        let mut arguments = vec![output(roundings, of_k), output(roundings, of_v)];
        arguments.extend(inputs());
        [forward, inner, queries, Case::new("flash_backward_keys", launch, arguments)]
    }

    /// Of q, k and v, from the sums as they are given, in fp32.
    fn gradients(&self, log_sums: &[f32], inner: &[f32]) -> [Vec<Expected>; 3] {
        let mut gradients = [0; 3].map(|_| vec![Expected { value: 0.0, magnitude: 0.0 }; self.q.len()]);
        let [of_q, of_k, of_v] = &mut gradients;
        for (head, query) in self.rows() {
            let row = head * self.sequence + query;
            let grad = wide(&self.grad[self.together(head, query)]);
            for key in 0..self.keys(query) {
                let p = (self.score(head, query, key).value - f64::from(log_sums[row])).exp();
                let v = wide(&self.v[self.apart(head, key)]);
                let dp = sum(grad.iter().zip(&v).map(|(grad, v)| grad * v));
                let inner = f64::from(inner[row]);
                let (value, magnitude) = (p * (dp.value - inner), p * (dp.magnitude + inner.abs()));
                let (q, k, scale) = (self.apart(head, query), self.apart(head, key), f64::from(self.scale));
                let add = |to: &mut Expected, factor: f64| {
                    to.value += scale * value * factor;
                    to.magnitude += scale * magnitude * factor.abs();
                };
                for d in 0..self.width {
                    add(&mut of_q[q.start + d], self.k[k.start + d].into());
                    add(&mut of_k[k.start + d], self.q[q.start + d].into());
                    of_v[k.start + d].value += p * grad[d];
                    of_v[k.start + d].magnitude += p * grad[d].abs();
                }
            }
        }
        gradients
    }
}
