//! How long gradients live, and over how much of a batch they are summed: the flags, and which of them combine.

use super::ZeroGrad;
use crate::Error;

/// The flags of gradients.
#[derive(clap::Args, Clone, Copy, PartialEq, Debug, Default)]
pub struct GradientArguments {
    /// Cut each batch into N micro-batches and update once, with the sum of their gradients
    #[arg(long, value_name = "N")]
    pub accumulate: Option<u64>,
    /// What becomes of gradients at the start of a step
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub zero_grad: ZeroGrad,
    /// Update each parameter in the backward pass, as soon as its gradient is complete, and free the gradient
    #[arg(long)]
    pub optimizer_in_backward: bool,
}

impl GradientArguments {
    /// Micro-batches in a batch.
    pub fn micro_batches(&self) -> u64 {
        self.accumulate.unwrap_or(1)
    }

    /// Checks that the flags combine.
    pub(super) fn check(&self, foreach: bool) -> Result<(), Error> {
        let refused = |text: &str| Err(Error::Arguments(text.to_owned()));
        if self.accumulate == Some(0) {
            return refused("--accumulate 0 is out of range: a batch is at least one micro-batch");
        }
        if self.optimizer_in_backward && self.micro_batches() > 1 {
            return refused(
                "--optimizer-in-backward does not combine with --accumulate: it frees a gradient before the next micro-batch \
                 could add to it",
            );
        }
        if self.optimizer_in_backward && self.zero_grad == ZeroGrad::Zero {
            return refused(
                "--optimizer-in-backward does not combine with --zero-grad zero: no gradient is left to be filled with zeros",
            );
        }
        if self.optimizer_in_backward && foreach {
            return refused(
                "--optimizer-in-backward does not combine with --foreach: it updates one parameter at a time, not all at once",
            );
        }
        Ok(())
    }
}
