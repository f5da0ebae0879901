//! Byte-exact figures of the bundled GPT against arithmetic done here by hand, not by the trainer.
//!
//! Sources: the published shapes of GPT-2 (vocabulary 50,257; 1,024 positions; widths and depths of the four sizes), and the
//! usual count of what an eager fp32 transformer keeps for its backward pass: w·s·b·h·(16 + a·s/h) a layer without dropout.

use std::time::Instant;

use crate::memscope::{Place, number, stderr};

/// Bytes of an fp32 element.
const W: u64 = 4;

/// Parameters of a GPT-2 with tied head: embeddings, layers, final norm.
fn gpt2_parameters(layers: u64, h: u64) -> u64 {
    let (vocabulary, positions) = (50_257, 1_024);
    let norm = 2 * h;
    let attention = h * 3 * h + 3 * h + h * h + h;
    let mlp = h * 4 * h + 4 * h + 4 * h * h + h;
    vocabulary * h + positions * h + layers * (2 * norm + attention + mlp) + norm
}

/// Bytes kept from forward for backward, tensor by tensor, for batch `b`, sequence `s`, width `h`, `a` heads, vocabulary `v`.
fn gpt2_activations(layers: u64, b: u64, s: u64, h: u64, a: u64, v: u64) -> u64 {
    let n = b * s;
    let row = W * n * h; // one (b, s, h) tensor
    let statistics = 2 * W * n; // mean and reciprocal deviation of one norm
    let layer = row // input of the first norm: the residual stream
        + statistics
        + row // output of the first norm, input of the qkv projection
        + 3 * row // q, k, v
        + W * b * a * s * s // attention probabilities
        + row // heads merged, input of the output projection
        + row // residual stream, input of the second norm
        + statistics
        + row // output of the second norm, input of the MLP
        + 4 * row // input of the GELU
        + 4 * row; // output of the GELU, input of the last projection
    let head = row // residual stream, input of the final norm
        + statistics
        + row // output of the final norm, input of the head
        + W * n * v; // log-probabilities
    layers * layer + head
}

#[test]
fn the_arithmetic_meets_its_anchors() {
    assert_eq!(gpt2_parameters(12, 768), 124_439_808);
    assert_eq!(gpt2_parameters(24, 1_024), 354_823_168);
    assert_eq!(gpt2_parameters(36, 1_280), 774_030_080);
    assert_eq!(gpt2_parameters(48, 1_600), 1_557_611_200);
    // 384 MiB a layer for b 4, s 1024, without the statistics of the two norms.
    let (one, none) = (gpt2_activations(1, 4, 1_024, 768, 12, 50_257), gpt2_activations(0, 4, 1_024, 768, 12, 50_257));
    assert_eq!(one - none - 4 * W * 4 * 1_024, 384 << 20);
}

#[test]
fn gpt2_124m_memory_only_is_exact() {
    let place = Place::new();
    let before = Instant::now();
    let (output, report) = place.record(&format!(
        "--device h100-80gb --no-compute -- {} sample gpt --model gpt2-124m --batch 4 --seq 1024 --steps 2",
        env!("CARGO_BIN_EXE_memscope")
    ));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(number(&report, "/category_peaks/weights/bytes"), 497_759_232);
    assert_eq!(number(&report, "/category_peaks/gradients/bytes"), 497_759_232);
    assert_eq!(number(&report, "/category_peaks/optimizer/bytes"), 995_518_464);
    assert_eq!(number(&report, "/category_peaks/activations/bytes"), gpt2_activations(12, 4, 1_024, 768, 12, 50_257));
    assert_eq!(number(&report, "/peak/by_category/unknown"), 0);
    assert_eq!(report["simulated"], true);
    assert_eq!(report["dropped_events"], 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("not computed"));
    println!("gpt2-124m, 2 steps, memory only: {:.1} s", before.elapsed().as_secs_f64());
}

#[test]
fn the_larger_sizes_have_their_weights() {
    let place = Place::new();
    for (model, layers, width) in [("gpt2-medium", 24, 1_024), ("gpt2-large", 36, 1_280), ("gpt2-xl", 48, 1_600)] {
        let (output, report) = place.record(&format!(
            "--device b200-180gb --no-compute -- {} sample gpt --model {model} --batch 1 --seq 64 --steps 1",
            env!("CARGO_BIN_EXE_memscope")
        ));
        assert_eq!(output.status.code(), Some(0), "{model}: {}", stderr(&output));
        let weights = W * gpt2_parameters(layers, width);
        assert_eq!(number(&report, "/category_peaks/weights/bytes"), weights, "{model}");
        assert_eq!(number(&report, "/category_peaks/gradients/bytes"), weights, "{model}");
        assert_eq!(number(&report, "/category_peaks/optimizer/bytes"), 2 * weights, "{model}");
    }
}

#[test]
fn gpt2_xl_does_not_fit_a_24_gb_card() {
    let place = Place::new();
    let (output, report) = place.record(&format!(
        "--device rtx3090-24gb --no-compute -- {} sample gpt --model gpt2-xl --steps 2",
        env!("CARGO_BIN_EXE_memscope")
    ));
    assert_ne!(output.status.code(), Some(0));
    let oom = report["findings"]
        .as_array()
        .and_then(|findings| findings.iter().find(|finding| finding["kind"] == "oom"))
        .unwrap_or_else(|| panic!("no finding of an OOM: {}", report["findings"]));
    let asked = number(oom, "/requested");
    let free = number(oom, "/free");
    assert!(asked > free, "asked {asked}, free {free}");
    // What was live and what was free make up the device: nothing else holds memory on the simulated one, and the rounding
    // of each allocation to 512 bytes is all that may lie between.
    let live: u64 = oom["by_category"].as_object().expect("categories").values().filter_map(|v| v.as_u64()).sum();
    let capacity = 24_576_u64 << 20;
    let allocations = number(&report, "/totals/allocations");
    assert!(live + free <= capacity && live + free + 512 * allocations >= capacity, "live {live}, free {free}");
    let text = place.run("report p.mscope");
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for part in ["out of memory", "asked for", "were free", "weights", "activations"] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
}

/// memscope and program together stay below 500 MiB of host memory.
#[test]
fn a_memory_only_run_needs_little_host_memory() {
    let place = Place::new();
    let mut command = place.memscope();
    command.args(["run", "-q", "-o", "x", "--device", "h100-80gb", "--no-compute", "--"]);
    command.arg(env!("CARGO_BIN_EXE_memscope"));
    command.args("sample gpt --model gpt2-124m --batch 4 --seq 1024 --steps 2".split(' '));
    #[expect(clippy::zombie_processes, reason = "wait4 below waits for it and tells its usage")]
    let child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: room for both answers; the child is ours and waited for nowhere else.
    let largest = unsafe {
        assert_eq!(libc::wait4(child.id() as i32, &mut status, 0, usage.as_mut_ptr()), child.id() as i32);
        usage.assume_init().ru_maxrss as u64 * 1024
    };
    assert_eq!(status, 0);
    // `largest` is the larger of memscope and the program it waited for; both together are at most twice that.
    println!("largest process: {} MiB", largest >> 20);
    assert!(2 * largest < 500 << 20, "{} MiB", largest >> 20);
}
