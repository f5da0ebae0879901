//! Finds the Python with PyTorch, and runs a program of `programs/` under memscope.

use std::path::{Path, PathBuf};
use std::process::Output;

use memscope_core::allocation::Model;
use memscope_core::profile::Profile;
use serde_json::Value;

use crate::memscope::{Place, stderr, stdout};

/// Path of a Python with the PyTorch of requirements.txt.
const PYTHON: &str = "MEMSCOPE_TEST_TORCH";

/// The Python with PyTorch; `None` where there is none, which is said.
pub fn python(test: &str) -> Option<PathBuf> {
    use std::io::Write;
    let found = std::env::var_os(PYTHON).filter(|path| !path.is_empty());
    if found.is_none() {
        // Not eprintln!, which the test harness captures.
        let reason = format!("SKIPPED {test}: {PYTHON} names no Python with PyTorch (tests/pytorch/requirements.txt)");
        let _ = writeln!(std::io::stderr(), "{reason}");
    }
    found.map(PathBuf::from)
}

/// Programs with forward passes that no backward pass comes for.
const KEEP_GRAPHS: [&str; 1] = ["evaluates"];

/// What a run left.
pub struct Run {
    /// Status and output of memscope and the program.
    pub output: Output,
    /// The JSON that the program printed.
    pub said: Value,
    /// The report.
    pub report: Value,
    /// The profile, as the facts that it holds.
    pub model: Model,
    /// Lines of the file that the program wrote, if its arguments named `FILE`.
    pub lines: Vec<Value>,
}

/// A run of `programs/NAME.py` under `memscope run OPTIONS`, which must succeed and print one line of JSON.
pub fn run(python: &Path, options: &str, program: &str) -> Run {
    started(python, options, &[], program)
}

/// Like [`run`], started by torchrun with so many ranks on this machine. What was said is what the last rank printed.
pub fn ranks(python: &Path, options: &str, ranks: u32, program: &str) -> Run {
    let count = ranks.to_string();
    started(python, options, &["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", &count], program)
}

fn started(python: &Path, options: &str, launcher: &[&str], program: &str) -> Run {
    started_in(&Place::new(), &[], python, options, launcher, program)
}

/// Like [`run`], in a place of the caller's and with more variables in the environment.
pub fn run_in(place: &Place, variables: &[(&str, &Path)], python: &Path, options: &str, program: &str) -> Run {
    started_in(place, variables, python, options, &[], program)
}

fn started_in(
    place: &Place,
    variables: &[(&str, &Path)],
    python: &Path,
    options: &str,
    launcher: &[&str],
    program: &str,
) -> Run {
    let mut words = program.split_whitespace();
    let name = words.next().expect("a program");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pytorch/programs").join(format!("{name}.py"));
    let output = place
        .memscope()
        .envs(variables.iter().copied())
        .args(["run", "-o", "p.mscope", "--json", "r.json"])
        .args(options.split_whitespace())
        .arg("--")
        .arg(python)
        .args(launcher)
        .arg(script)
        .args(words.map(|word| if word == "FILE" { place.path("lines") } else { PathBuf::from(word) }))
        .output()
        .expect("memscope starts");
    assert!(output.status.success(), "{program}: {:?}\n{}", output.status, stderr(&output));
    let report = std::fs::read(place.path("r.json")).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("the report is JSON");
    let mut findings = report["findings"].as_array().expect("findings").iter();
    let told = findings.find(|finding| finding["kind"] == "unused_graphs");
    assert!(told.is_none() || KEEP_GRAPHS.contains(&name), "a false alarm of {program}: {told:?}");
    let text = stdout(&output);
    let line = text.lines().rev().find(|line| line.starts_with('{'));
    let said = line.and_then(|line| serde_json::from_str(line).ok()).unwrap_or(Value::Null);
    assert!(!said.is_null(), "{program} printed no JSON: {text}\n{}", stderr(&output));
    let model =
        Profile::open(place.path("p.mscope")).and_then(|profile| profile.model()).expect("the profile is whole");
    let lines = std::fs::read_to_string(place.path("lines")).unwrap_or_default();
    let lines = lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    Run { output, said, report, model, lines }
}
