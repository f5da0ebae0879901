//! The modelled log as memscope reads it.
//!
//! Owns: what a look at a log does, and what must have been read in the end. Refuses: a copy of the steps.

use std::convert::Infallible;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use loom::sync::Arc;
use loom::sync::atomic::fence;
use memscope_wire::Record;
use memscope_wire::log::SLOT_BYTES;
use memscope_wire::protocol::raise;

use super::memory::{CHUNK, Log, Used, Weak, content};
use crate::source::drain::{Drain, Patience, Slots};
use crate::source::growth::by_chunks;

/// The log as memscope reads it.
pub(super) struct Reader {
    pub log: Arc<Log>,
    pub drain: Drain,
    bytes: Vec<u8>,
    pub records: Vec<Record>,
}

impl Reader {
    /// From slot `next` on; a journal has the records before it.
    pub fn new(log: &Arc<Log>, next: u64, records: Vec<Record>) -> Reader {
        Reader { log: Arc::clone(log), drain: Drain::new(next, 0, Some(next / CHUNK)), bytes: Vec::new(), records }
    }

    /// One look at the log, as in [`super::super::log::Log`]: the header, the slots, and what is given back. `gone`: nobody writes.
    pub fn look(&mut self, gone: bool) {
        let head = self.log.head.load(Relaxed);
        self.drain.readable = head.min(self.log.allocated.load(Relaxed));
        let patience = if gone { Patience::None } else { Patience::Wait(Duration::ZERO) };
        let slots = Shared(Arc::clone(&self.log));
        let Ok((first, records)) = self.drain.read(&slots, 100, patience, &mut self.bytes);
        assert!(records.is_empty() || first == self.records.len() as u64, "slots come once, and in their order");
        self.records.extend(records);
        self.drain.release(&slots, gone);
        self.log.read.store(self.drain.next(), Relaxed);
    }

    /// Provides space up to slot `end`, as in growth.rs.
    pub fn grow(&self, end: u64) {
        let log = &self.log;
        let provide = |from, to| {
            let allocated = Used::new(log, |log, _| &log.allocated, 0, &Rc::default(), log.weak == Weak::Raise);
            if log.provide(from, to) { Ok(raise(&allocated, to)) } else { Err(()) }
        };
        // A failure is the writer's to meet.
        let _ = by_chunks(log.allocated.load(Relaxed), end, CHUNK, provide);
    }

    /// Nobody writes any more: reads the rest. What was read is what was committed.
    pub fn finish(mut self, writers: Vec<(Vec<u64>, u64)>) -> Reader {
        self.look(true);
        assert!(self.drain.is_at_end());
        let mut committed: Vec<u64> = writers.iter().flat_map(|(slots, _)| slots).copied().collect();
        committed.sort_unstable();
        let read = |(slot, record): (usize, &Record)| {
            let slot = slot as u64;
            assert!(record.head == 0 || record.words[0] == content(slot), "slot {slot} is torn: {record:?}");
            (record.head != 0).then_some(slot)
        };
        let read: Vec<u64> = self.records.iter().enumerate().filter_map(read).collect();
        assert!(committed.iter().all(|slot| read.contains(slot)), "read: {read:?}, committed: {committed:?}");
        assert_eq!(self.drain.uncommitted, (self.records.len() - read.len()) as u64);
        self
    }
}

struct Shared(Arc<Log>);

impl Slots for Shared {
    type Failure = Infallible;
    const CHUNK_SLOTS: u64 = CHUNK;
    const PROBE_SLOTS: u64 = 1;

    fn copy(&self, first: u64, bytes: &mut [u8]) -> Result<usize, Infallible> {
        let mut copied = 0;
        for (bytes, slot) in bytes.chunks_exact_mut(SLOT_BYTES).zip(&self.0.slots[first as usize..]) {
            // The words before the head: a kernel may copy in any order.
            let words = [slot.word.load(Relaxed), 0, 0, 0, 0, 0];
            let record = Record { head: slot.head.load(Relaxed), thread: 1, ticks: 0, words };
            bytes.copy_from_slice(&record.to_bytes());
            copied += 1;
        }
        Ok(copied)
    }

    fn order(&self) {
        if self.0.weak != Weak::SecondLook {
            fence(Acquire);
        }
    }

    fn give_back(&self, first: u64, end: u64) -> bool {
        for chunk in &self.0.chunks[(first / CHUNK) as usize..(end / CHUNK) as usize] {
            chunk.space.with_mut(|_| ());
        }
        true
    }
}
