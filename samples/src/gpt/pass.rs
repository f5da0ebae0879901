//! What forward and backward share: where tensors are allocated, and what forward keeps for backward.
//!
//! Owns: the list of saved tensors, which memory.md gives with shapes. Refuses: to compute.

use super::arguments::Plan;
use super::optimizer::Optimizer;
use super::parameter::Parameter;
use crate::operations::Heads;
use crate::techniques::optimizer_in_backward;
use crate::{Device, Error, Tensor};
use memscope_client::Category;
use std::rc::Rc;

/// One forward and backward pass over a batch.
pub(super) struct Pass<'a> {
    pub device: &'a Rc<Device>,
    /// The plan of this pass: of a micro-batch, where a batch is cut into several.
    pub plan: &'a Plan,
    /// The optimizer, where it updates a parameter in the backward pass.
    pub optimizer: Option<&'a Optimizer>,
}

impl Pass<'_> {
    /// Backward has added to the parameter's gradient.
    pub fn added(&self, parameter: &mut Parameter) -> Result<(), Error> {
        self.optimizer.map_or(Ok(()), |optimizer| optimizer_in_backward::added(optimizer, parameter))
    }

    /// Tokens in the batch, which are the rows of most matrices.
    pub fn rows(&self) -> u64 {
        self.plan.rows()
    }

    /// The model's width.
    pub fn width(&self) -> u64 {
        self.plan.configuration.width
    }

    /// The dimensions of attention.
    pub fn heads(&self) -> Heads {
        let heads = self.plan.configuration.heads;
        Heads { batch: self.plan.batch, sequence: self.plan.sequence, heads, head_width: self.width() / heads }
    }

    /// The shape of q, k and v.
    pub fn shape_of_heads(&self) -> [u64; 4] {
        let Heads { batch, sequence, heads, head_width } = self.heads();
        [batch, heads, sequence, head_width]
    }

    /// The shape of scores and probabilities.
    pub fn shape_of_scores(&self) -> [u64; 4] {
        let Heads { batch, sequence, heads, .. } = self.heads();
        [batch, heads, sequence, sequence]
    }

    /// A tensor that is kept for backward.
    pub fn activation(&self, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        Tensor::floats(self.device, Category::Activations, name, shape)
    }

    /// A temporary.
    pub fn workspace(&self, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        Tensor::floats(self.device, Category::Workspace, name, shape)
    }
}

/// Kept by a layer normalisation. The input is shared with whatever else reads it, and freed with its last reader.
pub(super) struct SavedNorm {
    pub input: Rc<Tensor>,
    pub mean: Tensor,
    pub rstd: Tensor,
}

/// Kept by attention.
pub(super) struct SavedAttention {
    pub input: Rc<Tensor>,
    pub q: Tensor,
    pub k: Tensor,
    pub v: Tensor,
    pub probabilities: Tensor,
    pub merged: Tensor,
}

/// Kept by the MLP.
pub(super) struct SavedMlp {
    pub input: Rc<Tensor>,
    pub expanded: Tensor,
    pub activated: Tensor,
}

/// Kept by a block.
pub(super) struct SavedBlock {
    pub norm_1: SavedNorm,
    pub attention: SavedAttention,
    pub norm_2: SavedNorm,
    pub mlp: SavedMlp,
}

/// Kept by BERT's transform before the decoder.
pub(super) struct SavedTransform {
    pub input: Rc<Tensor>,
    pub transformed: Tensor,
}

/// Kept by the whole model.
pub(super) struct Saved {
    pub embedding_norm: Option<SavedNorm>,
    pub blocks: Vec<SavedBlock>,
    pub transform: Option<SavedTransform>,
    pub final_norm: SavedNorm,
    /// What the decoder read.
    pub decoder_input: Rc<Tensor>,
}

/// The inputs of a step, on the device.
pub(super) struct Inputs {
    pub tokens: Tensor,
    pub targets: Tensor,
    pub token_types: Option<Tensor>,
    /// Targets that count.
    pub counted: u64,
}
