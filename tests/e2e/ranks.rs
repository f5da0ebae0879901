//! Several ranks of the sample under one `memscope run`: each named, each on its own device, each with its part.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::anchors::{gpt2_activations, gpt2_parameters};
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

/// GPT-2 124M on two ranks, memory-only: the report.
fn memory_only(flags: &str) -> Value {
    let (output, report) = Place::new().record(&format!(
        "--device h100-80gb --devices 2 --no-compute -- {} sample gpt --model gpt2-124m --batch 4 --seq 64 --steps 2 --ranks 2 \
         {flags}",
        env!("CARGO_BIN_EXE_memscope")
    ));
    assert_eq!(output.status.code(), Some(0), "{flags}: {}", stderr(&output));
    assert_two_ranks(&report);
    report
}

fn most(report: &Value) -> [u64; 3] {
    ["weights", "gradients", "optimizer"].map(|category| number(report, &format!("/category_peaks/{category}/bytes")))
}

#[test]
fn other_techniques_take_their_part_of_a_rank() {
    let p = gpt2_parameters(12, H);
    let (all, tokens, positions) = (W * p, W * V * H, W * POSITIONS * H);
    let [weights, gradients, optimizer] = formula("zero3", 2);
    // Blocks of 256 stay whole, and the token table has an odd number of them: the second rank has one more, half a block above the
    // half. Vectors are below 4,096 elements, and their states in fp32.
    let vectors = 12 * 13 * H + 2 * H;
    let blocks = (p - vectors) / 256;
    assert_eq!((blocks * 256, blocks % 2), (p - vectors, 1));
    let eight_bit = blocks.div_ceil(2) * 2 * (256 + 4) + 8 * vectors / 2;
    let half_a_block = W * 128;
    assert_eq!(
        most(&memory_only("--parallel zero3 --optimizer adamw8bit")),
        [weights + half_a_block, gradients + half_a_block, eight_bit]
    );
    assert_eq!(most(&memory_only("--parallel zero2 --optimizer momentum")), [all, gradients, optimizer / 2]);

    // Adafactor's matrices are cut between rows, the token table's into 25,128 and 25,129; every rank has all columns, and vectors.
    let rows_and_columns = |(rows, columns): (u64, u64)| rows.div_ceil(2) + columns;
    let of_block = [(3 * H, H), (H, H), (4 * H, H), (H, 4 * H)].map(rows_and_columns).iter().sum::<u64>();
    let factors = 12 * of_block + rows_and_columns((V, H)) + rows_and_columns((POSITIONS, H));
    assert_eq!(most(&memory_only("--parallel zero1 --optimizer adafactor")), [all, all, W * (factors + vectors)]);

    // A second micro-batch finds all parts: beside them the token table's whole gradient waits for the end of backward, and the
    // largest matrix's comes.
    let onto_parts = all / 2 + tokens + W * 4 * H * H;
    for flags in ["--accumulate 2", "--zero-grad zero"] {
        assert_eq!(most(&memory_only(&format!("--parallel zero2 {flags}"))), [all, onto_parts, optimizer], "{flags}");
    }
    // The decoder's gradient is there from the loss on, as it is at the start of backward.
    assert_eq!(most(&memory_only("--parallel zero3 --chunked-loss 8")), [weights, gradients, optimizer]);
    // In the end the token table's is whole beside its part, which is more than the largest matrix's was, beside its part and this.
    let early = tokens + tokens / 2;
    assert_eq!(most(&memory_only("--parallel zero3 --optimizer-in-backward")), [weights, early, optimizer]);
    // The frozen weights are shared out too. R·(m + n) of four matrices is 16·R·h a layer; at most when in the first layer, the
    // last to come, the `up` (3·h, R) of q, k and v is whole beside its part, and only its `down` (R, h) is not yet there.
    let (r, of_layer) = (8, 16 * 8 * H);
    let adapters = 12 * of_layer;
    let lora =
        [(all + W * adapters) / 2 + tokens + positions, W * ((adapters - r * H) / 2 + 3 * r * H), 8 * adapters / 2];
    assert_eq!(most(&memory_only(&format!("--parallel zero3 --lora {r}"))), lora);
}

#[test]
fn sixteen_bits_of_a_rank() {
    let p = gpt2_parameters(12, H);
    let [weights, gradients, optimizer] = formula("zero3", 2);
    let halved = [weights, gradients, optimizer].map(|bytes| bytes / 2);
    assert_eq!(most(&memory_only("--parallel zero3 --precision bf16")), halved);
    // The decoder with its cast, and the last norm beside it, are more than the two tables that the embedding reads.
    let decoder = (W + 2) * V * H + W * 2 * H;
    assert!(decoder > W * (V + POSITIONS) * H);
    let mixed = [W * p / 2 + decoder, gradients, optimizer];
    assert_eq!(most(&memory_only("--parallel zero3 --precision amp-bf16")), mixed);
    // In zero2 casts of all matrices and biases that products read wait for backward.
    let casts = 2 * (12 * (12 * H * H + 9 * H) + V * H);
    assert_eq!(most(&memory_only("--parallel zero2 --precision amp-fp16")), [W * p + casts, gradients, optimizer + 4]);
}

/// The host keeps masters and moments of a rank's part, and the part's largest gradient: both ranks together what one would.
#[test]
fn an_offloaded_optimizer_is_shared_out_too() {
    let report = memory_only("--parallel zero2 --offload optimizer");
    let p = gpt2_parameters(12, H);
    let [weights, gradients, _] = formula("zero2", 2);
    assert_eq!(most(&report), [weights, gradients, 0]);
    assert_eq!(number(&report, "/host/peak/bytes"), 12 * p + W * V * H);
    // In ddp each keeps all of it.
    let report = memory_only("--parallel ddp --offload optimizer");
    assert_eq!(number(&report, "/host/peak/bytes"), 2 * (12 * p + W * V * H));
}

#[test]
fn ranks_look_for_the_largest_batch_together() {
    let (output, report) = Place::new().record(&format!(
        "--device rtx3090-24gb --devices 2 --no-compute -- {} sample gpt --model gpt2-124m --seq 1024 --batch auto --ranks 2 \
         --parallel ddp --steps 2",
        env!("CARGO_BIN_EXE_memscope")
    ));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_two_ranks(&report);
    // Of a rank's share: weights, buckets and moments; activations; two temporaries as large as the logits; tokens and targets; the
    // loss.
    let peak = |batch: u64| {
        let n = batch * 1_024;
        16 * gpt2_parameters(12, H) + gpt2_activations(12, batch, 1_024, H, 12, V) + 2 * 4 * n * V + 2 * 8 * n + 4
    };
    let largest = (1..).take_while(|&batch| peak(batch) <= 24 << 30).last().expect("one sequence fits");
    let text = stdout(&output);
    assert!(text.contains(&format!("batch {}: fits", 2 * largest)), "{largest}: {text}");
    assert!(text.contains(&format!("batch {}: out of device memory: ", 2 * largest + 2)), "{largest}: {text}");
    assert!(text.contains(&format!("batch {} × 1024 tokens", 2 * largest)), "{largest}: {text}");
    assert!(text.trim_end().lines().last().is_some_and(|line| line.starts_with("step 2/2")), "{text}");
    for device in 0..2 {
        assert!(number(&report, &format!("/devices/{device}/peak/live/bytes")) >= peak(largest));
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
