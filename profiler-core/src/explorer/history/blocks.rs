//! What is known of so many neighbouring allocations together, so that most need not be looked at.
//!
//! Owns: when any of them lived, and bounds of their size and area. Refuses: parts, filters, and which are chosen (`choose`).

use crate::allocation::flag;
use crate::timeline::ALIVE;

use super::Source;

/// Allocations of one block.
const BLOCK: usize = 64;

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

/// Numbers of a block's allocations.
pub(in crate::explorer) fn members(source: Source<'_>, block: usize) -> std::ops::Range<u32> {
    let first = block * BLOCK;
    first as u32..(first + BLOCK).min(source.walk.lifetimes.len()) as u32
}

/// True for an allocation that lived after the first position and had begun by the second.
pub(in crate::explorer) fn lives(source: Source<'_>, id: u32, (after, until): (u32, u32)) -> bool {
    let lifetime = source.lifetime(id);
    // A birth at 0 has not been walked.
    lifetime.birth > 0 && lifetime.birth <= until && lifetime.death > after
}

/// All of them.
#[derive(Debug, Default)]
pub(in crate::explorer) struct Blocks(pub Vec<Block>);

impl Blocks {
    pub fn of(source: Source<'_>) -> Blocks {
        let last = source.model.last_time();
        let block = |number: usize| {
            let mut block = Block { birth: u32::MAX, death: 0, bytes: 0, area: 0.0, containers: false };
            for id in members(source, number) {
                let lifetime = source.lifetime(id);
                // A birth at 0 has not been walked.
                if lifetime.birth == 0 {
                    continue;
                }
                let allocation = source.allocation(id);
                block.birth = block.birth.min(lifetime.birth);
                block.death = block.death.max(lifetime.death);
                block.bytes = block.bytes.max(allocation.bytes);
                block.containers |= allocation.is(flag::CONTAINER);
                let end = match lifetime.death {
                    // Longer than any range that is asked about.
                    ALIVE => last.0.saturating_mul(2).saturating_add(1 << 40),
                    _ => source.death(id).unwrap_or(last).0,
                };
                let time = end.saturating_sub(source.birth(id).0);
                block.area = block.area.max(allocation.requested as f64 * time as f64 * (1.0 + 1e-9));
            }
            block
        };
        Blocks((0..source.walk.lifetimes.len().div_ceil(BLOCK)).map(block).collect())
    }

    /// Numbers of the allocations that lived after the first position and had begun by the second, of the blocks that are wanted.
    pub fn alive<'s>(
        &'s self,
        source: Source<'s>,
        positions: (u32, u32),
        wanted: impl Fn(&Block) -> bool + 's,
    ) -> impl Iterator<Item = u32> + 's {
        let blocks = self.near(positions).filter(move |block| wanted(&self.0[*block]));
        blocks.flat_map(move |block| members(source, block)).filter(move |id| lives(source, *id, positions))
    }

    /// Numbers of the blocks of which something may have lived after the first position and begun until the second.
    pub fn near(&self, (after, until): (u32, u32)) -> impl Iterator<Item = usize> + '_ {
        let near = move |block: &Block| block.birth <= until && block.death > after;
        self.0.iter().enumerate().filter(move |(_, block)| near(block)).map(|(number, _)| number)
    }
}
