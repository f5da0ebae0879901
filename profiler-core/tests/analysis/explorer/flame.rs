//! What holds memory as a tree: random sessions against plain sums over the reference's lives, and stacks by hand.

use std::collections::BTreeMap;

use memscope_core::explorer::{
    At, Explorer, FlameBy, FlameNode, FlameQuery, FlameView, FlameWeight, Limits, Query, Target,
};
use memscope_core::journal::entry::Nanoseconds;
use memscope_wire::{Category, Event, TextId};
use proptest::prelude::*;

use super::ended::{explorer, through_a_profile};
use super::live::{Part, Step, of_all_processes, targets};
use crate::deeds::{UUIDS, session};
use crate::reference::{Life, World};
use crate::trace::Trace;

/// More parts than any session of these tests has bytes: nothing is told together.
const FINE: usize = 1 << 40;

/// Bytes by category, and allocations.
type Held = ([u64; 7], u64);

/// What each path holds, all inside it included: the root's path is empty.
fn naive<'w>(lives: impl Iterator<Item = &'w Life>, invert: bool) -> BTreeMap<Vec<String>, Held> {
    let mut sums = BTreeMap::from([(Vec::new(), Held::default())]);
    for life in lives {
        // Names that were never told are shown by their number.
        let mut path: Vec<String> = life.scope.iter().map(|name| format!("#{name:016x}")).collect();
        if invert {
            path.reverse();
        }
        for length in 0..=path.len() {
            let (live, count) = sums.entry(path[..length].to_vec()).or_default();
            live[life.category as usize] += life.requested;
            *count += 1;
        }
    }
    sums
}

fn path(view: &FlameView, position: usize) -> Vec<String> {
    view.path(position).into_iter().skip(1).map(|at| view.nodes[at].label.clone()).collect()
}

/// A node's bytes are its own and its children's, and its children lie side by side within it.
fn check_sums(view: &FlameView) -> Result<(), TestCaseError> {
    for position in view.zoomed..view.nodes.len() {
        let node = &view.nodes[position];
        let children: Vec<&FlameNode> = view.children(position).map(|at| &view.nodes[at]).collect();
        if node.merged > 0 {
            prop_assert!(children.is_empty() && node.own == node.bytes());
            continue;
        }
        prop_assert_eq!(node.bytes(), node.own + children.iter().map(|child| child.bytes()).sum::<u64>());
        let mut begin = node.begin;
        for child in &children {
            prop_assert_eq!((child.begin, child.depth), (begin, node.depth + 1));
            begin += child.bytes();
        }
        let single: Vec<u64> = children.iter().filter(|child| child.merged == 0).map(|child| child.bytes()).collect();
        prop_assert!(single.is_sorted_by(|one, other| one >= other));
    }
    Ok(())
}

fn check(steps: &[Step], announced: bool, moments: &[(u64, u64, bool)]) -> Result<(), TestCaseError> {
    let entries = session(steps, announced);
    let world = World::of(&entries);
    let mut of_entries = explorer(&entries, Limits::NONE);
    let model = crate::deeds::model_of(&entries);
    let mut of_profile = Explorer::of_profile(&through_a_profile(&model)).expect("it opens");
    let first = of_entries.answer(&Query::default());
    let last = first.session.last_time.0;
    for (time, length, invert) in moments {
        let start = time % (last + 1);
        let range = Nanoseconds(start)..Nanoseconds(start + length);
        for (target, part) in targets(&first) {
            for weight in [FlameWeight::Cursor, FlameWeight::Peak, FlameWeight::AllocatedIn(range.clone())] {
                let flame = FlameQuery { weight, invert: *invert, parts: FINE, ..FlameQuery::default() };
                for explorer in [&mut of_entries, &mut of_profile] {
                    check_view(explorer, &world, (target, &part), start, &flame)?;
                }
            }
        }
    }
    Ok(())
}

fn check_view(
    explorer: &mut Explorer,
    world: &World,
    (target, part): (Target, &Part),
    time: u64,
    flame: &FlameQuery,
) -> Result<(), TestCaseError> {
    let query = Query { target, at: At::Time(Nanoseconds(time)), flame: Some(flame.clone()), ..Query::default() };
    let answer = explorer.answer(&query);
    let view = answer.flame.expect("asked for");
    check_sums(&view)?;
    let counts = |life: &&Life| life.is_leaf() && part.counts(life.memory) && part.has(world, life);
    let root = view.nodes[0].live;
    match &flame.weight {
        FlameWeight::Cursor => prop_assert_eq!(root, answer.now.state.rows.live),
        FlameWeight::Peak => {
            // Of one nanosecond the largest moment is not found by time alone: the ledger knows it.
            prop_assert_eq!(root, answer.peak.map(|peak| peak.state.rows.live).unwrap_or_default());
            return Ok(());
        }
        FlameWeight::AllocatedIn(_) => {}
    }
    let meant = |life: &&Life| match &flame.weight {
        FlameWeight::AllocatedIn(range) => (range.start.0..range.end.0).contains(&life.birth.0),
        _ => life.lives_at(time),
    };
    let expected = naive(world.lives.iter().filter(counts).filter(meant), flame.invert);
    let nodes = view.nodes.iter().enumerate().filter(|(_, node)| node.merged == 0);
    let found: BTreeMap<Vec<String>, Held> =
        nodes.map(|(position, node)| (path(&view, position), (node.live, node.allocations))).collect();
    // What asks for no byte is too narrow for any picture.
    let some = |(path, (live, _)): &(Vec<String>, Held)| path.is_empty() || live.iter().sum::<u64>() > 0;
    prop_assert_eq!(&found, &expected.into_iter().filter(some).collect::<BTreeMap<_, _>>());
    for parts in [1, 3, 10] {
        let flame = Some(FlameQuery { parts, ..flame.clone() });
        let coarse = explorer.answer(&Query { flame, ..query.clone() }).flame.expect("asked for");
        check_sums(&coarse)?;
        prop_assert_eq!(coarse.nodes[0].live, root);
        let least = view.nodes[0].bytes() / parts as u64;
        prop_assert!(coarse.nodes.iter().skip(1).all(|node| node.merged > 0 || node.bytes() >= least));
        prop_assert!(coarse.nodes.len() <= view.nodes.len() + 2 * coarse.nodes.iter().filter(|n| n.merged > 0).count());
    }
    // Each node alone is what it is in the whole, and what a search finds lies in a node with that name.
    for (position, node) in view.nodes.iter().enumerate().skip(1).filter(|(_, node)| node.merged == 0) {
        let (zoom, search) = (view.zoom_to(position), node.label.clone());
        let flame = Some(FlameQuery { zoom, search, ..flame.clone() });
        let near = explorer.answer(&Query { flame, ..query.clone() }).flame.expect("asked for");
        check_sums(&near)?;
        let seen = &near.nodes[near.zoomed];
        prop_assert_eq!((&path(&near, near.zoomed), seen.live), (&path(&view, position), node.live));
        prop_assert_eq!((seen.begin, seen.depth, seen.found), (0, node.depth, node.bytes()));
        prop_assert_eq!(near.nodes[0].found, near.found);
        let has = |life: &&Life| life.scope.iter().any(|name| format!("#{name:016x}") == node.label);
        let lives = world.lives.iter().filter(counts).filter(meant).filter(has);
        let (bytes, count) = lives.fold((0, 0), |(bytes, count), life| (bytes + life.requested, count + 1));
        prop_assert_eq!((near.found, near.found_allocations), (bytes, count));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_node_is_the_sum_of_what_lies_in_it(
        steps in of_all_processes(),
        announced: bool,
        moments in proptest::collection::vec((0u64..500, 1u64..300, any::<bool>()), 1..3),
    ) {
        check(&steps, announced, &moments)?;
    }
}

/// Two lines of a function that is called from two places, a block each, and one that nobody knows the place of.
fn with_stacks() -> Explorer {
    let mut trace = Trace::new(&["./train"], None);
    trace.process(0, 31);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    let mut names = |text: &str| trace.name(0, text);
    let [file, main, train, test, net] =
        ["/home/me/run/train.py", "<module>", "train", "test", "Net.forward"].map(&mut names);
    let node = |node, parent, function, line| Event::StackNode { node, parent, file, function, line };
    let nodes = [(1, 0, main, 90), (2, 1, train, 20), (3, 1, test, 30), (4, 2, net, 7), (5, 3, net, 7), (6, 2, net, 8)];
    for (number, parent, function, line) in nodes {
        trace.event(0, node(number, parent, function, line));
    }
    for (stack, mib) in [(4u64, 8u64), (5, 4), (6, 2), (0, 1)] {
        trace.now += 10;
        trace.event(0, Event::Stack { node: stack, whole: true });
        trace.tagged(0, stack << 32, mib << 20, Category::Activations, "x");
    }
    trace.end(0);
    explorer(&trace.entries, Limits::NONE)
}

fn by_stack(explorer: &mut Explorer, flame: FlameQuery) -> FlameView {
    let flame = Some(FlameQuery { by: FlameBy::Stack, parts: 1000, ..flame });
    (*explorer.answer(&Query { at: At::Peak, flame, ..Query::default() }).flame.expect("asked for")).clone()
}

fn mib(view: &FlameView) -> Vec<(u32, &str, u64)> {
    view.nodes.iter().map(|node| (node.depth, &*node.label, node.bytes() >> 20)).collect()
}

#[test]
fn stacks_are_seen_from_both_ends() {
    let mut explorer = with_stacks();
    let view = by_stack(&mut explorer, FlameQuery::default());
    let expected = [
        (0, "", 15),
        (1, "run/train.py:90", 14),
        (2, "run/train.py:20 in train", 10),
        (3, "run/train.py:7 in Net.forward", 8),
        (3, "run/train.py:8 in Net.forward", 2),
        (2, "run/train.py:30 in test", 4),
        (3, "run/train.py:7 in Net.forward", 4),
    ];
    assert_eq!(mib(&view), expected);
    assert!(view.recorded && view.nodes[0].own == 1 << 20, "nobody knows the place of one");
    let zoomed = FlameQuery { zoom: view.zoom_to(2), search: "TEST".into(), ..FlameQuery::default() };
    let zoomed = by_stack(&mut explorer, zoomed);
    assert_eq!((mib(&zoomed), zoomed.zoomed), (expected[..5].to_vec(), 2));
    assert_eq!((zoomed.found >> 20, zoomed.found_allocations), (4, 1), "also what is not seen");
    let inverted = by_stack(&mut explorer, FlameQuery { invert: true, ..FlameQuery::default() });
    let expected = [
        (0, "", 15),
        (1, "run/train.py:7 in Net.forward", 12),
        (2, "run/train.py:20 in train", 8),
        (3, "run/train.py:90", 8),
        (2, "run/train.py:30 in test", 4),
        (3, "run/train.py:90", 4),
        (1, "run/train.py:8 in Net.forward", 2),
        (2, "run/train.py:20 in train", 2),
        (3, "run/train.py:90", 2),
    ];
    assert_eq!(mib(&inverted), expected);
}

#[test]
fn an_allocation_knows_the_lines_that_led_to_it() {
    let mut explorer = with_stacks();
    let view = by_stack(&mut explorer, FlameQuery::default());
    let rows = Some(memscope_core::explorer::RowsQuery { window: 0..1, ..Default::default() });
    let rows = explorer.answer(&Query { at: At::Peak, rows, ..Query::default() }).rows.expect("asked for");
    let memscope_core::explorer::Row::Allocation(row) = &rows.rows[0] else { panic!("{rows:?}") };
    let texts: Vec<&str> = row.stack.iter().map(|line| &*line.text).collect();
    assert_eq!(texts, ["run/train.py:7 in Net.forward", "run/train.py:20 in train", "run/train.py:90"]);
    let frames: Vec<_> = row.stack.iter().rev().map(|line| line.frame).collect();
    assert_eq!(frames, view.zoom_to(3), "the node of the tree is found by it");
}

#[test]
fn without_stacks_all_is_the_roots_own() {
    let mut trace = Trace::new(&["./train"], None);
    trace.process(0, 31);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    let name = TextId::of(b"x");
    trace.alloc(0, 1 << 32, 4096);
    trace.event(
        0,
        Event::Tag { address: 1 << 32, name, category: Category::Weights, origin: memscope_wire::Origin::Tagged },
    );
    trace.end(0);
    let view = by_stack(
        &mut explorer(&trace.entries, Limits::NONE),
        FlameQuery { filter: "a:b".into(), ..Default::default() },
    );
    assert!(!view.recorded && view.filter_error.is_some());
    assert_eq!((view.nodes.len(), view.nodes[0].own, view.nodes[0].live[Category::Weights as usize]), (1, 4096, 4096));
}
