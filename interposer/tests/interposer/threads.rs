//! Many threads: every event is there exactly once, and their order is that of the driver.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use memscope_wire::Event;

use crate::log_reader::{Log, only_log};
use crate::stage::{self, driver, linked_program, program, run_both, variant};

fn steps(log: &Log) -> Vec<u64> {
    let numbers = log.events().into_iter().filter_map(|event| match event {
        Event::Step { number } => Some(number),
        _ => None,
    });
    numbers.collect()
}

#[test]
fn every_call_of_every_thread_is_recorded() {
    let log = only_log(&run_both(&program("threads", &["-pthread"]), &driver(""), &[]));
    let mut by_thread: BTreeMap<u32, (usize, usize, usize)> = BTreeMap::new();
    let mut live = HashSet::new();
    for record in log.records() {
        let counts = by_thread.entry(record.thread).or_default();
        match Event::decode(&record).expect("every claimed slot is committed") {
            Event::Thread => counts.2 += 1,
            Event::Alloc { address, .. } => {
                counts.0 += 1;
                assert!(live.insert(address));
            }
            Event::Free { address, .. } => {
                counts.1 += 1;
                assert!(live.remove(&address));
            }
            _ => {}
        }
    }
    assert_eq!(by_thread.len(), 16);
    assert!(by_thread.values().all(|counts| *counts == (1001, 1001, 1)), "{by_thread:?}");
    assert!(live.is_empty());
}

#[test]
fn no_event_is_lost_or_doubled_while_the_log_grows() {
    for (threads, events) in [(1, 100_000), (8, 25_000)] {
        let program = program("stress", &["-pthread"]);
        let log = only_log(&run_both(&program, &driver(""), &[&threads.to_string(), &events.to_string()]));
        let numbers = steps(&log);
        let total = threads * events;
        assert_eq!(numbers.len() as u64, total);
        assert_eq!(numbers.into_iter().collect::<BTreeSet<_>>(), (0..total).collect());
        assert_eq!(log.head(), total + threads + stage::rows());
        assert_eq!(log.dropped(), 0);
    }
}

#[test]
fn an_address_is_free_in_the_log_before_it_is_given_again() {
    let log = only_log(&run_both(&linked_program("reuse"), &driver("REUSE"), &[]));
    let mut live = HashSet::new();
    let mut allocations = 0;
    for event in log.events() {
        match event {
            Event::Alloc { address, .. } => {
                allocations += 1;
                assert!(live.insert(address), "{address:x} is given while it is taken");
            }
            Event::Free { address, .. } => assert!(live.remove(&address), "{address:x} is freed while it is free"),
            _ => {}
        }
    }
    assert_eq!(allocations, 8 * 3000 * 4);
}

#[test]
fn signal_handlers_record_in_the_middle_of_other_events() {
    let log = only_log(&run_both(&program("interrupted", &[]), &driver(""), &[]));
    let (handlers, program): (Vec<_>, Vec<_>) = steps(&log).into_iter().partition(|number| *number >= 1_000_000);
    assert_eq!(program, (0..100_000).collect::<Vec<_>>());
    assert!(!handlers.is_empty());
    assert_eq!(handlers, (1_000_000..1_000_000 + handlers.len() as u64).collect::<Vec<_>>());
    assert_eq!(log.dropped(), 0);
}

#[test]
fn a_hook_that_is_left_by_a_jump_or_the_end_of_its_thread_does_no_harm() {
    let folder = driver("");
    let arguments = ["-rdynamic", "-fno-inline", "-L", folder.to_str().unwrap(), "-lcuda", "-pthread"];
    let log = only_log(&run_both(&variant("abandoned", "", &arguments), &driver("LEAVES"), &[]));
    let story = log.story();
    let story: Vec<_> = story.iter().filter(|line| !line.starts_with("device")).collect();
    // The thread allocates first; then main's calls that never returned leave no trace.
    let expected = [
        "thread",
        "in context 1, device 0",
        "cuMemAlloc_v2 10000000: 100 of 100 bytes, stream 0, device 0, device",
        "thread",
        "in context 1, device 0",
        "cuMemAlloc_v2 10000200: 200 of 200 bytes, stream 0, device 0, device",
        "cuMemFree_v2 10000200, stream 0",
    ];
    assert_eq!(story, expected);
}

#[test]
fn a_name_that_threads_meet_at_once_has_its_text_before_its_use() {
    // The story checks it for every use.
    let story = only_log(&run_both(&program("names", &["-pthread"]), &driver(""), &[])).story();
    assert_eq!(story.iter().filter(|line| line.starts_with("into \"name ")).count(), 2 * 2000);
}
