//! The memory techniques: one short file each, with what it does, its formula in bytes, and where the formula comes from.
//!
//! Owns: the flags that the trainers share. Refuses: a framework: a trainer asks a technique where it matters, by a plain
//! function call, and without flags it does exactly what it did before the technique existed.

mod accumulate;
mod activations;
mod adafactor;
mod adamw;
pub(crate) mod batch_search;
mod caching;
mod checkpoint;
mod chunked_loss;
mod compress_activations;
mod eight_bit;
mod flash_attention;
pub(crate) mod foreach;
mod gradients;
mod keeping;
mod lora;
mod loss_scale;
mod memory_fraction;
pub(crate) mod offload;
mod optimizer;
pub(crate) mod optimizer_in_backward;
mod parallel;
pub(crate) mod precision;
mod sgd;
mod sharing;
mod workload;
mod zero_grad;

pub(crate) use accumulate::{micro_batches, parts};
pub use activations::ActivationArguments;
pub(crate) use adafactor::Factors;
pub use batch_search::BatchSize;
pub use caching::PoolCount;
pub(crate) use caching::{Pool, Source};
pub use checkpoint::Checkpoint;
pub(crate) use checkpoint::{Choice, UnlikeChoice};
pub use compress_activations::Compression;
pub(crate) use eight_bit::States;
pub use flash_attention::Attention;
pub use gradients::GradientArguments;
pub(crate) use keeping::Keeping;
pub(crate) use loss_scale::LossScale;
pub use loss_scale::{ScaleRule, Scaled};
pub(crate) use memory_fraction::Budget;
pub use memory_fraction::MemoryFraction;
pub use offload::Offload;
pub use optimizer::{EmbeddingStates, Kind, OptimizerArguments};
pub(crate) use optimizer::{State, Update, update};
pub(crate) use parallel::Rank;
pub use parallel::{Parallel, RankArguments};
pub use precision::{Precision, PrecisionArguments};
pub use sharing::SharingArguments;
pub use workload::{Allocator, Workload, WorkloadArguments};
pub use zero_grad::ZeroGrad;
pub(crate) use zero_grad::zero_gradient;

/// The flags of the techniques; without any, training is in fp32 with fused AdamW and nothing is saved.
#[derive(clap::Args, Clone, PartialEq, Debug, Default)]
pub struct Techniques {
    /// The optimizer.
    #[command(flatten)]
    pub optimizer: OptimizerArguments,
    /// Gradients.
    #[command(flatten)]
    pub gradients: GradientArguments,
    /// Types.
    #[command(flatten)]
    pub types: PrecisionArguments,
    /// Keep this in pinned host memory and work on it there
    #[arg(long, value_name = "WHAT", value_enum)]
    pub offload: Option<Offload>,
    /// Hold at most this share of the device's memory, above 0 and at most 1
    #[arg(long, value_name = "F")]
    pub memory_fraction: Option<f64>,
    /// What forward keeps for backward.
    #[command(flatten)]
    pub activations: ActivationArguments,
    /// Weights that are shared or frozen.
    #[command(flatten)]
    pub sharing: SharingArguments,
    /// Where memory comes from.
    #[command(flatten)]
    pub workload: WorkloadArguments,
    /// Several processes.
    #[command(flatten)]
    pub ranks: RankArguments,
}

impl Techniques {
    /// The types of weights, products and what is kept.
    pub fn precision(&self) -> Precision {
        self.types.precision
    }

    /// The device, with its pool and its limit if it is to have them, before anything is allocated on it.
    pub(crate) fn prepare(&self, mut device: crate::Device) -> Result<std::rc::Rc<crate::Device>, crate::Error> {
        if self.workload.allocator == Allocator::Caching {
            device.use_pool();
        }
        if let Some(share) = self.memory_fraction {
            device.limit(MemoryFraction::new(share)?)?;
        }
        Ok(std::rc::Rc::new(device))
    }

    /// Checks what can be checked before the device is touched.
    ///
    /// # Errors
    /// [`crate::Error::Arguments`] with the two flags that do not combine, and why.
    pub fn check(&self) -> Result<(), crate::Error> {
        self.optimizer.check()?;
        self.gradients.check(self.optimizer.foreach)?;
        self.workload.check()?;
        self.ranks.check()?;
        precision::check(self)?;
        if self.offload.is_some() {
            let OptimizerArguments { kind, foreach, .. } = self.optimizer;
            let other = match (kind, foreach, self.gradients.optimizer_in_backward) {
                (Kind::AdamW, false, false) => None,
                (Kind::AdamW, true, _) => {
                    Some("--foreach: it updates on the host, where there are no such temporaries")
                }
                (Kind::AdamW, false, true) => Some("--optimizer-in-backward: the host would hold up every layer"),
                _ => Some("this --optimizer: only that of adamw is written for the host"),
            };
            if let Some(other) = other {
                return Err(crate::Error::Arguments(format!("--offload optimizer does not combine with {other}")));
            }
        }
        if self.memory_fraction.is_some() && self.workload.allocator == Allocator::Caching {
            return Err(crate::Error::Arguments(
                "--memory-fraction does not combine with --allocator caching: it counts what tensors hold, and the cache holds more"
                    .to_owned(),
            ));
        }
        self.memory_fraction.map_or(Ok(()), |share| MemoryFraction::new(share).map(|_| ()))
    }
}
