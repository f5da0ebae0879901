//! Appends events to this process's log: claims a slot, writes it, commits it.
//!
//! Owns: where the log lies, the growth of its file, and the counts of what could not be written.
//! Refuses: to wait for memscope, to touch memory whose space in the file is not allocated (a full file system would raise
//! SIGBUS in the program), to grow past RLIMIT_FSIZE (SIGXFSZ), and to fill memory for nobody: when memscope is gone.
//!
//! The steps and their order are [`memscope_wire::protocol`]'s. While memscope records, space is provided ahead by memscope, and
//! there is nothing left to do but to map the pages.

use core::ffi::c_int;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};
use memscope_wire::log::{HEADER_BYTES, MOST_UNREAD_SLOTS, SLOT_BYTES};
use memscope_wire::protocol::{self, Memory};
use memscope_wire::{Event, LogHeader, Slot};

use crate::state::{self, State};
use crate::thread::{self, Thread};
use crate::{clock, confinement, creation, system};

/// Slots whose pages are made present in the process at a time (64 KiB), ahead of their use: a page fault in the hook of
/// every 64th event costs more than the event.
const STEP_SLOTS: u64 = 1024;
/// Size of a page of memory.
const PAGE_BYTES: usize = 4096;

/// The log of this process, as the protocol writes it.
#[derive(Clone, Copy)]
pub struct Mapped<'a> {
    state: &'a State,
    log: *const LogHeader,
    header: &'a LogHeader,
}

impl<'a> Mapped<'a> {
    /// # Safety
    /// `log` is the log of `state`, mapped as long as the process lives, with room for the state's capacity.
    #[inline(always)]
    pub unsafe fn new(state: &'a State, log: *const LogHeader) -> Mapped<'a> {
        // SAFETY: the caller's promise.
        Mapped { state, log, header: unsafe { &*log } }
    }

    /// Allocates the file's space of the slots from `from` to `to`, with a descriptor of the file, and refreshes the clock's
    /// calibration. False where that cannot be done.
    pub fn allocate_in(&self, from: u64, to: u64, descriptor: c_int) -> bool {
        let Mapped { state, header, .. } = *self;
        let file_end = HEADER_BYTES as u64 + to * SLOT_BYTES as u64;
        if to > state.capacity.load(Relaxed) || file_end > system::limit(libc::RLIMIT_FSIZE) {
            return false;
        }
        let offset = HEADER_BYTES as u64 + from * SLOT_BYTES as u64;
        if system::allocate(descriptor, offset, file_end - offset).is_err() {
            return false;
        }
        state.grown.fetch_max(to, Relaxed);
        refresh_calibration(state, header);
        true
    }

    /// True when the log must not grow to `to`: so much of it was not read, and there is nobody who could. Of the first event
    /// that this loses it notes the time: `from` is where the log ends, and without a claim beyond it none is lost yet.
    fn is_forsaken(&self, from: u64, to: u64) -> bool {
        let header = self.header;
        if to.saturating_sub(header.read.0.load(Relaxed)) <= MOST_UNREAD_SLOTS || !creation::has_no_reader(self.state) {
            return false;
        }
        if header.head.0.load(Relaxed) > from && header.unread_nanoseconds.0.load(Relaxed) == 0 {
            let now = clock::nanoseconds(libc::CLOCK_MONOTONIC);
            let _ = header.unread_nanoseconds.0.compare_exchange(0, now, AcqRel, Relaxed);
        }
        true
    }

    /// Where a slot is.
    ///
    /// # Safety
    /// It lies in the mapping.
    #[inline(always)]
    unsafe fn place(&self, slot: u64) -> *mut Slot {
        // SAFETY: the caller's promise.
        unsafe { self.log.cast::<u8>().add(HEADER_BYTES).cast::<Slot>().add(slot as usize).cast_mut() }
    }
}

impl Memory for Mapped<'_> {
    type U32 = AtomicU32;
    type U64 = AtomicU64;
    const STEP_SLOTS: u64 = STEP_SLOTS;

    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        &self.header.head.0
    }

    #[inline(always)]
    fn allocated(&self) -> &AtomicU64 {
        &self.header.allocated.0
    }

    #[inline(always)]
    fn dropped(&self) -> &AtomicU64 {
        &self.header.dropped.0
    }

    #[inline(always)]
    fn full(&self) -> &AtomicU32 {
        &self.state.full
    }

    fn refused(&self) -> &AtomicU64 {
        &self.state.refused
    }

    #[inline(always)]
    unsafe fn slot(&self, slot: u64) -> &AtomicU32 {
        // SAFETY: what is allocated lies in the mapping.
        unsafe { &(*self.place(slot)).head }
    }

    fn allocate(&self, from: u64, to: u64) -> bool {
        !self.is_forsaken(from, to)
            && creation::with_descriptor(self.state, |descriptor| self.allocate_in(from, to, descriptor))
                .unwrap_or(false)
    }

    /// What is cheaper depends on who allocated the space. Where it was this process, each page is yet to be cleared, one by
    /// one (Linux 5.14). Where it was memscope, the pages of its shared memory are ready, and one fault maps 16 of them at
    /// once, but only for a read; what it maps is writable, because the memory is shared. The 16 are aligned to addresses, the
    /// step is not: its first and its last page stand for all.
    fn populate(&self, first: u64) {
        const MADV_POPULATE_WRITE: i32 = 23;
        let bytes = STEP_SLOTS * SLOT_BYTES as u64;
        // SAFETY: the step lies in the mapping and in the allocated part of the file, and its content does not change.
        unsafe {
            let address = self.place(first).cast::<u8>();
            if first < self.state.grown.load(Relaxed) {
                system::advise(address, bytes, MADV_POPULATE_WRITE);
            } else {
                for page in [address, address.add(bytes as usize - PAGE_BYTES)] {
                    core::hint::black_box((*page.cast::<Slot>()).head.load(Relaxed));
                }
            }
        }
    }

    fn now_and_then(&self) {
        settle_lost(self.state, self.header);
    }
}

/// Appends `event` in the name of the calling thread. The slot, or `None` when nothing is recorded or there is no room.
#[inline(always)]
pub fn append(event: &Event) -> Option<u64> {
    let (state, log) = state::recording()?;
    let thread = thread::current();
    if thread.generation.get() != state.generation.load(Relaxed) {
        introduce(state, log, thread);
    }
    // SAFETY: `recording` gives the mapped log.
    unsafe { write(state, log, thread.id.get(), event) }
}

/// The first event of a thread in this log.
#[cold]
#[inline(never)]
pub fn introduce(state: &State, log: *const LogHeader, thread: &Thread) {
    thread.id.set(thread.number());
    thread.generation.set(state.generation.load(Relaxed));
    thread.recorded_scope.set(0);
    thread.recorded_stack.set(0);
    thread.context.set(0);
    thread.recorded_owner.set(0);
    // SAFETY: the caller's log is mapped.
    unsafe { write(state, log, thread.id.get(), &Event::Thread) };
}

/// Claims a slot, writes the event and commits it.
///
/// # Safety
/// `log` is the mapped log of `state`.
#[inline(always)]
pub unsafe fn write(state: &State, log: *const LogHeader, thread: u32, event: &Event) -> Option<u64> {
    // SAFETY: the caller's promise.
    let mapped = unsafe { Mapped::new(state, log) };
    let (kind, words) = event.encode();
    protocol::append(&mapped, kind as u32, |slot| {
        let ticks = clock::ticks(state.clock.load(Relaxed));
        // SAFETY: the slot lies in the mapping (capacity), its space is allocated, and its claim is ours alone.
        unsafe {
            let place = mapped.place(slot);
            (&raw mut (*place).thread).write(thread);
            (&raw mut (*place).ticks).write(ticks);
            (&raw mut (*place).words).write(words);
        }
    })
}

/// Stores a second calibration of the clock in the header.
pub fn refresh_calibration(state: &State, header: &LogHeader) {
    let (ticks, nanoseconds) = clock::calibrate(state.clock.load(Relaxed));
    header.last_ticks.0.store(ticks, Relaxed);
    header.last_nanoseconds.0.store(nanoseconds, Release);
}

/// Moves events that were lost before there was a header into its count.
pub fn settle_lost(state: &State, header: &LogHeader) {
    header.dropped.0.fetch_add(state.lost.swap(0, Relaxed), Relaxed);
}

/// Counts a fault of the interposer itself, if there is a log to count it in. Opens none: a look-up may come here before the
/// program's first CUDA call.
#[cold]
pub fn fault() {
    if let Some((_, log)) = state::already_recording() {
        // SAFETY: `already_recording` gives the mapped log.
        unsafe { &*log }.faults.0.fetch_add(1, Relaxed);
    }
}

/// At an orderly exit: the last calibration, and the time. Events that come later (destructors of other libraries) are
/// recorded all the same. A process without a log makes no call of the kernel here: it may have given itself a filter that nobody saw.
extern "C" fn close() {
    if let Some((state, log)) = state::already_recording() {
        // SAFETY: `already_recording` gives the mapped log.
        let header = unsafe { &*log };
        settle_lost(state, header);
        if !confinement::is_confined() {
            refresh_calibration(state, header);
        }
        // In a program that filters its system calls: when it began to.
        header.closed_nanoseconds.0.store(header.last_nanoseconds.0.load(Relaxed), Release);
    }
}

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".fini_array"))]
static CLOSE: extern "C" fn() = close;
