//! Lists, steps and holdings of sessions written by hand, with figures worked out by hand.

use memscope_core::explorer::{At, Column, Explorer, Grouping, Limits, Pick, Query, Row, RowsQuery, Target};
use memscope_core::journal::entry::Nanoseconds;
use memscope_wire::{Category, Event, Measure, MemoryKind};

use super::ended;
use super::live::{FRESH, ask};
use crate::deeds::{UUIDS, key, plain};
use crate::trace::Trace;

#[test]
fn rows_are_sorted_grouped_and_filtered() {
    let entries = crate::reports::layers().entries;
    let mut explorer = ended::explorer(&entries, FRESH);
    let mut list = |query: RowsQuery| {
        let answer = explorer.answer(&Query { rows: Some(query), ..Query::default() });
        (*answer.rows.expect("asked for")).clone()
    };
    let names = |rows: &[Row]| -> Vec<String> {
        rows.iter()
            .map(|row| match row {
                Row::Allocation(row) => row.name.clone(),
                Row::Group(group) => group.label.clone(),
            })
            .collect()
    };
    let all = RowsQuery { window: 0..1000, ..RowsQuery::default() };
    let by_size = list(RowsQuery { window: 0..3, ..all.clone() });
    assert_eq!((by_size.total, by_size.matching, by_size.first), (50, 50, 0));
    assert_eq!(names(&by_size.rows), ["wte.weight", "h.23.attn", "h.22.attn"]);
    let next = list(RowsQuery { window: 2..4, ..all.clone() });
    assert_eq!((next.first, names(&next.rows)), (2, vec!["h.22.attn".into(), "h.21.attn".into()]));
    let beyond = list(RowsQuery { window: 90..100, ..all.clone() });
    assert_eq!((beyond.first, beyond.rows.len()), (50, 0));
    let smallest = list(RowsQuery { descending: false, sort: Column::Name, filter: "attn".into(), ..all.clone() });
    assert_eq!((smallest.total, smallest.matching), (50, 24));
    assert_eq!(names(&smallest.rows)[..3], ["h.0.attn", "h.1.attn", "h.10.attn"]);
    let bytes: u64 = (0..24).map(|layer| (100 + layer) << 20).sum();
    assert_eq!(smallest.matching_bytes, bytes);
    assert_eq!((smallest.matching_allocations, smallest.total_bytes > bytes), (24, true));
    // Where an allocation is in the order, whatever the window; and that one which is not let through is nowhere.
    let Row::Allocation(row) = &list(RowsQuery { window: 30..31, ..all.clone() }).rows[0] else { panic!("a group") };
    let pick = Pick { id: row.id, birth: row.birth };
    for (filter, place) in [("", Some(30)), ("name:nobody", None)] {
        let found = list(RowsQuery { find: Some(pick), filter: filter.into(), window: 0..1, ..all.clone() }).found;
        assert_eq!(found, Some((pick, place)));
    }
    for sort in [Column::Granted, Column::Address, Column::Count] {
        let key = |row: &Row| match row {
            Row::Allocation(row) if sort == Column::Address => row.address,
            Row::Allocation(row) => row.granted,
            Row::Group(group) => panic!("{group:?}"),
        };
        let [down, up] = [true, false].map(|descending| list(RowsQuery { sort, descending, ..all.clone() }).rows);
        assert!(down.is_sorted_by_key(|row| std::cmp::Reverse(key(row))) && up.is_sorted_by_key(key), "{sort:?}");
    }
    // In these all are alike: of equals the largest comes first, either way.
    let largest_first = list(all.clone()).rows;
    for sort in [Column::Line, Column::Device, Column::Process] {
        let [down, up] = [true, false].map(|descending| list(RowsQuery { sort, descending, ..all.clone() }).rows);
        assert!(down == largest_first && up == largest_first, "{sort:?}");
    }
    let wrong = list(RowsQuery { filter: "attn >x".into(), ..all.clone() });
    assert_eq!(wrong.matching, 50);
    assert!(wrong.filter_error.expect("a sentence").contains("`>x`"));
    let groups = list(RowsQuery { group: Some(Grouping::Category), ..all.clone() });
    assert_eq!(names(&groups.rows), ["activations", "weights", "unknown"]);
    let groups = list(RowsQuery { group: Some(Grouping::Size), filter: "<2MiB".into(), ..all.clone() });
    assert_eq!(names(&groups.rows), ["1.00 MiB"]);
    let groups = list(RowsQuery { group: Some(Grouping::Scope), sort: Column::Scope, descending: false, ..all });
    assert_eq!(names(&groups.rows)[..3], ["", "model/h.0", "model/h.1"]);
}

#[test]
fn steps_that_leak_are_marked_and_holdings_are_told_by_device() {
    let mut trace = crate::trace::Trace::new(&["./leak"], None);
    for process in 0..2 {
        trace.process(process, 31 + process);
        trace.device(process, 0, UUIDS[0], 1 << 30);
        trace.device(process, 1, UUIDS[1], 1 << 30);
    }
    for step in 0..8u64 {
        trace.now = step * 1_000_000;
        trace.step(0, step);
        trace.tagged(0, 0x1000_0000 * (step + 1), 1 << 20, Category::Activations, "loss.history");
    }
    let mut explorer = ended::explorer(&trace.entries, FRESH);
    let answer = ask(&mut explorer, Target::Device(0), At::Live);
    assert_eq!(answer.findings[0].detail.kind(), "step_growth");
    // The growth begins at the end of step 1: the first step is not counted, and the last has not ended.
    let leaks: Vec<u64> = answer.steps.iter().filter(|step| step.leaks).map(|step| step.number).collect();
    assert_eq!(leaks, [2, 3, 4, 5, 6]);
    assert_eq!(answer.steps[3].growth, Some(1 << 20));
    assert_eq!((answer.steps[3].at_end, answer.steps[7].at_end), (Some(4 << 20), None));
    assert_eq!(answer.steps_now, Some(7));
    assert_eq!((answer.steps[0].growth, answer.steps[7].growth, answer.steps[7].end), (None, None, None));
    assert_eq!(answer.step_before.map(|live| live[Category::Activations as usize]), Some(7 << 20));
    assert!(answer.steps[2].shape.len() > 1 && answer.steps[2].shape.iter().all(|bytes| *bytes == 3 << 20));
    assert!(ask(&mut explorer, Target::Device(1), At::Live).steps.iter().all(|step| !step.leaks), "another device");
    // Ordinal 1 is another device; nothing is told of a process that holds nothing, or has ended.
    let device = 1;
    let memory = MemoryKind::Device;
    for process in 0..2 {
        let bytes = 100 << process;
        let alloc = Event::Alloc { address: 0x9000, bytes, requested: bytes, stream: 0, device, row: 3, memory };
        trace.event(process, alloc);
    }
    let mut explorer = ended::explorer(&trace.entries, Limits::LIVE_ONLY);
    let held = |explorer: &mut Explorer| -> Vec<(u32, String, u64)> {
        explorer.holdings().into_iter().map(|held| (held.pid, plain(&held.device), held.rows.reserved)).collect()
    };
    let [first, second] = UUIDS.map(key);
    let expected = [(31, first, 8 << 20), (31, second.clone(), 100), (32, second, 200)];
    assert_eq!(held(&mut explorer), expected);
    trace.ended(0);
    trace.entries.last().into_iter().for_each(|entry| explorer.apply(entry));
    assert_eq!(held(&mut explorer), expected[2..]);
}

#[test]
fn a_large_list_waits_for_its_turn_but_nobody_who_asks_anew_or_needs_to_know() {
    let mut trace = crate::trace::training();
    trace.entries.truncate(trace.entries.len() - 2);
    // Practically never.
    let mut explorer = ended::explorer(&trace.entries, Limits { pace: u32::MAX, ..Limits::NONE });
    let rows = RowsQuery { window: 0..1000, ..RowsQuery::default() };
    let query = Query { rows: Some(rows.clone()), ..Query::default() };
    let first = explorer.answer(&query).rows.expect("asked for");
    assert_eq!((first.as_of.0, first.total), (trace.now - 1_000_000_000, 3));
    assert_eq!(explorer.due(), None, "nothing is old");
    let before = trace.entries.len();
    trace.tagged(0, 0x7000_0000, 5, Category::Inputs, "batch");
    trace.entries[before..].iter().for_each(|entry| explorer.apply(entry));
    let later = explorer.answer(&query);
    assert_eq!(later.rows.as_ref(), Some(&first), "the list is as it was");
    assert_eq!(later.now.state.rows.live[Category::Inputs as usize], 5, "figures are not");
    assert!(explorer.due().is_some());
    let window = Query { rows: Some(RowsQuery { window: 1..2, ..rows.clone() }), ..query.clone() };
    assert_eq!(explorer.answer(&window).rows.expect("asked for").total, 3, "another window of the same list");
    let anew = Query { rows: Some(RowsQuery { sort: Column::Name, ..rows }), ..query.clone() };
    assert_eq!(explorer.answer(&anew).rows.expect("asked for").total, 4);
    let refused = Event::AllocFailed {
        requested: 3 << 30,
        free: 0,
        total: 80 << 30,
        device: 0,
        result: 2,
        row: crate::trace::ALLOC_ROW,
        memory: MemoryKind::Device,
    };
    trace.event(0, refused);
    trace.entries.last().into_iter().for_each(|entry| explorer.apply(entry));
    let answer = explorer.answer(&query);
    assert_eq!(answer.findings[0].detail.kind(), "oom");
    assert_eq!(answer.refusals.len(), 1);
}

#[test]
fn what_a_refusal_met_is_seen_though_its_program_gave_it_back_at_that_very_time() {
    let mut trace = Trace::new(&["train"], None);
    trace.process(0, 4242);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    trace.now += 1_000_000;
    trace.tagged(0, 0x1000_0000, 700, Category::Weights, "weight");
    let (requested, free, total) = (1 << 30, 300, 1000);
    let row = crate::trace::ALLOC_ROW;
    let time = trace.now;
    trace
        .event(0, Event::AllocFailed { requested, free, total, device: 0, result: 2, row, memory: MemoryKind::Device });
    trace.now = time;
    trace.ended(0);
    trace.end(1);
    let mut explorer = ended::explorer(&trace.entries, FRESH);
    let live = |at: At, explorer: &mut Explorer| ask(explorer, Target::All, at).now.state.rows.live_bytes();
    let refused = ask(&mut explorer, Target::All, At::Live).refusals[0];
    assert_eq!(live(At::Refused(refused), &mut explorer), 700);
    assert_eq!(live(At::Time(refused), &mut explorer), 0, "right after the last change of that time");
    let elsewhere = Nanoseconds(refused.0 - 1);
    assert_eq!(live(At::Refused(elsewhere), &mut explorer), live(At::Time(elsewhere), &mut explorer));
}

#[test]
fn the_shape_of_the_last_step_ends_with_its_process() {
    let mut trace = Trace::new(&["train"], None);
    trace.process(0, 4242);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    trace.step(0, 1);
    trace.tagged(0, 0x1000_0000, 1 << 20, Category::Weights, "weight");
    for _ in 0..8 {
        trace.now += 1_000_000;
        trace.tagged(0, 0x2000_0000, 1 << 10, Category::Workspace, "temporary");
        trace.free(0, 0x2000_0000);
    }
    trace.ended(0);
    // What remains of the session is no part of the step.
    trace.now += 1_000_000_000;
    trace.end(0);
    let mut explorer = ended::explorer(&trace.entries, FRESH);
    let step = ask(&mut explorer, Target::All, At::Live).steps[0].clone();
    assert!(step.end.is_some_and(|end| end.0 < trace.now - 900_000_000), "{step:?}");
    assert!(step.shape.len() >= 8, "as fine as the step is long: {step:?}");
    assert!(step.shape.iter().all(|bytes| *bytes >= 1 << 20), "{step:?}");
}

#[test]
fn the_largest_scopes_are_as_new_as_the_ledger_or_say_of_when_they_are() {
    for (scopes, fresh) in [(3, true), (3000, false)] {
        let mut trace = Trace::new(&["train"], None);
        trace.process(0, 4242);
        trace.device(0, 0, UUIDS[0], 1 << 30);
        for scope in 0..scopes {
            trace.push(0, &format!("scope{scope}x"));
            trace.alloc(0, 0x1000_0000 + scope * 0x1_0000, 0x1000);
            trace.pop(0);
        }
        // Practically never anew.
        let mut explorer = ended::explorer(&trace.entries, Limits { pace: u32::MAX, ..Limits::NONE });
        let first = explorer.answer(&Query::default());
        assert_eq!((first.top_scopes_bytes, first.top_scopes_as_of), (scopes * 0x1000, None));
        let from = trace.entries.len();
        trace.now += 1_000_000;
        trace.alloc(0, 0x7000_0000_0000, 0x5000);
        trace.entries[from..].iter().for_each(|entry| explorer.apply(entry));
        let later = explorer.answer(&Query::default());
        assert_eq!(later.now.state.rows.live_bytes(), scopes * 0x1000 + 0x5000);
        if fresh {
            assert_eq!((later.top_scopes_bytes, later.top_scopes_as_of), (scopes * 0x1000 + 0x5000, None));
            assert!(later.top_scopes.iter().any(|scope| scope.path.is_empty()), "{:?}", later.top_scopes);
        } else {
            assert_eq!(later.top_scopes_as_of, Some(first.now.state.time), "of then");
            assert_eq!(later.top_scopes_bytes, scopes * 0x1000, "and so is what their shares are of");
        }
    }
}

#[test]
fn memory_that_is_mapped_piece_by_piece_is_one_segment() {
    const MIB: u64 = 1 << 20;
    let mut trace = Trace::new(&["expandable"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    let memory = MemoryKind::Device;
    for (handle, address) in [(1, 0x1000_0000), (2, 0x1000_0000 + 2 * MIB), (3, 0x1000_0000 + 6 * MIB)] {
        trace.event(0, Event::Create { handle, bytes: 2 * MIB, measure: Measure::Told, device: 0, row: 1, memory });
        trace.event(0, Event::Map { address, bytes: 2 * MIB, offset: 0, handle, row: 1 });
    }
    let blocks = [(0x1000_0000 + MIB / 2, 2 * MIB), (0x1000_0000 + 6 * MIB, MIB)];
    for (address, bytes) in blocks {
        let origin = memscope_wire::Origin::Hooked;
        trace.event(0, Event::BlockAlloc { address, bytes, requested: bytes, stream: 0, origin });
    }
    let mut explorer = ended::explorer(&trace.entries, FRESH);
    let segments = ask(&mut explorer, Target::All, At::Live).segments.expect("asked for");
    let figures: Vec<_> = segments
        .segments
        .iter()
        .map(|one| (one.address, one.bytes / MIB, one.blocks, one.in_blocks / MIB, one.holes, one.largest_hole))
        .collect();
    // The first two pieces lie one behind the other, with a block in both of them; behind a gap comes the third.
    let expected = [(0x1000_0000, 4, 1, 2, 2, 3 * MIB / 2), (0x1000_0000 + 6 * MIB, 2, 1, 1, 1, MIB)];
    assert_eq!(figures, expected);
}
