//! The largest batch that fits (`--batch auto`), found by training: each trial is a fresh trainer that takes two full steps,
//! in the second of which the optimizer's state is alive beside the activations.
//!
//! The batch doubles until a trial runs out of memory, and is then bisected: ⌈2·log₂ b⌉ trials for a largest batch of b. No
//! formula is needed, and none is trusted: activations grow with the batch, but which instant is the peak may change.
//!
//! Ranks try the same batch at the same time. When one runs out of memory the trial is over for all of them, and all go on with
//! the next.

use crate::Error;
use crate::ranks::Group;

/// Steps of a trial.
pub(crate) const STEPS: u64 = 2;
/// The scope of all that a trial allocates. Its steps are not told to memscope, so that those of the profile are the training's.
pub(crate) const SCOPE: &str = "batch.auto";

/// What `--batch` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BatchSize {
    /// So many sequences or images.
    Given(u64),
    /// As many as fit.
    Auto,
}

impl From<u64> for BatchSize {
    fn from(count: u64) -> Self {
        BatchSize::Given(count)
    }
}

impl std::str::FromStr for BatchSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(BatchSize::Auto),
            number => {
                number.parse().map(BatchSize::Given).map_err(|_| format!("`{number}` is neither a number nor `auto`"))
            }
        }
    }
}

/// What came of a trial: nothing, or that a device was full, this one or another rank's. Any other error ends the search.
pub(crate) fn of_all(group: Option<&Group>, result: Result<(), Error>) -> Result<Result<(), Error>, Error> {
    match &result {
        Ok(()) | Err(Error::Abandoned { .. }) => {}
        Err(Error::OutOfMemory { .. }) => group.into_iter().for_each(Group::abandon),
        Err(_) => return Err(result.expect_err("it is one")),
    }
    let abandoned = group.map_or(Ok(None), Group::settle)?;
    Ok(match (result, abandoned) {
        (Ok(()), Some(rank)) => Err(Error::Abandoned { rank }),
        (result, _) => result,
    })
}

/// The largest multiple of `unit` that fits and is at most `most`, or the error of the smallest when not even that does.
/// `trial` tells whether a batch fits; an error of its own ends the search.
pub(crate) fn largest(
    unit: u64,
    most: u64,
    trial: &mut dyn FnMut(u64) -> Result<Result<(), Error>, Error>,
) -> Result<u64, Error> {
    trial(unit)??;
    // In units: `fits` does, and `fails` does not or is not allowed.
    let (mut fits, mut fails) = (1, most / unit + 1);
    let mut next = 2;
    while fails - fits > 1 {
        let count = if next < fails { next } else { fits + (fails - fits) / 2 };
        match trial(count * unit)? {
            Ok(()) => (fits, next) = (count, next.saturating_mul(2).max(count * 2)),
            Err(_) => (fails, next) = (count, u64::MAX),
        }
    }
    Ok(fits * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Error {
        let (tensor, category) = ("x".to_owned(), "activations");
        Error::OutOfMemory { tensor, category, bytes: 1, free: None, total: None, fraction: None }
    }

    fn search(unit: u64, most: u64, capacity: u64) -> (Result<u64, Error>, Vec<u64>) {
        let mut trials = Vec::new();
        let found = largest(unit, most, &mut |batch| {
            trials.push(batch);
            Ok(if batch <= capacity { Ok(()) } else { Err(full()) })
        });
        (found, trials)
    }

    #[test]
    fn every_capacity_is_found_in_few_trials() {
        for unit in [1, 3] {
            for most in [unit, 100, 1000] {
                for capacity in unit..400 {
                    let (found, trials) = search(unit, most, capacity);
                    let expected = capacity.min(most) / unit * unit;
                    assert_eq!(found.unwrap(), expected);
                    assert!(trials.iter().all(|batch| batch % unit == 0 && *batch <= most));
                    let few = 2 * (expected / unit).ilog2() + 3;
                    assert!(trials.len() as u32 <= few, "{capacity}: {trials:?}");
                }
            }
        }
    }

    #[test]
    fn when_nothing_fits_the_first_error_is_told() {
        let (found, trials) = search(2, 100, 1);
        assert!(matches!(found, Err(Error::OutOfMemory { .. })));
        assert_eq!(trials, [2]);
    }

    #[test]
    fn a_size_is_a_number_or_auto() {
        assert_eq!("auto".parse(), Ok(BatchSize::Auto));
        assert_eq!("12".parse(), Ok(BatchSize::Given(12)));
        assert!("twelve".parse::<BatchSize>().unwrap_err().contains("`twelve`"));
    }
}
