//! How far the rows of a profile are read, or the changes of a session walked, for whoever waits for them.
//!
//! Owns: the count, which the working threads raise and any thread may look at. Refuses: how long it will take.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts allocations as they are read, changes as they are walked, events as they come.
#[derive(Debug, Default)]
pub struct Reading(AtomicU64);

impl Reading {
    /// How many it were so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// So many more.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }
}
