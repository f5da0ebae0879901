//! Lines of the program: in reports, in what views are told, and in the profile, written by hand as a log tells them.

use memscope_core::explorer::{Column, Explorer, FlameBy, FlameQuery, Grouping, Limits, Query, Row, RowsQuery};
use memscope_core::findings::Detail;
use memscope_core::journal::entry::Entry;
use memscope_core::profile::{self, Profile};
use memscope_core::report::{Instant, Style, text};
use memscope_wire::{Category, Event, MemoryKind, TextId};

use crate::profile::rebuilt;
use crate::trace::{ALLOC_ROW, Trace, UUID};

const MIB: u64 = 1 << 20;
const LINEAR: &str = "/opt/lib/python3.11/site-packages/torch/nn/linear.py";

/// Nodes of the trace.
const MAIN: u64 = 11;
const FORWARD: u64 = 12;
const IN_LIBRARY: u64 = 13;
const ELSEWHERE_IN_LIBRARY: u64 = 14;
const LOOP: u64 = 15;
const BACKWARD: u64 = u64::MAX >> 1;
const LIBRARY_ALONE: u64 = 17;

fn node(trace: &mut Trace, process: u32, node: u64, parent: u64, (file, line, function): (&str, u32, &str)) {
    let file = if file.is_empty() { TextId::NONE } else { trace.name(process, file) };
    let function = trace.name(process, function);
    trace.event(process, Event::StackNode { node, parent, file, function, line });
}

fn at(trace: &mut Trace, thread: u32, node: u64, address: u64, bytes: u64) {
    trace.event_of(0, thread, Event::Stack { node, whole: true });
    alloc(trace, thread, address, bytes);
}

fn alloc(trace: &mut Trace, thread: u32, address: u64, bytes: u64) {
    let memory = MemoryKind::Device;
    let event = Event::Alloc { address, bytes, requested: bytes, stream: 0, device: 0, row: ALLOC_ROW, memory };
    trace.event_of(0, thread, event);
}

/// What a program keeps outside its modules has no name: the line that made it says what it is, and the size of each which of those.
#[test]
fn what_has_no_name_is_called_by_its_line_when_memory_ran_out() {
    let mut trace = Trace::new(&["python", "train.py"], None);
    trace.process(0, 31);
    trace.device(0, 0, UUID, 1024 * MIB);
    node(&mut trace, 0, MAIN, 0, ("/home/me/train.py", 40, "<module>"));
    node(&mut trace, 0, IN_LIBRARY, MAIN, (LINEAR, 3, "Linear.forward"));
    let container = 0x10_0000_0000;
    alloc(&mut trace, 1, container, 900 * MIB);
    trace.event_of(0, 1, Event::Stack { node: IN_LIBRARY, whole: true });
    let origin = memscope_wire::Origin::Hooked;
    let mut address = container;
    for mebibytes in [150, 150, 100, 100, 100, 200] {
        let (bytes, requested) = (mebibytes * MIB, mebibytes * MIB);
        trace.event_of(0, 1, Event::BlockAlloc { address, bytes, requested, stream: 0, origin });
        address += bytes;
    }
    let (memory, row) = (MemoryKind::Managed, ALLOC_ROW);
    trace.event(
        0,
        Event::AllocFailed { requested: 300 * MIB, free: 0, total: 1024 * MIB, device: 0, result: 2, row, memory },
    );
    trace.ended(0);
    trace.end(1);
    let report = trace.model().report(Instant::Peak).expect("a report");
    let groups: Vec<_> = report
        .findings
        .iter()
        .filter_map(|finding| match &finding.detail {
            Detail::Oom(oom) => Some(&oom.largest_groups),
            _ => None,
        })
        .flatten()
        .map(|group| (group.name.as_str(), group.title().into_owned(), group.bytes))
        .collect();
    let expected = [
        ("(outside all scopes), 100.0 MiB each", "me/train.py:40, 100.0 MiB each", 300),
        ("(outside all scopes), 150.0 MiB each", "me/train.py:40, 150.0 MiB each", 300),
        ("(outside all scopes)", "me/train.py:40", 200),
    ];
    assert_eq!(groups, expected.map(|(name, title, mebibytes)| (name, title.to_owned(), mebibytes * MIB)));
}

fn program() -> Trace {
    let mut trace = Trace::new(&["python", "train.py"], None);
    trace.process(0, 31);
    trace.device(0, 0, UUID, 1024 * MIB);
    let main = ("/home/me/train.py", 40, "<module>");
    node(&mut trace, 0, MAIN, 0, main);
    node(&mut trace, 0, FORWARD, MAIN, ("/home/me/net.py", 7, "Net.forward"));
    node(&mut trace, 0, IN_LIBRARY, FORWARD, (LINEAR, 3, "Linear.forward"));
    node(&mut trace, 0, ELSEWHERE_IN_LIBRARY, FORWARD, (LINEAR, 4, "Linear.forward"));
    // Told again, as a thread may.
    node(&mut trace, 0, MAIN, 0, main);
    node(&mut trace, 0, LOOP, 0, ("/home/me/train.py", 44, "<module>"));
    node(&mut trace, 0, BACKWARD, LOOP, ("", 0, "<backward>"));
    node(&mut trace, 0, LIBRARY_ALONE, 0, ("/opt/lib/python3.11/threading.py", 9, "Thread.run"));
    at(&mut trace, 1, IN_LIBRARY, 0x1000_0000, 8 * MIB);
    // The thread has not moved.
    alloc(&mut trace, 1, 0x2000_0000, 8 * MIB);
    at(&mut trace, 1, ELSEWHERE_IN_LIBRARY, 0x3000_0000, 2 * MIB);
    at(&mut trace, 2, BACKWARD, 0x4000_0000, 4 * MIB);
    at(&mut trace, 3, LIBRARY_ALONE, 0x5000_0000, 3 * MIB);
    at(&mut trace, 1, 0, 0x6000_0000, MIB);
    // Another thread, which has said nothing.
    alloc(&mut trace, 4, 0x7000_0000, MIB);
    // A node that was never told, and a thread that is somewhere deeper than it can say.
    at(&mut trace, 5, 999, 0x8000_0000, MIB);
    trace.event_of(0, 6, Event::Stack { node: MAIN, whole: false });
    alloc(&mut trace, 6, 0x9000_0000, 5 * MIB);
    trace.now += 1_000_000_000;
    trace
}

fn explorer(trace: &Trace) -> Explorer {
    let mut explorer = Explorer::new(Limits::NONE);
    trace.entries.iter().for_each(|entry: &Entry| explorer.apply(entry));
    explorer
}

fn rows(explorer: &mut Explorer, filter: &str, group: Option<Grouping>) -> Vec<Row> {
    let query = RowsQuery { filter: filter.into(), group, sort: Column::Size, window: 0..99, ..RowsQuery::default() };
    let answer = explorer.answer(&Query { rows: Some(query), ..Query::default() });
    let rows = answer.rows.expect("rows");
    assert_eq!(rows.filter_error, None);
    rows.rows.clone()
}

/// What a list says of each: its site, and its lines from the inside outwards.
fn told(rows: &[Row]) -> Vec<(u64, String, Vec<String>)> {
    let row = |row: &Row| match row {
        Row::Allocation(row) => {
            (row.bytes / MIB, row.site.clone(), row.stack.iter().map(|line| line.text.clone()).collect())
        }
        Row::Group(group) => panic!("{group:?}"),
    };
    rows.iter().map(row).collect()
}

fn check_explorer(explorer: &mut Explorer) {
    let all = told(&rows(explorer, ">1MiB", None));
    let through = |line: &str| -> Vec<String> {
        vec![
            format!("torch/nn/linear.py:{line} in Linear.forward"),
            "me/net.py:7 in Net.forward".into(),
            "me/train.py:40".into(),
        ]
    };
    let forward = || "me/net.py:7 in Net.forward".to_owned();
    let library = "python3.11/threading.py:9 in Thread.run".to_owned();
    let expected = vec![
        (8, forward(), through("3")),
        (8, forward(), through("3")),
        (5, "me/train.py:40".into(), vec!["me/train.py:40".into()]),
        (4, "me/train.py:44".into(), vec!["<backward>".into(), "me/train.py:44".into()]),
        (3, library.clone(), vec![library.clone()]),
        (2, forward(), through("4")),
    ];
    assert_eq!(all, expected);
    assert!(told(&rows(explorer, "<2MiB", None)).iter().all(|(_, site, lines)| site.is_empty() && lines.is_empty()));

    let groups: Vec<(String, u64, u64)> = rows(explorer, "", Some(Grouping::Line))
        .iter()
        .map(|row| match row {
            Row::Group(group) => (group.label.clone(), group.allocations, group.live.iter().sum::<u64>() / MIB),
            Row::Allocation(row) => panic!("{row:?}"),
        })
        .collect();
    let group = |label: &str, count, bytes| (label.to_owned(), count, bytes);
    let expected = [
        group("me/net.py:7 in Net.forward", 3, 18),
        group("me/train.py:40", 1, 5),
        group("me/train.py:44", 1, 4),
        group("", 3, 3),
        group(&library, 1, 3),
    ];
    assert_eq!(groups, expected);
    for (label, count, _) in &groups {
        let term = memscope_core::explorer::exact_term("line", label);
        assert_eq!(rows(explorer, &term, None).len() as u64, *count, "{term}");
    }
    assert_eq!(rows(explorer, "line:NET.py", None).len(), 3);
    assert_eq!(rows(explorer, "line:linear", None).len(), 0, "the site is the program's");

    let flame = FlameQuery { by: FlameBy::Stack, parts: 100, ..FlameQuery::default() };
    let answer = explorer.answer(&Query { flame: Some(flame), ..Query::default() });
    assert!(answer.session.stacks);
    let view = answer.flame.expect("a tree");
    let nodes = view.nodes.iter();
    let tree: Vec<(u32, String, u64, u64)> =
        nodes.map(|node| (node.depth, node.label.clone(), node.bytes() / MIB, node.own / MIB)).collect();
    let node = |depth, name: &str, inside, own| (depth, name.to_owned(), inside, own);
    let expected = [
        node(0, "", 33, 3),
        node(1, "me/train.py:40", 23, 5),
        node(2, "me/net.py:7 in Net.forward", 18, 0),
        node(3, "torch/nn/linear.py:3 in Linear.forward", 16, 16),
        node(3, "torch/nn/linear.py:4 in Linear.forward", 2, 2),
        node(1, "me/train.py:44", 4, 0),
        node(2, "<backward>", 4, 4),
        node(1, "python3.11/threading.py:9 in Thread.run", 3, 3),
    ];
    assert_eq!(tree, expected);
}

#[test]
fn views_are_told_lines_groups_and_the_tree() {
    let mut explorer = explorer(&program());
    check_explorer(&mut explorer);
    // Told later, a stack is known from then on.
    let mut trace = program();
    node(&mut trace, 0, 999, MAIN, ("/home/me/net.py", 90, "late"));
    at(&mut trace, 5, 999, 0xa000_0000, 99 * MIB);
    let late = told(&rows(&mut self::explorer(&trace), ">50MiB", None));
    assert_eq!(late[0].1, "me/net.py:90 in late");
}

/// Texts of what leads and of what comes after, as people are told the stack of the largest row.
fn in_order(trace: &Trace, filter: &str) -> (Vec<String>, Vec<String>) {
    let rows = rows(&mut explorer(trace), filter, None);
    let Row::Allocation(row) = &rows[0] else { panic!("no group") };
    let told = row.told();
    let [leading, others]: [Vec<String>; 2] =
        [told.leading, told.others].map(|lines| lines.iter().map(|line| line.text.clone()).collect());
    assert_eq!(leading.first(), Some(&row.site), "the site leads");
    (leading, others)
}

#[test]
fn the_programs_own_lines_lead_a_stack() {
    let mut trace = program();
    let own = ["me/net.py:7 in Net.forward", "me/train.py:40"].map(str::to_owned).to_vec();
    assert_eq!(in_order(&trace, ">7MiB"), (own, vec!["torch/nn/linear.py:3 in Linear.forward".to_owned()]));
    let remark = (vec!["me/train.py:44".to_owned()], vec!["<backward>".to_owned()]);
    assert_eq!(in_order(&trace, ">3MiB <5MiB"), remark);
    // Without a line of the program the innermost line leads, not a remark.
    node(&mut trace, 0, 20, LIBRARY_ALONE, (LINEAR, 5, "Linear.forward"));
    node(&mut trace, 0, 21, 20, ("", 0, "<backward>"));
    at(&mut trace, 3, 21, 0xa000_0000, 90 * MIB);
    let others = ["<backward>", "python3.11/threading.py:9 in Thread.run"].map(str::to_owned).to_vec();
    assert_eq!(in_order(&trace, ">80MiB"), (vec!["torch/nn/linear.py:5 in Linear.forward".to_owned()], others));
    // However deep inside libraries.
    for deeper in 30..130 {
        let parent = if deeper == 30 { FORWARD } else { deeper - 1 };
        node(&mut trace, 0, deeper, parent, (LINEAR, deeper as u32, "Linear.forward"));
    }
    at(&mut trace, 3, 129, 0xc000_0000, 200 * MIB);
    let (leading, others) = in_order(&trace, ">190MiB");
    assert_eq!((leading, others.len()), (vec!["me/net.py:7 in Net.forward".to_owned()], 64));
    assert_eq!(others[0], "torch/nn/linear.py:129 in Linear.forward");
}

#[test]
fn reports_say_the_line_that_made_most() {
    let mut trace = program();
    trace.tagged(0, 0xb000_0000, MIB, Category::Weights, "unknown.line");
    trace.ended(0);
    trace.end(0);
    let report = trace.model().report(Instant::Peak).expect("a report");
    let peak = report.peak.as_ref().expect("a peak");
    let line = |bytes: u64| {
        let group = peak.top_groups.iter().find(|group| group.bytes == bytes * MIB).expect("a group");
        group.line.clone()
    };
    // The two of 8 MiB are one group; those outside of all code have none.
    assert_eq!(line(16).as_deref(), Some("me/net.py:7 in Net.forward"));
    assert_eq!(line(4).as_deref(), Some("me/train.py:44"));
    assert_eq!(line(1), None);
    assert_eq!(peak.top_allocations[0].line.as_deref(), Some("me/net.py:7 in Net.forward"));
    let text = text(&report, Style::default());
    assert!(text.contains("made at me/net.py:7 in Net.forward"), "{text}");
    let findings: Vec<&String> = report.findings.iter().map(|finding| &finding.message).collect();
    let expected = "allocations of whose stack only the outer part is known: 1; there was no room for more";
    assert!(findings.iter().any(|message| *message == expected), "{findings:?}");
}

#[test]
fn a_profile_keeps_lines_and_one_without_them_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("p.mscope");
    let trace = program();
    let written = profile::write(&trace.model(), &path, false).expect("written");
    let profile = Profile::open(&path).expect("opened");
    check_explorer(&mut Explorer::of_profile(&profile).expect("a model"));
    // What lies ready, and what is made from the rows.
    let report = profile.report(Instant::Peak).expect("a report");
    assert_eq!(report.peak, written.peak);
    let end = Instant::Time(memscope_core::journal::entry::Nanoseconds(u64::MAX >> 1));
    let at = profile.report(end).expect("a report").at.expect("a moment");
    assert_eq!(at.top_groups, written.peak.expect("a peak").top_groups);
    // Again through a model: the finding and the nodes are the same.
    let again = folder.path().join("again.mscope");
    let model = profile.model().expect("a model");
    let rewritten = profile::write(&model, &again, false).expect("written");
    assert_eq!(rewritten.findings, written.findings);
    assert_eq!(model.stacks().len(), trace.model().stacks().len());

    let old = rebuilt(&path, |name, content| (name != "stacks.parquet").then_some(content));
    let profile = Profile::open(&old).expect("opened");
    assert!(profile.model().expect("a model").stacks().is_empty());
    assert_eq!(profile.report(end).expect("a report").at.expect("a moment").top_groups[0].line, None);
    let tables =
        memscope_core::export::export_parquet(&profile, folder.path().join("tables"), false).expect("exported");
    assert_eq!(tables.len(), profile::TABLES.len() - 1);
}
