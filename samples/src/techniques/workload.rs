//! Where memory comes from, and how much of it each step needs.
//!
//! - `--allocator caching` takes tensors from a pool ([`super::caching`]) instead of the driver: reserved is what the pool
//!   holds, live what tensors asked for, cached the difference.
//! - `--workload varying` gives each step sequences of their own length, or images of their own side, between a quarter of
//!   `--seq` or `--image` and all of it, drawn from the seed. Activations and inputs follow it. With a cache, blocks of one length are cut up for the next, and what is left
//!   between them fits nothing: fragmentation, which is seen in reserved, never in live.
//! - `--empty-cache` gives every segment without a block in use back after each step, as torch.cuda.empty_cache() does:
//!   reserved falls to the segments that something live holds, and the next step asks the driver again.
//!
//! Bytes: the peak of live is that of the longest sequence; reserved − live is what the cache costs, by the pool's count.

use crate::Error;
use crate::gpt::random::Random;

/// Where tensors get memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Allocator {
    /// An allocation of the driver for each
    #[default]
    Driver,
    /// A pool that keeps what was freed, by PyTorch's rule of sizes
    Caching,
}

/// Steps that are alike, or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Workload {
    /// Every step has sequences of the same length, or images of the same size
    #[default]
    Fixed,
    /// Each step has a length or size of its own, from a quarter of --seq or --image to all of it
    Varying,
}

/// The flags of allocation.
#[derive(clap::Args, Clone, Copy, PartialEq, Debug, Default)]
pub struct WorkloadArguments {
    /// Where tensors get memory
    #[arg(long, value_name = "KIND", value_enum, default_value_t)]
    pub allocator: Allocator,
    /// Lengths of the sequences, or sizes of the images, of each step
    #[arg(long, value_name = "KIND", value_enum, default_value_t)]
    pub workload: Workload,
    /// Give segments of the caching allocator in which nothing is live back after each step
    #[arg(long)]
    pub empty_cache: bool,
}

/// What the random numbers of lengths are for, so that they are unrelated to those of batches.
const PURPOSE: u64 = 1;

impl WorkloadArguments {
    /// Checks that the flags combine.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.empty_cache && self.allocator != Allocator::Caching {
            return Err(Error::Arguments(
                "--empty-cache empties the cache of --allocator caching; the driver's allocations leave none"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Tokens in a sequence, or pixels of an image's side, of step `step`, counted from 1, where the most are `longest`.
    pub fn length(&self, longest: u64, seed: u64, step: u64) -> u64 {
        let shortest = self.shortest(longest);
        match self.workload {
            Workload::Fixed => longest,
            Workload::Varying => shortest + Random::new(seed, &[0, PURPOSE, step]).below(longest - shortest + 1),
        }
    }

    /// The least that [`WorkloadArguments::length`] may give.
    pub(crate) fn shortest(&self, longest: u64) -> u64 {
        match self.workload {
            Workload::Fixed => longest,
            Workload::Varying => longest.div_ceil(4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_vary_within_bounds_and_repeat() {
        let varying = WorkloadArguments { workload: Workload::Varying, ..WorkloadArguments::default() };
        let lengths: Vec<u64> = (1..=400).map(|step| varying.length(64, 7, step)).collect();
        assert_eq!(lengths, (1..=400).map(|step| varying.length(64, 7, step)).collect::<Vec<_>>());
        assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&16), Some(&64)));
        assert_ne!(lengths, (1..=400).map(|step| varying.length(64, 8, step)).collect::<Vec<_>>());
        assert_eq!(varying.length(1, 7, 1), 1);
        assert_eq!(WorkloadArguments::default().length(64, 7, 1), 64);
    }
}
