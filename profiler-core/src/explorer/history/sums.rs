//! The ledger of one part of the session at every so many changes, and where it was largest in between.
//!
//! Owns: those sums. Refuses: which allocations count in them (`part`), and times that were asked for (`window`).

use crate::allocation::Allocation;
use crate::journal::entry::Nanoseconds;
use crate::ledger::EventRows;

use super::super::part::Part;
use super::{History, Source};

/// The rows, and how many allocations they are of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::explorer) struct Ledger {
    pub rows: EventRows,
    /// Sum of the rows' live bytes.
    pub live: u64,
    /// Allocations and blocks that count as live bytes.
    pub allocations: u64,
}

impl Ledger {
    pub fn turn(&mut self, allocation: &Allocation, ends: bool) {
        let leaf = allocation.is_leaf();
        let (bytes, one) = (if leaf { allocation.requested } else { 0 }, u64::from(leaf));
        if ends {
            self.rows.leave(allocation);
            self.live = self.live.wrapping_sub(bytes);
            self.allocations = self.allocations.wrapping_sub(one);
        } else {
            self.rows.enter(allocation);
            self.live = self.live.wrapping_add(bytes);
            self.allocations = self.allocations.wrapping_add(one);
        }
    }
}

/// A largest state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::explorer) struct Peak {
    /// Position of the change that made it.
    pub order: u32,
    pub time: Nanoseconds,
    pub ledger: Ledger,
    /// Largest reserved bytes, which may have been at another moment.
    pub reserved: u64,
}

impl Peak {
    /// Nothing has changed yet.
    pub fn at(order: u32, time: Nanoseconds, ledger: Ledger) -> Peak {
        Peak { order, time, ledger, reserved: ledger.rows.reserved }
    }

    pub fn include(&mut self, other: &Peak) {
        self.reserved = self.reserved.max(other.reserved);
        if other.ledger.live > self.ledger.live {
            (self.order, self.time, self.ledger) = (other.order, other.time, other.ledger);
        }
    }
}

/// One chunk.
#[derive(Clone, Copy, Debug)]
pub(in crate::explorer) struct Chunk {
    /// Before its first change.
    pub before: Ledger,
    /// The largest after one of its changes; that before it where there is none.
    pub peak: Peak,
    /// Leaves that began before it.
    pub births: u64,
}

/// The sums of a part.
#[derive(Debug)]
pub(in crate::explorer) struct Sums {
    pub part: Part,
    /// As many as the history has, and one for the end.
    chunks: Vec<Chunk>,
}

impl Sums {
    pub fn of(history: &History, source: Source<'_>, part: Part) -> Sums {
        let mut ledger = Ledger::default();
        let counts = |allocation: &Allocation| part.counts(source.model, allocation);
        let mut births = 0;
        let mut chunks = Vec::with_capacity(history.chunks() + 1);
        for chunk in 0..history.chunks() {
            let (before, births_before) = (ledger, births);
            let mut peak: Option<Peak> = None;
            for turn in history.turns(source, chunk) {
                let allocation = source.allocation(turn.id);
                if !counts(allocation) {
                    continue;
                }
                ledger.turn(allocation, turn.ends);
                births += u64::from(!turn.ends && allocation.is_leaf());
                // Only what grows can be a largest state.
                match &mut peak {
                    Some(peak) if turn.ends || ledger.live <= peak.ledger.live => {
                        peak.reserved = peak.reserved.max(ledger.rows.reserved);
                    }
                    Some(peak) => peak.include(&Peak::at(turn.order, turn.time, ledger)),
                    None => peak = Some(Peak::at(turn.order, turn.time, ledger)),
                }
            }
            let begin = history.begin_of(chunk).unwrap_or_default();
            let peak = peak.unwrap_or(Peak::at(history.last_before_chunk(chunk), begin, before));
            chunks.push(Chunk { before, peak, births: births_before });
        }
        chunks.push(Chunk { before: ledger, peak: Peak::at(history.last, Nanoseconds(0), ledger), births });
        Sums { part, chunks }
    }

    /// A chunk, or the end behind the last one.
    pub fn chunk(&self, chunk: usize) -> &Chunk {
        &self.chunks[chunk.min(self.chunks.len() - 1)]
    }

    /// The ledger right after a position.
    pub fn at(&self, history: &History, source: Source<'_>, order: u32) -> (Ledger, u64) {
        let chunk = history.chunk_at(order);
        let Chunk { before: mut ledger, mut births, .. } = *self.chunk(chunk);
        for turn in history.turns(source, chunk).take_while(|turn| turn.order <= order) {
            let allocation = source.allocation(turn.id);
            if self.part.counts(source.model, allocation) {
                ledger.turn(allocation, turn.ends);
                births += u64::from(!turn.ends && allocation.is_leaf());
            }
        }
        (ledger, births)
    }
}
