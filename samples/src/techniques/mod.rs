//! The memory techniques: one short file each, with what it does, its formula in bytes, and where the formula comes from.
//!
//! Owns: the flags that the trainers share. Refuses: a framework: a trainer asks a technique where it matters, by a plain
//! function call, and without flags it does exactly what it did before the technique existed.

mod adafactor;
mod adamw;
mod eight_bit;
pub(crate) mod foreach;
mod gradients;
mod optimizer;
mod sgd;

pub(crate) use adafactor::Factors;
pub(crate) use eight_bit::States;
pub(crate) use gradients::micro_batches;
pub use gradients::{GradientArguments, ZeroGrad};
pub use optimizer::{EmbeddingStates, Kind, OptimizerArguments};
pub(crate) use optimizer::{State, Update, update};

/// The flags of the techniques; without any, training is in fp32 with fused AdamW and nothing is saved.
#[derive(clap::Args, Clone, PartialEq, Debug, Default)]
pub struct Techniques {
    /// The optimizer.
    #[command(flatten)]
    pub optimizer: OptimizerArguments,
    /// Gradients.
    #[command(flatten)]
    pub gradients: GradientArguments,
}

impl Techniques {
    /// Checks what can be checked before the device is touched.
    ///
    /// # Errors
    /// [`crate::Error::Arguments`] with the two flags that do not combine, and why.
    pub fn check(&self) -> Result<(), crate::Error> {
        self.optimizer.check()?;
        self.gradients.check(self.optimizer.foreach)
    }
}
