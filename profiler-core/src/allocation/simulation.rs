//! What a simulated run missed: functions that are not simulated, and values that were read and never computed.
//!
//! Owns: the counts, over all processes. Refuses: judgement (`findings`).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts of simulated CUDA libraries; none where a program used none.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Simulation {
    /// A process computed nothing, because its CUDA libraries were simulated.
    pub not_computed: bool,
    /// Calls of functions that are not simulated, by name.
    pub missed: BTreeMap<u32, u64>,
    /// Reads of the device, by the program's line.
    pub reads: BTreeMap<u32, Reads>,
    /// The line that was the last to read what a GPU would have computed; 0 where it is not known.
    pub last: u32,
}

/// Reads of the device, at one line or at several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Reads {
    /// How many.
    pub count: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Of those reads, the ones that got zeros in the place of what a GPU would have computed.
    pub uncomputed: u64,
    /// Bytes of these.
    pub uncomputed_bytes: u64,
}

impl Reads {
    /// One more read.
    pub fn add(&mut self, bytes: u64, known: bool) {
        let (uncomputed, uncomputed_bytes) = if known { (0, 0) } else { (1, bytes) };
        self.merge(&Reads { count: 1, bytes, uncomputed, uncomputed_bytes });
    }

    /// Fewer reads.
    pub fn remove(&mut self, some: &Reads) {
        self.count = self.count.saturating_sub(some.count);
        self.bytes = self.bytes.saturating_sub(some.bytes);
        self.uncomputed = self.uncomputed.saturating_sub(some.uncomputed);
        self.uncomputed_bytes = self.uncomputed_bytes.saturating_sub(some.uncomputed_bytes);
    }

    /// More reads.
    pub fn merge(&mut self, more: &Reads) {
        self.count = self.count.saturating_add(more.count);
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.uncomputed = self.uncomputed.saturating_add(more.uncomputed);
        self.uncomputed_bytes = self.uncomputed_bytes.saturating_add(more.uncomputed_bytes);
    }
}
