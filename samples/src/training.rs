//! What trainers have in common around their steps: what they tell, ranks, and the search for the largest batch.
//!
//! Owns: the lines of progress that all trainers have, and printing them. Refuses: to know what is trained.

use crate::ranks::{Group, launch};
use crate::techniques::{PoolCount, RankArguments, Scaled, batch_search};
use crate::{Device, Error};
use memscope_client as memscope;
use std::io::Write;
use std::time::{Duration, Instant};

/// What a trainer tells while it runs. `S` says what is trained, and where.
#[derive(Clone, PartialEq, Debug)]
pub enum Progress<S> {
    /// The weights are on the device.
    Started(Box<S>),
    /// A batch was tried.
    Trial {
        /// Its sequences or images.
        batch: u64,
        /// What did not fit; none if all did.
        refused: Option<String>,
        /// How long it took.
        time: Duration,
    },
    /// What a technique chose by itself, or what there is to say of the loss.
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

/// Where a trainer hears what is told.
pub(crate) type Tell<'a, S> = &'a mut dyn FnMut(Progress<S>) -> Result<(), Error>;

/// This process's place among as many ranks as there are to be.
pub(crate) fn place(ranks: &RankArguments) -> Result<Option<Group>, Error> {
    let group = Group::of_this_process()?;
    match group.as_ref().map_or(1, Group::world) as u64 == ranks.count() {
        true => Ok(group),
        false => {
            Err(Error::Arguments("--ranks are processes that only the program starts, each with its place".to_owned()))
        }
    }
}

/// The device of this place: that of the rank's number.
pub(crate) fn device(group: Option<&Group>) -> Result<Device, Error> {
    Device::open_at(group.map_or(0, Group::rank))
}

/// The largest batch that fits, from `least` to `most`. `steps` takes so many steps of a batch with a fresh trainer, in its
/// place. Ranks try the same batches together.
pub(crate) fn largest_batch<S>(
    [least, most]: [u64; 2],
    group: Option<&Group>,
    steps: &dyn Fn(u64, Device, Option<Group>, u64) -> Result<(), Error>,
    tell: Tell<'_, S>,
) -> Result<u64, Error> {
    batch_search::largest(least, most, &mut |batch| {
        let start = Instant::now();
        let tried = {
            let _scope = memscope::scope(batch_search::SCOPE);
            let member = group.map(Group::for_trial);
            device(group).and_then(|device| steps(batch, device, member, batch_search::STEPS))
        };
        let result = batch_search::of_all(group, tried)?;
        let refused = result.as_ref().err().map(Error::to_string);
        tell(Progress::Trial { batch, refused, time: start.elapsed() })?;
        Ok(result)
    })
}

/// Trains, and prints a line a step on standard output; of several ranks, which are started first, one does.
pub(crate) fn run<S: std::fmt::Display>(
    ranks: &RankArguments,
    check: impl FnOnce() -> Result<(), Error>,
    train: impl FnOnce(Tell<'_, S>) -> Result<Outcome, Error>,
) -> Result<(), Error> {
    let rank = Group::of_this_process()?.map(|group| group.rank());
    if rank.is_none() && ranks.count() > 1 {
        check()?;
        return launch(ranks.count() as usize);
    }
    let mut output = std::io::stdout();
    train(&mut |progress| {
        // The loss is the same in all ranks: one tells it.
        if rank.is_some_and(|rank| rank > 0) {
            return Ok(());
        }
        writeln!(output, "{progress}")?;
        Ok(output.flush()?)
    })?;
    Ok(())
}

/// Takes `of` steps and tells of each; their losses.
pub(crate) fn steps<S>(
    of: u64,
    step: &mut dyn FnMut() -> Result<(Option<f32>, Option<Scaled>), Error>,
    tell: Tell<'_, S>,
) -> Result<Vec<Option<f32>>, Error> {
    let mut losses = Vec::new();
    for number in 1..=of {
        let start = Instant::now();
        let (loss, scaled) = step()?;
        let was_finite = losses.iter().flatten().all(|loss: &f32| loss.is_finite());
        losses.push(loss);
        tell(Progress::Step { number, of, loss, scaled, time: start.elapsed() })?;
        if was_finite && loss.is_some_and(|loss| !loss.is_finite()) {
            tell(Progress::Chosen(format!(
                "the loss is no number from step {number} on: training has diverged, and memory is all that is left to \
                 look at; a lower --lr may help"
            )))?;
        }
    }
    Ok(losses)
}

impl<S: std::fmt::Display> std::fmt::Display for Progress<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Progress::Started(started) => started.fmt(f),
            Progress::Trial { batch, refused, time } => {
                let fits = refused.as_deref().unwrap_or("fits");
                write!(f, "batch {batch}: {fits}  {:.2} s", time.as_secs_f64())
            }
            Progress::Chosen(choice) => f.write_str(choice),
            Progress::Step { number, of, loss, scaled, time } => {
                let scale = match scaled {
                    None => String::new(),
                    Some(Scaled { scale, skipped: false }) => format!("  scale {scale}"),
                    Some(Scaled { scale, skipped: true }) => {
                        let what = if loss.is_some_and(|loss| !loss.is_finite()) { "the loss" } else { "a gradient" };
                        format!("  scale {scale}, step skipped: {what} is infinite or NaN")
                    }
                };
                let loss = loss.map_or("not computed".to_owned(), |loss| format!("{loss:.4}"));
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
