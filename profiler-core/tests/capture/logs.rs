//! Reading logs: order, slots that are never committed, headers that are wrong, and memory.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use memscope_core::journal::entry::{Counters, Entry};
use memscope_core::source::{Mode, Options, Source};
use memscope_wire::Record;
use memscope_wire::log::CHUNK_SLOTS;

use crate::writer::{LogWriter, Writing, record};

pub fn quick(mode: Mode) -> Options {
    Options { stall: Duration::from_millis(20), quiet: Duration::from_millis(20), ..Options::new(mode) }
}

/// What a source gave, and the check that the slots of the (one) process came in order without gaps.
#[derive(Default)]
pub struct Taken {
    /// Records that were summed, before the others.
    pub before: u64,
    pub records: Vec<Record>,
    pub counters: Counters,
    pub processes: usize,
}

impl Taken {
    pub fn add(&mut self, entries: impl IntoIterator<Item = Entry>) {
        for entry in entries {
            match entry {
                Entry::Records { first_slot, records, .. } => {
                    assert_eq!(first_slot, self.before + self.records.len() as u64, "a gap between entries");
                    self.records.extend(records);
                }
                Entry::Summed(checkpoint) => {
                    self.before = checkpoint.head.records;
                    self.records.clear();
                }
                Entry::Counters(_, counters) => self.counters = counters,
                Entry::Process(_) => self.processes += 1,
                _ => {}
            }
        }
    }
}

fn take(source: &mut Source) -> Taken {
    let mut taken = Taken::default();
    take_more(source, &mut taken);
    taken
}

pub fn take_more(source: &mut Source, taken: &mut Taken) {
    let mut entries = Vec::new();
    loop {
        let round = source.round(&mut entries).unwrap();
        taken.add(entries.drain(..));
        source.release();
        if round.records == 0 {
            return;
        }
    }
}

fn take_until_done(source: &mut Source, taken: &mut Taken) {
    let begin = Instant::now();
    take_more(source, taken);
    while !source.is_done() {
        take_more(source, taken);
        assert!(begin.elapsed() < Duration::from_secs(20), "the log does not come to its end");
    }
}

#[test]
fn threads_that_commit_out_of_order_lose_nothing() {
    const THREADS: u32 = 4;
    const EVENTS: u64 = 60_000;
    let folder = tempfile::tempdir().unwrap();
    let log = LogWriter::create(folder.path(), Writing::here(), 1 << 20);
    let mut source = Source::new(folder.path(), quick(Mode::Record));
    let mut taken = Taken::default();
    let begin = Barrier::new(THREADS as usize + 1);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (log, begin) = (&log, &begin);
            scope.spawn(move || {
                begin.wait();
                for pair in 0..EVENTS / 2 {
                    // Claimed in one order, committed in the other, with a pause in which the reader looks.
                    let (first, second) = (log.claim(), log.claim());
                    log.commit(second, &record(thread, pair * 2 + 1));
                    if pair % 512 == 0 {
                        std::thread::sleep(Duration::from_micros(200));
                    }
                    log.commit(first, &record(thread, pair * 2));
                }
            });
        }
        let (done, taken, source) = (&done, &mut taken, &mut source);
        let reader = scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                take_more(source, taken);
            }
        });
        begin.wait();
        while log.header().head.0.load(Ordering::Relaxed) < THREADS as u64 * EVENTS {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(5));
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    take_more(&mut source, &mut taken);
    assert_eq!(taken.processes, 1);
    assert_eq!(taken.counters.uncommitted, 0);
    let mut next = [0; THREADS as usize];
    for read in &taken.records {
        let next = &mut next[read.thread as usize];
        assert_eq!(*read, record(read.thread, *next), "a record of two writers, or out of order");
        *next += 1;
    }
    assert_eq!(next, [EVENTS; THREADS as usize]);
}

#[test]
fn an_uncommitted_slot_ends_what_is_read_until_it_is_committed() {
    let folder = tempfile::tempdir().unwrap();
    let log = LogWriter::create(folder.path(), Writing::here(), 1 << 16);
    log.push(&record(1, 0));
    let open = log.claim();
    log.push(&record(1, 2));
    let mut source = Source::new(folder.path(), quick(Mode::Record));
    let mut taken = take(&mut source);
    assert_eq!(taken.records, [record(1, 0)]);
    std::thread::sleep(Duration::from_millis(40));
    take_more(&mut source, &mut taken);
    assert_eq!(taken.records.len(), 1, "waiting long is no reason while the log has not gone far beyond");
    log.commit(open, &record(1, 1));
    take_more(&mut source, &mut taken);
    assert_eq!(taken.records, [record(1, 0), record(1, 1), record(1, 2)]);
}

#[test]
fn a_slot_never_committed_is_given_up_when_the_log_is_far_beyond_it_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let log = LogWriter::create(folder.path(), Writing::here(), 4 * CHUNK_SLOTS);
    log.claim();
    for number in 1..3 * CHUNK_SLOTS {
        log.push(&record(1, number));
    }
    let mut source = Source::new(folder.path(), quick(Mode::Record));
    let mut taken = take(&mut source);
    assert!(taken.records.is_empty(), "not before the time is over");
    std::thread::sleep(Duration::from_millis(40));
    take_more(&mut source, &mut taken);
    assert_eq!(taken.records.len() as u64, 3 * CHUNK_SLOTS);
    assert_eq!(taken.records[0], Record::default());
    assert_eq!(taken.records[1], record(1, 1));
    assert_eq!(taken.counters.uncommitted, 1);
    assert!(!taken.counters.ended);
    // The writer may still come: its chunk has its memory, the others have given theirs back.
    let chunk = CHUNK_SLOTS * 64;
    assert!(log.memory() >= chunk && log.memory() < 2 * chunk, "{} bytes", log.memory());
}

#[test]
fn the_log_of_a_dead_process_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let log = LogWriter::create(folder.path(), Writing::dead(77), 1 << 16);
    for number in 0..100 {
        let slot = log.claim();
        if number % 10 != 3 {
            log.commit(slot, &record(1, number));
        }
    }
    // Claimed by a process that was killed before it made room.
    log.header().head.0.fetch_add(1 << 20, Ordering::Relaxed);
    log.header().allocated.0.store(100, Ordering::Relaxed);
    let mut source = Source::new(folder.path(), quick(Mode::Record));
    let mut taken = Taken::default();
    take_until_done(&mut source, &mut taken);
    assert_eq!(taken.records.len(), 100);
    assert_eq!(taken.records[3], Record::default());
    assert_eq!(taken.records[99], record(1, 99));
    assert_eq!(taken.counters, Counters { uncommitted: 10, ended: true, ..Counters::default() });
}

#[test]
fn the_program_before_an_exec_is_over_and_the_one_after_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let before = LogWriter::create(folder.path(), Writing::here(), 1 << 16);
    before.push(&record(1, 0));
    before.claim();
    let after = LogWriter::create(folder.path(), Writing { exec_count: 1, ..Writing::here() }, 1 << 16);
    after.push(&record(2, 0));
    let mut source = Source::new(folder.path(), quick(Mode::Record));
    let mut entries = Vec::new();
    while source.round(&mut entries).unwrap().records > 0 {}
    let ended: Vec<bool> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Counters(_, counters) => Some(counters.ended),
            _ => None,
        })
        .collect();
    assert_eq!(ended, [true], "only the first program is over");
    assert_eq!(source.running(), [std::process::id()]);
    assert_eq!(source.processes(), 2);
}

#[test]
fn reading_keeps_the_memory_flat_and_inspecting_changes_nothing() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let log = LogWriter::create(folder.path(), Writing::here(), 64 * CHUNK_SLOTS);
    let mut source = Source::new(folder.path(), quick(Mode::Record));
    let mut inspector = Source::new(folder.path(), quick(Mode::Inspect));
    log.push(&record(1, 0));
    assert_eq!(take(&mut inspector).records.len(), 1);
    assert_eq!(log.header().last_ticks.0.load(Ordering::Relaxed), 0, "inspecting writes no calibration");
    let mut taken = Taken::default();
    let mut most = 0;
    for number in 1..40 * CHUNK_SLOTS {
        log.push(&record(1, number));
        if number % (CHUNK_SLOTS / 2) == 0 {
            take_more(&mut source, &mut taken);
            most = most.max(log.memory());
        }
    }
    take_more(&mut source, &mut taken);
    assert_eq!(taken.records.len() as u64, 40 * CHUNK_SLOTS);
    assert_eq!(taken.records[777_777 % taken.records.len()].words[0], 777_777 % taken.records.len() as u64);
    // What was not read yet, and what lies ahead of the writer.
    assert!(most < 5 * CHUNK_SLOTS * 64, "the log took {most} bytes of memory");
    assert_ne!(log.header().last_nanoseconds.0.load(Ordering::Relaxed), 0, "recording refreshes the calibration");
}

#[test]
fn bad_logs_are_notices_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let good = LogWriter::create(path, Writing::here(), 1 << 16);
    good.push(&record(1, 5));
    let alter = |writing: Writing, offset: u64, value: u64| {
        let log = LogWriter::create(path, writing, 1 << 16);
        log.push(&record(1, 6));
        OpenOptions::new().write(true).open(&log.path).unwrap().write_all_at(&value.to_le_bytes(), offset).unwrap();
        log
    };
    let _newer = alter(Writing::dead(1), 8, 2);
    let unready = alter(Writing::dead(2), 0, 0);
    let absurd = alter(Writing::dead(3), 192, u64::MAX);
    absurd.header().head.0.store(u64::MAX, Ordering::Relaxed);
    let cut = alter(Writing::dead(4), 8, 1);
    OpenOptions::new().write(true).open(&cut.path).unwrap().set_len(4096 + 7).unwrap();
    for name in ["1-2-3.log", "9-9-9.log", "8-8-8.log", "notes.txt"] {
        std::fs::write(path.join(name), &b"too short"[..name.len().min(9)]).unwrap();
    }
    std::fs::create_dir(path.join("5-5-5.log")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", path.join("6-6-6.log")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(path.join("7-7-7.log")).status();
    assert!(fifo.unwrap().success());

    let mut source = Source::new(path, quick(Mode::Record));
    let mut entries = Vec::new();
    for _ in 0..4 {
        source.round(&mut entries).unwrap();
    }
    let notices = source.take_notices().join("\n");
    assert!(notices.contains("has format version 2"), "{notices}");
    assert_eq!(notices.matches("the log is shorter than its header says").count(), 2, "{notices}");
    for name in ["5-5-5.log", "6-6-6.log", "7-7-7.log"] {
        assert_eq!(notices.matches(name).count(), 1, "{notices}");
    }
    assert!(!notices.contains(&*unready.path.to_string_lossy()), "one that is not ready may become so");
    let read = entries.iter().filter_map(|entry| match entry {
        Entry::Records { records, .. } => Some(records.iter().filter(|record| record.head != 0).count()),
        _ => None,
    });
    assert_eq!(read.sum::<usize>(), 2, "the good log's record, and that of the one with an absurd head");
    assert_eq!(source.processes(), 3);
}

#[test]
fn a_log_that_shrinks_while_it_is_read_is_no_signal() {
    let folder = tempfile::tempdir().unwrap();
    let log = LogWriter::create(folder.path(), Writing::here(), 1 << 16);
    for number in 0..1000 {
        log.push(&record(1, number));
    }
    let mut source = Source::new(folder.path(), quick(Mode::Record));
    let mut entries = Vec::new();
    source.round(&mut entries).unwrap();
    let file = OpenOptions::new().write(true).open(&log.path).unwrap();
    for length in [4096 + 64 * 10, 4096, 100, 0] {
        file.set_len(length).unwrap();
        source.round(&mut entries).unwrap();
    }
    let notices = source.take_notices().join("\n");
    assert!(notices.contains("the log has been cut shorter than its header"), "{notices}");
}

#[test]
fn what_a_process_says_of_itself_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let log = LogWriter::create(folder.path(), Writing::here(), 1 << 16);
    log.header().dropped.0.store(11, Ordering::Relaxed);
    log.header().faults.0.store(2, Ordering::Relaxed);
    let mut entries = Vec::new();
    Source::new(folder.path(), quick(Mode::Inspect)).round(&mut entries).unwrap();
    let [Entry::Process(process), Entry::Clock(_, clock), Entry::Counters(_, counters)] = &entries[..] else {
        panic!("{entries:?}")
    };
    assert_eq!((process.executable.as_str(), process.rank), ("/bin/test", None));
    assert_eq!(process.command, ["test", "-x"]);
    assert_eq!(clock.monotonic_ns(123_456_789), 123_456_789, "a log whose ticks are nanoseconds");
    assert_eq!(*counters, Counters { dropped: 11, faults: 2, ..Counters::default() });
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let error = Source::new(Path::new("/no/such/folder"), quick(Mode::Inspect)).round(&mut Vec::new()).unwrap_err();
    assert!(error.to_string().starts_with("cannot read the folder of logs /no/such/folder"), "{error}");
}
