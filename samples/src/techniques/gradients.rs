//! How long gradients live, and over how much of a batch they are summed.
//!
//! - `--accumulate N` cuts a batch into N micro-batches and sums their gradients before the one update. Activations and
//!   workspace are those of batch/N; gradients, 4·P bytes, stay alive in the forward pass of every micro-batch but the first.
//! - `--zero-grad zero` fills gradients with zeros at the start of a step instead of freeing them: 4·P bytes more in forward
//!   and loss, from the second step on.
//! - `--optimizer-in-backward` updates a parameter as soon as its gradient is complete, and frees the gradient. Gradient
//!   bytes at the peak: the largest gradient, 4·V·h of an untied GPT. A tied token embedding is complete only at the end of
//!   backward, and the largest of the others comes and goes beside it: 4·(V·h + 4·h²).
//!
//! By arithmetic. The losses of all three are those of plain training, with accumulation up to the order of a sum.

use crate::Error;
use crate::gpt::Batch;

/// What becomes of gradients at the start of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum ZeroGrad {
    /// Freed, as PyTorch does by default
    #[default]
    None,
    /// Filled with zeros
    Zero,
}

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

/// A batch of `rows` tokens as `count` micro-batches, which divide its sequences. The loss of each is its share of the
/// batch's: `counted` stays that of the whole.
pub(crate) fn micro_batches(batch: &Batch, count: u64) -> Vec<Batch> {
    let rows = batch.tokens.len() / count as usize;
    let halves = batch.tokens.chunks(rows).zip(batch.targets.chunks(rows));
    halves
        .map(|(tokens, targets)| Batch { tokens: tokens.to_vec(), targets: targets.to_vec(), counted: batch.counted })
        .collect()
}
