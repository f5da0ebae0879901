//! Sessions whose end nobody saw: read as they are, or completed.
//!
//! Owns: putting journal and logs together when memscope, the program or both were killed. The journal says by slot what it
//! has of each process; the logs have the rest. Refuses: to guess what was never committed, and ([`entries`]) to change
//! anything.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::journal::entry::{Calibration, Counters, Entry, Nanoseconds, ProcessIndex, SessionEnd, SessionInfo};
use crate::journal::format::MAX_RECORDS;
use crate::journal::{Chain, Head, Reader, Standing, Tail, Writer, chain};
use crate::session::{Recorded, SessionFolder};
use crate::source::{self, Identity, Mode, Options, Resume, Source};

/// How long a log must be quiet before a process that cannot be seen counts as gone.
const QUIET: Duration = Duration::from_millis(200);
/// How long a recovery waits at least for processes to be gone.
const PATIENCE: Duration = Duration::from_millis(600);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// What a recovery did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recovery {
    /// Records that the journal had.
    pub records_before: u64,
    /// Records that were still in the logs.
    pub records_added: u64,
    /// Slots that were claimed and never committed.
    pub uncommitted: u64,
    /// Events that could not be written.
    pub dropped: u64,
    /// When the first of them was lost because memscope was gone.
    pub gone: Option<Nanoseconds>,
    /// Processes that still run and write: the journal has what they wrote so far and is not ended. Recover again later.
    pub running: Vec<u32>,
    /// What else the user should know, as sentences.
    pub notices: Vec<String>,
}

/// Completes the journal of a broken session: cuts off a torn end, adds what the logs still have, and ends it when no
/// process of the session runs any more. On a finished session it does nothing; done twice, it adds nothing twice.
///
/// Errors: [`Error::Busy`] when the session is being recorded; [`Error::Version`]; [`Error::Format`] when the journal is
/// none or the manifest is damaged; [`Error::Io`].
pub fn recover(folder: &SessionFolder) -> Result<Recovery> {
    let manifest = folder.manifest()?;
    if folder.is_being_recorded() {
        return Err(Error::Busy { path: folder.path().to_path_buf() });
    }
    // What still writes is read from now on, and goes on.
    let _reader = folder.reader();
    let mut recovery = Recovery::default();
    let mut seen = Seen::default();
    let journal = folder.journal();
    let path = chain::last_file(&journal)?;
    // Of a chain, the first file has the lock.
    let _first = (path != journal).then(|| Writer::append(&journal, || whole(&journal))).transpose()?;
    let mut writer = Writer::append(&path, || {
        let mut reader = Chain::open(&journal)?;
        while let Some(entry) = reader.next() {
            match entry {
                Ok(entry) => seen.note(&entry),
                // Nothing is appended behind what cannot be read, and nothing cut off.
                Err(error) if reader.is_broken() => return Err(error),
                Err(error @ Error::Format { .. }) => recovery.notices.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        if let Tail::Truncated { offset } = reader.tail() {
            recovery.notices.push(format!("{}: a torn entry at offset {offset} was cut off", path.display()));
        }
        Ok(reader.offset())
    })?;
    recovery.records_before = seen.records;
    if !seen.ended {
        if seen.session.is_none() {
            writer.push(&Entry::Session(manifest.session.clone()))?;
            seen.session = Some(manifest.session.clone());
        }
        drain(folder, &mut writer, &mut seen, &mut recovery)?;
        recovery.records_added = seen.records - recovery.records_before;
    }
    if seen.ended && manifest.state != Recorded::Finished {
        folder.mark_finished(seen.exit_status.or(manifest.exit_status))?;
    }
    Ok(recovery)
}

/// How many bytes of a file are whole entries.
fn whole(path: &Path) -> Result<u64> {
    let mut reader = Reader::open(path)?;
    // What is damaged is told when all is read.
    reader.by_ref().for_each(drop);
    Ok(reader.offset())
}

/// Moves what the logs have into the journal, and ends it when no process is left.
fn drain(folder: &SessionFolder, writer: &mut Writer, seen: &mut Seen, recovery: &mut Recovery) -> Result<()> {
    let mut source = seen.source(folder, Options { quiet: QUIET, ahead: false, ..Options::new(Mode::Record) });
    let began = Instant::now();
    let mut moved = began;
    let mut entries = Vec::new();
    loop {
        let records = match source.round(&mut entries) {
            Ok(round) => round.records,
            Err(error) => {
                // The usual reason: shared memory does not outlive a restart of the machine.
                recovery.notices.push(format!("{error}; what was not yet in the journal is lost"));
                break;
            }
        };
        for entry in entries.drain(..) {
            seen.note(&entry);
            writer.push(&entry)?;
        }
        writer.flush()?;
        source.release();
        if records > 0 {
            moved = Instant::now();
        } else if source.is_done() || (!source.has_living() && moved.elapsed() > PATIENCE) {
            break;
        }
        if began.elapsed() > PATIENCE {
            // Time that passed since the last look says nothing of a process: memscope may have been held up itself.
            source.look();
            if source.has_living() && source.is_caught_up() {
                // Whoever still writes could be followed for ever. The rest stays in its log, for the next recovery.
                break;
            }
        }
        if records == 0 {
            thread::sleep(PAUSE);
        }
    }
    recovery.notices.extend(source.take_notices());
    let Counters { uncommitted, dropped, unread_ns, .. } = source.counters();
    let start_ns = seen.session.as_ref().map_or(0, |session| session.start_monotonic_ns);
    recovery.uncommitted = uncommitted;
    recovery.dropped = dropped;
    recovery.gone = unread_ns.map(|first| Nanoseconds(first.saturating_sub(start_ns)));
    recovery.running = source.running();
    if recovery.running.is_empty() {
        let refusals = source.refusals();
        recovery.notices.extend(source.missing(&refusals));
        let refusals = source::named(&refusals);
        let (time, without_logs) = (seen.last, source.without_logs());
        let end = SessionEnd { time, refusals, without_logs, ..SessionEnd::default() };
        writer.push(&Entry::End(end))?;
        seen.ended = true;
    }
    writer.flush()
}

/// All entries of a session: its journal, and, when nobody records it and it was never ended, what its logs have beyond
/// that. Changes nothing.
///
/// While the session is being recorded, or its processes still write without a recorder, `next` gives `None` at the present
/// end, and more later.
///
/// Errors: [`Error::NotFound`], [`Error::Version`], [`Error::Format`], [`Error::Io`]; those met later are items.
pub fn entries(folder: &SessionFolder) -> Result<Entries> {
    let session = folder.manifest()?.session;
    let path = folder.journal();
    let reader = match Chain::open(&path) {
        Ok(reader) => Some(reader),
        // Killed before there was one.
        Err(Error::NotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    Ok(Entries {
        folder: folder.clone(),
        session,
        reader,
        seen: Seen::default(),
        source: None,
        ready: VecDeque::new(),
        at_end: false,
        notices: Vec::new(),
    })
}

/// The iterator of [`entries`].
pub struct Entries {
    folder: SessionFolder,
    session: SessionInfo,
    reader: Option<Chain>,
    seen: Seen,
    source: Option<Source>,
    ready: VecDeque<Entry>,
    /// What is in `ready` goes to the present end of the logs.
    at_end: bool,
    notices: Vec<String>,
}

impl Entries {
    /// True when the session's end has been read: nothing more will come.
    pub fn is_ended(&self) -> bool {
        self.seen.ended
    }

    /// What was wrong with the logs, as sentences.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Why processes have no logs, and how many each, as the end of the session would say it: what is known once the logs are read.
    pub fn refusals(&self) -> Vec<(String, u32)> {
        self.source.as_ref().map_or_else(Vec::new, |source| source::named(&source.refusals()))
    }

    /// How the journal ends.
    pub fn tail(&self) -> Tail {
        self.reader.as_ref().map_or(Tail::Whole, Chain::tail)
    }

    fn next_of_journal(&mut self) -> Option<Result<Entry>> {
        if self.reader.is_none() {
            match Chain::open(&self.folder.journal()) {
                Ok(reader) => self.reader = Some(reader),
                Err(Error::NotFound { .. }) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
        self.reader.as_mut()?.next()
    }

    fn next_of_logs(&mut self) -> Option<Result<Entry>> {
        if self.seen.session.is_none() {
            return Some(Ok(Entry::Session(self.session.clone())));
        }
        if self.ready.is_empty() && std::mem::take(&mut self.at_end) {
            return None;
        }
        if self.ready.is_empty() {
            // No waiting for processes that cannot be seen: nothing is lost by taking them for gone, since nothing is written.
            let options = Options { quiet: Duration::ZERO, ..Options::new(Mode::Inspect) };
            let source = self.source.get_or_insert_with(|| self.seen.source(&self.folder, options));
            let mut entries = Vec::new();
            match source.round(&mut entries) {
                // All that a process has written by now fits into a round. Without this, one that writes on has no end.
                Ok(round) => self.at_end = !entries.is_empty() && round.records < MAX_RECORDS as u64,
                Err(error) => {
                    let notice = error.to_string();
                    if !self.notices.contains(&notice) {
                        self.notices.push(notice);
                    }
                }
            }
            self.notices.extend(source.take_notices());
            self.ready.extend(entries);
        }
        self.ready.pop_front().map(Ok)
    }
}

impl Iterator for Entries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        let mut next = None;
        if self.source.is_none() {
            next = self.next_of_journal();
            if next.is_none() && !self.seen.ended && !self.folder.is_being_recorded() {
                // The writer may have added its last entries between the two looks.
                next = self.next_of_journal();
                if next.is_none() {
                    next = self.next_of_logs();
                }
            }
        } else if !self.seen.ended {
            next = self.next_of_logs();
        }
        if let Some(Ok(entry)) = &next {
            self.seen.note(entry);
        }
        next
    }
}

/// What a journal has, so far as it was read.
#[derive(Default)]
struct Seen {
    session: Option<SessionInfo>,
    processes: HashMap<ProcessIndex, (Identity, Resume)>,
    records: u64,
    /// Time of the latest record or sample.
    last: Nanoseconds,
    ended: bool,
    exit_status: Option<i32>,
}

impl Seen {
    fn note(&mut self, entry: &Entry) {
        match entry {
            Entry::Session(session) => self.session = Some(session.clone()),
            Entry::Process(process) => {
                self.processes.insert(process.process, (Identity::from(process), Resume::default()));
            }
            Entry::Clock(process, calibration) => {
                self.resume(*process, |resume| resume.calibration = Some(*calibration));
            }
            Entry::Counters(process, counters) => {
                self.resume(*process, |resume| resume.uncommitted = counters.uncommitted);
            }
            Entry::Records { process, first_slot, records } => {
                self.records += records.len() as u64;
                let mut clock = None;
                self.resume(*process, |resume| {
                    resume.next_slot = resume.next_slot.max(first_slot + records.len() as u64);
                    clock = resume.calibration;
                });
                let last = records.iter().rfind(|record| record.head != 0);
                if let (Some(clock), Some(record)) = (clock, last) {
                    self.note_time(clock, record.ticks);
                }
            }
            Entry::Summed(checkpoint) => self.take_over(&checkpoint.head),
            Entry::Telemetry(sample) => self.last = self.last.max(sample.time),
            Entry::End(end) => {
                self.ended = true;
                self.exit_status = end.exit_status;
            }
        }
    }

    /// What was before is only in a checkpoint.
    fn take_over(&mut self, head: &Head) {
        self.records = head.records;
        self.last = self.last.max(head.last);
        for standing in &head.processes {
            let Standing { info, calibration, next_slot, uncommitted } = standing;
            let resume = Resume { calibration: *calibration, next_slot: *next_slot, uncommitted: *uncommitted };
            self.processes.insert(info.process, (Identity::from(info), resume));
        }
    }

    fn note_time(&mut self, clock: Calibration, ticks: u64) {
        let start = self.session.as_ref().map_or(0, |session| session.start_monotonic_ns);
        self.last = self.last.max(clock.time(ticks, start));
    }

    fn resume(&mut self, process: ProcessIndex, change: impl FnOnce(&mut Resume)) {
        if let Some((_, resume)) = self.processes.get_mut(&process) {
            change(resume);
        }
    }

    /// The session's logs, from where the journal ends.
    fn source(&self, folder: &SessionFolder, options: Options) -> Source {
        let resumes = self.processes.iter().map(|(process, (identity, resume))| (*identity, (*process, *resume)));
        Source::resume(folder.logs(), options, resumes.collect())
    }
}
