//! Figures of articles on PyTorch's memory, at the sizes that they speak of: what is claimed, what arithmetic from the shapes
//! says, and what the trainers take. A claim that does not hold is a test that it does not (✗).
//!
//! S1, S2 and S3 are the articles of docs/techniques.md. They count 10⁹ bytes as a GB. Nothing is computed here: times are told
//! by the multiplications that a step needs.

use serde_json::Value;

use crate::anchors::{gpt2_activations, gpt2_parameters, resnet_50_activations};
use crate::memscope::{Place, number, stderr, stdout};

/// Trains on a simulated device that does not compute; the report and what was printed.
fn train(device: &str, arguments: &str) -> (Value, String) {
    sample(device, &format!("gpt {arguments}"))
}

fn sample(device: &str, arguments: &str) -> (Value, String) {
    let (output, report) = Place::new()
        .record(&format!("{device} --no-compute -- {} sample {arguments} --steps 2", env!("CARGO_BIN_EXE_memscope")));
    assert_eq!(output.status.code(), Some(0), "{arguments}: {}", stderr(&output));
    assert_eq!(number(&report, "/peak/by_category/unknown"), 0, "{arguments}");
    (report, stdout(&output))
}

/// Largest live bytes of the run's fullest device.
fn peak(device: &str, arguments: &str) -> u64 {
    number(&train(device, arguments).0, "/peak/bytes")
}

fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

/// What a step of training a transformer multiplies more when every block is computed twice, of what it multiplies anyway:
/// forward, and twice as much in backward. Of a token a block takes 24·h² for its matrices and 4·s·h for scores and context,
/// the head `head`.
fn computed_again(layers: u64, h: u64, s: u64, head: u64) -> f64 {
    let blocks = layers * (24 * h * h + 4 * s * h);
    blocks as f64 / (3 * (blocks + head)) as f64
}

/// BERT-base for masked words.
mod bert {
    pub const LAYERS: u64 = 12;
    pub const H: u64 = 768;
    pub const A: u64 = 12;
    pub const V: u64 = 30_522;

    /// Embeddings with their norm, blocks, and the head: a dense layer, a norm and a bias a word.
    pub fn parameters() -> u64 {
        let embeddings = (V + 512 + 2) * H + 2 * H;
        let block = 4 * (H * H + H) + (H * 4 * H + 4 * H) + (4 * H * H + H) + 2 * 2 * H;
        embeddings + LAYERS * block + (H * H + H) + 2 * H + V
    }

    /// At the start of backward: weights and states; of `layers` layers all that they keep, of `inputs` others the input; five
    /// (n, h) tensors and four statistics a row around the layers; log-probabilities, their gradient and that of the logits;
    /// tokens, types, targets and the loss.
    pub fn in_the_loss(layers: u64, inputs: u64, b: u64, s: u64) -> u64 {
        let n = b * s;
        let row = 4 * n * H;
        let layer = 16 * row + 4 * b * A * s * s + 2 * 2 * 4 * n;
        12 * parameters() + layers * layer + inputs * row + 5 * row + 4 * 4 * n + 3 * 4 * n * V + 3 * 8 * n + 4
    }
}

/// S1: BERT-base 12 → 4.5 GB by checkpointing, at +20 % of time. ✔ the bytes with 16 sequences of 512 tokens and √L layers a
/// segment; ✗ with shorter ones, whose logits are most; ✗ the time, which is a little more.
#[test]
fn bert_base_from_12_to_4_5_gigabytes() {
    assert_eq!(bert::parameters(), 109_514_298);
    let measured = |b: u64, s: u64, flags: &str| {
        let (report, _) = train("--device h100-80gb", &format!("--model bert-base --batch {b} --seq {s} {flags}"));
        (number(&report, "/peak/bytes"), number(&report, "/peak/by_category/gradients"))
    };
    for (b, s, before, after) in [(16, 512, 11.7, 4.5), (80, 128, 12.0, 5.3)] {
        let plain = bert::in_the_loss(bert::LAYERS, 0, b, s);
        assert_eq!(measured(b, s, ""), (plain, 0), "b {b} s {s}");
        assert!((gigabytes(plain) - before).abs() < 0.05, "{plain}");
        for k in [1, 2, 3, 4] {
            let checkpointed = bert::in_the_loss(0, bert::LAYERS / k, b, s);
            assert_eq!(measured(b, s, &format!("--checkpoint every={k}")), (checkpointed, 0), "b {b} s {s} k {k}");
        }
        let (root, _) = measured(b, s, "--checkpoint sqrt");
        assert_eq!(root, bert::in_the_loss(0, bert::LAYERS / 3, b, s), "√12 is 3.46");
        assert!((gigabytes(root) - after).abs() < 0.05, "{root}");
    }
    // With long segments of few logits the peak is no longer in the loss: it moves to a segment's backward, and is larger.
    let (long, gradients) = measured(16, 512, "--checkpoint every=6");
    assert!(long > bert::in_the_loss(0, 4, 16, 512) && gradients > 0, "{long}");
    let time = computed_again(bert::LAYERS, bert::H, 512, 2 * bert::H * (bert::V + bert::H));
    assert_eq!(format!("{:.1} %", 100.0 * time), "26.6 %");
}

/// S3: GPT-2 of 1.5 billion parameters takes 6 + 6 + 12 + 8 = 28 GB, on a card of 48 GB 18 GB with mixed precision, and 9 GB with
/// ZeRO. ✗ the sum is 32; ✗ no moment has all four, and the peak is 27; ✗ it fits that card as it is; and 9 GB take four cards.
#[test]
fn gpt2_xl_on_a_48_gb_card() {
    let card = "--device a6000-48gb";
    let p = gpt2_parameters(48, 1_600);
    assert_eq!(p, 1_557_611_200);
    let (b, s, h, a, v) = (2, 512, 1_600, 25, 50_257);
    let n = b * s;
    let activations = gpt2_activations(48, b, s, h, a, v);
    let parts = [4 * p, 4 * p, 8 * p, activations].map(|bytes| gigabytes(bytes).round());
    assert_eq!(parts, [6.0, 6.0, 12.0, 8.0], "two sequences of 512 tokens are S3's case");
    assert_eq!(parts.iter().sum::<f64>(), 32.0);

    let (report, _) = train(card, &format!("--model gpt2-xl --batch {b} --seq {s}"));
    let largest = |category: &str| number(&report, &format!("/category_peaks/{category}/bytes"));
    let categories = ["weights", "gradients", "optimizer", "activations"].map(largest);
    assert_eq!(categories, [4 * p, 4 * p, 8 * p, activations]);
    // Gradients come as activations go: at the start of backward there are none.
    let plain = 12 * p + activations + 2 * 4 * n * v + 2 * 8 * n + 4;
    assert_eq!(number(&report, "/peak/bytes"), plain);
    assert_eq!(format!("{:.1}", gigabytes(plain)), "26.9");

    // 16 bits for all: 2 + 2 + 4 bytes a parameter at the end of backward, with tokens, targets, the last gradient and the loss.
    let at_the_end = |stream: u64| (2 * 8 + stream * h) * 64;
    let sixteen = peak(card, "--model gpt2-xl --batch 1 --seq 64 --precision bf16");
    assert_eq!(sixteen, 8 * p + at_the_end(2) + 4);
    assert_eq!(format!("{:.1}", gigabytes(sixteen)), "12.5");
    // S3's 18 GB are 2 + 2 + 8: 32-bit states without 32-bit weights; its 9 GB are 2 + 2 + 8/4.
    assert_eq!([12 * p, 6 * p].map(|bytes| format!("{:.1}", gigabytes(bytes))), ["18.7", "9.3"]);
    // The same over four cards in 32 bits, where every rank has a quarter of the optimizer's state: 4 + 4 + 8/4.
    let four = "--model gpt2-xl --batch 4 --seq 64 --ranks 4 --parallel";
    let quarter = peak(&format!("{card} --devices 4"), &format!("{four} zero1"));
    assert_eq!(quarter, 10 * p + at_the_end(4) + 4, "zero1");
    assert_eq!(format!("{:.1}", gigabytes(quarter)), "15.6");
    // And with all in 16 bits: 2 + 2 + 4/4.
    let quarter = peak(&format!("{card} --devices 4"), &format!("{four} zero1 --precision bf16"));
    assert_eq!(quarter, 5 * p + at_the_end(2) + 4, "zero1 in bf16");
}

const LAYERS: u64 = 12;
const H: u64 = 768;
const A: u64 = 12;
const V: u64 = 50_257;
const S: u64 = 1_024;

/// GPT-2 124M at the start of backward, plain, and with all blocks checkpointed: as above, with `k` layers a segment.
fn plain(b: u64) -> u64 {
    let n = b * S;
    12 * gpt2_parameters(LAYERS, H) + gpt2_activations(LAYERS, b, S, H, A, V) + 2 * 4 * n * V + 2 * 8 * n + 4
}

fn checkpointed(b: u64) -> u64 {
    let n = b * S;
    // The layers' inputs, the last one's output, and the last norm's with its statistics.
    let kept = (LAYERS + 2) * 4 * n * H + 2 * 4 * n;
    12 * gpt2_parameters(LAYERS, H) + kept + 3 * 4 * n * V + 2 * 8 * n + 4
}

/// The same in mixed precision, fp16: 2 bytes more for each weight that a product reads, one flag, gradients of log-probabilities
/// and logits of 4 and 2 bytes. What products read and give has 2 bytes, and so have the probabilities.
fn mixed(b: u64, checkpointed: bool) -> u64 {
    let n = b * S;
    // Casts that no backward pass will read are gone where the loss begins: of the blocks that are cast again.
    let of_blocks = if checkpointed { 0 } else { LAYERS * 12 * H * H };
    let states = 12 * gpt2_parameters(LAYERS, H) + 2 * (of_blocks + V * H) + 4;
    // Two inputs of norms in fp32; outputs of norms, q, k, v, the merged heads, before and after GELU in fp16.
    let layer = n * H * (2 * 4 + 2 * (2 + 3 + 1 + 4 + 4)) + 2 * b * A * S * S + 2 * 2 * 4 * n;
    let layers = LAYERS * if checkpointed { 4 * n * H } else { layer };
    states + layers + n * H * (4 + 2) + 2 * 4 * n + (4 + 4 + 2) * n * V + 2 * 8 * n + 4
}

/// S2: batches 2 to 4 times as large by mixed precision (✗: twice is the most that halved activations can give), 1.5 to 3 times
/// by checkpointing (✔).
#[test]
fn batches_on_a_24_gb_card() {
    let capacity = 24 << 30;
    let found = |flags: &str, bytes: &dyn Fn(u64) -> u64| {
        let (report, text) =
            train("--device rtx3090-24gb", &format!("--model gpt2-124m --seq 1024 --batch auto {flags}"));
        let by_hand = (1..).take_while(|&b| bytes(b) <= capacity).last().expect("one sequence fits");
        assert!(text.contains(&format!("batch {by_hand}: fits")), "{flags} {by_hand}: {text}");
        assert!(text.contains(&format!("batch {}: out of device memory", by_hand + 1)), "{flags} {by_hand}: {text}");
        // The trials are in no step: the second one is the training's own.
        assert_eq!(number(&report, "/steps/1/peak/bytes"), bytes(by_hand), "{flags}");
        by_hand
    };
    let before = found("", &plain);
    let amp = found("--precision amp-fp16", &|b| mixed(b, false));
    let recomputed = found("--checkpoint every=1", &checkpointed);
    let both = found("--precision amp-fp16 --checkpoint every=1", &|b| mixed(b, true));
    assert_eq!([before, amp, recomputed, both], [13, 20, 36, 43]);
    let times = [amp, recomputed, both].map(|batch| format!("{:.2}", batch as f64 / before as f64));
    assert_eq!(times, ["1.54", "2.77", "3.31"]);
    // However large the card: what one more sequence costs.
    let at_most = (plain(2) - plain(1)) as f64 / (mixed(2, false) - mixed(1, false)) as f64;
    assert!(at_most < 2.0, "{at_most}");
}

/// S2: mixed precision and checkpointing save 80 % and more for 20 to 40 % of time. ✔ the time; ✗ the bytes of a GPT whose logits
/// are whole, at any batch; ✔ with a loss in chunks.
#[test]
fn mixed_precision_with_checkpoints_saves_80_percent_without_the_logits() {
    let run = |flags: &str| peak("--device rtx3090-24gb", &format!("--model gpt2-124m --seq 1024 --batch 13 {flags}"));
    let (before, after) = (run(""), run("--precision amp-fp16 --checkpoint every=1"));
    assert_eq!((before, after), (plain(13), mixed(13, true)));
    let saved = |after: u64, before: u64| format!("{:.1} %", 100.0 * (1.0 - after as f64 / before as f64));
    assert_eq!(saved(after, before), "65.2 %");
    let (one, other) = (mixed(2, true) - mixed(1, true), plain(2) - plain(1));
    assert_eq!(saved(one, other), "69.6 %", "of the largest batch that there could be");
    let chunked = run("--precision amp-fp16 --checkpoint every=1 --chunked-loss 32");
    assert!(5 * chunked < before, "{chunked} of {before}");
    let time = computed_again(LAYERS, H, S, 2 * H * V);
    assert_eq!(format!("{:.1} %", 100.0 * time), "24.3 %");
}

/// S3: a batch of 1,024 where one of 256 fits. ✔ by accumulation, up to the gradients; ✗ by checkpointing alone.
#[test]
fn four_times_the_batch() {
    let run = |flags: &str| peak("--device h100-80gb", &format!("--model bert-base --seq 128 {flags}"));
    let small = run("--batch 256");
    assert_eq!(small, bert::in_the_loss(bert::LAYERS, 0, 256, 128));
    assert_eq!(run("--batch 1024 --accumulate 4"), small + 4 * bert::parameters());
    let recomputed = run("--batch 1024 --checkpoint every=1");
    assert_eq!(recomputed, bert::in_the_loss(0, bert::LAYERS, 1_024, 128));
    assert!(recomputed > small);
    // What is in the way are the logits.
    assert!(run("--batch 1024 --checkpoint every=1 --chunked-loss 16") < small / 2);
    let (output, report) = Place::new().record(&format!(
        "--device h100-80gb --no-compute -- {} sample gpt --model bert-base --seq 128 --batch 1024 --steps 2",
        env!("CARGO_BIN_EXE_memscope")
    ));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(report["findings"].as_array().is_some_and(|all| all.iter().any(|one| one["kind"] == "oom")));
}

/// ResNet-50 with AdamW on a card of 24 GB. S2: batches 2 to 4 times as large by mixed precision (✗: nearly twice), 1.5 to 3 times by
/// checkpointing (✔), 80 % and more saved by both (✗: nearly). S3: 256 → 1,024 images, ✔ by both or by accumulation.
#[test]
fn a_resnets_batches_on_a_24_gb_card() {
    const P: u64 = 25_557_032;
    let (card, resnet) = ("--device rtx3090-24gb", "resnet --model 50 --optimizer adamw");
    let (amp, again) = ("--precision amp-fp16", "--checkpoint every=1");
    // Weights, states, images with their targets, and what is kept; what comes and goes is small beside them.
    let by_hand = |batch: u64| 12 * P + batch * (4 * 3 * 224 * 224 + 8) + resnet_50_activations(batch);
    let peak = |flags: &str| number(&sample(card, &format!("{resnet} {flags}")).0, "/peak/bytes");
    let small = peak("--batch 256");
    assert!(small > by_hand(256) && (small as f64) < 1.02 * by_hand(256) as f64, "{small}");

    let found = |flags: &str| -> u64 {
        let (_, text) = sample(card, &format!("{resnet} --batch auto {flags}"));
        let batch = text.split_once("; batch ").and_then(|(_, rest)| rest.split(' ').next()).expect("a batch");
        batch.parse().expect("a number")
    };
    let before = found("");
    assert!(by_hand(before) < 24 << 30 && 24 << 30 < by_hand(before + before / 50), "{before}");
    let times = [found(amp), found(again), found(&format!("{amp} {again}"))].map(|batch| batch as f64 / before as f64);
    println!("{before} images, times {times:?}");
    let [by_amp, by_checkpoints, by_both] = times;
    assert!(1.8 < by_amp && by_amp < 2.0, "{times:?}");
    assert!(1.5 < by_checkpoints && by_checkpoints < 3.0, "{times:?}");
    assert!(4.0 < by_both, "{times:?}");

    let both = peak(&format!("--batch 256 {amp} {again}"));
    let four_times = peak(&format!("--batch 1024 {amp} {again}"));
    assert!(four_times < small, "{four_times} for four times the images of {small}");
    let saved = |less: u64, more: u64| 100.0 * (1.0 - less as f64 / more as f64);
    let most = saved(four_times - both, by_hand(1_024) - by_hand(256));
    println!("saved {} %, of a large batch {most} %", saved(both, small));
    assert!(77.0 < saved(both, small) && saved(both, small) < 80.0 && most < 80.0, "{both} {most}");

    let accumulated = peak("--batch 1024 --accumulate 4");
    assert!(small < accumulated && accumulated <= small + 4 * P, "{accumulated}");
}
