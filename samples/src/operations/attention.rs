//! Launchers of the attention kernels.

use super::{dimension, launch_move, launch_two};
use crate::{Error, Tensor};
use memscope_kernels::geometry;

/// The four dimensions of attention.
#[derive(Clone, Copy)]
pub(crate) struct Heads {
    pub batch: u64,
    pub sequence: u64,
    pub heads: u64,
    pub head_width: u64,
}

impl Heads {
    /// Elements of q, k, v or what they are merged to.
    fn elements(&self) -> u64 {
        self.batch * self.sequence * self.heads * self.head_width
    }

    fn dimensions(&self) -> [u32; 4] {
        [self.batch, self.sequence, self.heads, self.head_width].map(dimension)
    }
}

/// q, k and v (B, H, T, D) from qkv (B, T, 3, H, D).
pub(crate) fn split_qkv(qkv_apart: [&Tensor; 3], qkv: &Tensor, heads: Heads) -> Result<(), Error> {
    assert_eq!(qkv.elements(), 3 * heads.elements(), "{}", qkv.name());
    let [q, k, v] = qkv_apart;
    let [b, t, h, d] = heads.dimensions();
    let arguments = [q.into(), k.into(), v.into(), qkv.into(), b.into(), t.into(), h.into(), d.into()];
    launch_move(qkv, "split_qkv", geometry::elementwise(heads.elements()), &arguments)
}

/// The gradient of qkv from those of q, k and v.
pub(crate) fn split_qkv_backward(grad_qkv: &Tensor, gradients: [&Tensor; 3], heads: Heads) -> Result<(), Error> {
    assert_eq!(grad_qkv.elements(), 3 * heads.elements(), "{}", grad_qkv.name());
    let [q, k, v] = gradients;
    let [b, t, h, d] = heads.dimensions();
    let arguments = [grad_qkv.into(), q.into(), k.into(), v.into(), b.into(), t.into(), h.into(), d.into()];
    launch_move(grad_qkv, "split_qkv_backward", geometry::elementwise(heads.elements()), &arguments)
}

/// output (B, T, H, D) from input (B, H, T, D).
pub(crate) fn merge_heads(output: &Tensor, input: &Tensor, heads: Heads) -> Result<(), Error> {
    permute("merge_heads", output, input, heads)
}

/// grad_input (B, H, T, D) from grad_output (B, T, H, D).
pub(crate) fn merge_heads_backward(grad_input: &Tensor, grad_output: &Tensor, heads: Heads) -> Result<(), Error> {
    permute("merge_heads_backward", grad_input, grad_output, heads)
}

fn permute(kernel: &str, output: &Tensor, input: &Tensor, heads: Heads) -> Result<(), Error> {
    assert_eq!((output.elements(), input.elements()), (heads.elements(), heads.elements()), "{}", input.name());
    let [b, t, h, d] = heads.dimensions();
    let arguments = [output.into(), input.into(), b.into(), t.into(), h.into(), d.into()];
    launch_move(output, kernel, geometry::elementwise(heads.elements()), &arguments)
}

/// probabilities = softmax of scores (…, T, T), over the keys that a query sees.
pub(crate) fn softmax_forward(
    probabilities: &Tensor,
    scores: &Tensor,
    sequence: u64,
    causal: bool,
) -> Result<(), Error> {
    assert_eq!(probabilities.elements(), scores.elements(), "{}", scores.name());
    let arguments = [probabilities.into(), scores.into(), dimension(sequence).into(), u32::from(causal).into()];
    let shape = geometry::rows(scores.elements() / sequence);
    launch_two([probabilities, scores], "softmax_forward", shape, &arguments)
}

/// The gradient of the scores.
pub(crate) fn softmax_backward(
    grad_scores: &Tensor,
    grad_probabilities: &Tensor,
    probabilities: &Tensor,
    sequence: u64,
) -> Result<(), Error> {
    let elements = probabilities.elements();
    assert_eq!((grad_scores.elements(), grad_probabilities.elements()), (elements, elements));
    let arguments = [grad_scores.into(), grad_probabilities.into(), probabilities.into(), dimension(sequence).into()];
    launch_two([grad_scores, probabilities], "softmax_backward", geometry::rows(elements / sequence), &arguments)
}
