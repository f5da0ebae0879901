//! Several ranks of the sample under one `memscope run`: each named, each on its own device, each with its part.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::anchors::gpt2_parameters;
use crate::memscope::{Place, number, stderr, stdout};

const H: u64 = 768;
const V: u64 = 50_257;
const POSITIONS: u64 = 1_024;
/// Bytes of an fp32 element.
const W: u64 = 4;

/// The losses that a run has printed.
fn losses(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with("step "));
    lines.map(|line| line.split_whitespace().nth(3).expect("a loss").to_owned()).collect()
}

/// Every device and both ranks are in the report.
fn assert_two_ranks(report: &Value) {
    let devices = report["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 2);
    assert_ne!(devices[0]["uuid"], devices[1]["uuid"]);
    let mut ranks: Vec<_> =
        report["processes"].as_array().unwrap().iter().filter_map(|process| process["rank"].as_u64()).collect();
    ranks.sort();
    assert_eq!(ranks, [0, 1], "{:#}", report["processes"]);
    assert_eq!(report["dropped_events"], 0);
}

/// Per rank: largest weights, gradients and optimizer of GPT-2 124M with a tied head, on `n` ranks. Every tensor has a multiple
/// of two elements, so that 1/n is exact.
fn formula(parallel: &str, n: u64) -> [u64; 3] {
    let all = W * gpt2_parameters(12, H);
    let (tokens, positions) = (W * V * H, W * POSITIONS * H);
    // The token embedding's gradient is whole until the end of backward; when it is reduced, all parts are there but that of
    // the position embedding, which comes last.
    let gradients = tokens + (all - positions) / n;
    // The embedding reads both tables; no other layer is larger.
    let weights = all / n + tokens + positions;
    match parallel {
        "ddp" => [all, 2 * all, 2 * all],
        "zero1" => [all, all, 2 * all / n],
        "zero2" => [all, gradients, 2 * all / n],
        "zero3" => [weights, gradients, 2 * all / n],
        _ => unreachable!(),
    }
}

#[test]
fn both_devices_hold_what_the_formula_says() {
    let place = Place::new();
    for parallel in ["ddp", "zero1", "zero2", "zero3"] {
        let (output, report) = place.record(&format!(
            "--device h100-80gb --devices 2 --no-compute -- {} sample gpt --model gpt2-124m --batch 2 --seq 64 --steps 2 \
             --ranks 2 --parallel {parallel}",
            env!("CARGO_BIN_EXE_memscope")
        ));
        assert_eq!(output.status.code(), Some(0), "{parallel}: {}", stderr(&output));
        assert_two_ranks(&report);
        let [weights, gradients, optimizer] = formula(parallel, 2);
        for category in ["weights", "gradients", "optimizer"] {
            let expected = match category {
                "weights" => weights,
                "gradients" => gradients,
                _ => optimizer,
            };
            // Of one device, the largest of both.
            assert_eq!(
                number(&report, &format!("/category_peaks/{category}/bytes")),
                expected,
                "{parallel}, {category}"
            );
        }
        let peaks = [0, 1].map(|device| number(&report, &format!("/devices/{device}/peak/live/bytes")));
        assert_eq!(peaks[0], peaks[1], "{parallel}");
        println!("{parallel}: W {weights} G {gradients} O {optimizer}, peak {}", peaks[0]);
    }
}

#[test]
fn ranks_train_as_one_does() {
    let place = Place::new();
    let sample =
        format!("{} sample gpt --layers 1 --width 32 --batch 4 --seq 32 --steps 4", env!("CARGO_BIN_EXE_memscope"));
    let (output, _) = place.record(&format!("--device 1GiB -- {sample}"));
    let one = losses(&stdout(&output));
    assert_eq!(one.len(), 4, "{}", stderr(&output));
    let (output, report) = place.record(&format!("--device 1GiB --devices 2 -- {sample} --ranks 2 --parallel zero2"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_two_ranks(&report);
    // Only one rank tells the loss. It has four decimals, and another order of sums may change the last one.
    let two = losses(&stdout(&output));
    assert_eq!(two.len(), 4);
    for (one, two) in one.iter().zip(&two) {
        let apart = one.parse::<f64>().unwrap() - two.parse::<f64>().unwrap();
        assert!(apart.abs() <= 0.000_2, "{one} and {two}");
    }
}

#[test]
fn a_rank_without_a_device_ends_all() {
    let place = Place::new();
    let output = place.run(&format!(
        "run -q -o p --device 1GiB -- {} sample gpt --steps 3 --ranks 2 --parallel ddp",
        env!("CARGO_BIN_EXE_memscope")
    ));
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("there is no CUDA device 1: the driver shows 1"), "{text}");
    assert!(text.contains("rank 1 ended with exit status: 1; the other ranks were told to stop"), "{text}");
}

#[test]
fn a_rank_that_is_killed_leaves_no_other_hanging() {
    let place = Place::new();
    let mut child = place
        .memscope()
        .args(["run", "-q", "-o", "p", "--device", "1GiB", "--devices", "2", "--", env!("CARGO_BIN_EXE_memscope")])
        .args(["sample", "gpt", "--steps", "1000000", "--ranks", "2", "--parallel", "ddp"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Once a step is told, both ranks are in the middle of it.
    let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("step 1/") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut reader, &mut line).unwrap() > 0, "the sample ended before a step");
    }
    let folder = place.path("");
    let rank_1 = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let entry = entry.ok()?.path();
        let environment = std::fs::read(entry.join("environ")).ok()?;
        let mut variables = environment.split(|&byte| byte == 0);
        let here = std::fs::read_link(entry.join("cwd")).ok()? == folder.canonicalize().ok()?;
        (here && variables.any(|variable| variable == b"RANK=1")).then_some(entry)
    });
    let pids: Vec<i32> = rank_1.map(|path| path.file_name().unwrap().to_str().unwrap().parse().unwrap()).collect();
    assert_eq!(pids.len(), 1, "one process is rank 1");
    // SAFETY: a signal to a process that this test started.
    assert_eq!(unsafe { libc::kill(pids[0], libc::SIGKILL) }, 0);
    drop(reader);
    let since = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(since.elapsed() < Duration::from_secs(60), "the other rank went on waiting");
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("rank 0 stops: rank 1 has failed"), "{text}");
    assert!(text.contains("rank 1 ended with signal: 9"), "{text}");
}
