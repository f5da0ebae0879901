//! Where phases and steps begin and end: each of what a person would call a step is one, whole, whatever optimizers there are
//! (programs/schedules.py); and what is made where a phase seems to go on is not what that phase makes (programs/sticky.py).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::torch::{python, run};

#[test]
fn with_several_optimizers() {
    let Some(python) = python("with_several_optimizers") else { return };
    let run = run(&python, "", "schedules");
    let start = run.model.session().start_monotonic_ns;
    let in_steps = ["forward", "loss", "backward", "optimizer"];
    let made: Vec<(u64, u32)> = run
        .model
        .allocations()
        .iter()
        .filter(|one| in_steps.contains(&run.model.names().text(one.phase).as_str()))
        .map(|one| (one.birth_ticks + start, one.step))
        .collect();
    let cases = run.said.as_object().expect("cases");
    assert!(cases.len() > 10, "{cases:?}");
    let mut wrong = Vec::new();
    for (case, steps) in cases {
        let steps: Vec<BTreeSet<u32>> = steps
            .as_array()
            .expect("steps")
            .iter()
            .map(|times: &Value| {
                let (begin, end) = (times[0].as_u64().expect("a time"), times[1].as_u64().expect("a time"));
                made.iter().filter(|one| (begin..end).contains(&one.0)).map(|one| one.1).collect()
            })
            .collect();
        let first = steps[0].first().copied().unwrap_or_default();
        if !steps.iter().zip(first..).all(|(found, number)| found.iter().eq([&number])) {
            wrong.push(format!("{case}: {steps:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// All tensors of each size are what the program says; gradients are of the size of activations. Sizes are multiples of `granule`.
fn what_goes_on_is_no_phase(test: &str, device: &str, options: &str, granule: u64) {
    let Some(python) = python(test) else { return };
    let run = run(&python, options, &format!("sticky {device}"));
    // PyTorch's own figures are there too.
    let told: Vec<_> = run.said.as_object().expect("names").iter().filter(|(_, told)| told.is_array()).collect();
    assert!(told.len() > 5, "{told:?}");
    let mut wrong = Vec::new();
    for (name, told) in told {
        let bytes = told[0].as_u64().expect("bytes").next_multiple_of(granule);
        let mut found: BTreeMap<&str, u64> = BTreeMap::new();
        for one in run.model.allocations().iter().filter(|one| one.requested == bytes && one.is_leaf()) {
            *found.entry(one.category.name()).or_default() += 1;
        }
        if told[2] == "activations" {
            found.remove("workspace");
        }
        let right = |(category, count): (&&str, &u64)| told[2] == **category && Some(*count) >= told[1].as_u64();
        if found.is_empty() || !found.iter().all(right) {
            wrong.push(format!("{name}: {found:?} for {told}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_goes_on_is_no_phase_on_the_cpu() {
    what_goes_on_is_no_phase("what_goes_on_is_no_phase_on_the_cpu", "cpu", "", 1);
}

#[test]
fn what_goes_on_is_no_phase_on_the_device() {
    what_goes_on_is_no_phase("what_goes_on_is_no_phase_on_the_device", "cuda", "--device h100-80gb", 512);
}
