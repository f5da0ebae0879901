//! The queries of docs/profile-format.md, run by DuckDB, against the report's figures.
//!
//! Needs a Python with the `duckdb` wheel: the one that `MEMSCOPE_TEST_PYTHON` names, else `python3`. Without it the test says
//! SKIPPED and why.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use memscope_core::export::export_parquet;
use memscope_core::profile::{self, Profile};
use memscope_core::report::{Instant, Report};
use serde_json::{Value, json};

use crate::trace::training;

const DOCUMENT: &str = include_str!("../../../docs/profile-format.md");

const SCRIPT: &str = "
import json, os, sys
import duckdb
queries = json.load(sys.stdin)
os.chdir(sys.argv[1])
print(json.dumps({name: [list(row) for row in duckdb.sql(text).fetchall()] for name, text in queries.items()}))
";

/// The queries of the document by name.
fn queries() -> BTreeMap<String, String> {
    let blocks = DOCUMENT.split("```sql\n").skip(1).map(|rest| rest.split("```").next().expect("a block ends"));
    let named = |block: &str| {
        let name = block.lines().next().and_then(|line| line.strip_prefix("-- query: ")).expect("a query has a name");
        (name.to_owned(), block.trim().trim_end_matches(';').to_owned())
    };
    blocks.map(named).collect()
}

/// The queries' results, or why there are none.
fn run(folder: &Path) -> Result<BTreeMap<String, Value>, String> {
    let python = std::env::var("MEMSCOPE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let probe = Command::new(&python).args(["-c", "import duckdb"]).output();
    match probe {
        Ok(output) if output.status.success() => {}
        Ok(_) => return Err(format!("{python} has no duckdb (pip install duckdb)")),
        Err(error) => return Err(format!("{python} cannot be started: {error}")),
    }
    let mut child = Command::new(&python)
        .args(["-c", SCRIPT])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    let text = serde_json::to_string(&queries()).expect("JSON");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("python ends");
    assert!(output.status.success(), "a query failed");
    Ok(serde_json::from_slice(&output.stdout).expect("JSON"))
}

#[test]
fn another_reader_finds_the_same_figures() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("x.mscope");
    profile::write(&training().model(), &path, false).expect("written");
    let profile = Profile::open(&path).expect("opened");
    let tables = folder.path().join("tables");
    export_parquet(&profile, &tables, false).expect("exported");
    let results = match run(&tables) {
        Ok(results) => results,
        Err(reason) => {
            // Past the test harness, which hides what passing tests print.
            let _ = writeln!(std::io::stderr(), "SKIPPED another_reader_finds_the_same_figures: {reason}");
            return;
        }
    };
    let report = profile.report(Instant::Peak).expect("a report");
    for (name, rows) in &results {
        assert_eq!(*rows, expected(name, &report), "query {name}");
    }
    assert_eq!(results.len(), 8);
}

/// What the report says to each query.
fn expected(query: &str, report: &Report) -> Value {
    let peak = report.peak.as_ref().expect("a peak");
    let by = peak.by_category;
    match query {
        "peak_live" => json!([[report.devices[0].uuid, report.devices[0].peak.live.bytes]]),
        "category_peaks" => {
            let peaks = &report.category_peaks;
            json!([
                [1, peaks.weights.bytes],
                [2, peaks.gradients.bytes],
                [3, peaks.activations.bytes],
                [4, peaks.optimizer.bytes]
            ])
        }
        // The session's peak lies in a step; by hand: one weight, one gradient, three activations, one optimizer state.
        "live_at_peak" => {
            json!([[1, by.weights, 1], [2, by.gradients, 1], [3, by.activations, 3], [4, by.optimizer, 1]])
        }
        "scopes_at_peak" => {
            peak.top_scopes.iter().map(|group| json!([group.scope, group.bytes, group.allocations])).collect()
        }
        "ledger_at_peak" => {
            let rows = &peak.ledger.rows;
            json!([[rows.reserved, rows.live, rows.rounding, rows.cached]])
        }
        "steps" => report.steps.iter().map(|step| json!([step.step, step.peak.bytes])).collect(),
        // Two steps' gradients, the optimizer state, then the first of the layers' outputs, each made twice.
        "largest_names" => {
            json!([["wte.weight.grad", 200 << 20], ["wte.weight.m", 200 << 20], ["h.0.out", 2 * ((64 << 20) - 100)]])
        }
        "device_rows_that_do_not_add_up" => json!([[0]]),
        _ => panic!("no figure is known for query {query}"),
    }
}
