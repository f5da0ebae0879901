//! What goes from step to step: tensors that a program keeps.
//!
//! Owns: programs whose memory grows over steps, and what is said of the reason. Sizes are the programs' own.

use memscope_core::explorer::{At, Explorer, Query, Row, RowsQuery, Target};
use memscope_core::profile::Profile;
use serde_json::Value;

use crate::memscope::{Place, number};
use crate::torch::{Run, python, run_in};

/// What a profile says at its peak of each activation: in which step it was made, and who needs it.
fn activations(place: &Place) -> Vec<(u64, u64, String)> {
    let profile = Profile::open(place.path("p.mscope")).expect("a profile");
    let mut explorer = Explorer::of_profile(&profile).expect("it is whole");
    let rows = RowsQuery { filter: "category:activations".to_owned(), window: 0..1000, ..RowsQuery::default() };
    let query = Query { target: Target::All, at: At::Peak, rows: Some(rows), ..Query::default() };
    let rows = explorer.answer(&query).rows.expect("rows");
    assert_eq!(rows.filter_error, None);
    let row = |row: &Row| match row {
        Row::Allocation(row) => (row.step.unwrap_or_default(), row.bytes, row.held_by()),
        Row::Group(_) => panic!("no groups were asked for"),
    };
    rows.rows.iter().map(row).collect()
}

/// Of 12 steps, the last is at its peak: what was made in step s has outlived steps s + 1 to 11.
#[track_caller]
fn is_told_to_be_kept(place: &Place, run: &Run, each: u64) {
    let found = activations(place);
    let mut kept: Vec<&(u64, u64, String)> = found.iter().filter(|(_, bytes, _)| *bytes == each).collect();
    kept.sort();
    assert_eq!(number(&run.said, "/kept"), 12 * each);
    let steps: Vec<u64> = kept.iter().map(|(step, ..)| *step).filter(|step| *step < 12).collect();
    assert_eq!(steps, (1..12).collect::<Vec<u64>>(), "one of each step but the last");
    for (step, _, holder) in kept {
        let expected = match 11u64.saturating_sub(*step) {
            0 => "saved for backward (inferred)".to_owned(),
            1 => "kept by the program across 1 step (inferred)".to_owned(),
            more => format!("kept by the program across {more} steps (inferred)"),
        };
        assert_eq!(*holder, expected, "made in step {step}");
    }
}

#[test]
fn what_a_program_keeps_from_step_to_step_is_its_own() {
    let Some(python) = python("what_a_program_keeps_from_step_to_step_is_its_own") else { return };
    // 512 rows of 512 floats of four bytes.
    let each = 512 * 512 * 4;
    let place = Place::new();
    let run = run_in(&place, &[], &python, "-q --stacks python", "kept cpu 12");
    is_told_to_be_kept(&place, &run, each);

    let place = Place::new();
    let run = run_in(&place, &[], &python, "-q --device 1GiB", "kept cuda 12");
    is_told_to_be_kept(&place, &run, each);
    let findings = run.report["findings"].as_array().expect("findings");
    let oom = findings.iter().find(|finding| finding["kind"] == "oom").expect("memory ran out");
    let largest = &oom["largest"];
    assert_eq!((&largest["category"], &largest["scope"]), (&Value::from("activations"), &Value::from("Net/body.1")));
    assert_eq!((&largest["holder"], &largest["origin"]), (&Value::from("kept_by_program"), &Value::from("inferred")));
    assert_eq!((number(largest, "/scope_bytes"), number(largest, "/kept_steps")), (12 * each, 10));
}
