//! PyTorch's own snapshot of its allocator against memscope's allocations, block by block, at several moments of every step.

use std::collections::BTreeSet;

use memscope_core::allocation::{Allocation, flag};
use serde_json::Value;

use crate::memscope::number;
use crate::torch::{Run, python, run};

/// Address and bytes.
type Range = (u64, u64);

/// Ranges of a list of pairs.
fn ranges(list: &Value) -> BTreeSet<Range> {
    let pair = |pair: &Value| (number(pair, "/0"), number(pair, "/1"));
    list.as_array().expect("a list").iter().map(pair).collect()
}

/// What lived at a time (CLOCK_MONOTONIC): blocks, or else segments. Ticks of a profile are nanoseconds since the session began.
fn live_at(run: &Run, time: u64, blocks: bool) -> impl Iterator<Item = &Allocation> {
    let ticks = time - run.model.session().start_monotonic_ns;
    let wanted = run.model.allocations().iter().filter(move |one| one.on_device() && one.is(flag::BLOCK) == blocks);
    wanted.filter(move |one| one.birth_ticks <= ticks && !(one.is(flag::DEAD) && one.death_ticks <= ticks))
}

fn compare(program: &str, segments_are_allocations: bool) {
    let Some(python) = python(&format!("snapshots of {program}")) else { return };
    let run = run(&python, "--device h100-80gb", &format!("{program} FILE"));
    assert_eq!(run.lines.len(), 9, "{program}: three moments in each of three steps");
    for (index, line) in run.lines.iter().enumerate() {
        let live = |blocks| live_at(&run, number(line, "/time"), blocks).map(|one| (one.address, one.bytes));
        let sum = |blocks| live(blocks).map(|range| range.1).sum::<u64>();
        assert_eq!(
            live(true).collect::<BTreeSet<Range>>(),
            ranges(&line["blocks"]),
            "{program}: blocks at moment {index}"
        );
        assert_eq!(sum(true), number(line, "/allocated"), "{program}: allocated at moment {index}");
        assert_eq!(sum(false), number(line, "/reserved"), "{program}: reserved at moment {index}");
        if segments_are_allocations {
            let segments: BTreeSet<Range> = live(false).collect();
            assert_eq!(segments, ranges(&line["segments"]), "{program}: segments at moment {index}");
        }
    }
}

#[test]
fn of_a_gpt() {
    for case in ["fp32", "bf16", "fp16", "checkpoint"] {
        compare(&format!("gpt {case}"), true);
    }
}

#[test]
fn of_a_gpt_in_segments_that_grow() {
    // A segment is then a range of addresses, into which many allocations of the driver are mapped.
    compare("gpt expandable", false);
}

#[test]
fn of_a_resnet() {
    for case in ["fp32", "channels_last", "fp16", "checkpoint"] {
        compare(&format!("resnet {case}"), true);
    }
    compare("resnet expandable", false);
}
