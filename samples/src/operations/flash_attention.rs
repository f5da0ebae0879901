//! Launchers of the flash attention kernels.

use super::{Heads, dimension, launch};
use crate::device::Argument;
use crate::tensor::Element;
use crate::{Error, Tensor};
use memscope_kernels::geometry;

/// The widest head that the kernels hold.
pub(crate) const WIDEST_HEAD: u64 = 128;

/// What every kernel of flash attention is told.
#[derive(Clone, Copy)]
pub(crate) struct Flash {
    pub heads: Heads,
    pub causal: bool,
    /// Of the scores.
    pub scale: f32,
}

impl Flash {
    fn sizes(&self) -> [Argument; 5] {
        let Flash { heads: Heads { heads, sequence, head_width, .. }, causal, scale } = *self;
        assert!(head_width <= WIDEST_HEAD, "a head of {head_width}");
        let [heads, sequence, head_width] = [heads, sequence, head_width].map(|size| dimension(size).into());
        [heads, sequence, head_width, u32::from(causal).into(), scale.into()]
    }

    /// The first tensor says in which type.
    fn launch(&self, name: &str, tensors: &[&Tensor]) -> Result<(), Error> {
        let Heads { batch, sequence, heads, .. } = self.heads;
        let arguments: Vec<Argument> = tensors.iter().map(|&tensor| tensor.into()).chain(self.sizes()).collect();
        launch(tensors[0], name, geometry::attention_tiles(batch * heads, sequence), &arguments)
    }

    fn check(&self, tensors: &[&Tensor], rows: &[&Tensor]) {
        let Heads { batch, sequence, heads, head_width } = self.heads;
        let count = batch * sequence * heads;
        for tensor in tensors {
            let (elements, element) = (tensor.elements(), tensor.element());
            assert_eq!((elements, element), (count * head_width, tensors[0].element()), "{}", tensor.name());
        }
        for tensor in rows {
            assert_eq!((tensor.elements(), tensor.element()), (count, Element::Fp32), "{}", tensor.name());
        }
    }
}

/// output (B, T, H, D) and log_sums (B, H, T) from q, k and v (B, H, T, D).
pub(crate) fn flash_forward(output: &Tensor, log_sums: &Tensor, qkv: [&Tensor; 3], by: Flash) -> Result<(), Error> {
    let [q, k, v] = qkv;
    by.check(&[output, q, k, v], &[log_sums]);
    by.launch("flash_forward", &[output, log_sums, q, k, v])
}

/// inner (B, H, T) from output and its gradient (B, T, H, D).
pub(crate) fn flash_inner(inner: &Tensor, output: &Tensor, grad_output: &Tensor, heads: Heads) -> Result<(), Error> {
    let Heads { batch, sequence, heads: count, head_width } = heads;
    assert_eq!(
        (output.elements(), grad_output.elements()),
        (inner.elements() * head_width, inner.elements() * head_width)
    );
    let [batch, count, sequence, head_width] = [batch, count, sequence, head_width].map(|size| dimension(size).into());
    let arguments = [inner.into(), output.into(), grad_output.into(), batch, count, sequence, head_width];
    launch(output, "flash_inner", geometry::elementwise(inner.elements()), &arguments)
}

/// The gradients of q, k and v (B, H, T, D) from that of the output (B, T, H, D).
pub(crate) fn flash_backward(
    gradients: [&Tensor; 3],
    grad_output: &Tensor,
    qkv: [&Tensor; 3],
    [log_sums, inner]: [&Tensor; 2],
    by: Flash,
) -> Result<(), Error> {
    let ([grad_q, grad_k, grad_v], [q, k, v]) = (gradients, qkv);
    by.check(&[grad_q, grad_k, grad_v, grad_output, q, k, v], &[log_sums, inner]);
    by.launch("flash_backward_queries", &[grad_q, grad_output, q, k, v, log_sums, inner])?;
    by.launch("flash_backward_keys", &[grad_k, grad_v, grad_output, q, k, v, log_sums, inner])
}
