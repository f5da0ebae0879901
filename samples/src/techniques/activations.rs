//! The flags of what forward keeps for backward.
//!
//! Owns: which of them combine. Refuses: what each does: see the file of its name.

use super::checkpoint::Checkpoint;
use super::chunked_loss;
use super::compress_activations::Compression;
use super::flash_attention::Attention;
use crate::Error;

/// The flags of activations.
#[derive(clap::Args, Clone, Copy, PartialEq, Debug, Default)]
pub struct ActivationArguments {
    /// Keep less of each block and compute it again in the backward pass: none, every=K (only the input of every K layers),
    /// sqrt (K = √layers), selective (all but the attention probabilities), or auto (the K that keeps least)
    #[arg(long, value_name = "HOW", default_value = "none", hide_default_value = true)]
    pub checkpoint: Checkpoint,
    /// How attention is computed
    #[arg(long, value_name = "HOW", value_enum, default_value_t, hide_default_value = true)]
    pub attention: Attention,
    /// Compute the head and the loss in C chunks of rows
    #[arg(long, value_name = "C")]
    pub chunked_loss: Option<u64>,
    /// Compress what layers keep for backward
    #[arg(long, value_name = "HOW", value_enum)]
    pub compress_activations: Option<Compression>,
}

impl ActivationArguments {
    /// Checks that the flags combine with each other and with a model of so many layers and heads of this width, and a
    /// pass over so many rows.
    pub(crate) fn check(&self, layers: u64, head_width: u64, rows: u64) -> Result<(), Error> {
        if self.checkpoint == Checkpoint::Selective && self.attention == Attention::Flash {
            return Err(Error::Arguments(
                "--checkpoint selective does not combine with --attention flash: it drops the attention probabilities, which \
                 flash attention does not have"
                    .to_owned(),
            ));
        }
        if self.compress_activations.is_some() && self.checkpoint != Checkpoint::None {
            return Err(Error::Arguments(
                "--compress-activations does not combine with --checkpoint: what is computed again is not kept, and so not \
                 compressed"
                    .to_owned(),
            ));
        }
        self.checkpoint.check(layers)?;
        chunked_loss::check(self.chunked_loss, rows)?;
        self.attention.check(head_width)
    }
}
