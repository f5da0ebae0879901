//! Host references of cu/attention.cu.

use super::exponential::exp;
use super::lanes::{largest, sum, sum_of_pairs};
use super::memory::{Memory, for_rows};
use crate::{Arguments, Launch};

/// Batch, sequence, heads and width of a head, which are four parameters in a row.
struct Heads {
    batch: usize,
    sequence: usize,
    heads: usize,
    head_width: usize,
}

impl Heads {
    fn from(arguments: &Arguments<'_>, first: usize) -> Self {
        let size = |index: usize| arguments.u32(first + index) as usize;
        Heads { batch: size(0), sequence: size(1), heads: size(2), head_width: size(3) }
    }

    /// Calls `work` for every vector of one head, with where it starts in (B, H, T, D) and in (B, T, H, D), the latter
    /// with `of` such tensors side by side, as in qkv.
    fn for_vectors(&self, of: usize, work: impl Fn(usize, usize) + Sync) {
        for_rows(self.batch * self.heads * self.sequence, self.head_width, |row| {
            let t = row % self.sequence;
            let (h, b) = (row / self.sequence % self.heads, row / self.sequence / self.heads);
            let position = b * self.sequence + t;
            work(row * self.head_width, (position * of * self.heads + h) * self.head_width);
        });
    }
}

/// See cu/attention.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn split_qkv(_: &Launch, arguments: &Arguments<'_>) {
    let outputs = [0, 1, 2].map(|index| Memory::<f32>::new(arguments.pointer(index)));
    let qkv = Memory::<f32>::new(arguments.pointer(3));
    let heads = Heads::from(arguments, 4);
    let (width, d) = (heads.heads * heads.head_width, heads.head_width);
    heads.for_vectors(3, |apart, together| {
        for (index, output) in outputs.iter().enumerate() {
            let source = together + index * width;
            // SAFETY: the caller's promise; each vector belongs to one call.
            unsafe { output.write(apart..apart + d).copy_from_slice(qkv.read(source..source + d)) };
        }
    });
}

/// See cu/attention.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn split_qkv_backward(_: &Launch, arguments: &Arguments<'_>) {
    let grad_qkv = Memory::<f32>::new(arguments.pointer(0));
    let grads = [1, 2, 3].map(|index| Memory::<f32>::new(arguments.pointer(index)));
    let heads = Heads::from(arguments, 4);
    let (width, d) = (heads.heads * heads.head_width, heads.head_width);
    heads.for_vectors(3, |apart, together| {
        for (index, grad) in grads.iter().enumerate() {
            let target = together + index * width;
            // SAFETY: the caller's promise; each vector belongs to one call.
            unsafe { grad_qkv.write(target..target + d).copy_from_slice(grad.read(apart..apart + d)) };
        }
    });
}

/// See cu/attention.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn merge_heads(_: &Launch, arguments: &Arguments<'_>) {
    let (output, input) = (Memory::<f32>::new(arguments.pointer(0)), Memory::<f32>::new(arguments.pointer(1)));
    let heads = Heads::from(arguments, 2);
    let d = heads.head_width;
    heads.for_vectors(1, |apart, together| {
        // SAFETY: the caller's promise; each vector belongs to one call.
        unsafe { output.write(together..together + d).copy_from_slice(input.read(apart..apart + d)) };
    });
}

/// See cu/attention.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn merge_heads_backward(_: &Launch, arguments: &Arguments<'_>) {
    let grad_input = Memory::<f32>::new(arguments.pointer(0));
    let grad_output = Memory::<f32>::new(arguments.pointer(1));
    let heads = Heads::from(arguments, 2);
    let d = heads.head_width;
    heads.for_vectors(1, |apart, together| {
        // SAFETY: the caller's promise; each vector belongs to one call.
        unsafe { grad_input.write(apart..apart + d).copy_from_slice(grad_output.read(together..together + d)) };
    });
}

/// See cu/attention.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn softmax_forward(launch: &Launch, arguments: &Arguments<'_>) {
    let probabilities = Memory::<f32>::new(arguments.pointer(0));
    let scores = Memory::<f32>::new(arguments.pointer(1));
    let (sequence, causal) = (arguments.u32(2) as usize, arguments.u32(3) != 0);
    for_rows(launch.grid[0] as usize, sequence, |row| {
        let keys = if causal { row % sequence + 1 } else { sequence };
        // SAFETY: the caller's promise; each row belongs to one call.
        let (seen, masked, scores) = unsafe {
            let (seen, masked) = probabilities.write(row * sequence..(row + 1) * sequence).split_at_mut(keys);
            (seen, masked, scores.read(row * sequence..row * sequence + keys))
        };
        let largest = largest(scores);
        seen.iter_mut().zip(scores).for_each(|(probability, score)| *probability = exp(score - largest));
        let sum = sum(seen, |probability| probability);
        seen.iter_mut().for_each(|probability| *probability /= sum);
        masked.fill(0.0);
    });
}

/// See cu/attention.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn softmax_backward(launch: &Launch, arguments: &Arguments<'_>) {
    let grad_scores = Memory::<f32>::new(arguments.pointer(0));
    let grad_probabilities = Memory::<f32>::new(arguments.pointer(1));
    let probabilities = Memory::<f32>::new(arguments.pointer(2));
    let sequence = arguments.u32(3) as usize;
    for_rows(launch.grid[0] as usize, sequence, |row| {
        let range = row * sequence..(row + 1) * sequence;
        // SAFETY: the caller's promise; each row belongs to one call.
        let (grad, dp, p) = unsafe {
            (grad_scores.write(range.clone()), grad_probabilities.read(range.clone()), probabilities.read(range))
        };
        let sum = sum_of_pairs(p, dp, |p, dp| p * dp);
        for ((grad, dp), p) in grad.iter_mut().zip(dp).zip(p) {
            *grad = p * (dp - sum);
        }
    });
}
