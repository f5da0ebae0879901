//! What the model met and could not account for.
//!
//! Owns: the counts. Refuses: judgement (`findings`).

use memscope_wire::Measure;

use serde::{Deserialize, Serialize};

use super::row::{Allocation, flag};

/// Counts over the whole session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Doubts {
    /// Frees of addresses that were not live.
    pub free_of_unknown: u64,
    /// The same for blocks.
    pub block_free_of_unknown: u64,
    /// Tags of addresses that were not live.
    pub tag_of_unknown: u64,
    /// Blocks in no known allocation.
    pub outside_blocks: u64,
    /// Mappings of handles that memscope did not see created: memory of another process, or multicast.
    pub map_of_unknown: u64,
    /// Frees that the driver refused.
    pub refused_frees: u64,
    /// Refused frees whose memory was given again before the refusal was read.
    pub refused_too_late: u64,
    /// Events beyond what a session can number.
    pub over_limit: u64,
    /// Allocations and blocks of whose stack there was room for the outer part only.
    pub stacks_in_part: u64,
    /// Arrays whose bytes were computed from their descriptions.
    pub computed_sizes: u64,
    /// Arrays of a format whose size is not known: counted with 0 bytes.
    pub unknown_sizes: u64,
    /// Allocations and blocks whose free was never seen: their address was given again.
    pub missed_frees: u64,
    /// Their bytes.
    pub missed_bytes: u64,
}

impl Doubts {
    /// How the bytes of memory are known.
    pub fn note_measure(&mut self, measure: Measure) {
        match measure {
            Measure::Told => {}
            Measure::Computed => self.computed_sizes += 1,
            Measure::Unknown => self.unknown_sizes += 1,
        }
    }

    /// An allocation or block has ended.
    pub fn note_end(&mut self, allocation: &Allocation) {
        if allocation.is(flag::MISSED_FREE) {
            self.missed_frees += 1;
            self.missed_bytes = self.missed_bytes.wrapping_add(allocation.bytes);
        }
    }
}
