//! SIGKILL of the program and of the recorder, at random moments: what was committed is in the journal, once.
//!
//! Both are this test binary again, started on a test that is ignored otherwise. The writers count what they have
//! committed in a file of their own, so that the check does not rest on the log.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};
use memscope_core::journal::entry::{Entry, SessionInfo};
use memscope_core::keep::{Keep, Span};
use memscope_core::recorder::{Options, Recorder};
use memscope_core::recover::{entries, recover};
use memscope_core::session::{SessionFolder, State};
use memscope_wire::env::LOG_DIR;
use memscope_wire::log::CHUNK_SLOTS;
use rustix::process::{Pid, Signal, kill_process};

use crate::logs::Taken;
use crate::writer::{LogWriter, Writing, record};

const THREADS: usize = 3;
const COUNTERS: &str = "MEMSCOPE_TEST_COUNTERS";
const SESSION: &str = "MEMSCOPE_TEST_SESSION";

fn start(test: &str, variables: &[(&str, &Path)]) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.envs(variables.iter().copied()).stdout(Stdio::null()).spawn().unwrap()
}

/// A counter a thread, in a file that several processes map.
fn counters(path: &Path) -> MmapRaw {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    file.set_len(4096).unwrap();
    MmapOptions::new().len(4096).map_raw(&file).unwrap()
}

fn counter(map: &MmapRaw, thread: usize) -> &AtomicU64 {
    // SAFETY: the mapping is longer than the counters, aligned to a page, and only ever used as atomics.
    unsafe { &*map.as_mut_ptr().cast::<AtomicU64>().add(thread) }
}

#[test]
#[ignore = "the program to be killed"]
fn writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(LOG_DIR) else { return };
    let counters = counters(Path::new(&std::env::var_os(COUNTERS).unwrap()));
    let log = LogWriter::create(Path::new(&folder), Writing::here(), 1 << 26);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (log, counters) = (&log, &counters);
            scope.spawn(move || {
                for number in 0.. {
                    log.push(&record(thread as u32, number));
                    counter(counters, thread).store(number + 1, Ordering::Release);
                    if number % 1024 == 0 {
                        std::thread::sleep(Duration::from_micros(1_000));
                    }
                }
            });
        }
    });
}

#[test]
#[ignore = "the recorder to be killed"]
fn records_until_it_is_killed() {
    let Some(folder) = std::env::var_os(SESSION) else { return };
    let folder = SessionFolder::open(Path::new(&folder)).unwrap();
    let options = Options { interval: Duration::from_millis(1), segment_bytes: 1 << 14, ..Options::default() };
    let _recorder = Recorder::start(&folder, options, None).unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
#[ignore = "the recovery to be killed"]
fn recovers_until_it_is_killed() {
    let Some(folder) = std::env::var_os(SESSION) else { return };
    recover(&SessionFolder::open(Path::new(&folder)).unwrap()).unwrap();
}

/// Holds a recovery up for longer than its patience while it writes its first round into the journal.
fn recover_held_up(folder: &SessionFolder) {
    let mut recovery = start("kill::recovers_until_it_is_killed", &[(SESSION, folder.path())]);
    let pid = Pid::from_child(&recovery);
    while std::fs::metadata(folder.journal()).map_or(0, |journal| journal.len()) < 1 << 16 {
        assert!(recovery.try_wait().unwrap().is_none(), "it has ended already");
    }
    kill_process(pid, Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    kill_process(pid, Signal::CONT).unwrap();
    assert!(recovery.wait().unwrap().success());
}

/// A full log of that many chunks.
fn full(folder: &SessionFolder, writing: Writing, chunks: u64) {
    let log = LogWriter::create(&folder.logs(), writing, chunks * CHUNK_SLOTS);
    for number in 0..chunks * CHUNK_SLOTS {
        log.push(&record(1, number));
    }
}

#[test]
fn a_recovery_that_is_held_up_takes_no_dead_process_for_a_living_one() {
    let place = tempfile::tempdir().unwrap();
    let session = SessionInfo::begin(vec!["writer".into()]);
    let folder = SessionFolder::create(&place.path().join("out.mscope"), &session).unwrap();
    (0..8).for_each(|number| full(&folder, Writing::dead(number), 1));
    recover_held_up(&folder);
    assert_eq!(folder.state().unwrap(), State::Finished);
    folder.remove().unwrap();
}

#[test]
fn a_recovery_that_is_held_up_has_all_that_a_living_process_had_written() {
    let place = tempfile::tempdir().unwrap();
    let session = SessionInfo::begin(vec!["writer".into()]);
    let folder = SessionFolder::create(&place.path().join("out.mscope"), &session).unwrap();
    full(&folder, Writing::here(), 8);
    recover_held_up(&folder);
    assert_eq!(folder.state().unwrap(), State::Broken, "its process still runs");
    let recovery = recover(&folder).unwrap();
    assert_eq!((recovery.records_before, recovery.records_added), (8 * CHUNK_SLOTS, 0));
    folder.remove().unwrap();
}

/// Kills `child` and waits until it is gone.
fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Checks that the session has all that the counters say, each once, and no more than can have been in flight.
fn check(folder: &SessionFolder, counters: &MmapRaw) {
    let mut taken = Taken::default();
    taken.add(entries(folder).unwrap().map(Result::unwrap));
    let mut next = [None; THREADS];
    for read in taken.records.iter().filter(|record| record.head != 0) {
        let next = &mut next[read.thread as usize];
        // Of what is summed, only how many there were is known.
        let expected = next.unwrap_or(if taken.before > 0 { read.words[0] } else { 0 });
        assert_eq!(*read, record(read.thread, expected), "lost, doubled or mixed");
        *next = Some(expected + 1);
    }
    if taken.before > 0 && next.iter().all(Option::is_some) {
        let told = next.iter().flatten().sum::<u64>() + taken.counters.uncommitted;
        assert_eq!(told, taken.before + taken.records.len() as u64, "all that was recorded, once");
    }
    for (thread, next) in next.into_iter().enumerate() {
        let Some(next) = next.or((taken.before == 0).then_some(0)) else { continue };
        let committed = counter(counters, thread).load(Ordering::Acquire);
        // Killed between the commit and the count, a thread has one more.
        assert!(next == committed || next == committed + 1, "thread {thread}: {next} read of {committed} committed");
    }
    let missing = taken.records.iter().filter(|record| record.head == 0).count() as u64;
    assert_eq!(missing, taken.counters.uncommitted);
    assert!(missing <= THREADS as u64, "each thread can have had one slot in its hands, not {missing} in all");
}

/// Moments of this run, in microseconds. Each run has others; a failing one is shown by its message.
fn moment(from: u64, to: u64) -> Duration {
    let random = std::hash::BuildHasher::hash_one(&std::collections::hash_map::RandomState::new(), 0);
    Duration::from_micros(from + random % (to - from))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum First {
    Program,
    Recorder,
    Recovery,
}

fn killed_at_random(first: First, keep: Option<Keep>) {
    for round in 0..4 {
        let place = tempfile::tempdir().unwrap();
        let session = SessionInfo { keep, ..SessionInfo::begin(vec!["writer".into()]) };
        let folder = SessionFolder::create(&place.path().join("out.mscope"), &session).unwrap();
        let counters_path = place.path().join("counters");
        let counters = counters(&counters_path);
        let recorder = start("kill::records_until_it_is_killed", &[(SESSION, folder.path())]);
        let logs = folder.logs();
        let program = start("kill::writes_until_it_is_killed", &[(LOG_DIR, &logs), (COUNTERS, &counters_path)]);
        while (0..THREADS).any(|thread| counter(&counters, thread).load(Ordering::Relaxed) == 0) {
            std::thread::sleep(Duration::from_micros(200));
        }
        let (one, two) = if first == First::Program { (program, recorder) } else { (recorder, program) };
        std::thread::sleep(moment(500, 80_000));
        kill(one);
        std::thread::sleep(moment(0, 30_000));
        kill(two);
        if first == First::Recovery {
            for _ in 0..3 {
                let recovery = start("kill::recovers_until_it_is_killed", &[(SESSION, folder.path())]);
                std::thread::sleep(moment(1_000, 40_000));
                kill(recovery);
            }
        }
        if round % 2 == 0 {
            check(&folder, &counters);
        }
        let recovery = recover(&folder).unwrap();
        assert!(recovery.running.is_empty(), "{recovery:?}");
        assert_eq!(folder.state().unwrap(), State::Finished);
        folder.remove_logs().unwrap();
        check(&folder, &counters);
        assert!(matches!(entries(&folder).unwrap().last(), Some(Ok(Entry::End(_)))));
        assert_eq!(recover(&folder).unwrap().records_added, 0);
        folder.remove().unwrap();
    }
}

#[test]
fn the_program_first() {
    killed_at_random(First::Program, None);
}

#[test]
fn the_recorder_first() {
    killed_at_random(First::Recorder, None);
}

#[test]
fn the_recovery_too() {
    killed_at_random(First::Recovery, None);
}

/// Small segments, so that one is summed every few milliseconds.
#[test]
fn the_recorder_of_a_session_of_which_little_is_kept() {
    killed_at_random(First::Recorder, Some(Keep::Last(Span::Allocations(1000))));
    killed_at_random(First::Recovery, Some(Keep::Peaks));
}
