//! The bytes of the flags of activations and of shared weights in the profile, against arithmetic by hand from GPT-2's shapes;
//! and the device's peaks beside those of PyTorch, which were measured elsewhere on the same model.

use serde_json::Value;

use crate::anchors::{gpt2_activations, gpt2_parameters};
use crate::memscope::{Place, number, stderr, stdout};

const LAYERS: u64 = 12;
const H: u64 = 768;
const A: u64 = 12;
const V: u64 = 50_257;
const B: u64 = 4;
const S: u64 = 1_024;
const N: u64 = B * S;

/// Bytes of a (rows, width) tensor, of one layer's attention matrix, and of two statistics a row.
const ROW: u64 = 4 * N * H;
const MATRIX: u64 = 4 * B * A * S * S;
const STATISTICS: u64 = 2 * 4 * N;
/// Bytes that one layer keeps.
const LAYER: u64 = 16 * ROW + MATRIX + 2 * STATISTICS;
/// Kept around the layers, without the log-probabilities: the last layer's output, and the final norm's with statistics.
const AROUND: u64 = 2 * ROW + STATISTICS;
/// Tokens, targets and the loss.
const SMALL: u64 = 2 * 8 * N + 4;

/// Trains GPT-2 124M at batch 4 on a simulated device that does not compute; the report and what was printed.
fn train(flags: &str) -> (Value, String) {
    let (output, report) = Place::new().record(&format!(
        "--device h100-80gb --no-compute -- {} sample gpt --model gpt2-124m --batch 4 --seq 1024 --steps 2 {flags}",
        env!("CARGO_BIN_EXE_memscope")
    ));
    assert_eq!(output.status.code(), Some(0), "{flags}: {}", stderr(&output));
    assert_eq!(number(&report, "/peak/by_category/unknown"), 0, "{flags}");
    (report, stdout(&output))
}

fn largest(report: &Value, category: &str) -> u64 {
    number(report, &format!("/category_peaks/{category}/bytes"))
}

/// PyTorch's peak, from tensors alone, within a few MiB: it keeps some masks and scalars besides.
fn assert_beside_pytorch(bytes: u64, mib: u64) {
    let difference = (bytes as f64 / f64::from(1 << 20) - mib as f64).abs();
    assert!(difference < 3.0, "{bytes} bytes beside {mib} MiB");
}

/// Parameters of one block.
fn block() -> u64 {
    (gpt2_parameters(LAYERS, H) - gpt2_parameters(0, H)) / LAYERS
}

#[test]
fn checkpoints_move_the_peak_to_the_first_segments_backward() {
    let p = gpt2_parameters(LAYERS, H);
    for (k, pytorch) in [(1, 2_538), (2, 2_895), (3, 3_252), (4, 3_609), (6, 4_323)] {
        let (report, _) = train(&format!("--chunked-loss 8 --checkpoint every={k}"));
        assert_eq!(largest(&report, "activations"), LAYERS / k * ROW + k * LAYER, "every {k}");
        // In the first segment's last layer, when the softmax is gone through: gradients of all but the segment's layers and
        // the positions, and of this layer's MLP with its norm and of the projection.
        let of_layer = (4 * H * H + 4 * H) + (4 * H * H + H) + 2 * H + (H * H + H);
        let gradients = p - k * block() - S * H + of_layer;
        // The MLP's and the second norm's tensors are gone, and so are the context and v.
        let kept = k * LAYER - 12 * ROW - STATISTICS;
        // The gradients of the layer's output, of v, and of the matrix on both sides of the softmax.
        let temporary = 2 * ROW + 2 * MATRIX;
        let peak = 12 * p + 4 * gradients + kept + temporary + SMALL;
        assert_eq!(number(&report, "/peak/bytes"), peak, "every {k}");
        assert_eq!(report["peak"]["phase"], "backward");
        assert_beside_pytorch(peak, pytorch);
        let text = report.to_string();
        assert!(text.contains(".recomputed") && text.contains("recompute/transformer"), "no block is marked");
    }
}

#[test]
fn the_formulas_least_segments_are_chosen() {
    let (report, output) = train("--chunked-loss 8 --checkpoint auto");
    assert_eq!(largest(&report, "activations"), LAYERS * ROW + LAYER);
    // √(12 · 12 / 384) = 0.61
    let choice = output.lines().find(|line| line.starts_with("checkpoint every=1: ")).expect("it says what it chose");
    assert!(choice.contains(&format!("keeps {LAYER} bytes")) && choice.contains("is 0.61"), "{choice}");
    // √12 is 3.46: segments of 3.
    assert_eq!(largest(&train("--chunked-loss 8 --checkpoint sqrt").0, "activations"), 4 * ROW + 3 * LAYER);
    // Without chunks the log-probabilities decide: they and the layers' inputs are there in the loss.
    let (report, _) = train("--checkpoint every=1");
    assert_eq!(largest(&report, "activations"), LAYERS * ROW + AROUND + 4 * N * V);
    let selective = LAYERS * (LAYER - MATRIX) + AROUND + 4 * N * V;
    assert_eq!(largest(&train("--checkpoint selective").0, "activations"), selective);
}

#[test]
fn flash_attention_and_a_chunked_loss_meet_pytorchs_figures() {
    let p = gpt2_parameters(LAYERS, H);
    let plain = 12 * p + gpt2_activations(LAYERS, B, S, H, A, V) + 2 * 4 * N * V + SMALL;
    let (report, _) = train("--attention flash");
    let peak = plain - LAYERS * (MATRIX - 4 * A * S * B);
    assert_eq!(number(&report, "/peak/bytes"), peak);
    assert_beside_pytorch(peak, 6_111);

    let (report, _) = train("--chunked-loss 8");
    assert_eq!(largest(&report, "activations"), LAYERS * LAYER + AROUND);
    let peak = 12 * p + 4 * V * H + LAYERS * LAYER + AROUND + 3 * 4 * N / 8 * V + ROW + SMALL;
    assert_eq!(number(&report, "/peak/bytes"), peak);
    assert_eq!(report["peak"]["phase"], "loss");
    assert_beside_pytorch(peak, 6_510);
}

#[test]
fn compressed_activations_are_a_quarter_and_scales() {
    let in_8_bits = |elements: u64| elements + 4 * elements.div_ceil(256);
    let layer = 8 * in_8_bits(N * H) + 2 * in_8_bits(4 * N * H) + in_8_bits(B * A * S * S) + 2 * STATISTICS;
    let (report, _) = train("--compress-activations int8");
    assert_eq!(largest(&report, "activations"), LAYERS * layer + AROUND + 4 * N * V);
}

#[test]
fn shared_and_frozen_weights_are_counted_by_hand() {
    let p = gpt2_parameters(LAYERS, H);
    let states = |flags: &str| ["weights", "gradients", "optimizer"].map(|category| largest(&train(flags).0, category));
    let of = |parameters: u64| [4 * parameters, 4 * parameters, 8 * parameters];
    assert_eq!(states("--share-layers 12"), of(p - 11 * block()));
    assert_eq!(states("--share-qk"), of(p - LAYERS * (H * H + H)));
    // The tied head, which is the default, saves 38.6 million.
    assert_eq!(states("--untied"), of(p + 38_597_376));
    let adapters = LAYERS * 8 * ((3 * H + H) + (H + H) + (4 * H + H) + (H + 4 * H));
    assert_eq!(states("--lora 8"), [4 * (p + adapters), 4 * adapters, 8 * adapters]);
}
