//! The memory techniques of a ResNet: those of [`crate::techniques`] that a convolutional network has.
//!
//! Owns: the flags. Refuses: what each does, and which combine. What belongs to embeddings or attention is no flag here.

use crate::Error;
use crate::techniques::{
    ActivationArguments, Checkpoint, GradientArguments, Kind, Offload, OptimizerArguments, PrecisionArguments,
    RankArguments, Techniques, WorkloadArguments,
};

/// The flags of the techniques; without any, training is in fp32 with SGD with momentum, and nothing is saved.
#[derive(clap::Args, Clone, PartialEq, Debug)]
pub struct ResnetTechniques {
    /// Optimizer
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Kind::Momentum)]
    pub optimizer: Kind,
    /// Update with one kernel a parameter and no temporaries, which is the default
    #[arg(long, conflicts_with = "foreach")]
    pub fused: bool,
    /// Update all parameters at once, one operation after the other, with temporaries as large as the weights (adamw)
    #[arg(long)]
    pub foreach: bool,
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
    /// Keep less of the residual blocks and compute them again in the backward pass: none, every=K (only the input of every K
    /// blocks), sqrt (K = √blocks), or auto (the K that keeps least)
    #[arg(long, value_name = "HOW", default_value = "none", hide_default_value = true)]
    pub checkpoint: Checkpoint,
    /// Where memory comes from.
    #[command(flatten)]
    pub workload: WorkloadArguments,
    /// Several processes.
    #[command(flatten)]
    pub ranks: RankArguments,
}

impl Default for ResnetTechniques {
    fn default() -> Self {
        ResnetTechniques {
            optimizer: Kind::Momentum,
            fused: false,
            foreach: false,
            gradients: GradientArguments::default(),
            types: PrecisionArguments::default(),
            offload: None,
            memory_fraction: None,
            checkpoint: Checkpoint::None,
            workload: WorkloadArguments::default(),
            ranks: RankArguments::default(),
        }
    }
}

impl ResnetTechniques {
    /// As all trainers have them, checked against each other and a network of so many blocks.
    pub(super) fn checked(&self, blocks: u64) -> Result<Techniques, Error> {
        let ResnetTechniques { optimizer: kind, fused, foreach, .. } = *self;
        if self.checkpoint == Checkpoint::Selective {
            return Err(Error::Arguments(
                "--checkpoint selective drops attention probabilities, and a ResNet has no attention".to_owned(),
            ));
        }
        let activations = ActivationArguments { checkpoint: self.checkpoint, ..ActivationArguments::default() };
        let techniques = Techniques {
            optimizer: OptimizerArguments { kind, fused, foreach, embedding_states: None },
            gradients: self.gradients,
            types: self.types,
            offload: self.offload,
            memory_fraction: self.memory_fraction,
            activations,
            workload: self.workload,
            ranks: self.ranks,
            ..Techniques::default()
        };
        techniques.check()?;
        techniques.activations.checkpoint.check(blocks)?;
        Ok(techniques)
    }
}
