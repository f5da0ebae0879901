//! What forward and backward share: where tensors are allocated, and what forward keeps for backward.
//!
//! Owns: the list of saved tensors, which memory.md gives with shapes. Refuses: to compute.

use super::arguments::Plan;
use crate::operations::{ConvolutionShape, Windows};
use crate::{Device, Error, Tensor};
use memscope_client::Category;
use std::rc::Rc;

/// One forward and backward pass over a batch.
pub(super) struct Pass<'a> {
    pub device: &'a Rc<Device>,
    pub plan: &'a Plan,
}

impl Pass<'_> {
    /// Images in the batch.
    pub fn images(&self) -> u64 {
        self.plan.batch
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
    pub blocks: Vec<SavedBlock>,
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
