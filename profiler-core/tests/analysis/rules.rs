//! What counts, and from when to when, where events meet: told late, across the borders of containers, from several processes, twice,
//! or of what was never seen. Each by hand.

use memscope_core::journal::entry::{Counters, Entry, ProcessIndex};
use memscope_core::report::Instant;
use memscope_wire::text::TextId;
use memscope_wire::{Category, Event, Origin};

use crate::deeds::{UUIDS, key};
use crate::reference::{Place, World};
use crate::trace::Trace;

#[test]
fn a_category_learned_later_counts_from_birth() {
    let mut trace = Trace::new(&["late"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    trace.alloc(0, 0x1000, 100);
    trace.alloc(0, 0x2000, 50);
    trace.free(0, 0x2000);
    let mut model = trace.model();
    let report = model.report(Instant::Peak).expect("a report");
    assert_eq!(report.category_peaks.unknown.bytes, 150);
    trace.entries.clear();
    let name = TextId::NONE;
    trace.event(0, Event::Tag { address: 0x1000 + 99, name, category: Category::Weights, origin: Origin::Tagged });
    let changes = model.apply(&trace.entries[0]);
    assert_eq!(changes.retagged.len(), 1);
    assert_eq!((changes.retagged[0].was, changes.retagged[0].is), (Category::Unknown, Category::Weights));
    let report = model.report(Instant::Peak).expect("a report");
    assert_eq!((report.category_peaks.unknown.bytes, report.category_peaks.weights.bytes), (50, 100));
    assert_eq!(report.peak.expect("a peak").by_category.weights, 100);
}

#[test]
fn a_block_that_reaches_beyond_a_container_outlives_it() {
    let mut trace = Trace::new(&["beyond"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    trace.alloc(0, 0x1000, 0x100);
    let block =
        |address, bytes| Event::BlockAlloc { address, bytes, requested: bytes, stream: 0, origin: Origin::Hooked };
    trace.event(0, block(0x1000, 0x10));
    trace.event(0, block(0x10f0, 0x20));
    trace.free(0, 0x1000);
    trace.alloc(0, 0x10f0, 8);
    // The tag is the block's, which lies in no known allocation, and not that of the memory below it.
    let name = TextId::NONE;
    trace.event(0, Event::Tag { address: 0x10f0, name, category: Category::Weights, origin: Origin::Tagged });
    trace.event(0, Event::BlockFree { address: 0x10f0, origin: Origin::Hooked });
    let model = trace.model();
    let report = model.report(Instant::Peak).expect("a report");
    assert_eq!((report.category_peaks.weights.bytes, report.category_peaks.unknown.bytes), (0, 16));
    assert_eq!((report.totals.blocks, report.totals.block_frees), (2, 1));
}

#[test]
fn events_of_several_processes_meet_in_the_order_of_time() {
    // Each process holds 100 bytes for a while; they overlap in time, although one log is drained after the other.
    let mut trace = Trace::new(&["two"], None);
    for process in 0..2 {
        trace.now = 0;
        trace.process(process, process + 1);
        trace.device(process, 0, UUIDS[0], 1 << 30);
        trace.now = 10 + 5 * u64::from(process);
        trace.alloc(process, 0x1000, 100);
        trace.now += 10;
        trace.free(process, 0x1000);
    }
    let report = trace.model().report(Instant::Peak).expect("a report");
    let peak = report.peak.expect("a peak");
    assert_eq!((peak.bytes, peak.time_s), (200, 15e-9));
    assert_eq!(report.devices.len(), 1, "one device, named by two processes");
}

#[test]
fn a_refusal_of_an_address_that_was_given_again_comes_too_late() {
    let mut trace = Trace::new(&["late"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    trace.alloc(0, 0x1000, 100);
    let first = trace.free(0, 0x1000);
    trace.alloc(0, 0x1000, 60);
    // Its free is not seen: the next one lies across it, and is freed as well, so that nothing is live at the address.
    trace.alloc(0, 0xfff, 10);
    trace.free(0, 0xfff);
    trace.event(0, Event::FreeRefused { address: 0x1000, slot: first, result: 1, row: 4 });
    let model = trace.model();
    assert_eq!(model.devices().next().expect("a device").rows.reserved, 0);
    assert_eq!(World::of(&trace.entries).now(&Place::Device(key(UUIDS[0]))).reserved, 0);
    // While nothing took the address, the memory never went away.
    trace.alloc(0, 0x2000, 70);
    let second = trace.free(0, 0x2000);
    trace.alloc(0, 0x3000, 1);
    trace.event(0, Event::FreeRefused { address: 0x2000, slot: second, result: 1, row: 4 });
    let report = trace.model().report(Instant::Peak).expect("a report");
    assert_eq!(report.end.expect("a device").ledger.rows.reserved, 71);
}

#[test]
fn doubts_are_counted() {
    let mut trace = Trace::new(&["odd"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    trace.free(0, 0x1000);
    trace.alloc(0, 0x1000, 100);
    trace.alloc(0, 0x1000, 60);
    trace.event(
        0,
        Event::Tag { address: 0x5000, name: TextId::NONE, category: Category::Inputs, origin: Origin::Tagged },
    );
    trace.event(0, Event::BlockAlloc { address: 0x7000, bytes: 1, requested: 1, stream: 0, origin: Origin::Hooked });
    let twice = trace.free(0, 0x9000);
    trace.event(0, Event::FreeRefused { address: 0x9000, slot: twice, result: 1, row: 4 });
    let counters = Counters { dropped: 3, uncommitted: 2, faults: 1, ..Counters::default() };
    trace.entries.push(Entry::Counters(ProcessIndex(0), counters));
    let mut model = trace.model();
    model.journal_truncated("the last frame is torn");
    let report = model.report(Instant::Peak).expect("a report");
    let mut kinds: Vec<&str> = report.findings.iter().map(|finding| finding.detail.kind()).collect();
    kinds.sort_unstable();
    let expected = [
        "dropped_events",
        "faults",
        "free_of_unknown",
        "free_refused",
        "journal_truncated",
        "missed_free",
        "outside_blocks",
        "tag_of_unknown",
        "uncommitted_slots",
        "unknown_share",
    ];
    assert_eq!(kinds, expected);
    let unknown = report.findings.iter().find(|finding| finding.detail.kind() == "free_of_unknown").expect("one");
    assert!(unknown.message.ends_with("allocated: 1"), "{}", unknown.message);
    assert_eq!(report.dropped_events, 3);
}
