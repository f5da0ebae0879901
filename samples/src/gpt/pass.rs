//! What forward and backward share: where tensors are allocated, and what forward keeps for backward.
//!
//! Owns: the list of saved tensors, which memory.md gives with shapes. Refuses: to compute.

use super::arguments::Plan;
use super::compressed::CompressedBlock;
use super::optimizer::Optimizer;
use super::parameter::Parameter;
use crate::operations::Heads;
use crate::techniques::{Keeping, Rank};
use crate::tensor::Element;
use crate::{Device, Error, Tensor};
use memscope_client::Category;
use std::ops::Range;
use std::rc::Rc;

/// One forward and backward pass over a batch.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub device: &'a Rc<Device>,
    /// The plan of this pass: of a micro-batch, where a batch is cut into several.
    pub plan: &'a Plan,
    /// The optimizer, where it updates a parameter in the backward pass.
    pub optimizer: Option<&'a Optimizer>,
    pub keeping: Keeping,
    /// This process among others that train the same model.
    pub rank: Option<&'a Rank>,
    /// What the loss is multiplied with before backward.
    pub loss_scale: f32,
}

impl Pass<'_> {
    /// Where weights are shared out, these come together for use.
    pub fn gather<'p>(&self, parameters: impl IntoIterator<Item = &'p Parameter>) -> Result<(), Error> {
        self.rank.map_or(Ok(()), |rank| rank.gather(parameters))
    }

    /// Where weights are shared out, these have been used.
    pub fn scatter<'p>(&self, parameters: impl IntoIterator<Item = &'p Parameter>) {
        if let Some(rank) = self.rank {
            rank.scatter(parameters);
        }
    }

    /// Backward has added to the parameter's gradient. If nothing more is to come, it may be summed over the ranks, and then
    /// used.
    pub fn added(&self, parameter: &mut Parameter) -> Result<(), Error> {
        parameter.added(self.rank, self.optimizer)
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

    /// A tensor that backward reads, if it is kept.
    pub fn activation_of(&self, element: Element, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        self.keeping.tensor(self.device, element, name, shape)
    }

    /// A statistic that backward reads, if it is kept: in fp32 whatever the precision, and never compressed.
    pub fn statistic(&self, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        self.keeping(self.keeping.of_statistics()).activation_of(Element::Fp32, name, shape)
    }

    /// The same pass, in which a block's results are kept or not.
    pub fn keeping(self, keeping: Keeping) -> Self {
        Pass { keeping, ..self }
    }

    /// The same pass, for the output of a block.
    pub fn for_output(self) -> Self {
        self.keeping(self.keeping.of_output())
    }

    /// What weights and the residual stream are.
    pub fn stream(&self) -> Element {
        self.plan.techniques.precision().stored()
    }

    /// A tensor in the type of the residual stream that is kept for backward.
    pub fn activation(&self, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        self.activation_of(self.stream(), name, shape)
    }

    /// A temporary in the type of the residual stream.
    pub fn workspace(&self, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        Tensor::of(self.device, Category::Workspace, name, self.stream(), shape)
    }

    /// What is in fp32 whatever the precision, as a temporary.
    pub fn exact_workspace(&self, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        Tensor::floats(self.device, Category::Workspace, name, shape)
    }
}

/// Kept by a layer normalisation. The input is shared with whatever else reads it, and freed with its last reader.
pub(super) struct SavedNorm {
    pub input: Rc<Tensor>,
    pub mean: Tensor,
    pub rstd: Tensor,
}

/// Kept of attention's matrix.
pub(super) enum SavedMatrix {
    Probabilities(Tensor),
    /// Nothing: backward computes the probabilities again.
    Again,
    /// The logarithms of the softmax's sums, from which flash attention computes it again tile by tile.
    LogSums(Tensor),
}

/// Kept by attention.
pub(super) struct SavedAttention {
    pub input: Rc<Tensor>,
    pub q: Tensor,
    /// None where q is k.
    pub k: Option<Tensor>,
    pub v: Tensor,
    pub matrix: SavedMatrix,
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

impl SavedBlock {
    /// Bytes of all that is kept.
    pub fn size_in_bytes(&self) -> u64 {
        let SavedBlock { norm_1, attention, norm_2, mlp } = self;
        let SavedAttention { input, q, k, v, matrix, merged } = attention;
        let matrix = match matrix {
            SavedMatrix::Again => None,
            SavedMatrix::Probabilities(tensor) | SavedMatrix::LogSums(tensor) => Some(tensor),
        };
        let of_norms = [norm_1, norm_2].map(|norm| [&*norm.input, &norm.mean, &norm.rstd]).concat();
        let of_attention = [&**input, q, v, merged];
        let of_mlp = [&*mlp.input, &mlp.expanded, &mlp.activated];
        let all = of_norms.into_iter().chain(of_attention).chain(of_mlp).chain(k).chain(matrix);
        all.map(Tensor::size_in_bytes).sum()
    }
}

/// Kept by BERT's transform before the decoder.
pub(super) struct SavedTransform {
    pub input: Rc<Tensor>,
    pub transformed: Tensor,
}

/// Kept by the layers.
pub(super) enum Kept {
    /// All that a layer's backward reads.
    Layer(Box<SavedBlock>),
    /// The same in 8 bits.
    Compressed(Box<CompressedBlock>),
    /// The input of a segment of layers.
    Segment { input: Rc<Tensor>, layers: Range<usize> },
}

/// Kept by the whole model.
pub(super) struct Saved {
    pub embedding_norm: Option<SavedNorm>,
    pub layers: Vec<Kept>,
    pub transform: Option<SavedTransform>,
    pub final_norm: SavedNorm,
    /// What the decoder read.
    pub decoder_input: Rc<Tensor>,
}

/// What the loss leaves for backward.
pub(super) enum FromLoss {
    LogProbabilities(Tensor),
    /// Of the decoder's input, where the loss was computed in chunks.
    Gradient(Tensor),
}

/// The inputs of a step, on the device.
pub(super) struct Inputs {
    pub tokens: Tensor,
    pub targets: Tensor,
    pub token_types: Option<Tensor>,
    /// Targets that count.
    pub counted: u64,
}
