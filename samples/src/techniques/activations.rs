//! The flags of what forward keeps for backward.
//!
//! Owns: which of them combine. Refuses: what each does: see the file of its name.

use super::checkpoint::Checkpoint;
use crate::Error;

/// The flags of activations.
#[derive(clap::Args, Clone, Copy, PartialEq, Debug, Default)]
pub struct ActivationArguments {
    /// Keep less of each block and compute it again in the backward pass: none, every=K (only the input of every K layers),
    /// sqrt (K = √layers), selective (all but the attention probabilities), or auto (the K that keeps least)
    #[arg(long, value_name = "HOW", default_value = "none", hide_default_value = true)]
    pub checkpoint: Checkpoint,
}

impl ActivationArguments {
    /// Checks that the flags combine with each other and with a model of so many layers.
    pub(crate) fn check(&self, layers: u64) -> Result<(), Error> {
        self.checkpoint.check(layers)
    }
}
