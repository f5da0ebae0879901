//! `memscope sample resnet`: trains a ResNet in fp32, with a backward pass by hand.
//!
//! Owns: the trainer, from its arguments to its lines of progress. Refuses: to choose a device (it takes the first that
//! the driver shows) and to know whether it is profiled.
//!
//! | file | what |
//! | --- | --- |
//! | arguments | the arguments, their defaults and checks: a [`Plan`] |
//! | model, network | sizes; parameters, running statistics and their first values |
//! | data | images made from a seed |
//! | trainer | the phases of a step |
//! | pass, forward, backward | one pass, and what is saved between its halves |
//!
//! Parameters and their optimizers are those of [`crate::gpt`] and [`crate::techniques`].
//!
#![doc = include_str!("memory.md")]

mod arguments;
mod backward;
mod data;
mod forward;
mod model;
mod network;
mod pass;
mod trainer;

pub use arguments::{Plan, ResnetArguments};
pub use data::{Batch, images, targets};
pub use model::{BlockKind, Configuration, Model};
pub use trainer::Trainer;

pub use crate::gpt::Outcome;

use crate::{Device, Error};
use std::io::Write;
use std::time::{Duration, Instant};

/// What a trainer tells while it runs.
#[derive(Clone, PartialEq, Debug)]
pub enum Progress {
    /// The weights are on the device.
    Started {
        /// Which network.
        model: Model,
        /// What is trained.
        plan: Box<Plan>,
        /// How many numbers the parameters are.
        parameters: u64,
        /// The device's name.
        device: String,
        /// True when memscope simulates the device.
        simulated: bool,
    },
    /// A step is done.
    Step {
        /// Its number, from 1.
        number: u64,
        /// How many there will be.
        of: u64,
        /// Its loss; none on a device that does not compute.
        loss: Option<f32>,
        /// How long it took.
        time: Duration,
    },
}

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
    let device = Device::open()?;
    let (name, simulated) = (device.name().to_owned(), device.is_simulated());
    let mut trainer = Trainer::new(&plan, device)?;
    let of = plan.steps;
    progress(Progress::Started { model: arguments.model, plan: Box::new(plan), parameters, device: name, simulated })?;
    let mut losses = Vec::new();
    for number in 1..=of {
        let start = Instant::now();
        let loss = trainer.step()?;
        losses.push(loss);
        progress(Progress::Step { number, of, loss, time: start.elapsed() })?;
    }
    Ok(Outcome { parameters, losses })
}

/// Trains, and prints a line a step on standard output.
///
/// # Errors
/// As [`train`]; the error's text is one line, for the caller to print.
pub fn run(arguments: &ResnetArguments) -> Result<(), Error> {
    let mut output = std::io::stdout();
    train(arguments, &mut |progress| {
        writeln!(output, "{progress}")?;
        Ok(output.flush()?)
    })?;
    Ok(())
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Progress::Started { model, plan, parameters, device, simulated } => {
                let Plan { batch, image, configuration, .. } = &**plan;
                let simulated = if *simulated { " (simulated)" } else { "" };
                write!(
                    f,
                    "{}, {} classes: {parameters} parameters; batch {batch} × {image} × {image} pixels, on \
                     {device}{simulated}",
                    model.name(),
                    configuration.classes
                )
            }
            Progress::Step { number, of, loss, time } => {
                let loss = loss.map_or("not computed".to_owned(), |loss| format!("{loss:.4}"));
                write!(f, "step {number}/{of}  loss {loss}  {:.2} s", time.as_secs_f64())
            }
        }
    }
}
