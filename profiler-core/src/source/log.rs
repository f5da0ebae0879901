//! One log: its file, its header, and the life of the process behind it.
//!
//! Owns: what is known of the process, and of the log's clock. Reading it in slot order is drain.rs's, space ahead of the writer
//! growth.rs's. Refuses: to wait.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use memscope_wire::Record;
use memscope_wire::log::{CHUNK_SLOTS, HEADER_BYTES, MAX_SLOTS, SLOT_BYTES};
use rustix::fs::{FallocateFlags, OFlags, fallocate};

use super::drain::{Drain, Patience, Slots};
use super::growth::{Growth, give_back_ahead};
use super::header::{Birth, Page, State, write_calibration, write_read};
use super::process::{Sight, look};
use super::{Mode, Options, Resume};
use crate::clock;
use crate::error::{Error, Result};
use crate::journal::entry::{Calibration, Counters, ProcessIndex};

/// How often all of /proc is searched for a process that was never seen.
const SEARCH_INTERVAL: Duration = Duration::from_millis(200);
/// A log that is being read.
pub(super) struct Log {
    pub birth: Birth,
    pub process: ProcessIndex,
    pub calibration: Calibration,
    slots: FileSlots,
    state: State,
    growth: Growth,
    drain: Drain,
    /// What the header says of how far it was read; `None` where nothing may be written there.
    told_read: Option<u64>,
    life: Life,
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
    /// The head at the first look.
    began: Option<u64>,
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
        let releases = (mode == Mode::Record).then_some(resume.next_slot / CHUNK_SLOTS);
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
            slots: FileSlots { file, path },
            state: State { head: 0, allocated: 0, dropped: 0, faults: 0, unread_ns: None, last: None, closed_ns: None },
            growth: Growth::new(resume.next_slot),
            drain: Drain::new(resume.next_slot, resume.uncommitted, releases),
            told_read: (mode == Mode::Record).then_some(0),
            life: Life {
                seen_as: None,
                searched: None,
                gone: false,
                certain: false,
                quiet: (0, Instant::now()),
                began: None,
            },
            shorter_than_it_says: false,
        }
    }

    /// Looks at the process and then at the header, so that what is readable is final once the process is gone.
    /// `replaced`: another program has taken the process over (exec).
    pub fn poll(&mut self, replaced: bool, options: &Options) -> Result<()> {
        let FileSlots { file, path } = &self.slots;
        let over = replaced || self.is_of_other_boot();
        let search_all = self.life.searched.is_none_or(|when| when.elapsed() >= SEARCH_INTERVAL);
        if search_all {
            self.life.searched = Some(Instant::now());
        }
        let seen_as = self.life.seen_as;
        let sight = if over { Sight::Nowhere } else { look(&self.birth.identity, seen_as, search_all) };
        let page = Page::read(file).map_err(Error::io("read the log", path))?;
        let page = page.ok_or_else(|| Error::format(path, "the log has been cut shorter than its header"))?;
        self.state = page.state();
        let length = file.metadata().map_err(Error::io("read the log", path))?.len();
        let in_file = length.saturating_sub(HEADER_BYTES as u64) / SLOT_BYTES as u64;
        let said = self.state.head.min(self.state.allocated).min(MAX_SLOTS);
        self.shorter_than_it_says |= in_file < said;
        self.drain.readable = said.min(in_file);
        self.note_life(sight, over, options.quiet);
        self.calibrate(options.mode);
        if options.ahead && !self.life.gone {
            self.growth.follow(&self.slots.file, self.birth.capacity, &self.state, self.life.seen_as.is_some());
        }
        Ok(())
    }

    fn is_of_other_boot(&self) -> bool {
        self.birth.boot_id != clock::boot_id()
    }

    fn note_life(&mut self, sight: Sight, over: bool, quiet: Duration) {
        let life = &mut self.life;
        life.began.get_or_insert(self.state.head);
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
            life.certain = life.seen_as.is_some() || over || self.state.closed_ns.is_some();
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
                let _ = write_calibration(&self.slots.file, now);
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
        let patience = if self.life.gone { Patience::None } else { patience };
        self.drain.read(&self.slots, limit, patience, bytes)
    }

    /// Gives the memory of chunks that were read whole back to the system, and tells the writer how far it was read. To be
    /// called when what was read is in the journal.
    pub fn release(&mut self) {
        self.drain.release(&self.slots, self.life.gone);
        let next = self.drain.next();
        if self.told_read.is_some_and(|told| told != next) && write_read(&self.slots.file, next).is_ok() {
            self.told_read = Some(next);
        }
    }

    /// Gives back the space that lies ahead of a writer that is gone for certain.
    pub fn release_ahead(&mut self) {
        if self.drain.releases() && self.is_settled() {
            give_back_ahead(&self.slots.file, &self.state);
        }
    }

    /// True when the process was not gone at the last look.
    pub fn is_alive(&self) -> bool {
        self.life.searched.is_some() && !self.life.gone
    }

    /// True when it is known whether the process lives (it is seen, or its log has moved or was quiet for long), and all was read
    /// that was there at the first look, as far as it is committed.
    pub fn is_caught_up(&self) -> bool {
        let Life { seen_as, gone, quiet, began: Some(began), .. } = self.life else { return false };
        let is_known = gone || seen_as.is_some() || quiet.0 != began;
        is_known && (self.drain.next() >= began || self.drain.is_at_end() || (self.drain.is_blocked() && !gone))
    }

    /// True when the process is gone and everything was read.
    pub fn is_done(&self) -> bool {
        self.life.gone && self.drain.is_at_end()
    }

    /// True when nothing can come any more, even from a process that memscope cannot see.
    pub fn is_settled(&self) -> bool {
        self.is_done() && self.life.certain
    }

    pub fn counters(&self) -> Counters {
        let State { dropped, faults, unread_ns, closed_ns, .. } = self.state;
        let (uncommitted, ended) = (self.drain.uncommitted, self.is_done());
        Counters { dropped, unread_ns, uncommitted, faults, ended, closed_ns: closed_ns.filter(|_| ended) }
    }

    /// A sentence, when the file is shorter than its header says.
    pub fn complaint(&self) -> Option<String> {
        let State { head, allocated, .. } = self.state;
        self.shorter_than_it_says.then(|| {
            format!(
                "{}: the log is shorter than its header says ({allocated} slots allocated, {head} claimed, {} there)",
                self.slots.path.display(),
                self.drain.readable
            )
        })
    }
}

/// Where a slot lies in the file, in bytes.
pub(super) fn slot_offset(slot: u64) -> u64 {
    HEADER_BYTES as u64 + slot * SLOT_BYTES as u64
}

/// The slots of a log, in its file.
struct FileSlots {
    file: File,
    path: PathBuf,
}

impl Slots for FileSlots {
    type Failure = Error;

    fn copy(&self, first: u64, bytes: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            match self.file.read_at(&mut bytes[done..], slot_offset(first) + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("read the log", &self.path)(error)),
            }
        }
        Ok(done / SLOT_BYTES)
    }

    fn give_back(&self, first: u64, end: u64) -> bool {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, flags, slot_offset(first), (end - first) * SLOT_BYTES as u64).is_ok()
    }
}
