//! Out of memory: what is said at once, what the report has, and what is left when everything is killed.
//!
//! Sizes are arithmetic, and PyTorch's own messages stand beside. Lines are looked up in the programs by a mark.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use memscope_core::profile::Profile;
use serde_json::Value;

use crate::memscope::{Place, number, stderr, stdout};
use crate::torch::python;

const MIB: u64 = 1 << 20;

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pytorch/programs").join(format!("{name}.py"))
}

/// `FILE:NUMBER` of the line with this mark.
fn line(name: &str, mark: &str) -> String {
    let text = std::fs::read_to_string(program(name)).expect("the program is there");
    let position = text.lines().position(|line| line.ends_with(&format!("# LINE {mark}"))).expect("a marked line");
    format!("{name}.py:{}", position + 1)
}

/// Words without the breaks between lines.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn oom(findings: &Value) -> &Value {
    let all = findings.as_array().expect("findings");
    let ooms: Vec<&Value> = all.iter().filter(|finding| finding["kind"] == "oom").collect();
    assert_eq!(ooms.len(), 1, "one a process: {all:?}");
    ooms[0]
}

#[test]
fn a_full_device_is_told_at_the_tensor_that_did_not_fit() {
    let Some(python) = python("a_full_device_is_told_at_the_tensor_that_did_not_fit") else { return };
    let place = Place::new();
    let output = place
        .memscope()
        .args(["run", "-q", "-o", "p.mscope", "--json", "r.json", "--device", "24GiB", "--"])
        .args([python.as_path(), &program("refill")])
        .env("MEMSCOPE_SIMULATOR_CONTEXT_BYTES", (518 * MIB).to_string())
        .env("MEMSCOPE_SIMULATOR_FOREIGN_BYTES", (100 * MIB).to_string())
        .output()
        .expect("memscope starts");
    let (printed, said) = (stdout(&output), stderr(&output));
    assert!(output.status.success() && !said.contains("out of memory"), "-q: {said}");
    let printed: Value = serde_json::from_str(printed.trim()).expect("JSON");
    assert_eq!(printed["count"], 34);
    let message = printed["message"].as_str().expect("a message");
    assert!(
        message
            .starts_with("CUDA out of memory. Tried to allocate 700.00 MiB. GPU 0 has a total capacity of 24.00 GiB")
    );
    assert!(!message.contains("memscope"), "{message}");
    let report = std::fs::read(place.path("r.json")).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let oom = oom(&report["findings"]);
    assert_eq!(number(oom, "/requested"), 700 * MIB);
    assert_eq!(number(oom, "/live"), 34 * 700 * MIB, "the moment of the first error, not of a later one");
    assert_eq!(number(oom, "/refusals"), 21, "errors that the program got, not refusals of the driver");
    assert_eq!(number(oom, "/total"), 24 * 1024 * MIB);
    assert_eq!(number(oom, "/outside"), 618 * MIB, "context and others");
    assert_eq!(number(oom, "/free"), (24 * 1024 - 34 * 700 - 618) * MIB);
    let told = oom["line"].as_str().expect("a line");
    assert!(told.ends_with(&format!("{} in tensor", line("refill", "fill"))), "{told}");
}

#[test]
fn module_line_and_cause_are_told_while_the_program_runs() {
    let Some(python) = python("module_line_and_cause_are_told_while_the_program_runs") else { return };
    let place = Place::new();
    let mut child = place
        .memscope()
        .args(["run", "-o", "p.mscope", "--device", "3GiB", "--"])
        .args([python.as_path(), &program("out_of_memory")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("memscope starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut said = String::new();
    // The program waits: if nothing is said before it ends, this never ends.
    while !said.contains("To do:") {
        assert_ne!(stderr.read_line(&mut said).expect("text"), 0, "ended without a word: {said}");
    }
    let first = flat(&said);
    child.stdin.take().expect("piped").write_all(b"\n").expect("the program still reads");
    stderr.read_to_string(&mut said).expect("text");
    let output = child.wait_with_output().expect("memscope ends");
    assert!(output.status.success(), "{said}");
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let messages: Vec<&str> = printed["messages"].as_array().expect("three").iter().filter_map(Value::as_str).collect();
    let tried = ["1024.00 MiB", "300.00 MiB", "200.00 MiB"];
    let expected = ["1.00 GiB", "300.0 MiB", "200.0 MiB"];
    let places = [
        ("scope GPT/blocks.2/mlp.0", "phase forward", line("out_of_memory", "forward") + " in Block.forward."),
        ("", "phase backward", line("out_of_memory", "backward") + " in in_backward, for MulBackward0."),
        ("", "", line("out_of_memory", "pieces") + " in in_pieces."),
    ];
    assert_eq!(messages.len(), 3, "{said}");
    let all = flat(&said);
    let parts: Vec<&str> = all.split("memscope: process ").collect();
    for (number, (scope, phase, line)) in places.iter().enumerate() {
        let size = format!("Tried to allocate {}. ", tried[number]);
        assert!(messages[number].contains(&size) || messages[number].contains("1.00 GiB"), "{}", messages[number]);
        let told = parts[number + 1];
        assert!(told.contains(&format!("PyTorch asked for {}, ", expected[number])), "{told}");
        assert!(told.contains(scope) && told.contains(phase) && told.contains(line), "{line}: {told}");
    }
    assert!(first.contains("scope GPT/blocks.2/mlp.0"), "at once: {first}");
    let cache =
        "In the allocator's cache: 500.0 MiB in 50 free pieces, the largest 10.00 MiB: enough in all, but no piece";
    assert!(parts[3].contains(cache), "{}", parts[3]);
}

#[test]
fn an_error_is_kept_when_the_program_and_memscope_are_killed() {
    let Some(python) = python("an_error_is_kept_when_the_program_and_memscope_are_killed") else { return };
    let place = Place::new();
    let ended = place
        .memscope()
        .args(["run", "-q", "-o", "p.mscope", "--device", "8GiB", "--"])
        .args([python.as_path(), &program("killed")])
        .output()
        .expect("memscope starts");
    assert_eq!(ended.status.code(), None, "killed");
    let recovered = place.memscope().args(["recover", "p.mscope.session"]).output().expect("memscope starts");
    assert!(recovered.status.success(), "{}", String::from_utf8_lossy(&recovered.stderr));
    let findings = Profile::open(place.path("p.mscope")).expect("a profile").findings();
    let findings = serde_json::to_value(findings).expect("JSON");
    let oom = oom(&findings);
    assert_eq!(number(oom, "/requested"), 1024 * MIB);
    assert!(oom["line"].as_str().expect("a line").contains(&line("killed", "killed")), "{oom}");
}
