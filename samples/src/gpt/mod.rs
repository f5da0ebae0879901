//! `memscope sample gpt`: trains a GPT-2 or BERT in fp32, with a backward pass by hand.
//!
//! Owns: the trainer, from its arguments to its lines of progress. Refuses: to choose a device (it takes the first that
//! the driver shows) and to know whether it is profiled.
//!
//! | file | what |
//! | --- | --- |
//! | arguments | the arguments, their defaults and checks: a [`Plan`] |
//! | model, network | sizes; parameters and their first values |
//! | data, random | batches of the sample text |
//! | trainer | the phases of a step |
//! | pass, forward, backward | one pass, and what is saved between its halves |
//! | attention | attention, both ways |
//! | loss | the cross-entropy, both ways |
//! | autocast | casts between types, in mixed precision |
//! | parameter, optimizer | gradients and optimizer state; in which order parameters are updated |
//! | update | the end of a step: ranks, loss scale, updates |
//! | compressed | what a layer keeps, in 8 bits |
//! | chunked | the decoder and the loss chunk by chunk |
//! | flash | attention without its matrix |
//! | lora, shared_qk | adapters beside frozen matrices; one projection of queries and keys |
//! | layers | the blocks one after another, and what each keeps or computes again |
//! | scopes | module paths as scopes of the profile |
#![doc = include_str!("memory.md")]

mod arguments;
mod attention;
mod autocast;
mod backward;
mod chunked;
mod compressed;
mod data;
mod flash;
mod forward;
mod layers;
mod lora;
mod loss;
mod model;
mod network;
mod optimizer;
mod parameter;
mod pass;
pub(crate) mod random;
pub(crate) mod scopes;
mod shared_qk;
mod trainer;
mod update;

pub use arguments::{GptArguments, Plan};
pub use data::{Batch, batch};
pub use model::{Configuration, Family, Model};
pub(crate) use model::{in_range, is_rate};
pub use network::{Description, Initial};
pub(crate) use optimizer::Optimizer;
pub use parameter::Parameter;
pub use trainer::Trainer;
pub(crate) use trainer::module_of;
pub(crate) use update::Updates;

pub use crate::training::Outcome;

use crate::techniques::BatchSize;
use crate::{Error, training};

/// What is trained, and where.
#[derive(Clone, PartialEq, Debug)]
pub struct Started {
    /// What is trained.
    pub plan: Plan,
    /// How many numbers the parameters are.
    pub parameters: u64,
    /// The device's name.
    pub device: String,
    /// True when memscope simulates the device.
    pub simulated: bool,
}

/// What the trainer tells while it runs.
pub type Progress = training::Progress<Started>;

/// Trains, and tells of each step.
///
/// # Errors
/// [`Error::Arguments`] before the device is touched; then whatever the device refuses, or `progress` returns.
pub fn train(
    arguments: &GptArguments,
    progress: &mut dyn FnMut(Progress) -> Result<(), Error>,
) -> Result<Outcome, Error> {
    let plan = Plan::new(arguments)?;
    let parameters = plan.parameter_count();
    let group = training::place(&plan.techniques.ranks)?;
    let plan = match arguments.batch {
        Some(BatchSize::Auto) => {
            let steps = |batch, device, group, count| {
                let mut trainer = Trainer::in_group(&Plan { batch, ..plan.clone() }, device, group)?;
                (0..count).try_for_each(|_| trainer.uncounted_step().map(|_| ()))
            };
            let bounds = [plan.batch, plan.largest_batch()];
            let batch = training::largest_batch(bounds, group.as_ref(), &steps, progress)?;
            Plan { batch, ..plan }
        }
        _ => plan,
    };
    let device = training::device(group.as_ref())?;
    let (name, simulated) = (device.name().to_owned(), device.is_simulated());
    let mut trainer = Trainer::in_group(&plan, device, group)?;
    let of = plan.steps;
    progress(Progress::Started(Box::new(Started { plan, parameters, device: name, simulated })))?;
    for choice in [trainer.exchange(), trainer.choice()].into_iter().flatten() {
        progress(Progress::Chosen(choice))?;
    }
    let losses = training::steps(of, &mut || Ok((trainer.step()?, trainer.scaled())), progress)?;
    if let Some(count) = trainer.pool() {
        progress(Progress::Pool(count))?;
    }
    Ok(Outcome { parameters, losses })
}

/// Trains, and prints a line a step on standard output.
///
/// # Errors
/// As [`train`]; the error's text is one line, for the caller to print.
pub fn run(arguments: &GptArguments) -> Result<(), Error> {
    let check = || Plan::new(arguments).map(|_| ());
    training::run(&arguments.techniques.ranks, check, |progress| train(arguments, progress))
}

impl std::fmt::Display for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Started { plan, parameters, device, simulated } = self;
        let Plan { batch, sequence, configuration, techniques, .. } = plan;
        let Configuration { family, layers, width, heads, vocabulary, .. } = configuration;
        let name = if *family == Family::Gpt2 { "GPT-2" } else { "BERT" };
        let simulated = if *simulated { " (simulated)" } else { "" };
        write!(
            f,
            "{name}, {layers} layers × {width}, {heads} heads, vocabulary {vocabulary}: {parameters} parameters; \
             batch {batch} × {sequence} tokens, on {device}{simulated}"
        )?;
        techniques.ranks.write_others(f)
    }
}
