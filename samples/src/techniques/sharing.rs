//! Weights that are used more than once: `--tie-embeddings`, `--share-layers N`, `--share-qk`.
//!
//! With L layers of B parameters each, width h and vocabulary V:
//!
//! - A tied head uses the token embedding as its weight, which is the default: V·h parameters less than `--untied`.
//! - N layers one after another share one set of weights (ALBERT, Lan et al. 2019, where N = L): (L - ⌈L/N⌉)·B parameters less.
//! - Queries and keys come from one projection: h² + h parameters a layer less. Since q and k are then the same, one of them is
//!   kept for backward and not both: 4·n·h bytes of activations a layer less too.
//!
//! Weights, gradients and optimizer state fall by 4, 4 and 8 bytes a parameter. What is kept for backward does not become less
//! with shared layers: each use of a weight has an input of its own. By arithmetic.

use super::lora;
use crate::Error;

/// The flags of shared and frozen weights.
#[derive(clap::Args, Clone, Copy, PartialEq, Debug, Default)]
pub struct SharingArguments {
    /// Use the token embedding as the head's weight, which is the default; the opposite is --untied
    #[arg(long)]
    pub tie_embeddings: bool,
    /// Let every N layers share one set of weights
    #[arg(long, value_name = "N")]
    pub share_layers: Option<u64>,
    /// Compute queries and keys with one projection
    #[arg(long)]
    pub share_qk: bool,
    /// Train only adapters of rank R beside the matrices of the blocks, and no other weight
    #[arg(long, value_name = "R")]
    pub lora: Option<u64>,
}

impl SharingArguments {
    /// Layers with one set of weights.
    pub(crate) fn layers_together(&self) -> u64 {
        self.share_layers.unwrap_or(1)
    }

    /// Checks that the flags combine with each other and with the model.
    pub(crate) fn check(&self, layers: u64, width: u64, tied: bool) -> Result<(), Error> {
        let refused = |text: String| Err(Error::Arguments(text));
        if self.tie_embeddings && !tied {
            return refused("--tie-embeddings and --untied are opposites: choose one".to_owned());
        }
        match self.share_layers {
            Some(together) if !(1..=layers).contains(&together) => {
                return refused(format!(
                    "--share-layers {together} is out of range: the model has {layers} layers, so it must be 1 to {layers}"
                ));
            }
            _ => {}
        }
        if self.share_qk && self.lora.is_some() {
            return refused(
                "--share-qk does not combine with --lora: the adapters are of the one matrix that gives q, k and v"
                    .to_owned(),
            );
        }
        lora::check(self.lora, width)
    }
}
