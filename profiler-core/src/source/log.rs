//! One log: what of it can be read, reading it in slot order, and giving its memory back.
//!
//! Owns: the reader's side of the protocol in [`memscope_wire::log`]; space ahead of the writer is growth.rs's. Refuses: to
//! wait. A slot that is claimed and not committed ends what can be read until it is committed, or its process is gone, or
//! the log has committed far beyond it for a while; in the last two cases it becomes a record of kind 0 and is counted.
//!
//! Ordering: each batch is read twice. What was committed in the first copy is taken from the second one, so that every
//! word of a record is loaded after its commit was seen, whatever the order in which the kernel copies.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use memscope_wire::Record;
use memscope_wire::log::{CHUNK_SLOTS, HEADER_BYTES, MAX_SLOTS, SLOT_BYTES};
use rustix::fs::{FallocateFlags, OFlags, fallocate};

use super::growth::{Growth, give_back_ahead};
use super::header::{Birth, Page, State, write_calibration};
use super::process::{Sight, look};
use super::{Mode, Options, Patience, Resume};
use crate::clock;
use crate::error::{Error, Result};
use crate::journal::entry::{Calibration, Counters, ProcessIndex};

/// How far beyond an uncommitted slot the log must have got before the slot may be given up.
const FAR_SLOTS: u64 = 2 * CHUNK_SLOTS;
/// How often all of /proc is searched for a process that was never seen.
const SEARCH_INTERVAL: Duration = Duration::from_millis(200);
/// Slots looked at, from the end, to see that the log has committed so far.
const PROBE_SLOTS: u64 = 1024;

/// A log that is being read.
pub(super) struct Log {
    pub birth: Birth,
    pub process: ProcessIndex,
    pub calibration: Calibration,
    file: File,
    path: PathBuf,
    state: State,
    growth: Growth,
    /// Slots below this one are in the file.
    readable: u64,
    /// The slot to be read next.
    next: u64,
    uncommitted: u64,
    life: Life,
    /// Slot that ends what can be read, and since when.
    blocked: Option<(u64, Instant)>,
    /// Chunks with a slot that was given up while its process ran: its writer may still write there.
    kept: BTreeSet<u64>,
    /// Chunks below this one were given back.
    released: u64,
    releases: bool,
    shorter_than_it_says: bool,
}

/// What is known of the process behind a log.
struct Life {
    seen_as: Option<u32>,
    /// When all of /proc was searched for it.
    searched: Option<Instant>,
    gone: bool,
    /// Gone for certain, not only invisible and quiet.
    certain: bool,
    /// The head when it last moved, and when that was.
    quiet: (u64, Instant),
}

impl Log {
    /// Opens a log; `None` when it is not ready yet. Errors: [`Error::Io`], [`Error::Version`], [`Error::Format`].
    pub fn open(path: &Path, mode: Mode) -> Result<Option<(Birth, File)>> {
        // A log's folder belongs to the user, but a link or a pipe in it must not send memscope elsewhere or hang it.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let mut open = OpenOptions::new();
        let opened = open.read(true).write(mode == Mode::Record).custom_flags(flags).open(path);
        let file = opened.map_err(Error::io("open the log", path))?;
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Err(Error::format(path, "this is not a file, and so no log"));
        }
        let page = Page::read(&file).map_err(Error::io("read the log", path))?;
        let Some(page) = page.filter(Page::is_ready) else { return Ok(None) };
        Ok(Some((page.birth(path)?, file)))
    }

    pub fn new(birth: Birth, file: File, path: PathBuf, process: ProcessIndex, resume: Resume, mode: Mode) -> Log {
        let first = birth.first;
        let header_only = Calibration {
            first_ticks: first.ticks,
            first_ns: first.monotonic_ns,
            last_ticks: first.ticks,
            last_ns: first.monotonic_ns,
        };
        Log {
            birth,
            process,
            calibration: resume.calibration.unwrap_or(header_only),
            file,
            path,
            state: State { head: 0, allocated: 0, dropped: 0, faults: 0, last: None, closed: false },
            growth: Growth::new(resume.next_slot),
            readable: 0,
            next: resume.next_slot,
            uncommitted: resume.uncommitted,
            life: Life { seen_as: None, searched: None, gone: false, certain: false, quiet: (0, Instant::now()) },
            blocked: None,
            kept: BTreeSet::new(),
            released: resume.next_slot / CHUNK_SLOTS,
            releases: mode == Mode::Record,
            shorter_than_it_says: false,
        }
    }

    /// Looks at the process and then at the header, so that what is readable is final once the process is gone.
    /// `replaced`: another program has taken the process over (exec).
    pub fn poll(&mut self, replaced: bool, options: &Options) -> Result<()> {
        let over = replaced || self.is_of_other_boot();
        let search_all = self.life.searched.is_none_or(|when| when.elapsed() >= SEARCH_INTERVAL);
        if search_all {
            self.life.searched = Some(Instant::now());
        }
        let seen_as = self.life.seen_as;
        let sight = if over { Sight::Nowhere } else { look(&self.birth.identity, seen_as, search_all) };
        let page = Page::read(&self.file).map_err(Error::io("read the log", &self.path))?;
        let page = page.ok_or_else(|| Error::format(&self.path, "the log has been cut shorter than its header"))?;
        self.state = page.state();
        let length = self.file.metadata().map_err(Error::io("read the log", &self.path))?.len();
        let in_file = length.saturating_sub(HEADER_BYTES as u64) / SLOT_BYTES as u64;
        let said = self.state.head.min(self.state.allocated).min(MAX_SLOTS);
        self.shorter_than_it_says |= in_file < said;
        self.readable = said.min(in_file);
        self.note_life(sight, over, options.quiet);
        self.calibrate(options.mode);
        if options.mode == Mode::Record && !self.life.gone {
            self.growth.follow(&self.file, self.birth.capacity, &self.state, self.life.seen_as.is_some());
        }
        Ok(())
    }

    fn is_of_other_boot(&self) -> bool {
        self.birth.boot_id != clock::boot_id()
    }

    fn note_life(&mut self, sight: Sight, over: bool, quiet: Duration) {
        let life = &mut self.life;
        if life.quiet.0 != self.state.head {
            life.quiet = (self.state.head, Instant::now());
            if life.gone {
                // It was taken for dead and still writes: memscope cannot see it from here.
                *life = Life { seen_as: None, gone: false, certain: false, ..*life };
            }
        }
        if let Sight::Runs(pid) = sight {
            life.seen_as = Some(pid);
        } else {
            life.certain = life.seen_as.is_some() || over || self.state.closed;
            life.gone = life.certain || life.quiet.1.elapsed() >= quiet;
        }
    }

    /// Takes the best knowledge of the log's clock: on the boot of the log a reading of now, which is also left in the
    /// header for others; else what the header has. (On its own boot the header is not asked: its two words may be of two
    /// writers.)
    fn calibrate(&mut self, mode: Mode) {
        let unscaled = self.calibration.last_ticks == self.calibration.first_ticks;
        let reading = if !self.is_of_other_boot() {
            let now = if self.life.gone && !unscaled { None } else { clock::read(self.birth.clock) };
            if let Some(now) = now.filter(|now| mode == Mode::Record && now.ticks > self.birth.first.ticks) {
                // A failure here loses nothing: the journal gets the reading too.
                let _ = write_calibration(&self.file, now);
            }
            now
        } else {
            self.state.last
        };
        if let Some(last) = reading.filter(|last| last.ticks > self.calibration.last_ticks) {
            self.calibration.last_ticks = last.ticks;
            self.calibration.last_ns = last.monotonic_ns;
        }
    }

    /// Reads the next records, at most `limit`, in slot order: the slot of the first, and the records. Call
    /// [`Log::poll`] first. `bytes` is room for the slots.
    pub fn read(&mut self, limit: u64, patience: Patience, bytes: &mut Vec<u8>) -> Result<(u64, Vec<Record>)> {
        let first = self.next;
        let count = self.readable.saturating_sub(first).min(limit);
        if count == 0 {
            return Ok((first, Vec::new()));
        }
        let count = self.fill(first, count, bytes)?;
        let give_up_below = self.give_up_below(patience)?;
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
        fence(Ordering::Acquire);
        let take = self.fill(first, take as u64, bytes)?.min(take);
        let slots = bytes[..take * SLOT_BYTES].as_chunks::<SLOT_BYTES>().0;
        let mut records: Vec<Record> = slots.iter().map(Record::from_bytes).collect();
        for index in given_up.into_iter().filter(|index| *index < take) {
            records[index] = Record::default();
            self.uncommitted += 1;
            self.kept.insert((first + index as u64) / CHUNK_SLOTS);
        }
        self.next = first + take as u64;
        Ok((first, records))
    }

    /// Uncommitted slots below this one are given up.
    fn give_up_below(&mut self, patience: Patience) -> Result<u64> {
        let stall = match patience {
            Patience::Wait(stall) if !self.life.gone => stall,
            _ => return Ok(self.readable),
        };
        let stalled = self.blocked.is_some_and(|(slot, since)| slot == self.next && since.elapsed() >= stall);
        let far = self.readable.saturating_sub(FAR_SLOTS);
        Ok(if stalled && far > self.next && self.commits_at_end()? { far } else { self.next })
    }

    /// True when one of the last slots is committed.
    fn commits_at_end(&self) -> Result<bool> {
        let from = self.readable.saturating_sub(PROBE_SLOTS);
        let mut bytes = vec![0; (self.readable - from) as usize * SLOT_BYTES];
        let read = self.read_slots(&mut bytes, from)?;
        Ok(bytes[..read].chunks_exact(SLOT_BYTES).any(|slot| slot[..4] != [0; 4]))
    }

    fn note_block(&mut self, slot: u64, is_blocked: bool) {
        let since = self.blocked.filter(|(at, _)| *at == slot).map_or_else(Instant::now, |(_, since)| since);
        self.blocked = is_blocked.then_some((slot, since));
    }

    /// Reads `count` slots and returns how many the file has.
    fn fill(&self, first: u64, count: u64, bytes: &mut Vec<u8>) -> Result<usize> {
        bytes.resize(count as usize * SLOT_BYTES, 0);
        Ok(self.read_slots(bytes, first)? / SLOT_BYTES)
    }

    fn read_slots(&self, bytes: &mut [u8], first: u64) -> Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            match self.file.read_at(&mut bytes[done..], slot_offset(first) + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("read the log", &self.path)(error)),
            }
        }
        Ok(done)
    }

    /// Gives the memory of chunks that were read whole back to the system. To be called when what was read from them is in
    /// the journal. Chunks in which a living process may still write are kept: a hole there could make its write fail.
    pub fn release(&mut self) {
        let end = self.next / CHUNK_SLOTS;
        if !self.releases || self.released >= end {
            return;
        }
        if self.life.gone {
            self.kept.clear();
        }
        let mut begin = self.released;
        for stop in self.kept.range(begin..end).copied().chain([end]).collect::<Vec<_>>() {
            if begin < stop {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let bytes = (stop - begin) * CHUNK_SLOTS * SLOT_BYTES as u64;
                // A file system without holes keeps the bytes until the log is removed.
                self.releases &= fallocate(&self.file, flags, slot_offset(begin * CHUNK_SLOTS), bytes).is_ok();
            }
            begin = stop + 1;
        }
        self.released = end;
    }

    /// Gives back the space that lies ahead of a writer that is gone for certain.
    pub fn release_ahead(&mut self) {
        if self.releases && self.is_settled() {
            give_back_ahead(&self.file, &self.state);
        }
    }

    /// True when the process was not gone at the last look.
    pub fn is_alive(&self) -> bool {
        self.life.searched.is_some() && !self.life.gone
    }

    /// True when the process is gone and everything was read.
    pub fn is_done(&self) -> bool {
        self.life.gone && self.next >= self.readable
    }

    /// True when nothing can come any more, even from a process that memscope cannot see.
    pub fn is_settled(&self) -> bool {
        self.is_done() && self.life.certain
    }

    pub fn counters(&self) -> Counters {
        let State { dropped, faults, .. } = self.state;
        Counters { dropped, uncommitted: self.uncommitted, faults, ended: self.is_done() }
    }

    /// A sentence, when the file is shorter than its header says.
    pub fn complaint(&self) -> Option<String> {
        let State { head, allocated, .. } = self.state;
        self.shorter_than_it_says.then(|| {
            format!(
                "{}: the log is shorter than its header says ({allocated} slots allocated, {head} claimed, {} there)",
                self.path.display(),
                self.readable
            )
        })
    }
}

/// Where a slot lies in the file, in bytes.
pub(super) fn slot_offset(slot: u64) -> u64 {
    HEADER_BYTES as u64 + slot * SLOT_BYTES as u64
}
