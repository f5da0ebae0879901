//! What processes are called: by Python's multiprocessing, however it starts them, and by themselves.

use serde_json::Value;

use crate::memscope::{Place, number, stderr};

const MIB: u64 = 1 << 20;

/// Name and peak of the processes that took memory, by their peaks.
fn named(report: &Value) -> Vec<(Option<String>, u64)> {
    let processes = report["processes"].as_array().expect("processes");
    let mut named: Vec<_> = processes
        .iter()
        .filter(|process| number(process, "/allocations") > 0)
        .map(|process| (process["name"].as_str().map(str::to_owned), number(process, "/peak_live") / MIB))
        .collect();
    named.sort_by_key(|(_, peak)| *peak);
    named
}

#[test]
fn processes_of_multiprocessing_have_the_names_that_it_gives_them() {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/named.py");
    let there = std::process::Command::new("python3").args(["-c", "import ctypes, multiprocessing"]).status();
    if !there.is_ok_and(|status| status.success()) {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "SKIPPED names of multiprocessing: there is no python3");
        return;
    }
    for (method, start) in [("fork", "Fork"), ("spawn", "Spawn"), ("forkserver", "ForkServer")] {
        let place = Place::new();
        let (output, report) = place.record(&format!("--device 1GiB -- python3 {program} {method}"));
        assert_eq!(output.status.code(), Some(0), "{method}: {}", stderr(&output));
        let name = |of: &str| Some(format!("{start}{of}"));
        let expected = [(name("Process-1"), 1), (Some("loader".to_owned()), 2), (name("PoolWorker-3"), 3), (None, 5)];
        assert_eq!(named(&report), expected, "{method}: {:#}", report["processes"]);
        let text = String::from_utf8(place.run("report p.mscope").stdout).expect("text");
        assert!(text.contains(&format!("  {start}PoolWorker-3, pid ")), "{text}");
        assert!(text.contains("  loader, pid "), "{text}");
    }
}

#[test]
fn a_process_may_call_itself_something() {
    let place = Place::new();
    let program = place.compile_linked("hold");
    // The kernel calls a process by the file that was run, be it a link.
    std::os::unix::fs::symlink(&program, place.path("VLLM::Worker_TP0")).expect("a link");
    let (_, report) = place.record("--device 1GiB -- ./VLLM::Worker_TP0 300");
    // 15 bytes are all that there is.
    assert_eq!(named(&report), [(Some("VLLM::Worker_TP".to_owned()), 67)]);
    let (_, report) = place.record("--device 1GiB -- ./hold 300");
    assert_eq!(named(&report), [(None, 67)]);
}
