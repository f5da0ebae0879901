//! A log's space, provided ahead of its writer, so that the profiled program does not pay for it.
//!
//! Owns: how far ahead, and what it takes to do it: allocate, clear, raise [`LogHeader::allocated`]. Refuses: to shorten or to
//! remove anything, to take the last room of the shared memory, and to report a failure: the writer then grows its log
//! itself, and counts what it cannot write.

use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::MetadataExt;
use std::ptr::null_mut;
use std::sync::atomic::AtomicU64;

use memscope_wire::LogHeader;
use memscope_wire::log::{CHUNK_SLOTS, HEADER_BYTES, MAX_SLOTS, SLOT_BYTES};
use memscope_wire::protocol::raise;
use rustix::fs::{FallocateFlags, fallocate, fstatfs};
use rustix::io;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::{Resource, getrlimit};

use super::header::State;
use super::log::slot_offset;

/// A log with fewer slots gets nothing: its first chunk is enough for a program that does little.
const ACTIVE_SLOTS: u64 = CHUNK_SLOTS / 4;
/// Least space ahead of a log that is being written, in slots (2 MiB).
const LEAST_SLOTS: u64 = 2 * CHUNK_SLOTS;
/// Most space ahead of a log, in slots (64 MiB).
const MOST_SLOTS: u64 = 64 * CHUNK_SLOTS;
/// At most this part of what is free is taken at a time.
const FREE_PART: u64 = 4;
/// `f_type` of shared memory (linux/magic.h). On a disk there is nothing to gain: what costs there is not the allocation.
const TMPFS_MAGIC: u32 = 0x0102_1994;

/// How a log is followed by its growth.
pub(super) struct Growth {
    /// The head at the last look; `None` before the first.
    seen: Option<u64>,
    /// What a journal already has of the log.
    begin: u64,
}

impl Growth {
    /// For a log of which a journal already has the slots below `begin`.
    pub fn new(begin: u64) -> Growth {
        Growth { seen: None, begin }
    }

    /// Provides space ahead if the log was written since the last look. `capacity` is the header's. `runs`: the process was
    /// seen; what is in the log of another one at the first look may be all that ever comes.
    pub fn follow(&mut self, file: &File, capacity: u64, state: &State, runs: bool) {
        let before = self.seen.unwrap_or(if runs { self.begin } else { state.head });
        self.seen = Some(state.head);
        let end = wanted(state, state.head.saturating_sub(before), capacity);
        if state.allocated < end {
            // A failure is the writer's to meet and to count.
            let _ = grow(file, state.allocated, end);
        }
    }
}

/// Up to which slot there should be space, when `written` slots were claimed since the last look. A multiple of the chunk.
fn wanted(state: &State, written: u64, capacity: u64) -> u64 {
    if written == 0 || state.head < ACTIVE_SLOTS {
        return 0;
    }
    let ahead = written.saturating_mul(2).clamp(LEAST_SLOTS, MOST_SLOTS);
    // A head far beyond what is allocated is that of a full file system, or nonsense.
    let most = state.allocated.saturating_add(MOST_SLOTS).min(capacity).min(MAX_SLOTS);
    let end = (state.head.min(MAX_SLOTS) + ahead).next_multiple_of(CHUNK_SLOTS).min(most);
    end - end % CHUNK_SLOTS
}

/// Provides the space of the slots from `allocated` to `end`, a chunk at a time: a writer that needs the file meanwhile does
/// not wait long.
fn grow(file: &File, allocated: u64, end: u64) -> io::Result<()> {
    let system = fstatfs(file)?;
    // A log that was deleted grows no more: nobody could see what it takes.
    if system.f_type as u32 != TMPFS_MAGIC || file.metadata().is_ok_and(|metadata| metadata.nlink() == 0) {
        return Ok(());
    }
    // Without a limit of its size, shared memory says that it has no blocks at all.
    let free = if system.f_blocks == 0 { u64::MAX } else { system.f_bavail.saturating_mul(system.f_bsize as u64) };
    // Beyond this limit, which memscope may have inherited, the kernel would end it (SIGXFSZ).
    let largest = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    let end = end.min(allocated.saturating_add(free / FREE_PART / SLOT_BYTES as u64));
    let provide = |from: u64, to: u64| {
        let (offset, bytes) = (slot_offset(from), slot_offset(to) - slot_offset(from));
        // Shared memory provides pages at the first call, and clears those that are not clear yet at the second one.
        // What the writer may have put there by now stays.
        fallocate(file, FallocateFlags::empty(), offset, bytes)?;
        fallocate(file, FallocateFlags::empty(), offset, bytes)?;
        raise_allocated(file, to)
    };
    let largest = largest.saturating_sub(slot_offset(0)) / SLOT_BYTES as u64;
    by_chunks(allocated, end.min(largest), CHUNK_SLOTS, provide)
}

/// Provides the chunks from slot `from` on that end at `end` at the latest, one by one. `provide` returns what was allocated
/// before.
pub(super) fn by_chunks<E>(
    mut from: u64,
    end: u64,
    chunk: u64,
    provide: impl Fn(u64, u64) -> Result<u64, E>,
) -> Result<(), E> {
    loop {
        let to = (from / chunk + 1) * chunk;
        if to > end {
            return Ok(());
        }
        from = to.max(provide(from, to)?);
    }
}

/// Raises the header's `allocated` to `slots` at least, and returns what it was. By a mapping, because only an atomic maximum
/// cannot undo what the writer does at the same moment; for a moment, because a file that is cut shorter would make the
/// access a SIGBUS. It has just been made as long as `slots`.
fn raise_allocated(file: &File, slots: u64) -> io::Result<u64> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe { mmap(null_mut(), HEADER_BYTES, protection, MapFlags::SHARED, file, 0)? };
    // SAFETY: the field lies in the page, is aligned, and all processes use it as an atomic only.
    let allocated = unsafe { &*page.byte_add(offset_of!(LogHeader, allocated)).cast::<AtomicU64>() };
    let before = raise(allocated, slots);
    // SAFETY: the mapping is ours, and nothing refers to it any more.
    unsafe { munmap(page, HEADER_BYTES)? };
    Ok(before)
}

/// Gives back the space behind the last chunk that a writer has begun, when that writer is gone.
pub(super) fn give_back_ahead(file: &File, state: &State) {
    let begun = state.head.min(MAX_SLOTS).next_multiple_of(CHUNK_SLOTS);
    let end = state.allocated.min(MAX_SLOTS);
    if begun < end {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // Where there are no holes, the log keeps its bytes until it is removed.
        let _ = fallocate(file, flags, slot_offset(begun), slot_offset(end) - slot_offset(begun));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LIMIT: u64 = MAX_SLOTS;

    fn state(head: u64, allocated: u64) -> State {
        State { head, allocated, dropped: 0, faults: 0, unread_ns: None, last: None, closed_ns: None }
    }

    #[test]
    fn an_idle_log_and_a_small_one_get_nothing() {
        assert_eq!(wanted(&state(1_000_000, 1_015_808), 0, NO_LIMIT), 0);
        assert_eq!(wanted(&state(10, 16_384), 10, NO_LIMIT), 0);
    }

    #[test]
    fn an_active_log_gets_two_chunks_or_twice_what_was_written_within_bounds() {
        assert_eq!(wanted(&state(5_000, 16_384), 1, NO_LIMIT), 49_152, "5,000 and two chunks, in whole chunks");
        assert_eq!(wanted(&state(163_840, 163_840), 100_000, NO_LIMIT), 163_840 + 212_992);
        assert_eq!(wanted(&state(16_384_000, 16_384_000), 5_000_000, NO_LIMIT), 16_384_000 + 1_048_576, "64 MiB");
    }

    #[test]
    fn nobody_grows_beyond_the_writers_mapping() {
        assert_eq!(wanted(&state(16_384, 16_384), 16_384, 40_000), 32_768);
        assert_eq!(wanted(&state(16_384, 16_384), 16_384, 0), 0);
    }

    #[test]
    fn nonsense_in_a_header_allocates_no_more_than_the_bound() {
        for head in [1 << 29, u64::MAX] {
            assert!(wanted(&state(head, 16_384), head, u64::MAX) <= 16_384 + 1_048_576);
        }
        assert!(wanted(&state(u64::MAX, u64::MAX), u64::MAX, u64::MAX) <= 1 << 30);
    }
}
