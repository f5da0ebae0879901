//! Byte-exact figures of the bundled trainers against arithmetic done here by hand, not by the trainers.
//!
//! Sources: the published shapes of GPT-2 (vocabulary 50,257; 1,024 positions; widths and depths of the four sizes), and the
//! usual count of what an eager fp32 transformer keeps for its backward pass: w·s·b·h·(16 + a·s/h) a layer without dropout.
//! torchvision's ResNets (stride in the 3 × 3 of a bottleneck, convolutions without bias), and what PyTorch keeps of them: each
//! convolution's input, each normalisation's input with two statistics a channel, each ReLU's output, which overwrites its
//! input and is the next convolution's, and 64-bit indices of the pooling.

use std::time::Instant;

use crate::memscope::{Place, number, stderr};

/// Bytes of an fp32 element.
const W: u64 = 4;

/// Parameters of a GPT-2 with tied head: embeddings, layers, final norm.
pub fn gpt2_parameters(layers: u64, h: u64) -> u64 {
    let (vocabulary, positions) = (50_257, 1_024);
    let norm = 2 * h;
    let attention = h * 3 * h + 3 * h + h * h + h;
    let mlp = h * 4 * h + 4 * h + 4 * h * h + h;
    vocabulary * h + positions * h + layers * (2 * norm + attention + mlp) + norm
}

/// Bytes kept from forward for backward, tensor by tensor, for batch `b`, sequence `s`, width `h`, `a` heads, vocabulary `v`.
pub fn gpt2_activations(layers: u64, b: u64, s: u64, h: u64, a: u64, v: u64) -> u64 {
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
fn the_larger_sizes_have_their_weights_and_activations() {
    let place = Place::new();
    for (model, layers, width, heads) in
        [("gpt2-medium", 24, 1_024, 16), ("gpt2-large", 36, 1_280, 20), ("gpt2-xl", 48, 1_600, 25)]
    {
        let (output, report) = place.record(&format!(
            "--device b200-180gb --no-compute -- {} sample gpt --model {model} --batch 1 --seq 64 --steps 1",
            env!("CARGO_BIN_EXE_memscope")
        ));
        assert_eq!(output.status.code(), Some(0), "{model}: {}", stderr(&output));
        let weights = W * gpt2_parameters(layers, width);
        assert_eq!(number(&report, "/category_peaks/weights/bytes"), weights, "{model}");
        assert_eq!(number(&report, "/category_peaks/gradients/bytes"), weights, "{model}");
        assert_eq!(number(&report, "/category_peaks/optimizer/bytes"), 2 * weights, "{model}");
        let kept = gpt2_activations(layers, 1, 64, width, heads, 50_257);
        assert_eq!(number(&report, "/category_peaks/activations/bytes"), kept, "{model}");
    }
}

/// llm.c pads the vocabulary to a multiple of 128.
#[test]
fn a_padded_vocabulary_adds_its_rows() {
    let (output, report) = Place::new().record(&format!(
        "--device h100-80gb --no-compute -- {} sample gpt --model gpt2-124m --vocabulary 50304 --batch 1 --seq 64 --steps 1",
        env!("CARGO_BIN_EXE_memscope")
    ));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(number(&report, "/category_peaks/weights/bytes"), W * 124_475_904);
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

/// Blocks of each stage, and whether they are bottlenecks.
struct Resnet {
    blocks: [u64; 4],
    bottleneck: bool,
}

const RESNET_18: Resnet = Resnet { blocks: [2, 2, 2, 2], bottleneck: false };
const RESNET_50: Resnet = Resnet { blocks: [3, 4, 6, 3], bottleneck: true };
const RESNET_152: Resnet = Resnet { blocks: [3, 8, 36, 3], bottleneck: true };

/// What a ResNet for 1000 classes of images of 224 × 224 has, by hand.
#[derive(Default)]
struct Count {
    parameters: u64,
    /// Channels of all normalisations.
    channels: u64,
    /// Elements kept for backward of one image: feature maps, with indices as two each.
    kept: u64,
}

impl Count {
    /// A convolution with its normalisation, whose output has `side` × `side` positions: keeps the normalisation's input.
    fn unit(&mut self, inputs: u64, filters: u64, window: u64, side: u64) {
        self.parameters += filters * inputs * window * window + 2 * filters;
        self.channels += filters;
        self.kept += filters * side * side;
    }

    /// A ReLU's output.
    fn relu(&mut self, channels: u64, side: u64) {
        self.kept += channels * side * side;
    }
}

impl Resnet {
    fn count(&self) -> Count {
        let mut count = Count::default();
        count.unit(3, 64, 7, 112);
        count.relu(64, 112);
        // The pooling's output, and its indices.
        count.kept += 3 * 64 * 56 * 56;
        let mut inputs = 64;
        for (blocks, width, side) in
            [(self.blocks[0], 64, 56), (self.blocks[1], 128, 28), (self.blocks[2], 256, 14), (self.blocks[3], 512, 7)]
        {
            for block in 0..blocks {
                // Only the first block of a later stage reads planes of twice the side.
                let before = if block == 0 && side != 56 { 2 * side } else { side };
                let outputs = if self.bottleneck { 4 * width } else { width };
                if self.bottleneck {
                    count.unit(inputs, width, 1, before);
                    count.relu(width, before);
                    count.unit(width, width, 3, side);
                    count.relu(width, side);
                    count.unit(width, outputs, 1, side);
                } else {
                    count.unit(inputs, width, 3, side);
                    count.relu(width, side);
                    count.unit(width, width, 3, side);
                }
                if inputs != outputs {
                    count.unit(inputs, outputs, 1, side);
                }
                count.relu(outputs, side);
                inputs = outputs;
            }
        }
        count.parameters += inputs * 1_000 + 1_000;
        // The mean of each plane, which the head reads, and the log-probabilities.
        count.kept += inputs + 1_000;
        count
    }
}

/// Bytes that ResNet-50 keeps from forward for backward, without the images.
pub fn resnet_50_activations(batch: u64) -> u64 {
    let count = RESNET_50.count();
    W * (batch * count.kept + 2 * count.channels)
}

/// Parameters as published, and saved activations: 21.2, 82.0 and 169.5 MiB an image, measured in PyTorch, whose share of the
/// statistics of a batch is that of a batch of two, and which counts the image.
#[test]
fn resnets_memory_only_are_exact() {
    let place = Place::new();
    for (name, resnet, parameters, saved_mib) in [
        ("18", RESNET_18, 11_689_512, "21.2"),
        ("50", RESNET_50, 25_557_032, "82.0"),
        ("152", RESNET_152, 60_192_808, "169.5"),
    ] {
        let count = resnet.count();
        assert_eq!(count.parameters, parameters, "{name}");
        for batch in [1, 2, 16] {
            let (output, report) = place.record(&format!(
                "--device h100-80gb --no-compute -- {} sample resnet --model {name} --batch {batch} --steps 2",
                env!("CARGO_BIN_EXE_memscope")
            ));
            assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
            let peak = |category: &str| number(&report, &format!("/category_peaks/{category}/bytes"));
            // A running mean and a running variance for each channel of a normalisation.
            assert_eq!(peak("weights"), W * (parameters + 2 * count.channels), "{name}");
            assert_eq!(peak("gradients"), W * parameters, "{name}");
            assert_eq!(peak("optimizer"), W * parameters, "{name}");
            let image = W * 3 * 224 * 224;
            assert_eq!(peak("inputs"), batch * (image + 8), "{name}");
            assert_eq!(peak("activations"), W * (batch * count.kept + 2 * count.channels), "{name}");
            assert_eq!(number(&report, "/peak/by_category/unknown"), 0, "{name}");
            assert_eq!(report["dropped_events"], 0);
            if batch == 2 {
                let an_image = (peak("activations") + 2 * image) as f64 / 2.0 / 1_048_576.0;
                assert_eq!(format!("{an_image:.1}"), saved_mib, "{name}");
            }
        }
    }
}

/// PyTorch's own peak of a step of ResNet-50 with AdamW, and the shares of activations (with the images), optimizer and
/// weights in it, in percent: measured once, of tensors without a cache.
#[test]
fn resnet_50_peaks_where_pytorch_does() {
    let place = Place::new();
    for (batch, peak_mib, shares) in [(4, 677.0, [46, 29, 14]), (32, 2_947.0, [89, 7, 3])] {
        let (output, report) = place.record(&format!(
            "--device h100-80gb --no-compute -- {} sample resnet --model 50 --batch {batch} --optimizer adamw --steps 2",
            env!("CARGO_BIN_EXE_memscope")
        ));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let peak = number(&report, "/devices/0/peak/live/bytes") as f64;
        let mib = peak / 1_048_576.0;
        // Half a percent: the order in which single gradients come and go is the framework's.
        assert!((mib / peak_mib - 1.0).abs() < 0.005, "batch {batch}: {mib} MiB, not {peak_mib}");
        let share = |categories: &[&str]| {
            let bytes: u64 = categories.iter().map(|name| number(&report, &format!("/peak/by_category/{name}"))).sum();
            (100.0 * bytes as f64 / peak).round() as u64
        };
        assert_eq!([share(&["activations", "inputs"]), share(&["optimizer"]), share(&["weights"])], shares, "{batch}");
    }
}
