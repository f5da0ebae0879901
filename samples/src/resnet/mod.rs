//! `memscope sample resnet`: trains a ResNet, with a backward pass by hand.
//!
//! Owns: the trainer, from its arguments to its lines of progress. Refuses: to choose a device (it takes the first that
//! the driver shows) and to know whether it is profiled.
//!
//! | file | what |
//! | --- | --- |
//! | arguments, flags | the arguments, their defaults and checks: a [`Plan`]; those of memory techniques |
//! | model, network | sizes; parameters, running statistics and their first values |
//! | data | images made from a seed |
//! | trainer | the phases of a step |
//! | pass, forward, backward | one pass, and what is saved between its halves |
//! | blocks | the residual blocks one after another, and what each keeps or computes again |
//!
//! Parameters and their optimizers are those of [`crate::gpt`] and [`crate::techniques`].
//!
#![doc = include_str!("memory.md")]

mod arguments;
mod backward;
mod blocks;
mod data;
mod flags;
mod forward;
mod model;
mod network;
mod pass;
mod trainer;

pub use arguments::{Plan, ResnetArguments};
pub use data::{Batch, images, targets};
pub use flags::ResnetTechniques;
pub use model::{BlockKind, Configuration, Model};
pub use trainer::Trainer;

pub use crate::training::Outcome;

use crate::techniques::BatchSize;
use crate::{Error, training};

/// What is trained, and where.
#[derive(Clone, PartialEq, Debug)]
pub struct Started {
    /// Which network.
    pub model: Model,
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
    arguments: &ResnetArguments,
    progress: &mut dyn FnMut(Progress) -> Result<(), Error>,
) -> Result<Outcome, Error> {
    let plan = Plan::new(arguments)?;
    let parameters = plan.configuration.parameter_count();
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
    let (device_name, simulated) = (device.name().to_owned(), device.is_simulated());
    let mut trainer = Trainer::in_group(&plan, device, group)?;
    let (of, model) = (plan.steps, arguments.model);
    progress(Progress::Started(Box::new(Started { model, plan, parameters, device: device_name, simulated })))?;
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
pub fn run(arguments: &ResnetArguments) -> Result<(), Error> {
    let check = || Plan::new(arguments).map(|_| ());
    training::run(&arguments.techniques.ranks, check, |progress| train(arguments, progress))
}

impl std::fmt::Display for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Started { model, plan, parameters, device, simulated } = self;
        let Plan { batch, image, configuration, .. } = plan;
        let simulated = if *simulated { " (simulated)" } else { "" };
        write!(
            f,
            "{}, {} classes: {parameters} parameters; batch {batch} × {image} × {image} pixels, on {device}{simulated}",
            model.name(),
            configuration.classes
        )?;
        plan.techniques.ranks.write_others(f)
    }
}
