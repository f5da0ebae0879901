//! The logs of a session, read: what the profiled processes wrote, as entries of the journal.
//!
//! Owns: finding the logs, the order of their entries, and when a log is at its end. Refuses: the journal's file, and to
//! interpret records. One broken log is a notice; the others go on.

mod drain;
mod growth;
mod header;
mod log;
#[cfg(test)]
mod model;
mod process;
mod refusal;

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use memscope_wire::log::{FILE_SUFFIX, Refusal};

use drain::Patience;
pub use header::Identity;
use log::Log;
pub(crate) use process::parent;
pub(crate) use process::runs_since;
pub use process::start_time;
pub(crate) use refusal::{explained, gravest, named};

use crate::error::{Error, Result};
use crate::journal::entry::{Calibration, Counters, Entry, ProcessIndex, WithoutLogs};
use crate::journal::format::MAX_RECORDS;

/// Most records of a round: what a round holds in memory is 64 bytes each, however many processes there are.
const ROUND_RECORDS: u64 = 16 * MAX_RECORDS as u64;
/// How often a process's clock is written again while records come.
const CLOCK_INTERVAL: Duration = Duration::from_secs(1);

/// Of a session in which a library was opened by RTLD_DEEPBIND.
const BOUND_DEEPLY: &str = "a library was opened with RTLD_DEEPBIND: calls of the CUDA driver that it makes itself are not recorded; \
                            MEMSCOPE_DEEPBIND=0 takes the flag away";

/// What may be done to the logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Refresh their calibration, provide space ahead of their writers where asked, and give back the memory of what was read.
    Record,
    /// Nothing: only look.
    Inspect,
}

/// How logs are read.
#[derive(Clone, Debug)]
pub struct Options {
    /// What may be done to them.
    pub mode: Mode,
    /// Whether space is provided ahead of their writers: by who stays to read it.
    pub ahead: bool,
    /// How long a slot may stay uncommitted, once the log has committed far beyond it, before it is given up.
    pub stall: Duration,
    /// How long the log of a process that was never seen in /proc must be quiet before the process counts as gone.
    pub quiet: Duration,
}

impl Options {
    /// The usual ones for this mode.
    pub fn new(mode: Mode) -> Options {
        Options { mode, ahead: mode == Mode::Record, stall: Duration::from_secs(1), quiet: Duration::from_secs(1) }
    }
}

/// Where a journal stopped reading a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Resume {
    /// First slot that the journal does not have.
    pub next_slot: u64,
    /// Slots given up so far.
    pub uncommitted: u64,
    /// The journal's last knowledge of the clock.
    pub calibration: Option<Calibration>,
}

/// All logs of a session.
pub struct Source {
    folder: PathBuf,
    options: Options,
    patience: Patience,
    logs: Vec<Followed>,
    /// What is left of logs that are closed: their number and their counters.
    over: (usize, Counters),
    /// The last program of each process (pid, start time).
    newest: HashMap<(u32, u64), u32>,
    /// Room for the slots of one log.
    bytes: Vec<u8>,
    /// File names that need no second look.
    known: HashSet<OsString>,
    identities: HashSet<Identity>,
    resumes: HashMap<Identity, (ProcessIndex, Resume)>,
    next_process: u32,
    notices: Vec<String>,
}

/// A log and what of it was already told.
struct Followed {
    log: Log,
    told_clock: Option<(Calibration, Instant)>,
    told_counters: Counters,
    /// The log cannot be read any more; a notice says why.
    failed: bool,
    complained: bool,
}

/// What one round brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Round {
    /// Records read.
    pub records: u64,
}

impl Source {
    /// The logs in `folder`, none of them read so far.
    pub fn new(folder: impl Into<PathBuf>, options: Options) -> Source {
        Source::resume(folder, options, HashMap::new())
    }

    /// The logs in `folder`, of which a journal already has what `resumes` says.
    pub fn resume(
        folder: impl Into<PathBuf>,
        options: Options,
        resumes: HashMap<Identity, (ProcessIndex, Resume)>,
    ) -> Source {
        let next_process = resumes.values().map(|(process, _)| process.0 + 1).max().unwrap_or(0);
        Source {
            folder: folder.into(),
            patience: Patience::Wait(options.stall),
            options,
            logs: Vec::new(),
            over: (0, Counters { ended: true, ..Counters::default() }),
            newest: HashMap::new(),
            bytes: Vec::new(),
            known: HashSet::new(),
            identities: HashSet::new(),
            resumes,
            next_process,
            notices: Vec::new(),
        }
    }

    /// One round over the logs: finds new ones, and reads up to [`MAX_RECORDS`] records of each. Appends entries in the
    /// order in which they belong into the journal. With a great many records at once, the logs that were left out come
    /// first in the next round. An error means that the folder cannot be read.
    pub fn round(&mut self, entries: &mut Vec<Entry>) -> Result<Round> {
        self.discover(entries)?;
        let mut round = Round::default();
        let mut looked_at = 0;
        for followed in &mut self.logs {
            if round.records >= ROUND_RECORDS {
                break;
            }
            looked_at += 1;
            if followed.is_settled() {
                continue;
            }
            let replaced = followed.is_replaced(&self.newest);
            match followed.read(replaced, &self.options, self.patience, &mut self.bytes, entries) {
                Ok(records) => round.records += records,
                Err(error) => {
                    followed.failed = true;
                    self.notices.push(error.to_string());
                }
            }
            if let Some(complaint) = followed.log.complaint().filter(|_| !followed.complained) {
                followed.complained = true;
                self.notices.push(complaint);
            }
        }
        self.logs.rotate_left(looked_at);
        Ok(round)
    }

    /// Looks at the logs without reading them.
    pub fn look(&mut self) {
        for followed in self.logs.iter_mut().filter(|followed| !followed.is_settled()) {
            let replaced = followed.is_replaced(&self.newest);
            if let Err(error) = followed.log.poll(replaced, &self.options) {
                followed.failed = true;
                self.notices.push(error.to_string());
            }
        }
    }

    /// Gives back the memory of what was read, and closes the logs that are over. To be called when the entries of all
    /// rounds so far are in the journal.
    pub fn release(&mut self) {
        self.logs.retain_mut(|followed| {
            followed.log.release();
            if followed.is_settled() {
                followed.log.release_ahead();
                self.over.0 += 1;
                add(&mut self.over.1, followed.log.counters());
            }
            !followed.is_settled()
        });
    }

    /// From now on, slots that are not committed are given up at once: for the last rounds of a recording whose processes
    /// outlive it.
    pub fn stop_waiting(&mut self) {
        self.patience = Patience::None;
    }

    /// True when every process that has a log is gone and everything was read.
    pub fn is_done(&self) -> bool {
        self.logs.iter().all(Followed::is_over)
    }

    /// True when a process that has a log was not gone at the last look at it.
    pub fn has_living(&self) -> bool {
        self.logs.iter().any(|followed| !followed.failed && followed.log.is_alive())
    }

    /// True when it is known of every process whether it lives, and all was read that its log had at the first look.
    pub fn is_caught_up(&self) -> bool {
        self.logs.iter().all(|followed| followed.failed || followed.log.is_caught_up())
    }

    /// Process ids, as the processes see them, of those that still run or whose log is not read to its end.
    pub fn running(&self) -> Vec<u32> {
        self.logs
            .iter()
            .filter(|followed| !followed.is_over())
            .map(|followed| followed.log.birth.identity.pid)
            .collect()
    }

    /// The sum of all logs' counters: `ended` when all have ended, and the first time at which one began to lose events.
    pub fn counters(&self) -> Counters {
        let mut sum = self.over.1;
        self.logs.iter().for_each(|followed| add(&mut sum, followed.log.counters()));
        sum
    }

    /// Number of processes that have a log.
    pub fn processes(&self) -> usize {
        self.over.0 + self.logs.len()
    }

    /// Why processes have no logs, and how many each, from what they left in the folder.
    pub fn refusals(&self) -> Vec<(Refusal, u32)> {
        refusal::in_folder(&self.folder)
    }

    /// What of these is missing in a session that has recorded other processes, as sentences. Of one that has recorded nothing a
    /// finding tells.
    pub fn missing(&self, refusals: &[(Refusal, u32)]) -> Vec<String> {
        if self.processes() == 0 {
            return Vec::new();
        }
        let deeply = refusal::marks_in(&self.folder).deeply.then(|| BOUND_DEEPLY.to_owned());
        refusals.iter().filter_map(refusal::missing).chain(deeply).collect()
    }

    /// What is known of the program where no process has a log; `None` where one has.
    pub fn without_logs(&self) -> Option<WithoutLogs> {
        (self.processes() == 0).then(|| refusal::marks_in(&self.folder))
    }

    /// What was wrong with logs, as sentences, since the last call.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn discover(&mut self, entries: &mut Vec<Entry>) -> Result<()> {
        let folder = std::fs::read_dir(&self.folder).map_err(Error::io("read the folder of logs", &self.folder))?;
        let mut names: Vec<OsString> = folder
            .flatten()
            .map(|entry| entry.file_name())
            .filter(|name| is_log_name(name) && !self.known.contains(name))
            .collect();
        names.sort();
        for name in names {
            let path = self.folder.join(&name);
            match Log::open(&path, self.options.mode) {
                Ok(None) => continue,
                Ok(Some((birth, file))) if self.identities.insert(birth.identity) => {
                    let (process, resume) = self.resumes.get(&birth.identity).copied().unwrap_or_else(|| {
                        self.next_process += 1;
                        (ProcessIndex(self.next_process - 1), Resume::default())
                    });
                    if !self.resumes.contains_key(&birth.identity) {
                        entries.push(Entry::Process(birth.info(process)));
                    }
                    let Identity { pid, start_time, exec_count } = birth.identity;
                    let newest = self.newest.entry((pid, start_time)).or_default();
                    *newest = exec_count.max(*newest);
                    let log = Log::new(birth, file, path, process, resume, self.options.mode);
                    self.logs.push(Followed::new(log, resume.calibration));
                }
                Ok(Some(_)) => self.notices.push(format!("{}: a second log of the same program", path.display())),
                Err(error) => self.notices.push(error.to_string()),
            }
            self.known.insert(name);
        }
        Ok(())
    }
}

impl Followed {
    fn new(log: Log, told: Option<Calibration>) -> Followed {
        let told_clock = told.map(|calibration| (calibration, Instant::now()));
        Followed { log, told_clock, told_counters: Counters::default(), failed: false, complained: false }
    }

    /// True when another program has taken the process over.
    fn is_replaced(&self, newest: &HashMap<(u32, u64), u32>) -> bool {
        let Identity { pid, start_time, exec_count } = self.log.birth.identity;
        newest[&(pid, start_time)] > exec_count
    }

    fn is_over(&self) -> bool {
        self.failed || (self.log.is_done() && self.told_counters.ended)
    }

    /// Over for certain: needs no further look.
    fn is_settled(&self) -> bool {
        self.failed || (self.is_over() && self.log.is_settled())
    }

    fn read(
        &mut self,
        replaced: bool,
        options: &Options,
        patience: Patience,
        bytes: &mut Vec<u8>,
        entries: &mut Vec<Entry>,
    ) -> Result<u64> {
        self.log.poll(replaced, options)?;
        let (first_slot, records) = self.log.read(MAX_RECORDS as u64, patience, bytes)?;
        let read = records.len() as u64;
        self.tell_clock(read > 0, entries);
        if read > 0 {
            entries.push(Entry::Records { process: self.log.process, first_slot, records });
        }
        let counters = self.log.counters();
        if counters != self.told_counters {
            self.told_counters = counters;
            entries.push(Entry::Counters(self.log.process, counters));
        }
        Ok(read)
    }

    /// The clock is told before the first records, then from time to time, and at the end.
    fn tell_clock(&mut self, has_news: bool, entries: &mut Vec<Entry>) {
        let ends = self.log.counters().ended && !self.told_counters.ended;
        let due = match self.told_clock {
            None => true,
            Some((told, _)) if told == self.log.calibration => false,
            Some((_, when)) => ends || (has_news && when.elapsed() >= CLOCK_INTERVAL),
        };
        if due {
            self.told_clock = Some((self.log.calibration, Instant::now()));
            entries.push(Entry::Clock(self.log.process, self.log.calibration));
        }
    }
}

fn add(sum: &mut Counters, one: Counters) {
    sum.dropped = sum.dropped.saturating_add(one.dropped);
    sum.unread_ns = sum.unread_ns.into_iter().chain(one.unread_ns).min();
    sum.uncommitted += one.uncommitted;
    sum.faults = sum.faults.saturating_add(one.faults);
    sum.ended &= one.ended;
}

/// True for `<pid>-<start time>-<exec count>.log`.
pub(crate) fn is_log_name(name: &OsStr) -> bool {
    let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(FILE_SUFFIX)) else { return false };
    let numbers: Vec<&str> = stem.split('-').collect();
    numbers.len() == 3 && numbers.iter().all(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_logs_are_taken_for_logs() {
        assert!(is_log_name(OsStr::new("12-3456-0.log")));
        for name in
            ["12-3456.log", "12-3456-0", "-3456-0.log", "a-1-2.log", "1-2-3-4.log", ".log", "session", "1-2-+3.log"]
        {
            assert!(!is_log_name(OsStr::new(name)), "{name}");
        }
    }
}
