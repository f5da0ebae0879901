//! Logs that nobody reads: they end at a bound and what comes later is counted, but only where it is certain that nobody does.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use memscope_core::session::Reader;
use memscope_wire::log::{CHUNK_SLOTS, MOST_UNREAD_SLOTS, READER_FILE, Refusal};
use memscope_wire::{Event, LogHeader, env};

use crate::log_reader::{Log, logs, only_log, refusals};
use crate::stage::{self, driver, linked_program, program};

/// Events within which a writer that found no room looks for it again.
const RETRY: u64 = 1024;

/// A recorded program that records as many steps as it is told.
struct Bursts {
    process: Child,
    answers: BufReader<ChildStdout>,
    logs: PathBuf,
    /// Steps so far.
    steps: u64,
}

impl Bursts {
    fn start(logs: &Path) -> Bursts {
        Bursts::of(stage::recorded(&program("bursts", &[]), &driver(""), logs), logs)
    }

    fn of(mut command: Command, logs: &Path) -> Bursts {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let answers = BufReader::new(process.stdout.take().expect("piped"));
        Bursts { process, answers, logs: logs.to_owned(), steps: 0 }
    }

    /// Has it record so many more, and counts what became of all so far: those in the log and those that were lost.
    fn burst(&mut self, steps: u64) -> (u64, u64) {
        writeln!(self.process.stdin.as_mut().expect("piped"), "{steps}").expect("it listens");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("it answers");
        assert_eq!(answer, "done\n");
        self.steps += steps;
        let log = only_log(&self.logs);
        assert_eq!(recorded(&log) + log.dropped(), self.steps);
        (recorded(&log), log.dropped())
    }

    fn end(mut self) {
        drop(self.process.stdin.take());
        assert!(self.process.wait().expect("a child").success());
    }
}

fn recorded(log: &Log) -> u64 {
    log.events().iter().filter(|event| matches!(event, Event::Step { .. })).count() as u64
}

/// When the log says that it lost the first event for want of a reader; 0 if none.
fn unread_since(logs: &Path) -> u64 {
    only_log(logs).number(offset_of!(LogHeader, unread_nanoseconds))
}

/// Nanoseconds of CLOCK_MONOTONIC.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) }, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[test]
fn a_log_whose_reader_is_gone_ends_at_its_bound_and_goes_on_with_the_next_reader() {
    let logs = stage::folder();
    let reader = Reader::of(&logs).expect("locks");
    let mut program = Bursts::start(&logs);
    assert_eq!(program.burst(1000), (1000, 0));
    drop(reader);

    let before = now();
    let (kept, lost) = program.burst(MOST_UNREAD_SLOTS + 100_000);
    assert!((100_000..110_000).contains(&lost), "{lost}");
    assert_eq!(only_log(&logs).allocated(), MOST_UNREAD_SLOTS);
    let since = unread_since(&logs);
    assert!((before..now()).contains(&since), "{since}, {before}");
    assert_eq!(program.burst(100_000), (kept, lost + 100_000), "what is full stays full");

    // Another memscope.
    let reader = Reader::of(&logs).expect("locks");
    let (kept, lost_meanwhile) = program.burst(100_000);
    assert!(lost_meanwhile <= lost + 100_000 + RETRY, "{lost_meanwhile}");
    drop(reader);

    // It has read everything, and is gone too.
    let log = only_log(&logs);
    let path = logs.join(&log.name);
    let file = OpenOptions::new().write(true).open(path).expect("the log");
    file.write_all_at(&log.head().to_le_bytes(), offset_of!(LogHeader, read) as u64).expect("written");
    let (kept_later, _) = program.burst(2 * MOST_UNREAD_SLOTS);
    let more = kept_later - kept;
    assert!((MOST_UNREAD_SLOTS - CHUNK_SLOTS..=MOST_UNREAD_SLOTS + 2 * CHUNK_SLOTS).contains(&more), "{more}");
    assert_eq!(unread_since(&logs), since, "the first time counts");
    program.end();
}

#[test]
fn a_reader_that_reads_nothing_for_long_loses_nothing() {
    let logs = stage::folder();
    let reader = Reader::of(&logs).expect("locks");
    let mut program = Bursts::start(&logs);
    let events = MOST_UNREAD_SLOTS + 3 * CHUNK_SLOTS;
    assert_eq!(program.burst(events), (events, 0));
    // Only what was allocated by now is left to one that is gone.
    drop(reader);
    let (kept, lost) = program.burst(3 * CHUNK_SLOTS);
    assert!(kept - events <= 2 * CHUNK_SLOTS && lost > 0, "{kept}, {lost}");
    program.end();
}

#[test]
fn where_nobody_can_tell_whether_there_is_a_reader_nothing_is_lost() {
    let events = MOST_UNREAD_SLOTS + 3 * CHUNK_SLOTS;
    let logs = stage::folder();
    let mut program = Bursts::start(&logs);
    assert_eq!(program.burst(events), (events, 0), "there never was one");
    program.end();

    let logs = stage::folder();
    let reader = Reader::of(&logs).expect("locks");
    let mut program = Bursts::start(&logs);
    program.burst(1);
    drop(reader);
    std::fs::remove_file(logs.join(READER_FILE)).expect("removed");
    assert_eq!(program.burst(events), (events + 1, 0), "somebody has removed what tells");
    program.end();
}

#[test]
fn a_reader_outside_of_the_programs_process_ids_is_seen() {
    let logs = stage::folder();
    let reader = Reader::of(&logs).expect("locks");
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--map-root-user", "env"]);
    command.arg(format!("LD_PRELOAD={}", stage::interposer().display())).arg(program("bursts", &[]));
    command.env(env::LOG_DIR, &logs);
    let probe = stage::output(Command::new("unshare").args(["--pid", "--fork", "--map-root-user", "true"]));
    if !probe.status.success() {
        return stage::skip(&format!("a namespace of process ids: none can be made here: {probe:?}"));
    }
    let mut program = Bursts::of(command, &logs);
    let events = MOST_UNREAD_SLOTS + 3 * CHUNK_SLOTS;
    assert_eq!(program.burst(events), (events, 0));
    assert_ne!(only_log(&logs).pid(), program.process.id(), "it sees another process id");
    drop(reader);
    let (_, lost) = program.burst(3 * CHUNK_SLOTS);
    assert!(lost > 0);
    program.end();
}

#[test]
fn a_process_that_begins_without_a_reader_has_no_log_and_leaves_the_reason() {
    let folder = stage::folder();
    drop(Reader::of(&folder).expect("locks"));
    let program = linked_program("linked");
    let plain = stage::output(&mut stage::plain(&program, &driver("")));
    let recorded = stage::output(&mut stage::recorded(&program, &driver(""), &folder));
    assert_eq!(recorded, plain);
    assert_eq!((logs(&folder).len(), refusals(&folder)), (0, vec![Refusal::Unread]));
}
