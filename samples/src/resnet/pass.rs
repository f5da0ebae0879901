//! What forward and backward share: where tensors are allocated, and what forward keeps for backward.
//!
//! Owns: the list of saved tensors, which memory.md gives with shapes. Refuses: to compute.

use super::arguments::Plan;
use crate::gpt::{Optimizer, Parameter};
use crate::operations::{ConvolutionShape, Windows};
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
    /// Images of the whole batch, over which the loss is a mean.
    pub counted: u64,
    /// The optimizer, where it updates a parameter in the backward pass.
    pub optimizer: Option<&'a Optimizer>,
    pub keeping: Keeping,
    /// This process among others that train the same network.
    pub rank: Option<&'a Rank>,
    /// What the loss is multiplied with before backward.
    pub loss_scale: f32,
}

impl Pass<'_> {
    /// Images in the pass.
    pub fn images(&self) -> u64 {
        self.plan.batch
    }

    /// The same pass, in which results are kept or not.
    pub fn keeping(self, keeping: Keeping) -> Self {
        Pass { keeping, ..self }
    }

    /// False where nothing is kept of what is computed.
    pub fn keeps(&self) -> bool {
        !matches!(self.keeping, Keeping::Dropped { .. })
    }

    /// What feature maps and their gradients are: all of them come out of convolutions, and what is between takes and gives
    /// what they give.
    pub fn maps(&self) -> Element {
        self.plan.techniques.precision().of_products()
    }

    /// A feature map that backward reads, if it is kept.
    pub fn activation(&self, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        self.keeping.tensor(self.device, self.maps(), name, shape)
    }

    /// A statistic that backward reads, if it is kept: in fp32 whatever the precision.
    pub fn statistic(&self, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        self.keeping.of_statistics().tensor(self.device, Element::Fp32, name, shape)
    }

    /// A temporary.
    pub fn workspace(&self, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        Tensor::of(self.device, Category::Workspace, name, self.maps(), shape)
    }

    /// A temporary in fp32 whatever the precision.
    pub fn exact_workspace(&self, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        Tensor::floats(self.device, Category::Workspace, name, shape)
    }

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

    /// Backward has added to the parameter's gradient, once for all.
    pub fn added(&self, parameter: &mut Parameter) -> Result<(), Error> {
        parameter.added(self.rank, self.optimizer)
    }
}

/// What flows between modules: (images, channels, height, width).
#[derive(Clone)]
pub(super) struct Map {
    /// Shared with what keeps it for backward, and freed with the last reader.
    pub tensor: Rc<Tensor>,
    pub channels: u64,
    pub height: u64,
    pub width: u64,
}

/// Kept by a convolution and the normalisation after it.
pub(super) struct SavedUnit {
    /// What the convolution read: the output of the ReLU or pooling before.
    pub input: Rc<Tensor>,
    pub shape: ConvolutionShape,
    /// What the normalisation read.
    pub convolved: Tensor,
    pub mean: Tensor,
    pub rstd: Tensor,
}

/// Kept by a block. The output of a ReLU between two units is the second one's input.
pub(super) struct SavedBlock {
    pub units: Vec<SavedUnit>,
    pub downsample: Option<SavedUnit>,
    /// The output of the last ReLU.
    pub output: Rc<Tensor>,
}

impl SavedBlock {
    /// Bytes of all that is kept beside the block's input.
    pub fn size_in_bytes(&self) -> u64 {
        let units = self.units.iter().chain(&self.downsample);
        let own = units.map(|unit| [&unit.convolved, &unit.mean, &unit.rstd].map(Tensor::size_in_bytes));
        let between = self.units.iter().skip(1).map(|unit| unit.input.size_in_bytes());
        own.flatten().chain(between).sum::<u64>() + self.output.size_in_bytes()
    }
}

/// Kept by the blocks.
pub(super) enum Kept {
    /// All that a block's backward reads.
    Block(Box<SavedBlock>),
    /// The input of a segment of blocks.
    Segment { input: Map, blocks: Range<usize> },
}

/// Kept by the stem.
pub(super) struct SavedStem {
    pub unit: SavedUnit,
    /// The output of the ReLU.
    pub rectified: Rc<Tensor>,
    pub windows: Windows,
    /// Where the largest of each window was, 64-bit as in PyTorch.
    pub indices: Tensor,
}

/// Kept by the whole network.
pub(super) struct Saved {
    pub stem: SavedStem,
    pub blocks: Vec<Kept>,
    /// What the head read: (images, channels).
    pub features: Tensor,
    /// Elements of a plane that was averaged.
    pub positions: u64,
}

/// The inputs of a step, on the device.
pub(super) struct Inputs {
    pub images: Rc<Tensor>,
    pub targets: Tensor,
}
