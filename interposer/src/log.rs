//! Appends events to this process's log: claims a slot, writes it, commits it.
//!
//! Owns: the order of the process (one atomic add), the growth of the file, and the counts of what could not be written.
//! Refuses: to wait for memscope, to touch memory whose space in the file is not allocated (a full file system would raise
//! SIGBUS in the program), and to grow past RLIMIT_FSIZE (SIGXFSZ).
//!
//! Growing needs no lock, because allocating the same range twice does no harm: whoever claims a slot beyond
//! [`LogHeader::allocated`] allocates it. It is done half a chunk ahead by the thread that claims the slot in the middle, so
//! that nobody meets the edge. While memscope records it is done further ahead by memscope, and there is nothing left to do
//! but to map the pages.

use core::ffi::c_int;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use memscope_wire::log::{CHUNK_SLOTS, HEADER_BYTES, Refusal, SLOT_BYTES};
use memscope_wire::{Event, LogHeader, Slot};

use crate::state::{self, State};
use crate::thread::{self, Thread};
use crate::{clock, confinement, creation, dlopen, module, system};

/// Slots whose pages are made present in the process at a time (64 KiB), ahead of their use: a page fault in the hook of
/// every 64th event costs more than the event.
const STEP_SLOTS: u64 = 1024;
/// Size of a page of memory.
const PAGE_BYTES: usize = 4096;

/// After the file failed to grow, every so many-th event tries again.
const RETRY_INTERVAL: u64 = 1024;

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
    // SAFETY: the header is mapped as long as the process lives.
    let header = unsafe { &*log };
    if state.full.load(Relaxed) != 0 && !has_room(state, header) {
        header.dropped.0.fetch_add(1, Relaxed);
        return None;
    }
    let slot = header.head.0.fetch_add(1, Relaxed);
    if (slot >= header.allocated.0.load(Acquire) || slot % STEP_SLOTS == STEP_SLOTS / 2)
        && !prepare(state, header, slot)
    {
        header.dropped.0.fetch_add(1, Relaxed);
        return None;
    }
    let (kind, words) = event.encode();
    let ticks = clock::ticks(state.clock.load(Relaxed));
    // SAFETY: the slot lies in the mapping (capacity), its space is allocated, and its claim is ours alone.
    unsafe {
        let place = log.cast::<u8>().add(HEADER_BYTES).cast::<Slot>().add(slot as usize).cast_mut();
        (&raw mut (*place).thread).write(thread);
        (&raw mut (*place).ticks).write(ticks);
        (&raw mut (*place).words).write(words);
        (*place).head.store(kind as u32, Release);
    }
    Some(slot)
}

/// While the file is full: whether a claim would find room. Tries to grow now and then, so that recording resumes.
#[cold]
#[inline(never)]
fn has_room(state: &State, header: &LogHeader) -> bool {
    let next = header.head.0.load(Relaxed);
    if next < header.allocated.0.load(Acquire) {
        state.full.store(0, Relaxed);
        return true;
    }
    let due = state.refused.fetch_add(1, Relaxed) % RETRY_INTERVAL == RETRY_INTERVAL - 1;
    due && grow(state, header, chunk_end(next))
}

/// Makes the slot writable, and what follows it soon. False when there is no room for the slot.
#[cold]
#[inline(never)]
fn prepare(state: &State, header: &LogHeader, slot: u64) -> bool {
    if slot >= header.allocated.0.load(Acquire) {
        if !grow(state, header, chunk_end(slot)) {
            state.full.store(1, Relaxed);
            return false;
        }
    } else if slot % CHUNK_SLOTS == CHUNK_SLOTS / 2 {
        // That there is no room for the next chunk is no fault yet: whoever needs it will find out.
        grow(state, header, chunk_end(slot) + CHUNK_SLOTS);
        settle_lost(state, header);
    }
    let ahead = (slot / STEP_SLOTS + 1) * STEP_SLOTS;
    if slot % STEP_SLOTS == STEP_SLOTS / 2 && ahead < header.allocated.0.load(Acquire) {
        populate(state, header, ahead);
    }
    true
}

/// First slot after the chunk of `slot`.
fn chunk_end(slot: u64) -> u64 {
    (slot / CHUNK_SLOTS + 1) * CHUNK_SLOTS
}

/// Makes the pages of the step that begins with slot `first` present and writable, if the kernel can; page faults do it
/// otherwise. The step lies in the allocated part of the file.
///
/// What is cheaper depends on who allocated the space. Where it was this process, each page is yet to be cleared, one by
/// one (Linux 5.14). Where it was memscope, the pages of its shared memory are ready, and one fault maps 16 of them at once,
/// but only for a read; what it maps is writable, because the memory is shared. The 16 are aligned to addresses, the step is
/// not: its first and its last page stand for all.
pub fn populate(state: &State, header: &LogHeader, first: u64) {
    const MADV_POPULATE_WRITE: i32 = 23;
    let bytes = STEP_SLOTS * SLOT_BYTES as u64;
    // SAFETY: the step lies in the mapping and in the allocated part of the file, and its content does not change.
    unsafe {
        let address = (&raw const *header).cast::<u8>().add(HEADER_BYTES + first as usize * SLOT_BYTES);
        if first < state.grown.load(Relaxed) {
            system::advise(address.cast_mut(), bytes, MADV_POPULATE_WRITE);
        } else {
            for page in [address, address.add(bytes as usize - PAGE_BYTES)] {
                core::hint::black_box((*page.cast::<Slot>()).head.load(Relaxed));
            }
        }
    }
}

/// Allocates the file's space up to slot `end`, and refreshes the clock's calibration. False when that cannot be done.
fn grow(state: &State, header: &LogHeader, end: u64) -> bool {
    header.allocated.0.load(Acquire) >= end
        || creation::with_descriptor(state, |descriptor| grow_file(state, header, end, descriptor)).unwrap_or(false)
}

/// The same, with a descriptor of the file.
pub fn grow_file(state: &State, header: &LogHeader, end: u64, descriptor: c_int) -> bool {
    let allocated = header.allocated.0.load(Acquire);
    if allocated >= end {
        return true;
    }
    let file_end = HEADER_BYTES as u64 + end * SLOT_BYTES as u64;
    if end > state.capacity.load(Relaxed) || file_end > system::limit(libc::RLIMIT_FSIZE) {
        return false;
    }
    let offset = HEADER_BYTES as u64 + allocated * SLOT_BYTES as u64;
    if system::allocate(descriptor, offset, file_end - offset).is_err() {
        return false;
    }
    state.grown.fetch_max(end, Relaxed);
    header.allocated.0.fetch_max(end, Release);
    state.full.store(0, Relaxed);
    refresh_calibration(state, header);
    true
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
/// recorded all the same.
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
    } else if module::driver_came() {
        state::end_without_a_log(if dlopen::bound_deeply() { Refusal::DeepBind } else { Refusal::NotCalled });
    }
}

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".fini_array"))]
static CLOSE: extern "C" fn() = close;
