//! `--stacks python`: the lines that led to an allocation, against the frames that Python gives at the same call, and against
//! PyTorch's own history of its allocator.

use std::path::Path;

use memscope_core::allocation::{Allocation, Model};
use serde_json::Value;

use crate::memscope::{Place, number};
use crate::torch::{Run, python, run, run_in};

/// File, line and function.
type Frame = (String, u64, String);

/// Frames of a list of [file, line, function], without those of the shim.
fn frames(list: &Value) -> Vec<Frame> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let frame = |frame: &Value| (text(&frame[0]), frame[1].as_u64().unwrap_or_default(), text(&frame[2]));
    let all = list.as_array().expect("a list").iter().map(frame);
    all.filter(|frame: &Frame| !frame.0.starts_with("<memscope>")).collect()
}

/// The recorded frames of an allocation, from the inside outwards; a remark has neither file nor line.
fn recorded(model: &Model, allocation: &Allocation) -> Vec<Frame> {
    let text = |name| model.names().text(name);
    let nodes = model.stacks().outwards(allocation.stack);
    nodes.map(|(_, node)| (text(node.file), u64::from(node.line), text(node.function))).collect()
}

/// The last allocation that began at this address.
fn last_at(model: &Model, address: u64) -> &Allocation {
    model.allocations().iter().rev().find(|one| one.address == address).expect("the tensor was recorded")
}

fn remark(text: &str) -> Frame {
    (String::new(), 0, text.to_owned())
}

/// As deep as stacks are recorded.
const DEEPEST: usize = 128;

/// Compares every case of programs/stacks.py.
fn compare(run: &Run) {
    let made = run.said["made"].as_array().expect("a list");
    assert_eq!(made.len(), 16);
    for one in made {
        let mut expected = frames(&one["frames"]);
        assert!(expected.len() > 2, "{one}");
        if expected.len() > DEEPEST {
            assert_eq!(one["case"], "deep");
            expected.truncate(DEEPEST);
            expected.push(remark("<deeper>"));
        }
        let found = recorded(&run.model, last_at(&run.model, number(one, "/address")));
        assert_eq!(found, expected, "{}", one["case"]);
    }
}

#[test]
fn of_code_of_every_kind_on_the_cpu() {
    let Some(python) = python("of_code_of_every_kind_on_the_cpu") else { return };
    compare(&run(&python, "--stacks python", "stacks cpu"));
}

#[test]
fn of_code_of_every_kind_on_the_simulated_device() {
    let Some(python) = python("of_code_of_every_kind_on_the_simulated_device") else { return };
    let run = run(&python, "--stacks python --device h100-80gb", "stacks cuda");
    compare(&run);
    // A gradient that a thread without Python made.
    let gradient = recorded(&run.model, last_at(&run.model, number(&run.said, "/backward/address")));
    assert_eq!(gradient[0], remark("<backward>"));
    let called = (number(&run.said, "/backward/line"), "of_a_thread_of_autograd".to_owned());
    assert!(gradient.iter().any(|(_, line, function)| (*line, function) == (called.0, &called.1)), "{gradient:?}");
    // Another implementation of the same: PyTorch's.
    let blocks = run.said["pytorch"].as_array().expect("a list");
    assert!(blocks.len() >= 16, "{}", blocks.len());
    for block in blocks {
        let theirs: Vec<(String, u64)> = frames(&block[1]).into_iter().map(|(file, line, _)| (file, line)).collect();
        let ours = recorded(&run.model, last_at(&run.model, number(block, "/0")));
        if theirs.is_empty() {
            assert_eq!(ours[0], remark("<backward>"), "PyTorch says nothing of such threads");
            continue;
        }
        let ours: Vec<(String, u64)> = ours.into_iter().map(|(file, line, _)| (file, line)).take(DEEPEST).collect();
        assert_eq!(ours[..], theirs[..theirs.len().min(DEEPEST)], "{block}");
    }
}

/// Without the flag there are no stacks.
#[test]
fn nothing_unless_it_is_asked_for() {
    let Some(python) = python("nothing_unless_it_is_asked_for") else { return };
    let run = run(&python, "", "stacks cpu");
    assert!(run.model.stacks().is_empty());
    assert!(run.model.allocations().iter().all(|one| one.stack == 0));
}

#[test]
fn what_has_no_room_is_counted_and_its_outer_part_is_right() {
    let Some(python) = python("what_has_no_room_is_counted_and_its_outer_part_is_right") else { return };
    let variables = [("MEMSCOPE_STACK_NODES", Path::new("12"))];
    let run = run_in(&Place::new(), &variables, &python, "--stacks python", "stacks cpu");
    assert_eq!(run.model.stacks().len(), 1 + 12, "as many as there is room for");
    let mut in_part = 0;
    for one in run.said["made"].as_array().expect("a list") {
        let mut expected = frames(&one["frames"]);
        expected.truncate(DEEPEST);
        let mut found = recorded(&run.model, last_at(&run.model, number(one, "/address")));
        found.retain(|frame| *frame != remark("<deeper>"));
        in_part += usize::from(found.len() < expected.len());
        assert!(expected.ends_with(&found), "{}: {found:?} {expected:?}", one["case"]);
    }
    assert!(in_part > 10);
    let findings = run.report["findings"].as_array().expect("a list");
    let said = |finding: &&Value| finding["message"].as_str().is_some_and(|text| text.contains("only the outer part"));
    assert_eq!(findings.iter().filter(said).count(), 1, "{findings:?}");
}
