//! The bytes of `--precision`, of GPT-2 124M on a device that does not compute, against arithmetic by hand from its shapes.

use crate::device::{self, Simulated};
use memscope_client::Category;
use memscope_samples::Device;
use memscope_samples::gpt::{GptArguments, Model, Plan, Trainer};
use memscope_samples::techniques::{Kind, Precision, PrecisionArguments, Techniques};

const LAYERS: u64 = 12;
const H: u64 = 768;
const HEADS: u64 = 12;
const V: u64 = 50_257;
const P: u64 = 124_439_808;

/// Elements of the weights that products read: four matrices of a layer and the decoder; and of the biases of the layers.
const CAST_WEIGHTS: u64 = LAYERS * 12 * H * H + V * H;
const CAST_BIASES: u64 = LAYERS * 9 * H;

const MEMORY_ONLY: Simulated = Simulated { device: "h100-80gb", computes: false };

/// The most bytes of two training steps.
struct Peaks {
    weights: u64,
    gradients: u64,
    activations: u64,
    optimizer: u64,
    all: u64,
}

fn peaks(precision: Precision, batch: u64, sequence: u64, change: impl Fn(&mut Techniques)) -> Peaks {
    let types = PrecisionArguments { precision, inject_inf: None };
    let mut techniques = Techniques { types, ..Techniques::default() };
    change(&mut techniques);
    let small = crate::training::small();
    let arguments = GptArguments {
        model: Model::Gpt2Small,
        layers: None,
        width: None,
        heads: None,
        batch: Some(batch.into()),
        sequence: Some(sequence),
        techniques,
        ..small
    };
    let mut trainer = Trainer::new(&Plan::new(&arguments).unwrap(), Device::open().unwrap()).unwrap();
    for _ in 0..2 {
        assert_eq!(trainer.step().unwrap(), None);
    }
    let device = trainer.device();
    let peak = |category| device.peak_bytes(category);
    Peaks {
        weights: peak(Category::Weights),
        gradients: peak(Category::Gradients),
        activations: peak(Category::Activations),
        optimizer: peak(Category::Optimizer),
        all: device.peak_of_all_bytes(),
    }
}

/// What forward keeps for backward, where products have 16 bits and a (rows, width) tensor of the residual stream has `stream`
/// bytes an element. A layer: its input and that of its second norm (the stream's type); the two norms' outputs as products read
/// them, q, k, v, the merged heads, and four widths each before and after GELU (2 bytes); the probabilities (2 bytes); mean and
/// rstd of two norms (4 bytes). Around the layers: the last one's output, the last norm's, its statistics, log-probabilities.
fn activations(stream: u64, b: u64, s: u64) -> u64 {
    let n = b * s;
    let layer = n * H * (2 * stream + 2 * (2 + 3 + 1 + 4 + 4)) + 2 * b * HEADS * s * s + 2 * 2 * 4 * n;
    LAYERS * layer + n * H * (stream + 2) + 2 * 4 * n + 4 * n * V
}

#[test]
fn mixed_precision_halves_activations_and_adds_casts() {
    device::run("precision_bytes::mixed_precision_halves_activations_and_adds_casts", MEMORY_ONLY, || {
        let (b, s) = (4, 1_024);
        let n = b * s;
        // Bytes an element of the gradients of log-probabilities and logits: 4 + 2 with fp16; with bf16 4 + 4, cast afterwards.
        for (precision, flag, of_gradients) in [(Precision::AmpFp16, 4, 6), (Precision::AmpBf16, 0, 8)] {
            let peaks = peaks(precision, b, s, |_| ());
            assert_eq!(peaks.weights, 4 * P + 2 * (CAST_WEIGHTS + CAST_BIASES));
            assert_eq!(peaks.gradients, 4 * P);
            assert_eq!(peaks.optimizer, 8 * P + flag);
            assert_eq!(peaks.activations, activations(4, b, s));
            // At the start of backward: the casts of weights but not of biases, tokens and targets, the loss.
            let states = 12 * P + 2 * CAST_WEIGHTS + flag;
            assert_eq!(
                peaks.all,
                states + activations(4, b, s) + of_gradients * n * V + 2 * 8 * n + 4,
                "{precision:?}"
            );
            if precision == Precision::AmpBf16 {
                // PyTorch 2.15 with autocast in bf16: 6483 MiB, as 8414 in fp32, where this trainer takes 8412.7.
                let mebibytes = peaks.all as f64 / f64::from(1 << 20);
                assert!((mebibytes - 6483.0).abs() < 2.0, "{mebibytes}");
            }
        }
    });
}

#[test]
fn bf16_alone_takes_eight_bytes_a_parameter() {
    device::run("precision_bytes::bf16_alone_takes_eight_bytes_a_parameter", MEMORY_ONLY, || {
        let (b, s) = (4, 1_024);
        let n = b * s;
        let peaks = peaks(Precision::Bf16, b, s, |_| ());
        assert_eq!((peaks.weights, peaks.gradients, peaks.optimizer), (2 * P, 2 * P, 4 * P));
        assert_eq!(peaks.activations, activations(2, b, s));
        assert_eq!(peaks.all, 6 * P + activations(2, b, s) + 6 * n * V + 2 * 8 * n + 4);
    });
}

/// Where a model has few activations and no optimizer state to speak of, the casts are more than what they save.
#[test]
fn mixed_precision_can_cost_memory() {
    device::run("precision_bytes::mixed_precision_can_cost_memory", MEMORY_ONLY, || {
        let of = |precision| {
            peaks(precision, 1, 64, |techniques| {
                techniques.optimizer.kind = Kind::Sgd;
                techniques.gradients.optimizer_in_backward = true;
            })
        };
        let (plain, mixed) = (of(Precision::Fp32), of(Precision::AmpBf16));
        println!("b 1 s 64, sgd in backward: {} in fp32, {} mixed", plain.all, mixed.all);
        assert_eq!(mixed.weights - plain.weights, 2 * (CAST_WEIGHTS + CAST_BIASES));
        assert!(mixed.all > plain.all, "{} in fp32, {} in mixed precision", plain.all, mixed.all);
    });
}
