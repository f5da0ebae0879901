//! The interposer beside memscope's recorder, which grows the log ahead of it: nothing is lost, nothing is taken twice.

use std::path::Path;
use std::process::Stdio;

use memscope_core::journal::entry::Entry;
use memscope_core::source::{Mode, Options, Source};
use memscope_wire::Event;
use memscope_wire::log::CHUNK_SLOTS;

use crate::log_reader::{Log, only_log};
use crate::stage::{self, driver, linked_program, program};

/// Runs `program` while its log is read and grown: the events in slot order, and the log as it is left.
fn record(program: &Path, arguments: &[&str]) -> (Vec<Event>, Log) {
    // Only shared memory is grown ahead.
    let name = format!("memscope-test-{}-{}", std::process::id(), arguments.join("-"));
    let logs = Path::new("/dev/shm").join(name);
    std::fs::create_dir(&logs).unwrap();
    let mut child = stage::recorded(program, &driver(""), &logs).args(arguments).stdout(Stdio::null()).spawn().unwrap();
    let mut source = Source::new(&logs, Options::new(Mode::Record));
    let (mut events, mut next, mut missing, mut ended) = (Vec::new(), 0, 0, false);
    while !(ended && source.is_done()) {
        ended = child.try_wait().unwrap().is_some();
        let mut entries = Vec::new();
        source.round(&mut entries).unwrap();
        for entry in entries {
            match entry {
                Entry::Records { first_slot, records, .. } => {
                    assert_eq!(first_slot, next, "a gap");
                    next += records.len() as u64;
                    events.extend(records.iter().filter_map(Event::decode));
                }
                Entry::Counters(_, counters) => missing = counters.dropped + counters.uncommitted,
                _ => {}
            }
        }
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(missing, 0);
    let log = only_log(&logs);
    std::fs::remove_dir_all(&logs).unwrap();
    assert_eq!(next, log.head());
    (events, log)
}

#[test]
fn a_program_uses_the_space_that_the_recorder_provides() {
    // 20 bursts of 1,024 calls, 20 ms apart, and 200 before: the log ends in the first half of its second chunk.
    let (events, log) = record(&linked_program("cost"), &["1", "640", "20000"]);
    let allocations = events.iter().filter(|event| matches!(event, Event::Alloc { .. })).count();
    let frees = events.iter().filter(|event| matches!(event, Event::Free { .. })).count();
    assert_eq!((allocations, frees), (100 + 640 * 16, 100 + 640 * 16));
    assert!(log.head() < CHUNK_SLOTS + CHUNK_SLOTS / 2, "{}", log.head());
    assert!(log.allocated() > 2 * CHUNK_SLOTS, "alone, the program has no reason to allocate a third chunk");
}

#[test]
fn threads_that_outrun_the_recorder_lose_nothing() {
    let (events, _) = record(&program("stress", &["-pthread"]), &["4", "200000"]);
    let mut numbers: Vec<u64> = events
        .into_iter()
        .filter_map(|event| match event {
            Event::Step { number } => Some(number),
            _ => None,
        })
        .collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..800_000));
}
