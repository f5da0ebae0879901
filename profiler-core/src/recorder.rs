//! The recorder: moves what the profiled processes log into the journal while they run.
//!
//! Owns: the thread that does it, its pace, and the session's end. Refuses: to start or to wait for the program (the
//! command line does), and to interpret what it moves.
//!
//! Order in the journal: the records of a process in slot order; a telemetry sample after every record that was committed
//! when the sample was taken (but for those behind a slot that is claimed and not committed). A log's memory is given back
//! only when what was in it is in the file: at whatever moment memscope is killed, an event is in the journal, or in the
//! log, or in both, and slots tell them apart.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::clock;
use crate::error::{Error, Result};
use crate::journal::Writer;
use crate::journal::entry::{Entry, Nanoseconds, Seen, SessionEnd, Survivor, WithoutLogs};
use crate::journal::format::MAX_RECORDS;
use crate::keep::Parts;
use crate::session::{Reader, SessionFolder};
use crate::source::{self, Mode, Source};
use crate::telemetry::Poller;

/// Pause between two looks once the program has ended.
const LAST_PAUSE: Duration = Duration::from_millis(2);
/// How long the end of a short program waits for NVML's first samples: they have what no record tells, the devices' names.
const FIRST_SAMPLES: Duration = Duration::from_millis(500);

/// How to record.
pub struct Options {
    /// Pause between two looks at the logs, when there is little to do.
    pub interval: Duration,
    /// How long processes that outlive the program are still recorded.
    pub grace: Duration,
    /// How logs are read.
    pub source: source::Options,
    /// Telemetry to be merged in.
    pub telemetry: Option<Poller>,
    /// What says to the program that its logs are read; given up when they are read no more.
    pub reader: Option<Reader>,
    /// Size of a segment of the journal, in bytes, where not everything is kept.
    pub segment_bytes: u64,
    /// Tells which processes of the program still run, those without a log too; asked once, at the end.
    pub outlived: Option<Outlived>,
}

/// See [`Options::outlived`].
pub type Outlived = Box<dyn FnOnce() -> Vec<u32> + Send>;

/// Default of [`Options::segment_bytes`]: what is dropped is dropped in such parts.
pub const SEGMENT_BYTES: u64 = 8 << 20;

impl Default for Options {
    fn default() -> Options {
        Options {
            interval: Duration::from_millis(50),
            grace: Duration::from_secs(2),
            source: source::Options::new(Mode::Record),
            telemetry: None,
            reader: None,
            segment_bytes: SEGMENT_BYTES,
            outlived: None,
        }
    }
}

/// Is called with every entry, in the journal's order, when it has been written. It runs on the recorder's thread: what
/// takes long belongs elsewhere.
pub type Listener = Box<dyn FnMut(&Entry) + Send>;

/// How the program ended, and what was seen of it while it ran.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ended {
    /// Status as memscope returns it (128+N for a signal); `None` if the program could not be waited for.
    pub exit_status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What was seen of its processes.
    pub seen: Seen,
}

impl From<Option<i32>> for Ended {
    fn from(exit_status: Option<i32>) -> Ended {
        Ended { exit_status, ..Ended::default() }
    }
}

/// How far the recording is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Records moved.
    pub records: u64,
    /// Processes with a log.
    pub processes: u64,
    /// Events that processes could not write.
    pub dropped: u64,
    /// Bytes of the journal.
    pub journal_bytes: u64,
}

/// What was recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// The last progress.
    pub progress: Progress,
    /// Slots that were claimed and never committed.
    pub uncommitted: u64,
    /// Faults that the interposer counted.
    pub faults: u64,
    /// Processes that still ran when the recording ended; what they did later is missing.
    pub outlived: Vec<Survivor>,
    /// What else the user should know, as sentences.
    pub notices: Vec<String>,
}

/// A recording in progress. Dropped without [`Recorder::finish`], it stops and leaves a session to be recovered.
pub struct Recorder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<Summary>>>,
}

#[derive(Default)]
struct Shared {
    status: Mutex<Status>,
    ordered: Condvar,
}

#[derive(Default)]
struct Status {
    order: Order,
    ended: Ended,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Order {
    #[default]
    Go,
    /// The program has ended.
    Finish,
    Abandon,
}

impl Recorder {
    /// Creates the journal and begins to record the logs of this session.
    ///
    /// Errors: those of [`SessionFolder::manifest`] and [`Writer::create`]; [`Error::Io`] when there is no thread.
    pub fn start(folder: &SessionFolder, options: Options, listener: Option<Listener>) -> Result<Recorder> {
        let session = folder.manifest()?.session;
        let start_ns = session.start_monotonic_ns;
        let mut writer = match session.keep {
            None => Writer::create(&folder.journal())?,
            Some(_) => Writer::create_chain(&folder.journal())?,
        };
        writer.push(&Entry::Session(session.clone()))?;
        writer.flush()?;
        let parts = session.keep.map(|keep| Parts::begin(&mut writer, folder.journal(), keep)).transpose()?;
        let mut listener = listener.unwrap_or_else(|| Box::new(|_| {}));
        listener(&Entry::Session(session));
        let source = Source::new(folder.logs(), options.source.clone());
        let shared = Arc::new(Shared::default());
        let mut recording = Recording {
            source,
            writer,
            parts,
            listener,
            options,
            start_ns,
            folder: folder.clone(),
            shared: Arc::clone(&shared),
            entries: Vec::new(),
            summary: Summary::default(),
        };
        let thread = thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || recording.run())
            .map_err(Error::io("start the recorder of", folder.path()))?;
        Ok(Recorder { shared, thread: Some(thread) })
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.shared.status().progress
    }

    /// The program has ended: records the rest, waits for its other processes as long as the grace goes,
    /// and ends the journal. Errors: [`Error::Io`] when the journal could not be written (the session can be recovered).
    pub fn finish(mut self, ended: impl Into<Ended>) -> Result<Summary> {
        self.shared.status().ended = ended.into();
        self.shared.order(Order::Finish);
        let Some(thread) = self.thread.take() else { return Ok(Summary::default()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.shared.order(Order::Abandon);
            // What went wrong is of no interest any more.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn order(&self, order: Order) {
        self.status().order = order;
        self.ordered.notify_all();
    }

    /// Waits for `time` or until there is another order than `now`.
    fn wait(&self, now: Order, time: Duration) {
        let waited = self.ordered.wait_timeout_while(self.status(), time, |status| status.order == now);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// The recorder's thread.
struct Recording {
    source: Source,
    writer: Writer,
    /// Where not everything is kept.
    parts: Option<Parts>,
    listener: Listener,
    options: Options,
    start_ns: u64,
    folder: SessionFolder,
    shared: Arc<Shared>,
    entries: Vec<Entry>,
    summary: Summary,
}

impl Recording {
    fn run(&mut self) -> Result<Summary> {
        let mut deadline = None;
        loop {
            let order = self.shared.status().order;
            // A full disk may become free again: the next look tries again, and until then the logs keep the events.
            let failure = self.drain().err();
            match order {
                Order::Go => self.shared.wait(order, self.options.interval),
                Order::Abandon => return Ok(std::mem::take(&mut self.summary)),
                Order::Finish => {
                    let until = *deadline.get_or_insert_with(|| Instant::now() + self.options.grace);
                    if self.source.is_done() || Instant::now() >= until {
                        return failure.map_or_else(|| self.end(), Err);
                    }
                    self.shared.wait(order, LAST_PAUSE);
                }
            }
        }
    }

    /// Moves all that is there.
    fn drain(&mut self) -> Result<()> {
        self.writer.flush()?;
        let samples = self.options.telemetry.as_mut().map(Poller::take).unwrap_or_default();
        loop {
            let round = self.source.round(&mut self.entries);
            let records = match round {
                Ok(round) => round.records,
                Err(error) => {
                    self.notice(error.to_string());
                    0
                }
            };
            self.summary.progress.records += records;
            self.write()?;
            if records < MAX_RECORDS as u64 {
                break;
            }
        }
        self.entries.extend(samples.into_iter().map(Entry::Telemetry));
        self.write()
    }

    /// Writes the entries, gives the logs' memory back, and tells the listener.
    fn write(&mut self) -> Result<()> {
        for entry in &self.entries {
            self.writer.push(entry)?;
        }
        let flushed = self.writer.flush();
        if flushed.is_ok() {
            self.source.release();
        }
        for entry in self.entries.drain(..) {
            if let Some(parts) = &mut self.parts {
                parts.note(&entry);
            }
            (self.listener)(&entry);
        }
        for notice in self.source.take_notices() {
            self.notice(notice);
        }
        let progress = &mut self.summary.progress;
        progress.processes = self.source.processes() as u64;
        progress.dropped = self.source.counters().dropped;
        progress.journal_bytes = self.parts.as_ref().map_or(0, Parts::before) + self.writer.written();
        self.shared.status().progress = *progress;
        flushed?;
        if let Some(parts) = &mut self.parts
            && parts.is_full(&self.writer, self.options.segment_bytes)
        {
            let time = Nanoseconds(clock::monotonic_ns().saturating_sub(self.start_ns));
            // Where there is no room for another file, this one goes on.
            if let Err(error) = parts.turn(&mut self.writer, time) {
                self.notice(error.to_string());
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<Summary> {
        // Before the wait below: it is not the program's time.
        let time = Nanoseconds(clock::monotonic_ns().saturating_sub(self.start_ns));
        let Ended { exit_status, signal, seen } = std::mem::take(&mut self.shared.status().ended);
        if let Some(telemetry) = &self.options.telemetry {
            telemetry.wait_for_first(FIRST_SAMPLES);
        }
        if !self.source.is_done() {
            // Nothing will come behind a slot that is not committed by now, but what is there must not be lost.
            self.source.stop_waiting();
        }
        self.drain()?;
        self.options.telemetry = None;
        if let Some(parts) = &mut self.parts {
            let notices = parts.finish(time);
            notices.into_iter().for_each(|notice| self.notice(notice));
        }
        let refusals = self.source.refusals();
        self.source.missing(&refusals).into_iter().for_each(|notice| self.notice(notice));
        let refusals = source::named(&refusals);
        let without_logs = self.source.without_logs().map(|told| WithoutLogs { signal, seen, ..told });
        let told = self.options.outlived.take().map_or_else(Vec::new, |outlived| outlived());
        let pids: BTreeSet<u32> = self.source.running().into_iter().chain(told).collect();
        let outlived: Vec<Survivor> = pids.into_iter().map(Survivor::of).collect();
        self.summary.outlived.clone_from(&outlived);
        self.entries.push(Entry::End(SessionEnd { time, exit_status, refusals, without_logs, outlived }));
        self.write()?;
        if let Err(error) = self.folder.mark_finished(exit_status) {
            self.notice(error.to_string());
        }
        let counters = self.source.counters();
        let mut summary = std::mem::take(&mut self.summary);
        summary.uncommitted = counters.uncommitted;
        summary.faults = counters.faults;
        Ok(summary)
    }

    fn notice(&mut self, notice: String) {
        if !self.summary.notices.contains(&notice) {
            self.summary.notices.push(notice);
        }
    }
}
