//! The writer's side of the shared log, step by step: claim, make room, write, commit.
//!
//! Owns: the order of these steps and the memory orderings, for whatever the log lies in. Refuses: to know what that is: mapped
//! pages of a file in the interposer, the memory of a model checker in the tests of profiler-core. Both run this very code.
//!
//! Growing needs no lock, because allocating the same range twice does no harm: whoever claims a slot beyond what is allocated
//! allocates it. It is done half a chunk ahead by the thread that claims the slot in the middle, so that nobody meets the edge.

use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::log;

/// An atomic number.
pub trait Atomic<T> {
    /// Its value.
    fn load(&self, order: Ordering) -> T;
    /// Replaces it.
    fn store(&self, value: T, order: Ordering);
    /// Adds to it, and returns what it was.
    fn fetch_add(&self, value: T, order: Ordering) -> T;
    /// Raises it to `value` at least, and returns what it was.
    fn fetch_max(&self, value: T, order: Ordering) -> T;
}

macro_rules! of_core {
    ($type:ty, $atomic:ty) => {
        impl Atomic<$type> for $atomic {
            #[inline(always)]
            fn load(&self, order: Ordering) -> $type {
                <$atomic>::load(self, order)
            }

            #[inline(always)]
            fn store(&self, value: $type, order: Ordering) {
                <$atomic>::store(self, value, order);
            }

            #[inline(always)]
            fn fetch_add(&self, value: $type, order: Ordering) -> $type {
                <$atomic>::fetch_add(self, value, order)
            }

            #[inline(always)]
            fn fetch_max(&self, value: $type, order: Ordering) -> $type {
                <$atomic>::fetch_max(self, value, order)
            }
        }
    };
}

of_core!(u32, AtomicU32);
of_core!(u64, AtomicU64);

/// A log as its writer has it: the counters of its header, its slots, and what the system does for it.
pub trait Memory {
    /// Heads of slots, and flags.
    type U32: Atomic<u32>;
    /// Counters.
    type U64: Atomic<u64>;
    /// Slots allocated at a time.
    const CHUNK_SLOTS: u64 = log::CHUNK_SLOTS;
    /// After the file failed to grow, every so many-th event tries again.
    const RETRY_INTERVAL: u64 = 1024;
    /// Slots whose pages are made present at a time.
    const STEP_SLOTS: u64;

    /// [`log::LogHeader::head`].
    fn head(&self) -> &Self::U64;
    /// [`log::LogHeader::allocated`].
    fn allocated(&self) -> &Self::U64;
    /// [`log::LogHeader::dropped`].
    fn dropped(&self) -> &Self::U64;
    /// Not 0 while the file could not grow: claims are then made only where there is room.
    fn full(&self) -> &Self::U32;
    /// Claims refused since the file last failed to grow.
    fn refused(&self) -> &Self::U64;
    /// [`log::Slot::head`].
    ///
    /// # Safety
    /// The slot is allocated.
    unsafe fn slot(&self, slot: u64) -> &Self::U32;
    /// Allocates the file's space of the slots from `from` to `to`; false where that cannot be done, or must not be
    /// because nobody reads the log.
    fn allocate(&self, from: u64, to: u64) -> bool;
    /// Makes the pages of the step that begins with slot `first` present, if that can be done; page faults do it otherwise.
    /// The step is allocated.
    fn populate(&self, first: u64);
    /// Once in a chunk, in its middle: what is done from time to time.
    fn now_and_then(&self) {}
}

/// Claims a slot, has it written and commits it as an event of this kind. The slot, or `None` when there is no room.
///
/// `write` writes everything but the slot's head; the slot is allocated, and the caller's alone.
#[inline(always)]
pub fn append<M: Memory>(memory: &M, kind: u32, write: impl FnOnce(u64)) -> Option<u64> {
    if memory.full().load(Relaxed) != 0 && !has_room(memory) {
        memory.dropped().fetch_add(1, Relaxed);
        return None;
    }
    let slot = memory.head().fetch_add(1, Relaxed);
    if (slot >= memory.allocated().load(Acquire) || slot % M::STEP_SLOTS == M::STEP_SLOTS / 2) && !prepare(memory, slot)
    {
        memory.dropped().fetch_add(1, Relaxed);
        return None;
    }
    write(slot);
    // SAFETY: it was allocated above.
    unsafe { memory.slot(slot) }.store(kind, Release);
    Some(slot)
}

/// While the file is full: whether a claim would find room. Tries to grow now and then, so that recording resumes.
#[cold]
#[inline(never)]
fn has_room<M: Memory>(memory: &M) -> bool {
    let next = memory.head().load(Relaxed);
    if next < memory.allocated().load(Acquire) {
        memory.full().store(0, Relaxed);
        return true;
    }
    let due = memory.refused().fetch_add(1, Relaxed) % M::RETRY_INTERVAL == M::RETRY_INTERVAL - 1;
    due && grow(memory, chunk_end::<M>(next))
}

/// Makes the slot writable, and what follows it soon. False when there is no room for the slot.
#[cold]
#[inline(never)]
fn prepare<M: Memory>(memory: &M, slot: u64) -> bool {
    if slot >= memory.allocated().load(Acquire) {
        if !grow(memory, chunk_end::<M>(slot)) {
            memory.full().store(1, Relaxed);
            return false;
        }
    } else if slot % M::CHUNK_SLOTS == M::CHUNK_SLOTS / 2 {
        // That there is no room for the next chunk is no fault yet: whoever needs it will find out.
        grow(memory, chunk_end::<M>(slot) + M::CHUNK_SLOTS);
        memory.now_and_then();
    }
    let ahead = (slot / M::STEP_SLOTS + 1) * M::STEP_SLOTS;
    if slot % M::STEP_SLOTS == M::STEP_SLOTS / 2 && ahead < memory.allocated().load(Acquire) {
        memory.populate(ahead);
    }
    true
}

/// First slot after the chunk of `slot`.
fn chunk_end<M: Memory>(slot: u64) -> u64 {
    (slot / M::CHUNK_SLOTS + 1) * M::CHUNK_SLOTS
}

/// Makes room up to slot `end`. False when that cannot be done.
pub fn grow<M: Memory>(memory: &M, end: u64) -> bool {
    let allocated = memory.allocated().load(Acquire);
    if allocated >= end {
        return true;
    }
    if !memory.allocate(allocated, end) {
        return false;
    }
    raise(memory.allocated(), end);
    memory.full().store(0, Relaxed);
    true
}

/// Says that the slots below `end` are allocated, and returns how many were before. Never lowers it: whoever is slower than
/// others takes nothing back.
pub fn raise(allocated: &impl Atomic<u64>, end: u64) -> u64 {
    allocated.fetch_max(end, Release)
}
