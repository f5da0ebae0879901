//! Out of memory: what is said at once, what the report has, and what is left when everything is killed.
//!
//! Sizes are arithmetic, and PyTorch's own messages stand beside. Lines are looked up in the programs by a mark.

use std::path::{Path, PathBuf};

use memscope_core::profile::Profile;
use serde_json::Value;

use crate::memscope::{Place, number, stderr, stdout, told_while_it_waits};
use crate::torch::python;

const MIB: u64 = 1 << 20;

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pytorch/programs").join(format!("{name}.py"))
}

/// `FILE:NUMBER` of the line with this mark.
pub fn line(name: &str, mark: &str) -> String {
    let text = std::fs::read_to_string(program(name)).expect("the program is there");
    let position = text.lines().position(|line| line.ends_with(&format!("# LINE {mark}"))).expect("a marked line");
    format!("{name}.py:{}", position + 1)
}

fn oom(findings: &Value) -> &Value {
    of_kind(findings, "oom")
}

/// The one finding of this kind.
#[track_caller]
fn of_kind<'a>(findings: &'a Value, kind: &str) -> &'a Value {
    let all = findings.as_array().expect("findings");
    let found: Vec<&Value> = all.iter().filter(|finding| finding["kind"] == kind).collect();
    assert_eq!(found.len(), 1, "one {kind}: {all:?}");
    found[0]
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

/// Runs a program that waits after its first error: what was said by then, what was said in all, and what it printed.
fn waits(place: &Place, python: &Path, name: &str) -> (String, String, Value) {
    let mut command = place.memscope();
    command.args(["run", "-f", "-o", "p.mscope", "--json", "r.json", "--device", "3GiB", "--"]);
    let (first, said, output) = told_while_it_waits(command.args([python, &program(name)]));
    assert!(output.status.success(), "{said}");
    (first, said, serde_json::from_slice(&output.stdout).expect("JSON"))
}

#[test]
fn module_line_and_cause_are_told_while_the_program_runs() {
    let Some(python) = python("module_line_and_cause_are_told_while_the_program_runs") else { return };
    let place = Place::new();
    let (first, said, printed) = waits(&place, &python, "out_of_memory");
    let messages: Vec<&str> = printed["messages"].as_array().expect("three").iter().filter_map(Value::as_str).collect();
    let tried = ["1024.00 MiB", "300.00 MiB", "200.00 MiB"];
    let expected = ["1.00 GiB", "300.0 MiB", "200.0 MiB"];
    let places = [
        ("scope GPT/blocks.2/mlp.0", "phase forward", line("out_of_memory", "forward") + " in Block.forward."),
        ("", "phase backward", line("out_of_memory", "backward") + " in in_backward, for MulBackward0."),
        ("", "", line("out_of_memory", "pieces") + " in in_pieces."),
    ];
    assert_eq!(messages.len(), 3, "{said}");
    let parts: Vec<&str> = said.split("memscope: process ").collect();
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

/// A tensor of 8 MiB is a part of a segment of 20 MiB: PyTorch's message names the one, and we both.
#[test]
fn a_small_tensor_is_told_with_the_segment_that_pytorch_names() {
    let Some(python) = python("a_small_tensor_is_told_with_the_segment_that_pytorch_names") else { return };
    let place = Place::new();
    let mut command = place.memscope();
    command.args(["run", "-f", "-o", "p.mscope", "--json", "r.json", "--device", "1GiB", "--"]);
    let output = command.args([python.as_path(), &program("segment")]).output().expect("memscope starts");
    let (said, printed) = (stderr(&output), stdout(&output));
    assert!(output.status.success(), "{said}");
    let printed: Value = serde_json::from_str(printed.lines().next().expect("a line")).expect("JSON");
    let message = printed["message"].as_str().expect("a message");
    assert!(message.starts_with("CUDA out of memory. Tried to allocate 20.00 MiB. "), "{message}");
    let told = "It was 8.00 MiB for the tensor; PyTorch asked the driver for a segment of 20.00 MiB.";
    assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").contains(told), "{said}");
    let report: Value = serde_json::from_slice(&std::fs::read(place.path("r.json")).expect("a report")).expect("JSON");
    let oom = oom(&report["findings"]);
    assert_eq!((number(oom, "/requested"), number(oom, "/segment")), (8 * MIB, 20 * MIB));
}

/// The allocator of this backend reports nothing and keeps no cache: the driver's refusal is the program's error.
#[test]
fn a_backend_that_reports_nothing_is_told_at_once_too() {
    let Some(python) = python("a_backend_that_reports_nothing_is_told_at_once_too") else { return };
    let place = Place::new();
    let (first, said, printed) = waits(&place, &python, "pools");
    assert_eq!(printed["messages"].as_array().map(Vec::len), Some(3), "{printed}");
    let parts: Vec<&str> = said.split("memscope: process ").collect();
    let (layer, tensor) = (line("pools", "layer") + " in Block.forward", line("pools", "tensor") + " in tensor");
    for (told, asked, places) in [
        (parts[1], "1.00 GiB", ["scope Block/mlp.0", "phase forward", layer.as_str()]),
        (parts[2], "700.0 MiB", ["638.7 MiB of 3.00 GiB were free", "2.38 GiB were live", tensor.as_str()]),
        (parts[3], "700.0 MiB", ["for the third time", "638.7 MiB of 3.00 GiB were free", tensor.as_str()]),
    ] {
        assert!(told.contains(&format!("cuMemAllocAsync asked for {asked}, ")), "{told}");
        for place in places {
            assert!(told.contains(place), "no `{place}` in {told}");
        }
    }
    assert!(first.contains("scope Block/mlp.0"), "at once: {first}");
    let report: Value = serde_json::from_slice(&std::fs::read(place.path("r.json")).expect("a report")).expect("JSON");
    assert_eq!(number(oom(&report["findings"]), "/refusals"), 3);
}

/// The environment of a program on the simulated device, without the interposer: nothing of it is recorded.
fn simulated_alone(place: &Place) -> Vec<(String, String)> {
    let output = place.run("run -q -f -o e.mscope --device 3GiB -- env");
    let text = stdout(&output);
    let variables = text.lines().filter_map(|line| line.split_once('=')).filter_map(|(name, value)| match name {
        "LD_PRELOAD" => {
            let others = value.split(':').filter(|library| !library.contains("libmemscope_interposer"));
            Some((name.to_owned(), others.collect::<Vec<_>>().join(":")))
        }
        "MEMSCOPE_LOG_DIR" | "MEMSCOPE_SESSION" => None,
        // The session's own is gone with it.
        "MEMSCOPE_SIMULATOR_STATE" => Some((name.to_owned(), place.path("state").display().to_string())),
        _ if name == "LD_LIBRARY_PATH" || name.starts_with("MEMSCOPE_") => Some((name.to_owned(), value.to_owned())),
        _ => None,
    });
    variables.collect()
}

/// A text without numbers of processes, addresses and times: they differ from run to run.
fn masked(text: &str) -> String {
    let words = text.split_inclusive(|char: char| char.is_whitespace());
    let (mut masked, mut after_process) = (String::new(), false);
    for word in words {
        let number = word.trim_end().chars().all(|char| char.is_ascii_digit());
        // Addresses, and the times of PyTorch's warnings.
        let differs = word.contains("0x") || word.starts_with("[W") || word.matches(':').count() > 1;
        masked.push_str(if (after_process && number) || differs { "* " } else { word });
        after_process = word.trim_end().eq_ignore_ascii_case("process");
    }
    masked
}

#[test]
fn what_pytorch_says_of_it_is_the_same_without_memscopes_recording() {
    let Some(python) = python("what_pytorch_says_of_it_is_the_same_without_memscopes_recording") else { return };
    let place = Place::new();
    let variables = simulated_alone(&place);
    assert!(variables.iter().any(|(name, value)| name == "LD_PRELOAD" && value.contains("libcudart")), "{variables:?}");
    for settings in ["backend:native", "backend:cudaMallocAsync"] {
        let arguments = [python.as_path(), &program("oom_texts"), Path::new(settings)];
        let alone = place.command(arguments[0]).args(&arguments[1..]).envs(variables.clone()).output().expect("starts");
        let mut command = place.memscope();
        command.args(["run", "-q", "-f", "-o", "p.mscope", "--device", "3GiB", "--"]);
        let under = command.args(arguments).output().expect("memscope starts");
        let (said, said_under) = (masked(&stderr(&alone)), masked(&stderr(&under)));
        let (printed, printed_under) = (masked(&stdout(&alone)), masked(&stdout(&under)));
        assert_eq!(printed.matches("torch.OutOfMemoryError: ").count(), 3, "{settings}: {printed}\n{said}");
        assert_eq!(said.matches("torch.OutOfMemoryError: ").count(), 1, "{settings}: {said}");
        assert_eq!(printed, printed_under, "{settings}");
        assert_eq!(said, said_under, "{settings}");
        assert_eq!(alone.status, under.status, "{settings}");
        let recorded = Profile::open(place.path("p.mscope")).expect("a profile").findings();
        assert!(recorded.iter().any(|one| one.detail.kind() == "oom"), "{settings}: it was recorded");
    }
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
    let found = oom(&findings);
    assert_eq!(number(found, "/requested"), 1024 * MIB);
    assert!(found["line"].as_str().expect("a line").contains(&line("killed", "killed")), "{found}");
    // So is what the simulation had to say.
    let missed = of_kind(&findings, "not_simulated");
    assert_eq!(missed["functions"][0]["library"], "cuSOLVER", "{missed}");
    assert_eq!(missed["functions"][0]["function"], "cusolverDnCreateParams", "{missed}");
    let reads = of_kind(&findings, "device_reads");
    assert_eq!(number(reads, "/uncomputed"), 3, "{reads}");
    assert_eq!(number(reads, "/uncomputed_bytes"), 3 * 4, "{reads}");
    assert!(reads["lines"][0]["line"].as_str().expect("a line").ends_with(&line("killed", "read")), "{reads}");
    assert_eq!(of_kind(&findings, "simulated")["libraries"], true);
}
