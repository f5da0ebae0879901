//! The bytes of `--precision`, of GPT-2 124M on a device that does not compute, against arithmetic by hand from its shapes.

use crate::device::{self, Simulated};
use memscope_client::Category;
use memscope_samples::Device;
use memscope_samples::gpt::{GptArguments, Model, Plan, Trainer};
use memscope_samples::techniques::{
    Attention, Checkpoint, Compression, Kind, Precision, PrecisionArguments, SharingArguments, Techniques,
};

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
    workspace: u64,
    all: u64,
}

fn peaks(precision: Precision, batch: u64, sequence: u64, change: impl Fn(&mut Techniques)) -> Peaks {
    peaks_of(Model::Gpt2Small, precision, batch, sequence, change)
}

fn peaks_of(model: Model, precision: Precision, batch: u64, sequence: u64, change: impl Fn(&mut Techniques)) -> Peaks {
    let types = PrecisionArguments { precision, inject_inf: None };
    let mut techniques = Techniques { types, ..Techniques::default() };
    change(&mut techniques);
    let small = crate::training::small();
    let arguments = GptArguments {
        model,
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
        workspace: peak(Category::Workspace),
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

/// Parameters of a layer's matrix of queries, keys and values, and the norm before it.
const OF_QKV: u64 = (3 * H * H + 3 * H) + 2 * H;
const POSITIONS: u64 = 1_024;

/// Bytes in backward of the first of layers that keep their input only, when its softmax is gone through: the casts of its
/// matrix of q, k and v; gradients of all but that matrix, the norm before it and the positions; all layers' inputs being
/// gone but its own, what its first norm gave and its statistics, q, k and the probabilities; the gradients of the layer's output
/// and of v, and of the matrix on both sides of the softmax; tokens, targets and the loss.
fn in_the_first_layers_backward(b: u64, s: u64, optimizer: u64) -> u64 {
    let (n, matrix) = (b * s, 2 * b * HEADS * s * s);
    let gradients = 4 * (P - OF_QKV - POSITIONS * H);
    let kept = n * H * (4 + 2 + 2 + 2) + 2 * 4 * n + matrix;
    let temporary = n * H * (4 + 2) + 2 * matrix;
    4 * P + 2 * 3 * H * H + gradients + optimizer + kept + temporary + 2 * 8 * n + 4
}

/// Bytes of 8-bit moments with a scale in 256 elements; vectors below 4096 elements have moments in fp32.
fn eight_bit() -> u64 {
    let quantised = |elements: u64| 2 * (elements + 4 * elements.div_ceil(256));
    let layer: u64 = [3 * H * H, H * H, 4 * H * H, 4 * H * H].into_iter().map(quantised).sum();
    let vectors = LAYERS * (3 * H + H + 4 * H + H + 4 * H) + 2 * H;
    quantised(V * H) + quantised(POSITIONS * H) + LAYERS * layer + 8 * vectors
}

/// The published combinations at batch 4 of 1,024 tokens, every layer checkpointed and the loss in 8 chunks. PyTorch: 48 % of
/// 8414 MiB with checkpoints alone, 26.5 % with a chunked loss, 18.1 % with 8-bit moments too.
#[test]
fn mixed_precision_with_checkpoints_chunks_and_eight_bits() {
    device::run("precision_bytes::mixed_precision_with_checkpoints_chunks_and_eight_bits", MEMORY_ONLY, || {
        let (b, s) = (4, 1_024);
        let n = b * s;
        let of = |precision, chunks, kind| {
            peaks(precision, b, s, |techniques| {
                techniques.activations.checkpoint = Checkpoint::Every(1);
                techniques.activations.chunked_loss = chunks;
                techniques.optimizer.kind = kind;
            })
        };
        let baseline = peaks(Precision::Fp32, b, s, |_| ()).all as f64;
        let assert_share = |bytes: u64, percent: f64, within: f64| {
            let share = 100.0 * bytes as f64 / baseline;
            println!("{share:.2} % of the baseline, published as {percent} %");
            assert!((share - percent).abs() < within, "{share} % is not {percent} %");
        };

        // At the start of backward: of the casts only the decoder's is left, since a layer's are made again with the layer.
        let inputs = LAYERS * 4 * n * H + n * H * (4 + 2) + 2 * 4 * n;
        let whole = of(Precision::AmpBf16, None, Kind::AdamW).all;
        assert_eq!(whole, 12 * P + 2 * V * H + inputs + (4 + 8) * n * V + 2 * 8 * n + 4);
        assert_share(whole, 48.0, 0.5);

        let fp16 = of(Precision::AmpFp16, Some(8), Kind::AdamW);
        assert_eq!(fp16.all, in_the_first_layers_backward(b, s, 8 * P + 4));
        // The inputs of all; of the layer what it keeps beside its input, and its output, computed again and read by nothing.
        let layer = n * H * (4 + 4 + 2 * (2 + 3 + 1 + 4 + 4)) + 2 * b * HEADS * s * s + 2 * 2 * 4 * n;
        assert_eq!(fp16.activations, LAYERS * 4 * n * H + layer);
        assert_share(fp16.all, 26.5, 0.05);

        let all = of(Precision::AmpFp16, Some(8), Kind::AdamW8bit);
        assert_eq!(all.all, in_the_first_layers_backward(b, s, eight_bit() + 4));
        assert_share(all.all, 18.1, 0.05);

        // A chunk of bf16 logits is cast to fp32: log-probabilities and two gradients of 4 bytes, beside all casts, the
        // head's gradient and that of its input. With chunks half as large the peak is in backward again.
        let bf16 = of(Precision::AmpBf16, Some(8), Kind::AdamW);
        let casts = 2 * (CAST_WEIGHTS + CAST_BIASES);
        let in_loss = 12 * P + casts + 4 * V * H + inputs + 4 * n * H + 12 * n / 8 * V + 2 * 8 * n + 4;
        assert_eq!(bf16.all, in_loss);
        let finer = of(Precision::AmpBf16, Some(16), Kind::AdamW);
        assert_eq!(finer.all, in_the_first_layers_backward(b, s, 8 * P));
    });
}

/// In bf16 alone everything is halved but the statistics, and the log-probabilities of a chunk with their gradient.
#[test]
fn bf16_alone_with_checkpoints_and_chunks() {
    device::run("precision_bytes::bf16_alone_with_checkpoints_and_chunks", MEMORY_ONLY, || {
        let (b, s) = (4, 1_024);
        let (n, matrix) = (b * s, 2 * b * HEADS * s * s);
        let peaks = peaks(Precision::Bf16, b, s, |techniques| {
            techniques.activations.checkpoint = Checkpoint::Every(1);
            techniques.activations.chunked_loss = Some(16);
        });
        assert_eq!((peaks.weights, peaks.gradients, peaks.optimizer), (2 * P, 2 * P, 4 * P));
        let layer = 2 * n * H * 16 + matrix + 2 * 2 * 4 * n;
        assert_eq!(peaks.activations, LAYERS * 2 * n * H + layer);
        let gradients = 2 * (P - OF_QKV - POSITIONS * H);
        // Of the layer: its input, what its norm gave, q and k; the gradients of its output and of v.
        let kept = 2 * n * H * 4 + 2 * 4 * n + matrix;
        assert_eq!(peaks.all, 6 * P + gradients + kept + 2 * n * H * 2 + 2 * matrix + 2 * 8 * n + 4);
    });
}

/// Tile by tile, one fp32 number a query and head is kept instead of a row of the matrix: in mixed precision 2·s bytes of it.
/// The peak stays at the start of backward, where temporaries have nothing to do with attention.
#[test]
fn flash_attention_replaces_the_matrix_of_16_bits() {
    device::run("precision_bytes::flash_attention_replaces_the_matrix_of_16_bits", MEMORY_ONLY, || {
        let (b, s) = (4, 1_024);
        let saved = LAYERS * (2 * b * HEADS * s * s - 4 * b * HEADS * s);
        for (precision, stream) in [(Precision::AmpFp16, 4), (Precision::AmpBf16, 4), (Precision::Bf16, 2)] {
            let flash = peaks(precision, b, s, |techniques| techniques.activations.attention = Attention::Flash);
            assert_eq!(flash.activations, activations(stream, b, s) - saved, "{precision:?}");
            assert_eq!(flash.all, peaks(precision, b, s, |_| ()).all - saved, "{precision:?}");
        }
        // Every layer checkpointed and the loss in 32 chunks: without the matrices no layer's backward is the peak any more, but
        // the loss. All casts, the layers' inputs and what the head keeps, the gradient of its input and, in fp32 and in 16
        // bits, that of its weight, which the gradient of a chunk's logits goes into.
        let n = b * s;
        let chunked = peaks(Precision::AmpFp16, b, s, |techniques| {
            techniques.activations.checkpoint = Checkpoint::Every(1);
            techniques.activations.chunked_loss = Some(32);
            techniques.activations.attention = Attention::Flash;
        });
        let casts = 2 * (CAST_WEIGHTS + CAST_BIASES);
        let inputs = LAYERS * 4 * n * H + n * H * (4 + 2) + 2 * 4 * n;
        let head = 4 * n * H + (4 + 2) * V * H + 2 * n / 32 * V;
        assert_eq!(chunked.all, 12 * P + 4 + casts + inputs + head + 2 * 8 * n + 4);
    });
}

/// Shared or frozen weights in mixed precision: at the start of backward all weights' casts are there, those of biases are gone.
#[test]
fn shared_and_frozen_weights_are_cast_once() {
    device::run("precision_bytes::shared_and_frozen_weights_are_cast_once", MEMORY_ONLY, || {
        let (b, s) = (4, 1_024);
        let n = b * s;
        let block = 12 * H * H + 13 * H;
        let (matrices, biases) = (12 * H * H, 9 * H);
        // A projection of q and k less, and its bias; one of q and k is kept.
        let without_k = H * H + H;
        let adapters = LAYERS * 4 * 16 * H;
        let none = SharingArguments::default();
        let assert_is = |sharing, trained, frozen, cast_weights, cast_biases, less| {
            let peaks = peaks(Precision::AmpFp16, b, s, |techniques| techniques.sharing = sharing);
            assert_eq!(peaks.weights, 4 * (trained + frozen) + 2 * (cast_weights + cast_biases), "{sharing:?}");
            assert_eq!((peaks.gradients, peaks.optimizer), (4 * trained, 8 * trained + 4), "{sharing:?}");
            assert_eq!(peaks.activations, activations(4, b, s) - less, "{sharing:?}");
            let states = 12 * trained + 4 + 4 * frozen + 2 * cast_weights;
            let in_backward = states + activations(4, b, s) - less + 6 * n * V + 2 * 8 * n + 4;
            assert_eq!(peaks.all, in_backward, "{sharing:?}");
        };
        let all = SharingArguments { share_layers: Some(12), ..none };
        assert_is(all, P - 11 * block, 0, matrices + V * H, biases, 0);
        let qk = SharingArguments { share_qk: true, ..none };
        let (cast_weights, cast_biases) = (CAST_WEIGHTS - LAYERS * H * H, CAST_BIASES - LAYERS * H);
        assert_is(qk, P - LAYERS * without_k, 0, cast_weights, cast_biases, LAYERS * 2 * n * H);
        let lora = SharingArguments { lora: Some(4), ..none };
        assert_is(lora, adapters, P, CAST_WEIGHTS + adapters, CAST_BIASES, 0);
    });
}

/// BERT's blocks end in a norm: the fp32 output of each segment's last one is kept as the next one's input, and products of the
/// segment cast it again. Without segments only casts of it are kept.
#[test]
fn bert_keeps_inputs_of_segments_in_fp32() {
    device::run("precision_bytes::bert_keeps_inputs_of_segments_in_fp32", MEMORY_ONLY, || {
        let (b, s, vocabulary) = (4, 512, 30_522);
        let n = b * s;
        // The embedding's sum, and its norm's statistics; in the head the transform's input, its result, GELU's (fp32), the
        // norm's as the decoder reads it, and statistics; log-probabilities.
        let around = 4 * n * H + 8 * n + (2 + 2 + 4 + 2) * n * H + 8 * n + 4 * n * vocabulary;
        for every in [1, 3] {
            let peaks = peaks_of(Model::BertBase, Precision::AmpBf16, b, s, |techniques| {
                techniques.activations.checkpoint = Checkpoint::Every(every);
            });
            // In backward the head's are gone, and a segment's layers are there: their inputs of norms (fp32), casts of both parts'
            // inputs, q, k, v, context, before and after GELU, probabilities, statistics.
            let layer = n * H * (2 * 4 + 2 * (2 + 3 + 1 + 4 + 4)) + 2 * b * HEADS * s * s + 2 * 2 * 4 * n;
            let inputs = LAYERS / every * 4 * n * H;
            let in_backward = inputs + every * layer + 4 * n * H + 8 * n;
            assert_eq!(peaks.activations, (inputs + around).max(in_backward), "every {every}");
        }
        let whole = peaks_of(Model::BertBase, Precision::AmpBf16, b, s, |_| ());
        let layer = n * H * (2 * 4 + 2 * (2 + 3 + 1 + 4 + 4)) + 2 * b * HEADS * s * s + 2 * 2 * 4 * n;
        assert_eq!(whole.activations, LAYERS * layer + around);
    });
}

/// In bf16 alone the other optimizers keep what they keep in fp32, and update one parameter at a time in fp32: weight and
/// gradient of 4 bytes each, of which the token embedding's are the largest. The pass itself is of 8 tokens, and small.
#[test]
fn other_optimizers_update_bf16_in_fp32() {
    device::run("precision_bytes::other_optimizers_update_bf16_in_fp32", MEMORY_ONLY, || {
        let vectors = LAYERS * (3 * H + H + 4 * H + H + 4 * H) + 2 * H;
        let rows_and_columns = (V + H) + (POSITIONS + H) + LAYERS * ((3 * H + H) + (H + H) + 2 * (4 * H + H));
        for (kind, state, in_step) in [
            (Kind::Sgd, 0, 0),
            (Kind::Momentum, 4 * P, 0),
            (Kind::AdamW8bit, eight_bit(), 0),
            (Kind::Adafactor, 4 * (rows_and_columns + vectors), 4 * (2 * V + 2)),
        ] {
            let peaks = peaks(Precision::Bf16, 1, 8, |techniques| techniques.optimizer.kind = kind);
            assert_eq!((peaks.weights, peaks.gradients, peaks.optimizer), (2 * P, 2 * P, state), "{kind:?}");
            // And the loss, which is still there.
            assert_eq!(peaks.workspace, 8 * V * H + in_step, "{kind:?}");
        }
    });
}

/// In 8 bits it makes no difference what a tensor was: N + 4·⌈N/256⌉ bytes of each, and the statistics.
#[test]
fn compressed_activations_are_those_of_fp32() {
    device::run("precision_bytes::compressed_activations_are_those_of_fp32", MEMORY_ONLY, || {
        let (b, s) = (4, 1_024);
        let n = b * s;
        let in_8_bits = |elements: u64| elements + 4 * elements.div_ceil(256);
        let layer = 8 * in_8_bits(n * H) + 2 * in_8_bits(4 * n * H) + in_8_bits(b * HEADS * s * s) + 2 * 2 * 4 * n;
        for (precision, stream) in [(Precision::AmpFp16, 4), (Precision::AmpBf16, 4), (Precision::Bf16, 2)] {
            let peaks = peaks(precision, b, s, |techniques| {
                techniques.activations.compress_activations = Some(Compression::Int8);
            });
            let around = n * H * (stream + 2) + 2 * 4 * n + 4 * n * V;
            assert_eq!(peaks.activations, LAYERS * layer + around, "{precision:?}");
        }
    });
}
