//! The writer's steps on real threads, in memory of this process: what a look sees committed is whole.
//!
//! Owns: nothing that the model of profiler-core does not have too. It is for Miri and for ThreadSanitizer (tests/sanitizers),
//! which watch every access to memory: the words of a slot are written and read without atomics.

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::{self, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use memscope_wire::protocol::{Atomic, Memory, append};

const CHUNK: u64 = 8;
const WRITERS: u64 = 3;
/// Fewer where each access is interpreted.
const EVENTS: u64 = if cfg!(miri) { 8 } else { 1_000 };

#[derive(Default)]
struct Slot<H> {
    head: H,
    words: UnsafeCell<[u64; 6]>,
}

/// A head that is stored without any order: the fault that a checker must find.
#[derive(Default)]
struct Unordered(AtomicU32);

impl Atomic<u32> for Unordered {
    fn load(&self, order: Ordering) -> u32 {
        self.0.load(order)
    }

    fn store(&self, value: u32, _: Ordering) {
        self.0.store(value, Relaxed);
    }

    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_add(value, order)
    }

    fn fetch_max(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_max(value, order)
    }
}

#[derive(Default)]
struct Log<H> {
    head: AtomicU64,
    allocated: AtomicU64,
    dropped: AtomicU64,
    full: H,
    refused: AtomicU64,
    slots: Vec<Slot<H>>,
    /// By chunk: its space is there.
    space: Vec<AtomicBool>,
}

// SAFETY: a slot's words are written by who has claimed it, and read by others once its head was seen with `Acquire`.
unsafe impl<H: Sync> Sync for Log<H> {}

impl<H: Atomic<u32>> Memory for Log<H> {
    type U32 = H;
    type U64 = AtomicU64;
    const CHUNK_SLOTS: u64 = CHUNK;
    const STEP_SLOTS: u64 = CHUNK;

    fn head(&self) -> &AtomicU64 {
        &self.head
    }

    fn allocated(&self) -> &AtomicU64 {
        &self.allocated
    }

    fn dropped(&self) -> &AtomicU64 {
        &self.dropped
    }

    fn full(&self) -> &H {
        &self.full
    }

    fn refused(&self) -> &AtomicU64 {
        &self.refused
    }

    unsafe fn slot(&self, slot: u64) -> &H {
        &self.slots[slot as usize].head
    }

    fn allocate(&self, from: u64, to: u64) -> bool {
        let fits = to <= self.slots.len() as u64;
        (from / CHUNK..to / CHUNK).filter(|_| fits).for_each(|chunk| self.space[chunk as usize].store(true, Relaxed));
        fits
    }

    fn populate(&self, first: u64) {
        assert!(self.space[(first / CHUNK) as usize].load(Relaxed));
    }
}

fn log<H: Default>(slots: u64) -> Log<H> {
    Log {
        slots: (0..slots).map(|_| Slot::default()).collect(),
        space: (0..slots / CHUNK).map(|_| AtomicBool::new(false)).collect(),
        ..Log::default()
    }
}

/// Three writers, and a reader meanwhile. How many were written, and how many were read.
fn run<H: Atomic<u32> + Sync>(log: &Log<H>) -> (u64, u64) {
    let write = |writer: u64| {
        let one = |event| {
            append(log, 1, |slot| {
                assert!(log.space[(slot / CHUNK) as usize].load(Relaxed), "slot {slot} has no space");
                // SAFETY: the slot is this thread's until it is committed.
                unsafe { *log.slots[slot as usize].words.get() = [writer, event, slot, slot, slot, slot] };
            })
        };
        (0..EVENTS).filter_map(one).count() as u64
    };
    let read = || {
        let mut next = [0; WRITERS as usize];
        let mut read = 0;
        for (slot, place) in log.slots.iter().enumerate() {
            while place.head.load(Acquire) == 0 {
                if slot as u64 >= log.allocated.load(Acquire) && log.full.load(Relaxed) != 0 || read == WRITERS * EVENTS
                {
                    return read;
                }
                std::thread::yield_now();
            }
            // SAFETY: it was committed, and nobody writes it again.
            let [writer, event, rest @ ..] = unsafe { *place.words.get() };
            assert_eq!(rest, [slot as u64; 4]);
            assert_eq!(event, next[writer as usize], "the events of a thread keep their order");
            next[writer as usize] += 1;
            read += 1;
        }
        read
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        let read = scope.spawn(read);
        let written = writers.into_iter().map(|writer| writer.join().expect("a writer")).sum();
        (written, read.join().expect("the reader"))
    })
}

#[test]
fn what_threads_write_is_read_whole_and_once() {
    let log = log::<AtomicU32>((WRITERS * EVENTS).next_multiple_of(CHUNK) + CHUNK);
    assert_eq!(run(&log), (WRITERS * EVENTS, WRITERS * EVENTS));
    assert_eq!(log.dropped.load(Relaxed), 0);
}

#[test]
fn what_finds_no_room_is_counted() {
    let log = log::<AtomicU32>(CHUNK);
    assert_eq!(run(&log), (CHUNK, CHUNK));
    assert_eq!(log.dropped.load(Relaxed), WRITERS * EVENTS - CHUNK);
}

#[test]
#[ignore = "a race for a checker to find: it fails under one, and passes without"]
fn a_commit_without_its_order() {
    run(&log::<Unordered>((WRITERS * EVENTS).next_multiple_of(CHUNK) + CHUNK));
}
