//! The log in the memory of the model checker, and its writers.
//!
//! Owns: what stands for the file and for the kernel, as little ordered as can be, and how a thread is killed at one of its steps.
//! Refuses: a copy of the steps.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::Ordering::{self, Relaxed};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64};
use memscope_wire::protocol::{Atomic, Memory, append};

/// Slots of a chunk, and of a step.
pub(super) const CHUNK: u64 = 2;
/// Slots that may be written without having been read, when there is no reader.
pub(super) const MOST_UNREAD: u64 = CHUNK;
/// Slots of a log.
pub(super) const SLOTS: usize = 6;

/// The step whose ordering is weakened.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Weak {
    Nothing,
    /// The store that commits a slot.
    Commit,
    /// Raising what is allocated.
    Raise,
    /// The reader's second look.
    SecondLook,
}

/// A log.
pub(super) struct Log {
    pub weak: Weak,
    pub head: AtomicU64,
    pub allocated: AtomicU64,
    pub dropped: AtomicU64,
    /// 1 while there is a reader, as its lock says.
    pub reader: AtomicU32,
    /// How far it was read, as the header says.
    pub read: AtomicU64,
    full: AtomicU32,
    refused: AtomicU64,
    pub slots: [Slot; SLOTS],
    pub chunks: [Chunk; SLOTS / CHUNK as usize],
    /// Chunks that the file system has room for.
    room: u64,
}

/// A slot: its head, and one word for all that is written before it.
#[derive(Default)]
pub(super) struct Slot {
    pub head: AtomicU32,
    pub word: AtomicU64,
}

/// A chunk of the file.
#[derive(Default)]
pub(super) struct Chunk {
    /// 1 when its space is allocated.
    allocated: AtomicU32,
    /// Written by the writers of its slots, taken away by the reader: two that may happen at once are a failure.
    pub space: UnsafeCell<()>,
}

impl Log {
    /// With its first chunk, as a process creates it.
    pub fn new(weak: Weak, room: u64) -> Arc<Log> {
        let log = Log {
            weak,
            head: AtomicU64::new(0),
            allocated: AtomicU64::new(CHUNK),
            dropped: AtomicU64::new(0),
            reader: AtomicU32::new(1),
            read: AtomicU64::new(0),
            full: AtomicU32::new(0),
            refused: AtomicU64::new(0),
            slots: Default::default(),
            chunks: Default::default(),
            room,
        };
        log.chunks[0].allocated.store(1, Relaxed);
        Arc::new(log)
    }

    fn chunk(&self, slot: u64) -> &Chunk {
        &self.chunks[(slot / CHUNK) as usize]
    }

    /// True when the log must not grow to `to`.
    fn is_forsaken(&self, to: u64) -> bool {
        to.saturating_sub(self.read.load(Relaxed)) > MOST_UNREAD && self.reader.load(Relaxed) == 0
    }

    /// Allocates the space of slots; false where there is no room.
    pub fn provide(&self, from: u64, to: u64) -> bool {
        let fits = to / CHUNK <= self.room;
        (from / CHUNK..to / CHUNK)
            .filter(|_| fits)
            .for_each(|chunk| self.chunks[chunk as usize].allocated.store(1, Relaxed));
        fits
    }
}

/// What goes with every record of a slot.
pub(super) fn content(slot: u64) -> u64 {
    1000 + slot
}

/// How many steps a thread has left. Its process is killed at the end of them.
#[derive(Default)]
pub(super) struct Life(Cell<Option<u32>>);

/// What unwinds a thread that was killed.
struct Killed;

impl Life {
    fn step(&self) {
        match self.0.get() {
            None => {}
            Some(0) => resume_unwind(Box::new(Killed)),
            Some(left) => self.0.set(Some(left - 1)),
        }
    }
}

/// An atomic number of the log, as a thread with this life uses it.
pub(super) struct Used<A> {
    log: Arc<Log>,
    of: fn(&Log, usize) -> &A,
    index: usize,
    life: Rc<Life>,
    is_weak: bool,
}

impl<A> Used<A> {
    pub fn new(log: &Arc<Log>, of: fn(&Log, usize) -> &A, index: usize, life: &Rc<Life>, is_weak: bool) -> Used<A> {
        Used { log: Arc::clone(log), of, index, life: Rc::clone(life), is_weak }
    }

    fn at(&self) -> &A {
        self.life.step();
        (self.of)(&self.log, self.index)
    }

    fn order(&self, order: Ordering) -> Ordering {
        if self.is_weak { Relaxed } else { order }
    }
}

macro_rules! of_loom {
    ($type:ty, $atomic:ty) => {
        impl Atomic<$type> for Used<$atomic> {
            fn load(&self, order: Ordering) -> $type {
                self.at().load(order)
            }

            fn store(&self, value: $type, order: Ordering) {
                self.at().store(value, self.order(order));
            }

            fn fetch_add(&self, value: $type, order: Ordering) -> $type {
                self.at().fetch_add(value, self.order(order))
            }

            fn fetch_max(&self, value: $type, order: Ordering) -> $type {
                self.at().fetch_max(value, self.order(order))
            }
        }
    };
}

of_loom!(u32, AtomicU32);
of_loom!(u64, AtomicU64);

/// The log as one thread of the process has it.
pub(super) struct Writer {
    log: Arc<Log>,
    life: Rc<Life>,
    head: Used<AtomicU64>,
    allocated: Used<AtomicU64>,
    dropped: Used<AtomicU64>,
    full: Used<AtomicU32>,
    refused: Used<AtomicU64>,
    slots: Vec<Used<AtomicU32>>,
}

impl Writer {
    pub fn new(log: &Arc<Log>, steps: Option<u32>) -> Writer {
        let life = Rc::new(Life(Cell::new(steps)));
        let weak = log.weak;
        let slot = |index| Used::new(log, |log, index| &log.slots[index].head, index, &life, weak == Weak::Commit);
        Writer {
            head: Used::new(log, |log, _| &log.head, 0, &life, false),
            allocated: Used::new(log, |log, _| &log.allocated, 0, &life, weak == Weak::Raise),
            dropped: Used::new(log, |log, _| &log.dropped, 0, &life, false),
            refused: Used::new(log, |log, _| &log.refused, 0, &life, false),
            full: Used::new(log, |log, _| &log.full, 0, &life, false),
            slots: (0..SLOTS).map(slot).collect(),
            log: Arc::clone(log),
            life: Rc::clone(&life),
        }
    }

    /// Appends events as long as it lives. The slots of those that were committed, and how many were dropped.
    pub fn work(&self, events: u64) -> (Vec<u64>, u64) {
        let (mut committed, mut dropped) = (Vec::new(), 0);
        let all = catch_unwind(AssertUnwindSafe(|| {
            for _ in 0..events {
                let write = |slot| self.write(slot);
                match append(self, 1, write) {
                    Some(slot) => committed.push(slot),
                    None => dropped += 1,
                }
            }
        }));
        if let Err(panic) = all
            && !panic.is::<Killed>()
        {
            resume_unwind(panic);
        }
        (committed, dropped)
    }

    fn write(&self, slot: u64) {
        self.life.step();
        let chunk = self.log.chunk(slot);
        assert_eq!(chunk.allocated.load(Relaxed), 1, "slot {slot} is written, and has no space");
        chunk.space.with(|_| ());
        self.log.slots[slot as usize].word.store(content(slot), Relaxed);
    }
}

impl Memory for Writer {
    type U32 = Used<AtomicU32>;
    type U64 = Used<AtomicU64>;
    const CHUNK_SLOTS: u64 = CHUNK;
    const RETRY_INTERVAL: u64 = 1;
    const STEP_SLOTS: u64 = CHUNK;

    fn head(&self) -> &Self::U64 {
        &self.head
    }

    fn allocated(&self) -> &Self::U64 {
        &self.allocated
    }

    fn dropped(&self) -> &Self::U64 {
        &self.dropped
    }

    fn full(&self) -> &Self::U32 {
        &self.full
    }

    fn refused(&self) -> &Self::U64 {
        &self.refused
    }

    unsafe fn slot(&self, slot: u64) -> &Self::U32 {
        &self.slots[slot as usize]
    }

    fn allocate(&self, from: u64, to: u64) -> bool {
        self.life.step();
        !self.log.is_forsaken(to) && self.log.provide(from, to)
    }

    fn populate(&self, first: u64) {
        assert_eq!(self.log.chunk(first).allocated.load(Relaxed), 1, "slot {first} is touched, and has no space");
    }
}
