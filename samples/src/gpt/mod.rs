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

use crate::ranks::{Group, launch};
use crate::techniques::{BatchSize, PoolCount, Scaled, batch_search};
use crate::{Device, Error};
use memscope_client as memscope;
use std::io::Write;
use std::time::{Duration, Instant};

/// What a trainer tells while it runs.
#[derive(Clone, PartialEq, Debug)]
pub enum Progress {
    /// The weights are on the device.
    Started {
        /// What is trained.
        plan: Box<Plan>,
        /// How many numbers the parameters are.
        parameters: u64,
        /// The device's name.
        device: String,
        /// True when memscope simulates the device.
        simulated: bool,
    },
    /// A batch was tried.
    Trial {
        /// Its sequences.
        batch: u64,
        /// What did not fit; none if all did.
        refused: Option<String>,
        /// How long it took.
        time: Duration,
    },
    /// What a technique chose by itself.
    Chosen(String),
    /// A step is done.
    Step {
        /// Its number, from 1.
        number: u64,
        /// How many there will be.
        of: u64,
        /// Its loss; none on a device that does not compute.
        loss: Option<f32>,
        /// What became of the loss scale; none where there is no scale.
        scaled: Option<Scaled>,
        /// How long it took.
        time: Duration,
    },
    /// Training is over, and this is what its caching pool has.
    Pool(PoolCount),
}

/// What training came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// How many numbers the parameters are.
    pub parameters: u64,
    /// The loss of each step; none on a device that does not compute.
    pub losses: Vec<Option<f32>>,
}

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
    let group = Group::of_this_process()?;
    if group.as_ref().map_or(1, Group::world) as u64 != plan.techniques.ranks.count() {
        return Err(Error::Arguments(
            "--ranks are processes that only the program starts, each with its place".to_owned(),
        ));
    }
    let plan = match arguments.batch {
        Some(BatchSize::Auto) => largest_batch(plan, group.as_ref(), progress)?,
        _ => plan,
    };
    // The rank's device has its number.
    let device = Device::open_at(group.as_ref().map_or(0, Group::rank))?;
    let (name, simulated) = (device.name().to_owned(), device.is_simulated());
    let mut trainer = Trainer::in_group(&plan, device, group)?;
    let of = plan.steps;
    progress(Progress::Started { plan: Box::new(plan), parameters, device: name, simulated })?;
    for choice in [trainer.exchange(), trainer.choice()].into_iter().flatten() {
        progress(Progress::Chosen(choice))?;
    }
    let mut losses = Vec::new();
    for number in 1..=of {
        let start = Instant::now();
        let loss = trainer.step()?;
        losses.push(loss);
        progress(Progress::Step { number, of, loss, scaled: trainer.scaled(), time: start.elapsed() })?;
    }
    if let Some(count) = trainer.pool() {
        progress(Progress::Pool(count))?;
    }
    Ok(Outcome { parameters, losses })
}

/// The plan with the largest batch that fits, each trial with a fresh trainer. Ranks try the same batches together.
fn largest_batch(
    plan: Plan,
    group: Option<&Group>,
    progress: &mut dyn FnMut(Progress) -> Result<(), Error>,
) -> Result<Plan, Error> {
    let steps = |batch: u64| {
        let _scope = memscope::scope(batch_search::SCOPE);
        let device = Device::open_at(group.map_or(0, Group::rank))?;
        let group = group.map(Group::for_trial);
        let mut trainer = Trainer::in_group(&Plan { batch, ..plan.clone() }, device, group)?;
        (0..batch_search::STEPS).try_for_each(|_| trainer.uncounted_step().map(|_| ()))
    };
    let batch = batch_search::largest(plan.batch, plan.largest_batch(), &mut |batch| {
        let start = Instant::now();
        let result = batch_search::of_all(group, steps(batch))?;
        let refused = result.as_ref().err().map(Error::to_string);
        progress(Progress::Trial { batch, refused, time: start.elapsed() })?;
        Ok(result)
    })?;
    Ok(Plan { batch, ..plan })
}

/// Trains, and prints a line a step on standard output.
///
/// # Errors
/// As [`train`]; the error's text is one line, for the caller to print.
pub fn run(arguments: &GptArguments) -> Result<(), Error> {
    let rank = Group::of_this_process()?.map(|group| group.rank());
    if rank.is_none() && arguments.techniques.ranks.count() > 1 {
        Plan::new(arguments)?;
        return launch(arguments.techniques.ranks.count() as usize);
    }
    let mut output = std::io::stdout();
    train(arguments, &mut |progress| {
        // The loss is the same in all ranks: one tells it.
        if rank.is_some_and(|rank| rank > 0) {
            return Ok(());
        }
        writeln!(output, "{progress}")?;
        Ok(output.flush()?)
    })?;
    Ok(())
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Progress::Started { plan, parameters, device, simulated } => {
                let Plan { batch, sequence, configuration, techniques, .. } = &**plan;
                let Configuration { family, layers, width, heads, vocabulary, .. } = configuration;
                let name = if *family == Family::Gpt2 { "GPT-2" } else { "BERT" };
                let simulated = if *simulated { " (simulated)" } else { "" };
                write!(
                    f,
                    "{name}, {layers} layers × {width}, {heads} heads, vocabulary {vocabulary}: {parameters} parameters; \
                     batch {batch} × {sequence} tokens, on {device}{simulated}"
                )?;
                match techniques.ranks.parallel.filter(|_| techniques.ranks.count() > 1) {
                    None => Ok(()),
                    Some(parallel) => write!(f, " and {} more: {}", techniques.ranks.count() - 1, parallel.word()),
                }
            }
            Progress::Trial { batch, refused, time } => {
                let fits = refused.as_deref().unwrap_or("fits");
                write!(f, "batch {batch}: {fits}  {:.2} s", time.as_secs_f64())
            }
            Progress::Chosen(choice) => f.write_str(choice),
            Progress::Step { number, of, loss, scaled, time } => {
                let loss = loss.map_or("not computed".to_owned(), |loss| format!("{loss:.4}"));
                let scale = match scaled {
                    None => String::new(),
                    Some(Scaled { scale, skipped: false }) => format!("  scale {scale}"),
                    Some(Scaled { scale, skipped: true }) => {
                        format!("  scale {scale}, step skipped: a gradient is infinite or NaN")
                    }
                };
                write!(f, "step {number}/{of}  loss {loss}{scale}  {:.2} s", time.as_secs_f64())
            }
            Progress::Pool(count) => {
                let PoolCount { segments, reserved, granted, requested, most_reserved, most_requested } = count;
                write!(
                    f,
                    "caching pool: {segments} segments, {reserved} bytes reserved, {granted} granted for {requested} asked; \
                     at most {most_reserved} reserved and {most_requested} asked"
                )
            }
        }
    }
}
