//! What is known of so many neighbouring allocations together, so that most need not be looked at.
//!
//! Owns: when any of them lived, and bounds of their size and area. Refuses: parts, filters, and which are chosen (`choose`).

use crate::allocation::flag;
use crate::timeline::ALIVE;

use super::Source;

/// Allocations of one block.
pub(in crate::explorer) const BLOCK: usize = 64;

/// Neighbours, by number.
#[derive(Clone, Copy, Debug)]
pub(in crate::explorer) struct Block {
    /// The first birth and the last death.
    pub birth: u32,
    pub death: u32,
    /// Most bytes.
    pub bytes: u64,
    /// Largest product of bytes and nanoseconds of life, rounded up.
    pub area: f64,
    /// True when a container is among them.
    pub containers: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(in crate::explorer) struct Blocks(pub Vec<Block>);

impl Blocks {
    pub fn of(source: Source<'_>) -> Blocks {
        let (allocations, lifetimes) = (&source.model.allocations, &source.walk.lifetimes);
        let last = source.model.last_time();
        let block = |number: usize| {
            let mut block = Block { birth: u32::MAX, death: 0, bytes: 0, area: 0.0, containers: false };
            let first = number * BLOCK;
            for id in first..(first + BLOCK).min(lifetimes.len()) {
                let lifetime = lifetimes[id];
                // A birth at 0 has not been walked.
                if lifetime.birth == 0 {
                    continue;
                }
                let allocation = &allocations[id];
                block.birth = block.birth.min(lifetime.birth);
                block.death = block.death.max(lifetime.death);
                block.bytes = block.bytes.max(allocation.bytes);
                block.containers |= allocation.is(flag::CONTAINER);
                let end = match lifetime.death {
                    // Longer than any range that is asked about.
                    ALIVE => last.0.saturating_mul(2).saturating_add(1 << 40),
                    _ => source.death(id as u32).unwrap_or(last).0,
                };
                let time = end.saturating_sub(source.birth(id as u32).0);
                block.area = block.area.max(allocation.requested as f64 * time as f64 * (1.0 + 1e-9));
            }
            block
        };
        Blocks((0..lifetimes.len().div_ceil(BLOCK)).map(block).collect())
    }

    /// Numbers of the blocks of which something may have lived after the first position and begun until the second.
    pub fn near(&self, (after, until): (u32, u32)) -> impl Iterator<Item = usize> + '_ {
        let near = move |block: &Block| block.birth <= until && block.death > after;
        self.0.iter().enumerate().filter(move |(_, block)| near(block)).map(|(number, _)| number)
    }
}
