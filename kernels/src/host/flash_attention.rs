//! Host references of cu/flash_attention.cu.
//!
//! Bands of queries instead of tiles, so that the products are large enough for the GEMM crate; no more than one band of the
//! matrix is ever there.

use super::exponential::exp;
use super::lanes::{largest, sum};
use super::memory::{Memory, for_each, for_pieces};
use crate::{Arguments, Launch};

/// Queries in a band.
const BAND: usize = 64;

/// What all but flash_inner have in common; the five parameters that end their lists.
struct Attention {
    heads: usize,
    sequence: usize,
    head_width: usize,
    causal: bool,
    scale: f32,
}

impl Attention {
    fn from(arguments: &Arguments<'_>, first: usize) -> Self {
        let size = |index: usize| arguments.u32(first + index) as usize;
        let scale = arguments.f32(first + 4);
        Attention { heads: size(0), sequence: size(1), head_width: size(2), causal: size(3) != 0, scale }
    }

    /// Heads of all sequences, from the launch: there is a block for every 16 queries.
    fn count(&self, launch: &Launch) -> usize {
        launch.grid[0] as usize / self.sequence.div_ceil(16)
    }

    /// Elements of a head in (B, H, T, D).
    fn apart(&self, head: usize) -> std::ops::Range<usize> {
        let elements = self.sequence * self.head_width;
        head * elements..(head + 1) * elements
    }

    /// The first element of a head's row in (B, T, H, D).
    fn together(&self, head: usize, row: usize) -> usize {
        ((head / self.heads * self.sequence + row) * self.heads + head % self.heads) * self.head_width
    }

    /// Bands of queries: the first, how many, and the keys that they can see.
    fn bands(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        (0..self.sequence).step_by(BAND).map(|first| {
            let count = BAND.min(self.sequence - first);
            (first, count, if self.causal { first + count } else { self.sequence })
        })
    }

    /// Keys that a query sees, of `keys`.
    fn seen(&self, query: usize, keys: usize) -> usize {
        if self.causal { query + 1 } else { keys }
    }
}

/// output (rows, columns) = alpha · a · b + beta · output, dense but for a transposed operand: strides are of row and column.
#[expect(clippy::too_many_arguments, reason = "a matrix product has as many")]
fn product(
    output: &mut [f32],
    [rows, inner, columns]: [usize; 3],
    alpha: f32,
    a: &[f32],
    [a_row, a_column]: [usize; 2],
    b: &[f32],
    [b_row, b_column]: [usize; 2],
    beta: f32,
) {
    let last = |rows: usize, columns: usize, row: usize, column: usize| (rows - 1) * row + (columns - 1) * column;
    assert!(output.len() >= rows * columns);
    assert!(a.len() > last(rows, inner, a_row, a_column) && b.len() > last(inner, columns, b_row, b_column));
    let (a, b, output) = (a.as_ptr(), b.as_ptr(), output.as_mut_ptr());
    let [a_row, a_column, b_row, b_column] = [a_row, a_column, b_row, b_column].map(|stride| stride as isize);
    // SAFETY: every element that the strides reach is inside the slices, as asserted.
    unsafe {
        matrixmultiply::sgemm(
            rows,
            inner,
            columns,
            alpha,
            a,
            a_row,
            a_column,
            b,
            b_row,
            b_column,
            beta,
            output,
            columns as isize,
            1,
        );
    }
}

/// See cu/flash_attention.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn flash_forward(launch: &Launch, arguments: &Arguments<'_>) {
    let output = Memory::<f32>::new(arguments.pointer(0));
    let log_sums = Memory::<f32>::new(arguments.pointer(1));
    let [q, k, v] = [2, 3, 4].map(|index| Memory::<f32>::new(arguments.pointer(index)));
    let by = Attention::from(arguments, 5);
    let (t, d) = (by.sequence, by.head_width);
    for_each(by.count(launch), 1, |head| {
        // SAFETY: the caller's promise; each head belongs to one call.
        let (q, k, v) = unsafe { (q.read(by.apart(head)), k.read(by.apart(head)), v.read(by.apart(head))) };
        for (first, count, keys) in by.bands() {
            let mut weights = vec![0.0; count * keys];
            product(&mut weights, [count, d, keys], by.scale, &q[first * d..], [d, 1], k, [1, d], 0.0);
            for (row, weights) in weights.chunks_mut(keys).enumerate() {
                let (seen, masked) = weights.split_at_mut(by.seen(first + row, keys));
                let largest = largest(seen);
                seen.iter_mut().for_each(|weight| *weight = exp(*weight - largest));
                let sum = sum(seen, |weight| weight);
                seen.iter_mut().for_each(|weight| *weight /= sum);
                masked.fill(0.0);
                // SAFETY: the caller's promise.
                unsafe { *log_sums.at(head * t + first + row) = largest + sum.ln() };
            }
            let mut band = vec![0.0; count * d];
            product(&mut band, [count, keys, d], 1.0, &weights, [keys, 1], v, [d, 1], 0.0);
            for (row, band) in band.chunks(d).enumerate() {
                let place = by.together(head, first + row);
                // SAFETY: the caller's promise.
                unsafe { output.write(place..place + d).copy_from_slice(band) };
            }
        }
    });
}

/// See cu/flash_attention.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn flash_inner(_: &Launch, arguments: &Arguments<'_>) {
    let inner = Memory::<f32>::new(arguments.pointer(0));
    let output = Memory::<f32>::new(arguments.pointer(1));
    let grad_output = Memory::<f32>::new(arguments.pointer(2));
    let size = |index: usize| arguments.u32(index) as usize;
    let (batch, heads, sequence, d) = (size(3), size(4), size(5), size(6));
    for_pieces(batch * heads * sequence, |range| {
        for i in range {
            let (t, h, b) = (i % sequence, i / sequence % heads, i / sequence / heads);
            let place = ((b * sequence + t) * heads + h) * d;
            // SAFETY: the caller's promise; each element belongs to one call.
            unsafe {
                let (one, other) = (output.read(place..place + d), grad_output.read(place..place + d));
                *inner.at(i) = one.iter().zip(other).map(|(one, other)| one * other).sum();
            }
        }
    });
}

/// What backward has of one head.
struct Head<'a> {
    q: &'a [f32],
    k: &'a [f32],
    v: &'a [f32],
    /// (T, D), gathered.
    grad: Vec<f32>,
    log_sums: &'a [f32],
    inner: &'a [f32],
}

impl Attention {
    /// # Safety
    /// Arguments from `first` on are grad_output, q, k, v, log_sums and inner, as the kernels have them.
    unsafe fn head<'a>(&self, arguments: &Arguments<'_>, first: usize, head: usize) -> Head<'a> {
        let memory = |index: usize| Memory::<f32>::new(arguments.pointer(first + index));
        let rows = head * self.sequence..(head + 1) * self.sequence;
        let mut grad = Vec::with_capacity(self.sequence * self.head_width);
        // SAFETY: the caller's promise.
        unsafe {
            for row in 0..self.sequence {
                let place = self.together(head, row);
                grad.extend_from_slice(memory(0).read(place..place + self.head_width));
            }
            let [q, k, v] = [1, 2, 3].map(|index| memory(index).read(self.apart(head)));
            Head { q, k, v, grad, log_sums: memory(4).read(rows.clone()), inner: memory(5).read(rows) }
        }
    }

    /// A band's probabilities and gradients of scores (count, keys).
    fn band(&self, head: &Head<'_>, (first, count, keys): (usize, usize, usize)) -> [Vec<f32>; 2] {
        let d = self.head_width;
        let (mut p, mut ds) = (vec![0.0; count * keys], vec![0.0; count * keys]);
        product(&mut p, [count, d, keys], self.scale, &head.q[first * d..], [d, 1], head.k, [1, d], 0.0);
        product(&mut ds, [count, d, keys], 1.0, &head.grad[first * d..], [d, 1], head.v, [1, d], 0.0);
        for (row, (p, ds)) in p.chunks_mut(keys).zip(ds.chunks_mut(keys)).enumerate() {
            let (seen, query) = (self.seen(first + row, keys), first + row);
            for (p, ds) in p[..seen].iter_mut().zip(&mut ds[..seen]) {
                *p = exp(*p - head.log_sums[query]);
                *ds = *p * (*ds - head.inner[query]);
            }
            p[seen..].fill(0.0);
            ds[seen..].fill(0.0);
        }
        [p, ds]
    }
}

/// See cu/flash_attention.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn flash_backward_queries(launch: &Launch, arguments: &Arguments<'_>) {
    let grad_q = Memory::<f32>::new(arguments.pointer(0));
    let by = Attention::from(arguments, 7);
    let d = by.head_width;
    for_each(by.count(launch), 1, |index| {
        // SAFETY: the caller's promise; each head belongs to one call.
        let (head, grad_q) = unsafe { (by.head(arguments, 1, index), grad_q.write(by.apart(index))) };
        for (first, count, keys) in by.bands() {
            let [_, ds] = by.band(&head, (first, count, keys));
            product(&mut grad_q[first * d..], [count, keys, d], by.scale, &ds, [keys, 1], head.k, [d, 1], 0.0);
        }
    });
}

/// See cu/flash_attention.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn flash_backward_keys(launch: &Launch, arguments: &Arguments<'_>) {
    let grad_k = Memory::<f32>::new(arguments.pointer(0));
    let grad_v = Memory::<f32>::new(arguments.pointer(1));
    let by = Attention::from(arguments, 8);
    let d = by.head_width;
    for_each(by.count(launch), 1, |index| {
        // SAFETY: the caller's promise; each head belongs to one call.
        let (head, grad_k, grad_v) =
            unsafe { (by.head(arguments, 2, index), grad_k.write(by.apart(index)), grad_v.write(by.apart(index))) };
        grad_k.fill(0.0);
        grad_v.fill(0.0);
        for (first, count, keys) in by.bands() {
            let [p, ds] = by.band(&head, (first, count, keys));
            let (q, grad) = (&head.q[first * d..], &head.grad[first * d..]);
            product(grad_k, [keys, count, d], by.scale, &ds, [1, keys], q, [d, 1], 1.0);
            product(grad_v, [keys, count, d], 1.0, &p, [1, keys], grad, [d, 1], 1.0);
        }
    });
}
