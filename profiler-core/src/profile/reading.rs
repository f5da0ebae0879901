//! How far the rows of a profile are read, for whoever waits for them.
//!
//! Owns: the count, which the reading threads raise and any thread may look at. Refuses: how long it will take.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts allocations as they are read.
#[derive(Debug, Default)]
pub struct Reading(AtomicU64);

impl Reading {
    /// How many allocations have been read.
    pub fn allocations(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// So many more have been read.
    pub fn add(&self, allocations: u64) {
        self.0.fetch_add(allocations, Ordering::Relaxed);
    }
}
