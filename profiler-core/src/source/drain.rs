//! The reader's side of the protocol in [`memscope_wire::log`]: slots in their order, and memory given back behind them.
//!
//! Owns: what can be read, and what can be given back, of whatever the slots lie in: a file, or the memory of a model checker
//! (model.rs). Refuses: to wait. A slot that is claimed and not committed ends what can be read until it is committed, or its
//! process is gone, or the log has committed far beyond it for a while; in the last two cases it becomes a record of kind 0 and
//! is counted.
//!
//! Ordering: each batch is read twice. What was committed in the first copy is taken from the second one, so that every
//! word of a record is loaded after its commit was seen, whatever the order in which the kernel copies.

use std::collections::BTreeSet;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use memscope_wire::Record;
use memscope_wire::log::{CHUNK_SLOTS, SLOT_BYTES};

/// How many chunks the log must have got beyond an uncommitted slot before the slot may be given up.
const FAR_CHUNKS: u64 = 2;

/// How a slot that is not committed is met.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patience {
    /// Waited for, until the log has been far beyond it for this long.
    Wait(Duration),
    /// Given up.
    None,
}

/// What slots lie in.
pub(super) trait Slots {
    /// Why they cannot be read.
    type Failure;
    /// Slots given back at a time.
    const CHUNK_SLOTS: u64 = CHUNK_SLOTS;
    /// Slots looked at, from the end, to see that the log has committed so far.
    const PROBE_SLOTS: u64 = 1024;

    /// Copies slots from `first` on, and returns how many there were.
    fn copy(&self, first: u64, bytes: &mut [u8]) -> Result<usize, Self::Failure>;

    /// What was loaded before is ordered before what is loaded afterwards.
    fn order(&self) {
        fence(Ordering::Acquire);
    }

    /// Gives the memory of the slots from `first` to `end` back to the system; false where that cannot be done.
    fn give_back(&self, first: u64, end: u64) -> bool;
}

/// How far a log was read.
pub(super) struct Drain {
    /// Slots below this one are in the log.
    pub readable: u64,
    /// Slots that were given up.
    pub uncommitted: u64,
    /// The slot to be read next.
    next: u64,
    /// Slot that ends what can be read, and since when.
    blocked: Option<(u64, Instant)>,
    /// Chunks with a slot that was given up while its process ran: its writer may still write there.
    kept: BTreeSet<u64>,
    /// Chunks below this one were given back; `None` where none are.
    released: Option<u64>,
}

impl Drain {
    /// From slot `next` on. `released`: the chunk from which on memory is given back; `None` where it never is.
    pub fn new(next: u64, uncommitted: u64, released: Option<u64>) -> Drain {
        Drain { readable: 0, uncommitted, next, blocked: None, kept: BTreeSet::new(), released }
    }

    /// Reads the next records, at most `limit`, in slot order: the slot of the first, and the records. `bytes` is room for the
    /// slots.
    pub fn read<S: Slots>(
        &mut self,
        slots: &S,
        limit: u64,
        patience: Patience,
        bytes: &mut Vec<u8>,
    ) -> Result<(u64, Vec<Record>), S::Failure> {
        let first = self.next;
        let count = self.readable.saturating_sub(first).min(limit);
        if count == 0 {
            return Ok((first, Vec::new()));
        }
        let count = fill(slots, first, count, bytes)?;
        let give_up_below = self.give_up_below(slots, patience)?;
        let mut given_up = Vec::new();
        let mut take = 0;
        for (index, slot) in bytes.chunks_exact(SLOT_BYTES).take(count).enumerate() {
            if slot[..4] == [0; 4] {
                if first + index as u64 >= give_up_below {
                    break;
                }
                given_up.push(index);
            }
            take = index + 1;
        }
        self.note_block(first + take as u64, take < count);
        if take == 0 {
            return Ok((first, Vec::new()));
        }
        slots.order();
        let take = fill(slots, first, take as u64, bytes)?.min(take);
        let taken = bytes[..take * SLOT_BYTES].as_chunks::<SLOT_BYTES>().0;
        let mut records: Vec<Record> = taken.iter().map(Record::from_bytes).collect();
        for index in given_up.into_iter().filter(|index| *index < take) {
            records[index] = Record::default();
            self.uncommitted += 1;
            self.kept.insert((first + index as u64) / S::CHUNK_SLOTS);
        }
        self.next = first + take as u64;
        Ok((first, records))
    }

    /// Uncommitted slots below this one are given up.
    fn give_up_below<S: Slots>(&self, slots: &S, patience: Patience) -> Result<u64, S::Failure> {
        let Patience::Wait(stall) = patience else { return Ok(self.readable) };
        let stalled = self.blocked.is_some_and(|(slot, since)| slot == self.next && since.elapsed() >= stall);
        let far = self.readable.saturating_sub(FAR_CHUNKS * S::CHUNK_SLOTS);
        Ok(if stalled && far > self.next && self.commits_at_end(slots)? { far } else { self.next })
    }

    /// True when one of the last slots is committed.
    fn commits_at_end<S: Slots>(&self, slots: &S) -> Result<bool, S::Failure> {
        let from = self.readable.saturating_sub(S::PROBE_SLOTS);
        let mut bytes = Vec::new();
        let read = fill(slots, from, self.readable - from, &mut bytes)?;
        Ok(bytes.chunks_exact(SLOT_BYTES).take(read).any(|slot| slot[..4] != [0; 4]))
    }

    fn note_block(&mut self, slot: u64, is_blocked: bool) {
        let since = self.blocked.filter(|(at, _)| *at == slot).map_or_else(Instant::now, |(_, since)| since);
        self.blocked = is_blocked.then_some((slot, since));
    }

    /// Gives the memory of chunks that were read whole back to the system. To be called when what was read from them is in
    /// the journal. Chunks in which a living process may still write are kept: a hole there could make its write fail. `gone`: it
    /// lives no more.
    pub fn release<S: Slots>(&mut self, slots: &S, gone: bool) {
        let end = self.next / S::CHUNK_SLOTS;
        let Some(released) = self.released.filter(|released| *released < end) else { return };
        if gone {
            self.kept.clear();
        }
        let mut begin = released;
        let mut works = true;
        for stop in self.kept.range(begin..end).copied().chain([end]) {
            if begin < stop {
                // A file system without holes keeps the bytes until the log is removed.
                works &= slots.give_back(begin * S::CHUNK_SLOTS, stop * S::CHUNK_SLOTS);
            }
            begin = stop + 1;
        }
        self.released = works.then_some(end);
    }

    /// First slot that was not read.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// True when memory is given back.
    pub fn releases(&self) -> bool {
        self.released.is_some()
    }

    /// True when a slot that is not committed has ended the last read.
    pub fn is_blocked(&self) -> bool {
        self.blocked.is_some()
    }

    /// True when all that is readable was read.
    pub fn is_at_end(&self) -> bool {
        self.next >= self.readable
    }
}

/// Reads `count` slots and returns how many there are.
fn fill<S: Slots>(slots: &S, first: u64, count: u64, bytes: &mut Vec<u8>) -> Result<usize, S::Failure> {
    bytes.resize(count as usize * SLOT_BYTES, 0);
    slots.copy(first, bytes)
}
