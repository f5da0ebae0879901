//! The page that a forked child does not inherit, and the one decision in it: is this process recorded, and where.
//!
//! Owns: everything about the log that is not in the log itself. It lies in a mapping that the kernel hands to a child as
//! zeroes (MADV_WIPEONFORK), whether the child was made by fork or by a bare clone: a child therefore finds "no log yet" and
//! opens its own. A vfork child shares its parent's memory and so its log. Refuses: to keep anything that a child could
//! mistake for its own elsewhere; the thread's words (thread.rs) carry the log's generation for that reason.

use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64};
use memscope_wire::LogHeader;
use memscope_wire::log::{CLOCK_TSC, Refusal};

use crate::creation::{self, Path};
use crate::names::Sent;
use crate::{clock, confinement, log, process_name, stack, system};

/// What is known about this process's log. All zero means: nothing yet.
#[repr(C)]
pub struct State {
    /// The mapped log; null until it is ready for everyone.
    pub log: AtomicPtr<LogHeader>,
    /// Never 0 once a log is open, and different in every process: what a thread compares its own words with.
    pub generation: AtomicU64,
    /// The log's clock.
    pub clock: AtomicU32,
    /// 1 while the file could not grow: claims are then made only where there is room.
    pub full: AtomicU32,
    /// One bit for each device ordinal that was announced in the log.
    pub devices: AtomicU64,
    /// How many contexts have ended.
    pub contexts_ended: AtomicU32,
    /// Primary contexts that are alive, by device ordinal; 0 where there is none.
    pub primaries: [AtomicU64; MOST_DEVICES],
    /// 1 once a stream has captured: stream-ordered calls may then be nodes of a graph.
    pub captures: AtomicU32,
    /// 1 once a graph has a node that allocates.
    pub graph_memory: AtomicU32,
    /// What the driver held for graphs when it was asked last, by device ordinal.
    pub graph_bytes: [AtomicU64; MOST_DEVICES],
    /// The pools of stream-ordered memory that were met.
    pub pools: [Pool; MOST_POOLS],
    /// When pools were asked what they keep, in ticks.
    pub pools_asked: AtomicU64,
    /// Slots that the mapping has room for.
    pub capacity: AtomicU64,
    /// Slots below this one may lie in space that this process has allocated: the kernel has not cleared its pages yet.
    pub grown: AtomicU64,
    /// Events lost while there was no header to count them in.
    pub lost: AtomicU64,
    /// Claims refused since the file last failed to grow.
    pub refused: AtomicU64,
    /// Descriptor of the log's file, if the program has not closed it.
    pub descriptor: AtomicI32,
    /// 1 when the kernel wipes this page in a child, so that the log's mapping may be withheld from it too.
    pub wiped_on_fork: AtomicU32,
    /// Device number of the log's file.
    pub file_device: AtomicU64,
    /// Inode of the log's file.
    pub file_inode: AtomicU64,
    /// One of `UNDECIDED`, `OPEN`, `OFF`, or `OPENING` with the thread that opens.
    decision: AtomicU64,
    /// Path of the log's file. Written only by the thread that opens, before `log` is set.
    pub path: UnsafeCell<Path>,
    /// Path of the file that tells whether anybody reads the log. Written as `path` is.
    pub reader_path: UnsafeCell<Path>,
    /// Names that are in the log already.
    pub sent: Sent,
}

// SAFETY: every field is atomic except the paths, which have one writer before and only readers after the release of `log`.
unsafe impl Sync for State {}

/// A pool of stream-ordered memory.
#[repr(C)]
pub struct Pool {
    /// Its handle; 0 is a vacant place.
    pub handle: AtomicU64,
    /// Ordinal of its device.
    pub device: AtomicU32,
    /// What the log knows it to keep beyond what is allocated from it.
    pub kept: AtomicU64,
}

/// Pools that are asked what they keep.
pub const MOST_POOLS: usize = 16;

/// Devices whose announcement and primary context are remembered.
pub const MOST_DEVICES: usize = u64::BITS as usize;

const UNDECIDED: u64 = 0;
const OPEN: u64 = 1;
const OFF: u64 = 2;
const OPENING: u64 = 1 << 32;

/// How long a thread waits for another one that is opening the log: it takes well under a millisecond.
const PATIENCE_NANOSECONDS: u64 = 1_000_000_000;

static PAGE: AtomicPtr<State> = AtomicPtr::new(null_mut());

/// The state when this process has a log, opening one at the first call. `None` when nothing is recorded.
#[inline(always)]
pub fn recording() -> Option<(&'static State, *const LogHeader)> {
    let page = PAGE.load(Acquire);
    if !page.is_null() {
        // SAFETY: the page is never unmapped.
        let state = unsafe { &*page };
        let log = state.log.load(Acquire);
        if !log.is_null() {
            return Some((state, log));
        }
    }
    begin()
}

/// The state if a log is open; opens none.
pub fn already_recording() -> Option<(&'static State, *const LogHeader)> {
    // SAFETY: the page is never unmapped.
    let state = unsafe { PAGE.load(Acquire).as_ref() }?;
    let log = state.log.load(Acquire);
    (!log.is_null()).then_some((state, log.cast_const()))
}

/// When the process cannot have a log later: says why, if one was asked for and nobody has tried to open it.
pub fn never_record(refusal: Refusal) {
    if creation::is_asked_for()
        && !confinement::is_confined()
        && let Some(state) = page()
        && state.decision.compare_exchange(UNDECIDED, OFF, AcqRel, Acquire).is_ok()
    {
        creation::leave(state, refusal);
    }
}

/// Opens the log if it is not open, and takes what will be needed of the clocks later, when no call may be made.
pub fn get_ready_for_a_filter() {
    if let Some((state, log)) = recording() {
        // SAFETY: `recording` gives the mapped log.
        log::refresh_calibration(state, unsafe { &*log });
        if state.clock.load(Relaxed) != CLOCK_TSC {
            stop_the_clock();
        }
    }
}

/// Lets the log's time stand still, if there is a log: reading its clock would end the program from now on.
pub fn stop_the_clock() {
    if let Some((state, _)) = already_recording() {
        state.clock.store(clock::stop(state.clock.load(Relaxed)), Relaxed);
    }
}

#[cold]
#[inline(never)]
fn begin() -> Option<(&'static State, *const LogHeader)> {
    if confinement::is_confined() {
        return None;
    }
    let state = page()?;
    let decision = state.decision.load(Acquire);
    if decision == OFF {
        return None;
    }
    let me = OPENING | system::thread_id() as u64;
    match state.decision.compare_exchange(UNDECIDED, me, AcqRel, Acquire) {
        Ok(_) => {
            let opened = creation::create(state);
            state.decision.store(if opened { OPEN } else { OFF }, Release);
            if opened {
                stack::begin();
                process_name::begin();
            }
        }
        // This is a signal handler that has interrupted the opening: it cannot wait for itself.
        Err(other) if other == me => {
            state.lost.fetch_add(1, Relaxed);
            return None;
        }
        Err(_) => wait(state),
    }
    let log = state.log.load(Acquire);
    (!log.is_null()).then_some((state, log.cast_const()))
}

/// Waits until another thread has opened the log: the only wait in this library, once in a process, and bounded.
fn wait(state: &State) {
    let begin = clock::nanoseconds(libc::CLOCK_MONOTONIC);
    while state.decision.load(Acquire) >= OPENING {
        if clock::nanoseconds(libc::CLOCK_MONOTONIC).wrapping_sub(begin) > PATIENCE_NANOSECONDS {
            state.lost.fetch_add(1, Relaxed);
            return;
        }
        system::yield_now();
    }
}

/// The page, made at the first call.
fn page() -> Option<&'static State> {
    const BYTES: u64 = size_of::<State>() as u64;
    let known = PAGE.load(Acquire);
    if !known.is_null() {
        // SAFETY: the page is never unmapped.
        return Some(unsafe { &*known });
    }
    let fresh = system::map_zeroes(BYTES)?.cast::<State>();
    // SAFETY: the mapping is new, and wiping it in a child is what it is for.
    let wiped = unsafe { system::advise(fresh.cast(), BYTES, libc::MADV_WIPEONFORK) };
    // SAFETY: the mapping is large enough, aligned, and zero is a valid State.
    unsafe { &*fresh }.wiped_on_fork.store(wiped as u32, Relaxed);
    match PAGE.compare_exchange(null_mut(), fresh, AcqRel, Acquire) {
        Ok(_) => {
            if !wiped {
                // SAFETY: the handler touches only the page. Kernels before 4.14 need it.
                unsafe { libc::pthread_atfork(None, None, Some(forget)) };
            }
            // SAFETY: never unmapped from here on.
            Some(unsafe { &*fresh })
        }
        Err(other) => {
            // SAFETY: nobody has seen this mapping.
            unsafe { system::unmap(fresh.cast(), BYTES) };
            // SAFETY: the page of the thread that was faster, never unmapped.
            Some(unsafe { &*other })
        }
    }
}

/// What the kernel does to the page in a child, where it cannot: runs in the child, which has one thread.
unsafe extern "C" fn forget() {
    // SAFETY: the page is never unmapped.
    let Some(state) = (unsafe { PAGE.load(Acquire).as_ref() }) else { return };
    state.log.store(null_mut(), Relaxed);
    state.generation.store(0, Relaxed);
    state.full.store(0, Relaxed);
    state.devices.store(0, Relaxed);
    state.primaries.iter().for_each(|primary| primary.store(0, Relaxed));
    state.graph_bytes.iter().for_each(|bytes| bytes.store(0, Relaxed));
    state.pools.iter().for_each(|pool| {
        pool.handle.store(0, Relaxed);
        pool.kept.store(0, Relaxed);
    });
    state.grown.store(0, Relaxed);
    state.lost.store(0, Relaxed);
    state.refused.store(0, Relaxed);
    state.decision.store(UNDECIDED, Release);
    state.sent.clear();
}
