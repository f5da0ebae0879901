//! What goes from step to step: tensors that a program keeps, batches that grow.
//!
//! Owns: programs whose memory grows over steps, and what is said of the reason. Sizes are the programs' own.

use memscope_core::explorer::{At, Explorer, Query, Row, RowsQuery, Target, WindowQuery};
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::profile::Profile;
use serde_json::Value;

use crate::memscope::{Place, number, stdout};
use crate::oom::line as marked_line;
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
    let report = stdout(&place.run("report p.mscope"));
    let first: Vec<&str> = report.lines().take(10).map(str::trim).collect();
    let first = first.join(" ");
    let line = marked_line("kept", "body");
    for cause in
        ["[step_growth]", "grows by 1.00 MiB a step", "activations", "Net/body.1", &line, "keeps tensors across steps"]
    {
        assert!(first.contains(cause), "no {cause} in the first lines: {report}");
    }

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

#[test]
fn a_batch_that_grew_is_told_and_what_follows_the_error_is_no_loss() {
    let Some(python) = python("a_batch_that_grew_is_told_and_what_follows_the_error_is_no_loss") else { return };
    let place = Place::new();
    // Weights and states take 96 MiB. With 16 times as many rows the batch takes 32 MiB, what the first matrix gives 128, and so
    // does what follows it.
    let run = run_in(&place, &[], &python, "-q -f --device 300MiB", "grew 16");
    assert!(run.said["error"].is_string(), "{}", run.said);
    let findings = run.report["findings"].as_array().expect("findings");
    let of_kind = |kind: &str| findings.iter().find(|finding| finding["kind"] == kind).expect("it is found");
    let (oom, grew) = (of_kind("oom"), of_kind("inputs_grew"));
    assert_eq!((&oom["phase"], number(oom, "/step")), (&Value::from("forward"), 7));
    let sizes = |at: usize| run.said["sizes"][at].as_u64().expect("a size");
    assert_eq!(
        (number(grew, "/step"), number(grew, "/inputs"), number(grew, "/inputs_before")),
        (7, sizes(6), sizes(5))
    );
    assert_eq!((grew["ran_out"].as_bool(), grew["name"].as_str()), (Some(true), Some("Net/body.0")));
    // What was made after the error was made in no phase.
    let mark = run.model.allocations().iter().find(|one| one.requested == 777 << 10).expect("the mark");
    assert_eq!(run.model.names().text(mark.phase), "");
    assert_eq!(mark.category, memscope_core::Category::Unknown);
    let profile = Profile::open(place.path("p.mscope")).expect("a profile");
    let mut explorer = Explorer::of_profile(&profile).expect("it is whole");
    let at = At::Refused(explorer.answer(&Query::default()).gravest.expect("memory ran out").time);
    assert_eq!(explorer.answer(&Query { at, ..Query::default() }).now.phase, "forward");
    let range = Nanoseconds(0)..Nanoseconds(u64::MAX);
    let window = Some(WindowQuery { range, buckets: usize::MAX });
    let window = explorer.answer(&Query { window, ..Query::default() }).window.expect("a window");
    let exit = window.phases.iter().find(|phase| phase.name == "exit").expect("the interpreter ended");
    assert_eq!(window.steps.last().and_then(|step| step.end), Some(exit.begin), "and with it the last step");
}
