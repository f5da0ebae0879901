//! `memscope diff`: its figures are the reports', its lists add up, and what cannot be compared is said.

use std::fs;

use serde_json::Value;

use crate::memscope::{Place, number, stderr, stdout};

/// Two small trainings, of two and of four layers' worth of batch.
fn trained() -> Place {
    let place = Place::new();
    for (name, flags) in [("a", "--steps 3 --batch 1"), ("b", "--steps 4 --batch 2")] {
        let run = format!(
            "run -o {name}.mscope --device 2GiB -- {} sample gpt --model tiny {flags}",
            env!("CARGO_BIN_EXE_memscope")
        );
        let output = place.run(&run);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    place
}

fn report(place: &Place, name: &str, at: &str) -> Value {
    serde_json::from_slice(&place.run(&format!("report {name} --format json --at {at}")).stdout).expect("JSON")
}

#[test]
fn a_difference_has_the_figures_of_the_reports_and_adds_up() {
    let place = trained();
    for (option, at, key) in [("", "peak", "peak"), ("--step 2", "step:2", "at"), ("--at end", "end", "at")] {
        let output = place.run(&format!("diff a.mscope b.mscope {option} --json d.json --force"));
        assert!(output.status.success(), "{}", stderr(&output));
        let diff: Value =
            serde_json::from_str(&fs::read_to_string(place.path("d.json")).expect("written")).expect("JSON");
        let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/diff.schema.json");
        let schema: Value = serde_json::from_str(&fs::read_to_string(schema).expect("a schema")).expect("JSON");
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let errors: Vec<_> = validator.iter_errors(&diff).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        for (side, name) in [("before", "a.mscope"), ("after", "b.mscope")] {
            let report = report(&place, name, at);
            let moment = &report[key];
            assert_eq!(diff["live"][side], moment["bytes"], "{at}");
            for row in diff["by_category"].as_array().expect("rows") {
                let category = row["name"].as_str().expect("a name");
                assert_eq!(row[side], moment["by_category"][category], "{category} at {at}");
            }
            for row in diff["ledger"].as_array().expect("rows") {
                let name = row["name"].as_str().expect("a name");
                assert_eq!(row[side], moment["ledger"][name], "{name} at {at}");
            }
            for scope in moment["top_scopes"].as_array().expect("scopes") {
                let path = scope["scope"].as_str().expect("a path");
                let row = diff["by_scope"].as_array().expect("rows").iter().find(|row| row["name"] == path);
                // One that is counted together with others has another name.
                if let Some(row) = row {
                    assert_eq!(row[side], scope["bytes"], "{path} at {at}");
                }
            }
            for step in report["steps"].as_array().expect("steps") {
                let row = diff["steps"].as_array().expect("rows").iter().find(|row| row["step"] == step["step"]);
                assert_eq!(row.expect("the step")[side], step["peak"]["bytes"]);
            }
        }
        for list in ["by_category", "by_scope"] {
            let rows = diff[list].as_array().expect("rows");
            let sum = |key: &str| rows.iter().map(|row| row[key].as_i64().unwrap_or(0)).sum::<i64>();
            assert_eq!(sum("before") as u64, number(&diff, "/live/before"), "{list} at {at}");
            assert_eq!(sum("after") as u64, number(&diff, "/live/after"), "{list} at {at}");
            assert_eq!(sum("before") + sum("difference"), sum("after"), "{list} at {at}");
        }
        assert_eq!((diff["steps_in_both"].as_u64(), diff["steps_only_after"].as_u64()), (Some(3), Some(1)));
        assert!(diff["by_line"].is_null(), "none were recorded");
        let text = stdout(&output);
        assert!(text.contains("a.mscope") && text.contains("activations") && text.contains("1 only after"), "{text}");
    }
}

#[test]
fn what_cannot_be_compared_is_said() {
    let place = trained();
    let output = place.run("diff a.mscope b.mscope --step 4");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("a.mscope has no step 4"), "{}", stderr(&output));
    assert_eq!(place.run("diff a.mscope").status.code(), Some(2));
    assert_eq!(place.run("diff a.mscope b.mscope --step 1 --at end").status.code(), Some(2));
    assert_eq!(place.run("diff a.mscope nowhere.mscope").status.code(), Some(1));
    let output = place.run("diff a.mscope b.mscope --json b.mscope");
    assert_eq!(output.status.code(), Some(1), "what exists is kept: {}", stderr(&output));
    let same = place.run("diff a.mscope a.mscope");
    let text = stdout(&same);
    let live = text.lines().find(|line| line.ends_with("  live")).expect("live bytes");
    assert!(live.split_whitespace().any(|word| word == "0"), "{live}");
}
