//! The bytes of the optimizers' and the gradients' flags in the profile, against arithmetic by hand from GPT-2's shapes.

use serde_json::Value;

use crate::anchors::{gpt2_activations, gpt2_parameters};
use crate::memscope::{Place, number, stderr, stdout};

const LAYERS: u64 = 12;
const H: u64 = 768;
const V: u64 = 50_257;
const POSITIONS: u64 = 1_024;

/// Sizes of the matrices of one block, rows and columns.
const MATRICES: [(u64, u64); 4] = [(3 * H, H), (H, H), (4 * H, H), (H, 4 * H)];
/// Sizes of the vectors of one block: two norms with weight and bias, four biases.
const VECTORS: [u64; 8] = [H, H, H, H, 3 * H, H, 4 * H, H];

/// Trains GPT-2 124M on a simulated device that does not compute.
fn train(flags: &str) -> Value {
    let (output, report) = Place::new().record(&format!(
        "--device h100-80gb --no-compute -- {} sample gpt --model gpt2-124m --steps 2 {flags}",
        env!("CARGO_BIN_EXE_memscope")
    ));
    assert_eq!(output.status.code(), Some(0), "{flags}: {}", stderr(&output));
    assert_eq!(number(&report, "/peak/by_category/unknown"), 0, "{flags}");
    report
}

/// With few tokens, so that what the optimizer needs is not hidden behind the logits.
const FEW: &str = "--batch 1 --seq 64";

fn largest(report: &Value, category: &str) -> u64 {
    number(report, &format!("/category_peaks/{category}/bytes"))
}

/// Of the second step's peak.
fn in_step_2(report: &Value, category: &str) -> u64 {
    number(report, &format!("/steps/1/by_category/{category}"))
}

#[test]
fn each_optimizer_keeps_what_its_formula_says() {
    let p = gpt2_parameters(LAYERS, H);
    let optimizer = |flags: &str| {
        let report = train(&format!("{FEW} {flags}"));
        let bytes = largest(&report, "optimizer");
        // The peak is at the end of backward: weights, gradients, tokens and targets, the gradient of the embeddings' output
        // and the loss. Adafactor's, which is in the step, has two floats a row of the largest table in their place.
        let at_the_end = if flags.contains("adafactor") { 4 * (2 * V + 2) } else { (2 * 8 + 4 * H) * 64 + 4 };
        assert_eq!(number(&report, "/peak/bytes"), 8 * p + bytes + at_the_end, "{flags}");
        bytes
    };
    assert_eq!(optimizer("--optimizer adamw --fused"), 8 * p);
    assert_eq!(optimizer("--optimizer sgd"), 0);
    assert_eq!(optimizer("--optimizer momentum"), 4 * p);

    // Every vector of this model is smaller than 4,096 elements, and every matrix larger.
    let quantised = |n: u64| 2 * (n + 4 * n.div_ceil(256));
    let blocks = LAYERS * MATRICES.iter().map(|(rows, columns)| quantised(rows * columns)).sum::<u64>();
    let vectors = 8 * (LAYERS * VECTORS.iter().sum::<u64>() + 2 * H);
    let tables = [V * H, POSITIONS * H];
    let eight_bit = blocks + vectors + tables.map(quantised).iter().sum::<u64>();
    let with_fp32_tables = blocks + vectors + 8 * tables.iter().sum::<u64>();
    assert_eq!(optimizer("--optimizer adamw8bit"), eight_bit);
    assert_eq!(optimizer("--optimizer adamw8bit --embedding-states fp32"), with_fp32_tables);
    // The published figures: 74.5 % and 51 % less than fp32.
    let less = |bytes: u64| 100.0 * (1.0 - bytes as f64 / (8 * p) as f64);
    assert!((less(eight_bit) - 74.5).abs() < 0.05, "{}", less(eight_bit));
    assert!((less(with_fp32_tables) - 51.0).abs() < 0.5, "{}", less(with_fp32_tables));

    let factors = MATRICES.iter().map(|(rows, columns)| rows + columns).sum::<u64>() * LAYERS + V + H + POSITIONS + H;
    let adafactor = 4 * factors + vectors / 2;
    assert_eq!(optimizer("--optimizer adafactor"), adafactor);
    assert_eq!(adafactor, 1_286_468);
}

/// With many activations the peak is at the start of backward, and all that an optimizer saves is what it keeps.
#[test]
fn an_optimizer_saves_no_more_than_its_state() {
    let p = gpt2_parameters(LAYERS, H);
    let n = 4 * 1_024;
    let without = 4 * p + gpt2_activations(LAYERS, 4, 1_024, H, 12, V) + 2 * 4 * n * V + 2 * 8 * n + 4;
    for (flags, state) in
        [("", 8 * p), ("--optimizer sgd", 0), ("--foreach", 8 * p), ("--optimizer-in-backward", 8 * p)]
    {
        let report = train(&format!("--batch 4 --seq 1024 {flags}"));
        assert_eq!(number(&report, "/peak/bytes"), without + state, "{flags}");
        assert_eq!(report["peak"]["phase"], "backward", "{flags}");
    }
}

#[test]
fn foreach_needs_temporaries_as_large_as_the_weights() {
    let report = train(&format!("{FEW} --foreach"));
    assert_eq!(largest(&report, "workspace"), 4 * gpt2_parameters(LAYERS, H));
    assert_eq!(report["peak"]["phase"], "optimizer");
    assert_eq!(number(&report, "/peak/bytes"), 20 * gpt2_parameters(LAYERS, H));
    // Fused, the largest temporaries are two as large as the logits, beside which the loss waits to be read.
    assert_eq!(largest(&train(FEW), "workspace"), 2 * 4 * 64 * V + 4);
}

#[test]
fn an_optimizer_in_backward_leaves_the_largest_gradient() {
    let report = train(&format!("{FEW} --untied --optimizer-in-backward"));
    assert_eq!(largest(&report, "gradients"), 4 * V * H);
    // Tied, the token embedding's waits for the end of backward, and the MLP's largest comes beside it.
    assert_eq!(largest(&train(&format!("{FEW} --optimizer-in-backward")), "gradients"), 4 * (V * H + 4 * H * H));
    assert_eq!(largest(&train(FEW), "gradients"), 4 * gpt2_parameters(LAYERS, H));
}

#[test]
fn accumulation_keeps_gradients_and_shrinks_activations() {
    let whole = train("--batch 4 --seq 1024");
    let parts = train("--batch 4 --seq 1024 --accumulate 4");
    let activations = |batch| gpt2_activations(LAYERS, batch, 1_024, H, 12, V);
    assert_eq!((largest(&whole, "activations"), largest(&parts, "activations")), (activations(4), activations(1)));
    assert_eq!(largest(&parts, "inputs"), 2 * 8 * 1_024);
    // At the peak, which is in the loss's backward: there the second micro-batch finds the gradients of the first.
    let gradients = 4 * gpt2_parameters(LAYERS, H);
    assert_eq!((in_step_2(&whole, "gradients"), in_step_2(&parts, "gradients")), (0, gradients));
    assert_eq!(in_step_2(&parts, "activations"), activations(1));
}

#[test]
fn gradients_that_become_zeros_are_alive_in_forward() {
    let report = train("--batch 4 --seq 1024 --zero-grad zero");
    assert_eq!(number(&report, "/steps/0/by_category/gradients"), 0);
    assert_eq!(in_step_2(&report, "gradients"), 4 * gpt2_parameters(LAYERS, H));
    assert_eq!(in_step_2(&report, "activations"), gpt2_activations(LAYERS, 4, 1_024, H, 12, V));
}

#[test]
fn an_offloaded_optimizer_is_a_row_of_the_host() {
    let report = train(&format!("{FEW} --offload optimizer"));
    let p = gpt2_parameters(LAYERS, H);
    assert_eq!(largest(&report, "optimizer"), 0);
    let on_host = |category: &str| number(&report, &format!("/host/at_peak/by_category/{category}"));
    assert_eq!((on_host("optimizer"), on_host("weights"), on_host("gradients")), (8 * p, 4 * p, 4 * V * H));
    assert_eq!(number(&report, "/host/peak/bytes"), 12 * p + 4 * V * H);
    assert_eq!(number(&train(FEW), "/host/peak/bytes"), 0);
    // bf16 on the device, and masters on the host; gradients arrive, and weights leave, in bf16.
    let report = train(&format!("{FEW} --offload optimizer --precision bf16"));
    let on_device = ["weights", "gradients", "optimizer"].map(|category| largest(&report, category));
    assert_eq!(on_device, [2 * p, 2 * p, 0]);
    assert_eq!(number(&report, "/host/peak/bytes"), 12 * p + 2 * V * H);
}

#[test]
fn a_fraction_of_the_device_is_its_capacity() {
    let place = Place::new();
    let (output, report) = place.record(&format!(
        "--device rtx3090-24gb --no-compute -- {} sample gpt --model gpt2-medium --memory-fraction 0.25",
        env!("CARGO_BIN_EXE_memscope")
    ));
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    let quarter = (24_u64 << 30) / 4;
    assert!(text.contains("out of device memory: `") && text.contains("--memory-fraction 0.25"), "{text}");
    assert!(text.contains(&format!("of the {quarter} bytes are free")), "{text}");
    assert!(number(&report, "/peak/bytes") <= quarter);
    // The driver was never asked for more than it has.
    assert_eq!(number(&report, "/totals/refused"), 0);
}

#[test]
fn the_largest_batch_is_found_by_trials() {
    let place = Place::new();
    let (output, report) = place.record(&format!(
        "--device rtx3090-24gb --no-compute -- {} sample gpt --model gpt2-124m --seq 1024 --batch auto",
        env!("CARGO_BIN_EXE_memscope")
    ));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let peak = |batch: u64| {
        let n = batch * 1_024;
        let activations = gpt2_activations(LAYERS, batch, 1_024, H, 12, V);
        12 * gpt2_parameters(LAYERS, H) + activations + 2 * 4 * n * V + 2 * 8 * n + 4
    };
    let largest = (1..).take_while(|&batch| peak(batch) <= 24 << 30).last().expect("one sequence fits");
    let text = stdout(&output);
    assert!(text.contains(&format!("batch {largest}: fits")), "{largest}: {text}");
    assert!(text.contains(&format!("batch {}: out of device memory: `", largest + 1)), "{largest}: {text}");
    assert!(text.contains(&format!("batch {largest} × 1024 tokens")), "{largest}: {text}");
    assert!(text.trim_end().lines().last().is_some_and(|line| line.starts_with("step 3/3")), "{text}");
    assert!(number(&report, "/peak/bytes") >= peak(largest));
}
