//! Steps: each of what a person would call one is one, whole, whatever optimizers there are (programs/schedules.py).

use std::collections::BTreeSet;

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
