//! Memory that is elsewhere, or less: an optimizer on the host, a fraction of the device, and the largest batch that fits.
//!
//! The bytes are by hand, from the shapes of GPT-2 124M at 1,024 tokens a sequence.

use crate::device::{self, COMPUTING, Simulated};
use crate::training::{assert_learns, losses, small};
use memscope_samples::gpt::{self, GptArguments, Model, Plan, Progress, Trainer};
use memscope_samples::techniques::{BatchSize, Offload, Precision, PrecisionArguments, Techniques};
use memscope_samples::{Device, Error};

const L: u64 = 12;
const H: u64 = 768;
const HEADS: u64 = 12;
const V: u64 = 50_257;
const S: u64 = 1024;
/// Embeddings, blocks of 12·h² + 13·h, the last norm.
const P: u64 = V * H + S * H + L * (12 * H * H + 13 * H) + 2 * H;

/// Bytes at the peak of the second step, which is in the loss's backward pass: weights, moments, what forward has kept, the
/// logits' gradient and that of their logarithms, the loss, tokens and targets. No gradient of a parameter is there.
const fn peak(batch: u64) -> u64 {
    let n = batch * S;
    let layer = 4 * n * H * 16 + 4 * batch * HEADS * S * S + 16 * n;
    let head = 4 * n * (2 * H + 2 + V);
    4 * P + 8 * P + L * layer + head + 2 * 4 * n * V + 4 + 2 * 8 * n
}

fn gpt2() -> GptArguments {
    GptArguments {
        model: Model::Gpt2Small,
        layers: None,
        width: None,
        heads: None,
        sequence: Some(S),
        steps: Some(2),
        ..small()
    }
}

const WITHOUT_COMPUTE: Simulated = Simulated { device: "h100-80gb", computes: false };

#[test]
fn an_offloaded_optimizer_trains_bit_for_bit() {
    device::run("placement::an_offloaded_optimizer_trains_bit_for_bit", COMPUTING, || {
        let techniques = Techniques { offload: Some(Offload::Optimizer), ..Techniques::default() };
        assert_eq!(losses(&GptArguments { techniques, ..small() }), losses(&small()));
    });
}

/// bf16 on the device, fp32 masters on the host: after a step a weight is the bf16 number nearest to AdamW's, which first moves by
/// rate · g/(|g| + 1e-8) and, in a matrix, decays by rate · 0.01. Losses are those of fp32 but for the rounding.
#[test]
fn an_offloaded_optimizer_keeps_masters_of_bf16_weights() {
    device::run("placement::an_offloaded_optimizer_keeps_masters_of_bf16_weights", COMPUTING, || {
        let types = PrecisionArguments { precision: Precision::Bf16, inject_inf: None };
        let techniques = Techniques { offload: Some(Offload::Optimizer), types, ..Techniques::default() };
        let arguments = GptArguments { techniques, ..small() };
        let mut trainer = Trainer::new(&Plan::new(&arguments).unwrap(), Device::open().unwrap()).unwrap();
        let weights = |trainer: &mut Trainer| -> Vec<Vec<f32>> {
            trainer.parameters_mut().iter().map(|parameter| parameter.weight().to_host().unwrap()).collect()
        };
        let before = weights(&mut trainer);
        trainer.step().unwrap();
        let after = weights(&mut trainer);
        let descriptions = Plan::new(&arguments).unwrap().configuration.parameters();
        for (index, parameter) in trainer.parameters_mut().iter().enumerate() {
            let gradients = parameter.gradient().expect("it stays until the next step").to_host().unwrap();
            let decay = if descriptions[index].shape.len() > 1 { 0.01 } else { 0.0 };
            for ((&before, &after), gradient) in before[index].iter().zip(&after[index]).zip(gradients) {
                let (w, g, rate) = (f64::from(before), f64::from(gradient), f64::from(5e-3_f32));
                let exact = w - rate * decay * w - rate * g / (g.abs() + 1e-8);
                // Half a step of bf16, and the roundings of fp32 before it.
                let allowed = exact.abs() * 2_f64.powi(-8) + 1e-5 * rate + 1e-6 * w.abs();
                assert!((f64::from(after) - exact).abs() <= allowed, "{}: {after}, not {exact}", parameter.name());
            }
        }
        let (exact, low) = (losses(&small()), losses(&arguments));
        assert_learns(&low);
        for (exact, low) in exact.iter().zip(&low) {
            assert!((exact - low).abs() < 0.1, "{exact} in fp32, {low} with bf16 weights");
        }
    });
}

#[test]
fn a_fraction_holds_what_it_says() {
    device::run("placement::a_fraction_holds_what_it_says", WITHOUT_COMPUTE, || {
        const CAPACITY: f64 = 85_520_809_984.0;
        let train = |bytes: u64| {
            let techniques = Techniques { memory_fraction: Some(bytes as f64 / CAPACITY), ..Techniques::default() };
            gpt::train(&GptArguments { techniques, ..gpt2() }, &mut |_| Ok(()))
        };
        train(peak(4) + 1).unwrap();
        let error = train(peak(4) - 1).unwrap_err();
        let text = error.to_string();
        let Error::OutOfMemory { tensor, bytes, free: Some(free), total: Some(85_520_809_984), .. } = error else {
            panic!("{text}");
        };
        // The last tensor before the peak is the second of the two temporaries, and one or two bytes are missing.
        assert_eq!((tensor.as_str(), bytes), ("logits.grad", 4 * 4 * S * V));
        assert!((1..=2).contains(&(bytes - free)), "{text}");
        assert!(
            text.starts_with("out of device memory: `logits.grad` (workspace) needs 823410688 bytes, and "),
            "{text}"
        );
        assert!(text.contains("bytes are free that --memory-fraction 0.103"), "{text}");
    });
}

/// A device with room for 5 sequences and a half.
#[test]
fn the_largest_batch_is_that_of_the_formula() {
    const { assert!(peak(5) / 2 + peak(6) / 2 == 11_569_443_844) };
    let simulated = Simulated { device: "11569443844", computes: false };
    device::run("placement::the_largest_batch_is_that_of_the_formula", simulated, || {
        let mut lines = Vec::new();
        let arguments = GptArguments { batch: Some(BatchSize::Auto), ..gpt2() };
        gpt::train(&arguments, &mut |progress: Progress| {
            lines.push(progress.to_string());
            Ok(())
        })
        .unwrap();
        let tried = |batch: u64| lines.iter().find(|line| line.starts_with(&format!("batch {batch}: ")));
        for (batch, words) in [(1, "fits"), (2, "fits"), (4, "fits"), (5, "fits"), (6, "out of device memory: `")] {
            assert!(tried(batch).is_some_and(|line| line.contains(words)), "{batch}: {lines:#?}");
        }
        assert!(lines.iter().any(|line| line.contains("batch 5 × 1024 tokens")), "{lines:#?}");
        assert!(lines.last().is_some_and(|line| line.starts_with("step 2/2")), "{lines:#?}");

        let mut accumulated = arguments.clone();
        accumulated.techniques.gradients.accumulate = Some(3);
        let mut plans = Vec::new();
        gpt::train(&accumulated, &mut |progress| {
            plans.extend(match progress {
                Progress::Started(started) => Some(started.plan.batch),
                _ => None,
            });
            Ok(())
        })
        .unwrap();
        assert_eq!(plans[0] % 3, 0, "{plans:?}");

        let whole = GptArguments { model: Model::Gpt2Xl, ..arguments };
        assert!(matches!(gpt::train(&whole, &mut |_| Ok(())), Err(Error::OutOfMemory { .. })));
    });
}
