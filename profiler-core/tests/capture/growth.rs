//! Space ahead of the writer of a log: who gets it, what it must not break, and what a full file system means.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use memscope_core::journal::entry::SessionInfo;
use memscope_core::recover::{entries, recover};
use memscope_core::session::SessionFolder;
use memscope_core::source::{Mode, Source};
use memscope_wire::env::LOG_DIR;
use memscope_wire::log::CHUNK_SLOTS;

use crate::logs::{Taken, quick, take_more};
use crate::writer::{LogWriter, Writing, record};

/// Bytes of a chunk.
const CHUNK_BYTES: u64 = CHUNK_SLOTS * 64;

/// Shared memory: elsewhere no log is grown ahead.
fn shared_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

fn push(log: &LogWriter, from: u64, to: u64) {
    for number in from..to {
        log.push(&record(1, number));
    }
}

fn allocated(log: &LogWriter) -> u64 {
    log.header().allocated.0.load(Ordering::Relaxed)
}

fn look(source: &mut Source) {
    source.round(&mut Vec::new()).unwrap();
}

#[test]
fn an_active_writer_gets_space_ahead_and_an_idle_one_none() {
    let folder = shared_memory();
    let mut process = Command::new("sleep").arg("100").spawn().unwrap();
    let start_time = memscope_core::source::start_time(process.id()).unwrap();
    let of_idle = Writing { pid: process.id(), start_time, exec_count: 0 };
    let active = LogWriter::create(folder.path(), Writing::here(), 1 << 22);
    let idle = LogWriter::create(folder.path(), of_idle, 1 << 22);
    let mut source = Source::new(folder.path(), quick(Mode::Record));
    push(&active, 0, 10);
    push(&idle, 0, 10);
    look(&mut source);
    assert_eq!((allocated(&active), allocated(&idle)), (CHUNK_SLOTS, CHUNK_SLOTS), "neither has done much");
    push(&active, 10, CHUNK_SLOTS);
    look(&mut source);
    assert_eq!(allocated(&active), 3 * CHUNK_SLOTS, "at least two chunks");
    assert_eq!(active.memory(), 3 * CHUNK_BYTES + 4096, "which are really there");
    push(&active, CHUNK_SLOTS, 6 * CHUNK_SLOTS);
    look(&mut source);
    assert_eq!(allocated(&active), 16 * CHUNK_SLOTS, "twice what was written");
    for _ in 0..3 {
        look(&mut source);
    }
    assert_eq!(allocated(&active), 16 * CHUNK_SLOTS, "nothing more while nothing is written");
    assert_eq!(allocated(&idle), CHUNK_SLOTS);
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn a_writer_whose_mapping_ends_is_not_led_beyond_it_and_an_inspection_grows_nothing() {
    let folder = shared_memory();
    let log = LogWriter::create(folder.path(), Writing::here(), 2 * CHUNK_SLOTS + 5);
    let mut inspector = Source::new(folder.path(), quick(Mode::Inspect));
    let mut source = Source::new(folder.path(), quick(Mode::Record));
    push(&log, 0, CHUNK_SLOTS);
    take_more(&mut inspector, &mut Taken::default());
    assert_eq!(allocated(&log), CHUNK_SLOTS);
    take_more(&mut source, &mut Taken::default());
    assert_eq!(allocated(&log), 2 * CHUNK_SLOTS);
}

#[test]
fn a_deleted_log_grows_no_more() {
    let folder = shared_memory();
    let log = LogWriter::create(folder.path(), Writing::here(), 1 << 22);
    let mut source = Source::new(folder.path(), quick(Mode::Record));
    push(&log, 0, 10);
    look(&mut source);
    std::fs::remove_file(&log.path).unwrap();
    push(&log, 10, CHUNK_SLOTS);
    look(&mut source);
    assert_eq!(allocated(&log), CHUNK_SLOTS);
}

#[test]
fn writers_and_the_recorder_grow_a_log_at_once_and_nothing_is_lost() {
    const THREADS: u32 = 3;
    const EVENTS: u64 = 20 * CHUNK_SLOTS;
    let folder = shared_memory();
    let log = LogWriter::create(folder.path(), Writing::here(), 1 << 21);
    let mut source = Source::new(folder.path(), quick(Mode::Record));
    let mut taken = Taken::default();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let log = &log;
                scope.spawn(move || {
                    for number in 0..EVENTS {
                        log.push(&record(thread, number));
                    }
                })
            })
            .collect();
        let (done, taken, source, log) = (&done, &mut taken, &mut source, &log);
        let reader = scope.spawn(move || {
            let mut before = 0;
            while !done.load(Ordering::Relaxed) {
                take_more(source, taken);
                assert!(allocated(log) >= before, "lowered");
                before = allocated(log);
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    take_more(&mut source, &mut taken);
    let mut next = [0; THREADS as usize];
    for read in &taken.records {
        let next = &mut next[read.thread as usize];
        assert_eq!(*read, record(read.thread, *next), "overwritten, or out of order");
        *next += 1;
    }
    assert_eq!(next, [EVENTS; THREADS as usize]);
    assert_eq!((taken.counters.dropped, taken.counters.uncommitted), (0, 0));
    // What was read is given back, what is ahead is there.
    let ahead = allocated(&log).saturating_sub(taken.records.len() as u64 / CHUNK_SLOTS * CHUNK_SLOTS);
    assert_eq!(log.memory(), 4096 + ahead * 64);
}

#[test]
fn a_log_grown_ahead_is_recovered_exactly_and_its_space_is_given_back() {
    let place = tempfile::tempdir().unwrap();
    let session = SessionInfo::begin(vec!["writer".into()]);
    let folder = SessionFolder::create(&place.path().join("out.mscope"), &session).unwrap();
    let log = LogWriter::create(&folder.logs(), Writing::dead(9), 1 << 22);
    // A recorder that was killed before it wrote its journal has looked at the log.
    let mut killed = Source::new(folder.logs(), quick(Mode::Record));
    push(&log, 0, 10);
    look(&mut killed);
    push(&log, 10, 3 * CHUNK_SLOTS);
    look(&mut killed);
    drop(killed);
    let open = log.claim();
    push(&log, open, open + 50);
    assert!(allocated(&log) >= 8 * CHUNK_SLOTS, "grown ahead");
    log.close();
    let recovery = recover(&folder).unwrap();
    assert_eq!(recovery.records_added, open + 51, "no slot beyond the last one that was claimed");
    let mut taken = Taken::default();
    taken.add(entries(&folder).unwrap().map(Result::unwrap));
    let committed: Vec<_> = taken.records.iter().filter(|read| read.head != 0).copied().collect();
    assert_eq!(committed, (0..open + 50).map(|number| record(1, number)).collect::<Vec<_>>());
    assert_eq!((taken.counters.uncommitted, taken.counters.ended), (1, true));
    assert!(log.memory() <= 4096 + CHUNK_BYTES, "{} bytes", log.memory());
    folder.remove().unwrap();
}

#[test]
fn a_recovery_provides_no_space_for_a_writer_that_it_does_not_follow() {
    let place = tempfile::tempdir().unwrap();
    let session = SessionInfo::begin(vec!["writer".into()]);
    let folder = SessionFolder::create(&place.path().join("out.mscope"), &session).unwrap();
    let log = LogWriter::create(&folder.logs(), Writing::here(), 1 << 22);
    for (from, to) in [(0, 2 * CHUNK_SLOTS + 10), (2 * CHUNK_SLOTS + 10, 3 * CHUNK_SLOTS)] {
        push(&log, from, to);
        let recovery = recover(&folder).unwrap();
        assert_eq!((recovery.running, recovery.records_added), (vec![std::process::id()], to - from));
        assert_eq!(allocated(&log), 3 * CHUNK_SLOTS);
    }
    folder.remove().unwrap();
}

#[test]
#[ignore = "runs in a small file system"]
fn writes_and_records_until_the_file_system_is_full() {
    /// Chunks beside the header in 8 MiB, and some events more than they hold.
    const ROOM: u64 = 7 * CHUNK_SLOTS;
    const EVENTS: u64 = ROOM + 2_000;
    let Some(folder) = std::env::var_os(LOG_DIR) else { return };
    let folder = Path::new(&folder);
    let log = LogWriter::create(folder, Writing::here(), 1 << 20);
    let mut source = Source::new(folder, quick(Mode::Record));
    let mut taken = Taken::default();
    let mut written = 0;
    let mut drain = |until: u64| {
        let begin = Instant::now();
        let mut entries = Vec::new();
        while source.round(&mut entries).unwrap().records > 0 {}
        // Nothing is given back: the journal's disk is full, say.
        taken.add(entries);
        assert!(taken.records.len() as u64 <= until && begin.elapsed() < Duration::from_secs(20));
        taken.counters.dropped
    };
    for number in 0..EVENTS {
        if let Ok(slot) = log.try_claim() {
            log.commit(slot, &record(1, number));
            written += 1;
        }
        if number % (CHUNK_SLOTS / 2) == 0 {
            drain(number + 1);
        }
        if number == CHUNK_SLOTS / 2 {
            assert!(allocated(&log) > CHUNK_SLOTS, "not grown ahead");
        }
    }
    let dropped = drain(EVENTS);
    assert_eq!((written, dropped), (ROOM, EVENTS - ROOM));
    assert_eq!(taken.records.iter().filter(|read| read.head != 0).count() as u64, written);
    println!("held");
}

#[test]
fn what_a_full_file_system_does_not_take_is_counted_though_the_log_was_grown_ahead() {
    let mount = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=8m none \"$MEMSCOPE_LOG_DIR\" || exit 99; exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", script]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "growth::writes_and_records_until_the_file_system_is_full", "--ignored", "--nocapture"]);
    let output = command.env(LOG_DIR, mount.path()).output();
    match output {
        Ok(output) if output.status.code() != Some(99) && !output.stderr.starts_with(b"unshare") => {
            assert!(output.status.success(), "{output:?}");
            assert!(String::from_utf8_lossy(&output.stdout).contains("held"), "{output:?}");
        }
        refused => eprintln!("not tested, no tmpfs can be mounted here: {refused:?}"),
    }
}
