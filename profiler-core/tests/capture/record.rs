//! The recorder, and sessions as they are read.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use memscope_core::Error;
use memscope_core::allocation::Model;
use memscope_core::journal::entry::{Entry, SessionInfo};
use memscope_core::keep::{Keep, Span};
use memscope_core::recorder::{Options, Recorder};
use memscope_core::recover::{entries, recover};
use memscope_core::session::{SessionFolder, State};
use memscope_core::source;
use memscope_wire::log::CHUNK_SLOTS;
use memscope_wire::{Event, MemoryKind};

use crate::logs::Taken;
use crate::writer::{LogWriter, Writing, record};

fn session(folder: &Path) -> SessionFolder {
    SessionFolder::create(&folder.join("out.mscope"), &SessionInfo::begin(vec!["train".into(), "-x".into()])).unwrap()
}

fn read(folder: &SessionFolder) -> Vec<Entry> {
    entries(folder).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn what_is_logged_is_in_the_journal_and_at_the_listener() {
    let place = tempfile::tempdir().unwrap();
    let folder = session(place.path());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let of_listener = Arc::clone(&heard);
    let listener = Box::new(move |entry: &Entry| of_listener.lock().unwrap().push(entry.clone()));
    let options = Options { interval: Duration::from_millis(5), ..Options::default() };
    let recorder = Recorder::start(&folder, options, Some(listener)).unwrap();
    assert_eq!(folder.state().unwrap(), State::Running);
    let log = LogWriter::create(&folder.logs(), Writing::dead(5), 4 * CHUNK_SLOTS);
    for number in 0..3 * CHUNK_SLOTS {
        log.push(&record(1, number));
    }
    log.close();
    let summary = recorder.finish(Some(7)).unwrap();
    assert_eq!(summary.progress.records, 3 * CHUNK_SLOTS);
    assert_eq!((summary.progress.processes, summary.progress.dropped, summary.uncommitted), (1, 0, 0));
    assert!(summary.outlived.is_empty());
    assert!(summary.notices.is_empty(), "{:?}", summary.notices);
    assert_eq!(folder.state().unwrap(), State::Finished);
    assert_eq!(folder.manifest().unwrap().exit_status, Some(7));

    let journal = read(&folder);
    assert_eq!(journal, *heard.lock().unwrap(), "views and journal agree");
    assert!(matches!(&journal[0], Entry::Session(session) if session.command == ["train", "-x"]));
    assert!(matches!(journal.last(), Some(Entry::End(end)) if end.exit_status == Some(7)));
    let mut taken = Taken::default();
    taken.add(journal);
    assert!(taken.records.iter().enumerate().all(|(number, read)| *read == record(1, number as u64)));
    assert_eq!(taken.records.len() as u64, 3 * CHUNK_SLOTS);

    let before = std::fs::read(folder.journal()).unwrap();
    let recovery = recover(&folder).unwrap();
    assert_eq!((recovery.records_before, recovery.records_added), (3 * CHUNK_SLOTS, 0));
    assert_eq!(std::fs::read(folder.journal()).unwrap(), before, "a finished session is left alone");
    folder.remove().unwrap();
}

#[test]
fn a_process_that_outlives_the_program_is_named_and_what_it_wrote_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let folder = session(place.path());
    let options = Options { grace: Duration::from_millis(30), ..Options::default() };
    let recorder = Recorder::start(&folder, options, None).unwrap();
    let log = LogWriter::create(&folder.logs(), Writing::here(), 1 << 16);
    log.push(&record(1, 0));
    log.claim();
    log.push(&record(1, 2));
    let summary = recorder.finish(Some(0)).unwrap();
    assert_eq!(summary.outlived.iter().map(|survivor| survivor.pid).collect::<Vec<_>>(), [std::process::id()]);
    assert!(summary.notices.is_empty(), "`outlived` says it, and the command line words it: {:?}", summary.notices);
    assert_eq!((summary.progress.records, summary.uncommitted), (3, 1));
    folder.remove().unwrap();
}

#[test]
fn a_recording_can_be_followed_and_does_not_let_a_second_one_in() {
    let place = tempfile::tempdir().unwrap();
    let folder = session(place.path());
    let options = Options { interval: Duration::from_millis(1), ..Options::default() };
    let recorder = Recorder::start(&folder, options, None).unwrap();
    let log = LogWriter::create(&folder.logs(), Writing::here(), 1 << 16);
    let mut follower = entries(&folder).unwrap();
    let mut taken = Taken::default();
    for number in 0..50 {
        log.push(&record(1, number));
        while taken.records.len() as u64 <= number {
            taken.add(follower.by_ref().map(Result::unwrap));
        }
    }
    assert!(matches!(recover(&folder), Err(Error::Busy { .. })));
    assert!(matches!(Recorder::start(&folder, Options::default(), None), Err(Error::Exists { .. })));
    drop(recorder);
    assert_eq!(folder.state().unwrap(), State::Broken);
    log.push(&record(1, 50));
    taken.add(follower.by_ref().map(Result::unwrap));
    assert_eq!(taken.records.len(), 51, "after the recorder's death the log itself is read");
    assert!(!follower.is_ended());
    folder.remove().unwrap();
}

#[test]
fn a_recovery_adds_what_is_missing_and_nothing_twice() {
    let place = tempfile::tempdir().unwrap();
    let folder = session(place.path());
    let log = LogWriter::create(&folder.logs(), Writing::here(), 1 << 16);
    for number in 0..10 {
        log.push(&record(1, number));
    }
    // Killed before there was a journal: reading works, and changes nothing.
    let mut taken = Taken::default();
    taken.add(read(&folder));
    assert_eq!(taken.records.len(), 10);
    assert!(!folder.journal().exists());

    let recovery = recover(&folder).unwrap();
    assert_eq!((recovery.records_added, &recovery.running[..]), (10, &[std::process::id()][..]));
    assert_eq!(folder.state().unwrap(), State::Broken, "its process still runs");
    log.push(&record(1, 10));
    assert_eq!(recover(&folder).unwrap().records_added, 1);
    // A torn end: half an entry more.
    let whole = std::fs::read(folder.journal()).unwrap();
    std::fs::write(folder.journal(), [&whole[..], &whole[16..40]].concat()).unwrap();
    log.push(&record(1, 11));
    let recovery = recover(&folder).unwrap();
    assert_eq!((recovery.records_before, recovery.records_added), (11, 1));
    assert!(recovery.notices[0].contains("a torn entry at offset"), "{:?}", recovery.notices);
    let mut taken = Taken::default();
    taken.add(read(&folder));
    let numbers: Vec<u64> = taken.records.iter().map(|record| record.words[0]).collect();
    assert_eq!(numbers, (0..12).collect::<Vec<u64>>());
    folder.remove().unwrap();
}

#[test]
fn a_process_that_goes_on_writing_does_not_hold_up_a_recovery_or_a_look() {
    let place = tempfile::tempdir().unwrap();
    let folder = session(place.path());
    let log = LogWriter::create(&folder.logs(), Writing::here(), 1 << 26);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Left running after a failed check, the writer would hang the test.
        let _stopped = StopAtEnd(&stop);
        scope.spawn(|| {
            for number in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                log.push(&record(1, number));
                if number % 64 == 0 {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
        });
        // Both return while it writes.
        let mut look = Taken::default();
        look.add(read(&folder));
        let recovery = recover(&folder).unwrap();
        assert_eq!(recovery.running, [std::process::id()]);
        assert!(recovery.records_added > look.records.len() as u64, "{recovery:?}");
        assert_eq!(folder.state().unwrap(), State::Broken);
        let again = recover(&folder).unwrap();
        assert_eq!(again.records_before, recovery.records_added);
        assert_eq!(again.running, [std::process::id()]);
        assert!(again.notices.is_empty(), "{again:?}");
    });
    let written = log.push(&record(1, 0)) + 1;
    let mut taken = Taken::default();
    taken.add(read(&folder));
    assert_eq!(taken.records.len() as u64, written);
    let numbered = taken.records[..written as usize - 1].iter().enumerate();
    assert!({ numbered }.all(|(number, read)| *read == record(1, number as u64)), "lost, doubled or mixed");
    folder.remove().unwrap();
}

/// Says stop when it goes, however that comes.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_recovery_ends_the_session_of_dead_processes_even_without_their_logs() {
    let place = tempfile::tempdir().unwrap();
    let folder = session(place.path());
    let log = LogWriter::create(&folder.logs(), Writing::dead(3), 1 << 16);
    log.push(&record(1, 0));
    log.close();
    assert_eq!(recover(&folder).unwrap().records_added, 1);
    assert_eq!(folder.state().unwrap(), State::Finished);
    assert!(matches!(read(&folder).last(), Some(Entry::End(end)) if end.exit_status.is_none()));
    folder.remove().unwrap();

    let folder = session(place.path());
    folder.remove_logs().unwrap();
    let recovery = recover(&folder).unwrap();
    assert!(recovery.notices[0].contains("what was not yet in the journal is lost"), "{:?}", recovery.notices);
    assert_eq!(folder.state().unwrap(), State::Finished);
    assert!(!source::Options::new(source::Mode::Record).stall.is_zero());
}

#[test]
fn what_could_not_be_written_is_still_in_the_logs() {
    let place = tempfile::tempdir().unwrap();
    let folder = session(place.path());
    let log = LogWriter::create(&folder.logs(), Writing::dead(5), 4 * CHUNK_SLOTS);
    for number in 0..3 * CHUNK_SLOTS {
        log.push(&record(1, number));
    }
    log.close();
    let script = format!(
        "trap '' XFSZ; ulimit -f 1; exec {} --exact record::records_onto_a_full_disk --ignored --nocapture",
        std::env::current_exe().unwrap().display()
    );
    let mut command = std::process::Command::new("bash");
    let output = command.args(["-c", &script]).env("MEMSCOPE_TEST_SESSION", folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(folder.state().unwrap(), State::Broken);
    // The disk has room again.
    assert_eq!(recover(&folder).unwrap().records_added, 3 * CHUNK_SLOTS);
    let mut taken = Taken::default();
    taken.add(read(&folder));
    assert!(taken.records.iter().enumerate().all(|(number, read)| *read == record(1, number as u64)));
    folder.remove().unwrap();
}

#[test]
#[ignore = "is run by the test above, with a limit on the size of files"]
fn records_onto_a_full_disk() {
    let folder = std::env::var_os("MEMSCOPE_TEST_SESSION").expect("is set by the test above");
    let folder = SessionFolder::open(Path::new(&folder)).unwrap();
    let options = Options { interval: Duration::from_millis(1), ..Options::default() };
    let recorder = Recorder::start(&folder, options, None).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let error = recorder.finish(Some(0)).unwrap_err();
    assert!(matches!(error, Error::Io { action: "write the journal", .. }), "{error}");
}

/// How many bytes the files of a folder take that are no logs.
fn disk(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.file_name() != "logs");
    files.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
}

#[test]
fn a_session_of_which_little_is_kept_stays_small_and_counts_all() {
    const SEGMENT: u64 = 1 << 15;
    const KEPT: u64 = 500;
    const PAIRS: u64 = 400_000;
    let place = tempfile::tempdir().unwrap();
    let keep = Some(Keep::Last(Span::Allocations(KEPT)));
    let session = SessionInfo { keep, ..SessionInfo::begin(vec!["writer".into()]) };
    let folder = SessionFolder::create(&place.path().join("out.mscope"), &session).unwrap();
    // On a busy machine the writer is quiet for longer than the usual second, and it is in no list of processes.
    let source = source::Options { quiet: Duration::from_secs(600), ..source::Options::new(source::Mode::Record) };
    let options = Options { interval: Duration::from_millis(1), segment_bytes: SEGMENT, source, ..Options::default() };
    let recorder = Recorder::start(&folder, options, None).unwrap();
    let log = LogWriter::create(&folder.logs(), Writing::dead(1), 1 << 20);
    let mut follower = entries(&folder).unwrap();
    let mut followed = Model::new();
    // What is kept, two segments and what the recorder may write at once beyond each, 150 bytes for each that lives and for what ended
    // within the last 4096 changes, and the manifest.
    let bound = KEPT * 2 * 10 + 2 * (SEGMENT + 16_384 * 11) + 150 * (PAIRS / 1000 + 2048) + 4096;
    for pair in 0..PAIRS {
        // Sizes that do not pack well; one of a thousand stays.
        let bytes = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let (address, memory, row) = (0x10_0000 + pair * 0x200_0000, MemoryKind::Device, 1);
        let alloc = Event::Alloc { address, bytes, requested: bytes, stream: 0, device: 0, row, memory };
        log.push(&alloc.record(1, pair * 1000));
        if pair % 1000 != 0 {
            log.push(&Event::Free { address, stream: 0, row: 2 }.record(1, pair * 1000 + 500));
        }
        if pair % 10_000 == 0 {
            follower.by_ref().map(Result::unwrap).for_each(|entry| {
                followed.apply(&entry);
            });
            std::thread::sleep(Duration::from_millis(20));
        }
        // The thread that sums may come late, but not for ever.
        if pair % 100_000 == 99_999 {
            let patience = Instant::now() + Duration::from_secs(60);
            while disk(folder.path()) >= bound {
                assert!(Instant::now() < patience, "{} bytes, bound {bound}", disk(folder.path()));
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    log.close();
    let summary = recorder.finish(Some(0)).unwrap();
    assert!(summary.notices.is_empty(), "{:?}", summary.notices);
    let last = disk(folder.path());
    assert!(last < bound, "{last} bytes at the end, bound {bound}");
    assert!(summary.progress.journal_bytes > 2 * bound, "{} bytes were written", summary.progress.journal_bytes);
    let mut read = Model::new();
    entries(&folder).unwrap().map(Result::unwrap).for_each(|entry| {
        read.apply(&entry);
    });
    follower.map(Result::unwrap).for_each(|entry| {
        followed.apply(&entry);
    });
    let (mut live, mut peak) = (0, 0);
    for pair in 0..PAIRS {
        let bytes = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        peak = peak.max(live + bytes);
        live += if pair % 1000 == 0 { bytes } else { 0 };
    }
    assert!((read.allocations().len() as u64) < PAIRS / 4, "{} rows", read.allocations().len());
    // One that follows has seen as many as it came in time for.
    for model in [read, followed] {
        let progress = model.progress();
        assert_eq!((progress.allocations, progress.peak_live_bytes), (PAIRS, peak));
        assert_eq!(progress.live_bytes, 0, "the process has ended, and what it held with it");
    }
    assert_eq!(recover(&folder).unwrap().records_added, 0);
    folder.remove().unwrap();
}
