//! Sessions of which much is forgotten: what is live, and all figures over time, are told as if nothing was.

use memscope_core::explorer::{
    Answer, At, Explorer, Limits, Query, RowsQuery, Running, ScopeNode, SegmentsQuery, Target,
};
use memscope_core::journal::entry::{Entry, Nanoseconds};
use memscope_wire::Category;
use proptest::prelude::*;

use crate::deeds::{Deed, deed, session};
use crate::trace::{Trace, UUID, UUID_TEXT};

fn ask(explorer: &mut Explorer, target: Target) -> Answer {
    explorer.answer(&Query {
        target,
        at: At::Live,
        steps: 0..1000,
        rows: Some(RowsQuery { window: 0..1000, ..RowsQuery::default() }),
        scopes: true,
        segments: Some(SegmentsQuery { slices: 2, window: 0..100, ..SegmentsQuery::default() }),
        ..Query::default()
    })
}

/// What is told of now, and of the whole so far; lists of the past are incomplete.
fn told(answer: Answer) -> impl PartialEq + std::fmt::Debug {
    let live =
        |node: &ScopeNode| (node.allocations > 0).then(|| (node.name.clone(), node.now, node.own, node.allocations));
    let mut session = answer.session;
    session.listed = None;
    (
        (session, answer.devices, answer.processes, answer.target, answer.now),
        (answer.peak.map(|peak| (peak.state, peak.phase)), answer.step_before, answer.series),
        (answer.step_marks, answer.refusals, answer.steps_total, answer.steps, answer.top_scopes),
        (answer.rows, answer.scopes.map(|nodes| nodes.iter().filter_map(live).collect::<Vec<_>>()), answer.segments),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_forgotten_is_not_missed(
        deeds in proptest::collection::vec((prop_oneof![3 => Just(0u32), 1 => 1u32..3], 0u64..8, proptest::bool::weighted(0.1), deed()), 1..80),
        dead_allocations in 0usize..6,
        rarely in 1usize..4,
    ) {
        // A refusal of what is forgotten comes too late.
        let refused = |deed: &Deed| matches!(deed, Deed::Refuse { .. } | Deed::RefuseAtOnce { .. });
        let deeds: Vec<_> = deeds.into_iter().filter(|(_, _, _, deed)| !refused(deed)).collect();
        let entries = session(&deeds, true);
        let mut whole = Explorer::new(Limits::NONE);
        let mut short = Explorer::new(Limits { dead_allocations, ..Limits::NONE });
        for (position, entry) in entries[..entries.len() - 1].iter().enumerate() {
            whole.apply(entry);
            short.apply(entry);
            if position % rarely == 0 {
                for target in [Target::All, Target::Host, Target::Device(0), Target::Device(1), Target::Process(0), Target::Process(2)] {
                    prop_assert_eq!(told(ask(&mut whole, target)), told(ask(&mut short, target)), "{:?}", target);
                }
            }
        }
        prop_assert_eq!(whole.holdings(), short.holdings());
        prop_assert_eq!(whole.progress(), short.progress());
        // Its end comes as well as it can.
        entries.last().into_iter().for_each(|entry| short.apply(entry));
        prop_assert_eq!(ask(&mut short, Target::All).session.state, Running::Ended);
    }
}

/// A loop that makes and frees one activation a step, and is sampled once a step.
fn steps(count: u64) -> Vec<Entry> {
    let mut trace = Trace::new(&["./loop"], None);
    trace.process(0, 7);
    trace.device(0, 0, UUID, 1 << 30);
    trace.tagged(0, 0x1000_0000, 1000, Category::Weights, "weights");
    for step in 0..count {
        trace.now = (step + 1) * 100_000_000;
        trace.step(0, step);
        trace.phase(0, "forward");
        trace.alloc(0, 0x2000_0000, 100 + step);
        trace.free(0, 0x2000_0000);
        trace.sample(UUID_TEXT, 1 << 30, 5000, 0, &[(7, 5000)]);
    }
    trace.entries
}

#[test]
fn every_kind_of_thing_stays_within_its_bound() {
    let limits = Limits { dead_allocations: 10, steps: 60, markers: 20, samples: 16, pace: 0 };
    let mut explorer = Explorer::new(limits);
    let count = 400;
    for entry in steps(count) {
        explorer.apply(&entry);
        explorer.advance();
    }
    let answer = ask(&mut explorer, Target::All);
    assert_eq!(answer.session.allocations, count + 1);
    assert_eq!(answer.now.state.rows.live_bytes(), 1000);
    let peak = answer.peak.expect("a peak");
    assert_eq!((peak.state.rows.live_bytes(), peak.state.step), (1000 + 100 + count - 1, Some(count - 1)));
    // A third of the steps for each of all, the device and the process, and a quarter more before the oldest go.
    assert!((20..=26).contains(&answer.steps_total), "{}", answer.steps_total);
    let last = answer.steps.last().expect("steps");
    assert_eq!((last.number, last.peak, last.allocations), (count - 1, 1000 + 100 + count - 1, 1));
    let before = answer.session.listed.expect("much is forgotten").times[0].span.begin;
    assert!(before.0 > (count - 20) * 100_000_000 && before <= answer.session.last_time, "{before:?}");
    // The sample at the peak of the last step is there, and so is one of the beginning.
    assert!(answer.devices[0].sample.is_some());
    let early = explorer.answer(&Query { at: At::Time(Nanoseconds(20_000_000_000)), ..Query::default() });
    assert_eq!(early.devices[0].sample.as_ref().and_then(|sample| sample.used), Some(5000));
    // Of a time that is forgotten the series still tells.
    assert!((1000..1000 + 100 + 200).contains(&early.now.state.rows.live_bytes()), "{:?}", early.now);
    assert!(early.now.state.rows.adds_up());
    let step = explorer.answer(&Query { at: At::Step(count - 2), ..Query::default() });
    assert_eq!((step.now.phase.as_str(), step.now.state.step), ("forward", Some(count - 2)));
}
