//! Activations in 8 bits: bytes by hand, gradients within what the rounding allows, and training.

use crate::device::{self, COMPUTING};
use crate::measured::{Measured, Sizes, assert_same, measure};
use crate::training::{assert_learns, losses, small};
use memscope_samples::gpt::Family;
use memscope_samples::techniques::{Attention, Compression, Precision, Techniques};

const SIZES: Sizes = Sizes { layers: 3, b: 2, s: 9, h: 12, a: 3, v: 11 };

fn with(compression: Option<Compression>) -> Techniques {
    let mut techniques = Techniques::default();
    techniques.activations.compress_activations = compression;
    techniques
}

const INT8: Option<Compression> = Some(Compression::Int8);

/// Bytes of `elements` in 8 bits with their scales.
fn in_8_bits(elements: u64) -> u64 {
    elements + 4 * elements.div_ceil(256)
}

#[test]
fn a_layer_keeps_a_quarter_and_scales() {
    device::run("compress_activations::a_layer_keeps_a_quarter_and_scales", COMPUTING, || {
        let Sizes { layers, b, s, h, a, .. } = SIZES;
        let n = SIZES.n();
        let statistics = 2 * 2 * 4 * n;
        // Two inputs of norms and their outputs, q, k, v and the context; the MLP's two; the probabilities.
        let rows = 8 * in_8_bits(n * h) + 2 * in_8_bits(4 * n * h) + statistics;
        for family in [Family::Gpt2, Family::Bert] {
            let around = SIZES.around(family) + SIZES.head();
            let measured = measure(&SIZES.plan(family, true, with(INT8)));
            assert_eq!(measured.activations, layers * (rows + in_8_bits(b * a * s * s)) + around, "{family:?}");
            let mut flash = SIZES.plan(family, true, with(INT8));
            flash.techniques.activations.attention = Attention::Flash;
            assert_eq!(measure(&flash).activations, layers * (rows + 4 * b * a * s) + around, "{family:?}, flash");
        }
    });
}

/// In backward a layer's tensors are all there in fp32; beside them the MLP has the gradient of its output and, when what GELU
/// gave is gone, those of GELU's two sides. And the loss is there.
#[test]
fn workspace_rises_by_a_layer() {
    device::run("compress_activations::workspace_rises_by_a_layer", COMPUTING, || {
        let measured = |compression| measure(&SIZES.plan(Family::Gpt2, true, with(compression)));
        let (plain, compressed) = (measured(None), measured(INT8));
        let row = SIZES.row();
        assert_eq!(plain.workspace, 9 * row + 4);
        assert_eq!(compressed.workspace, (16 - 4) * row + SIZES.matrix() + 9 * row + 4);
    });
}

fn of<'a>(measured: &'a Measured, name: &str) -> &'a [f32] {
    let (_, gradient) =
        measured.gradients.iter().find(|(found, _)| found == name).unwrap_or_else(|| panic!("no {name}"));
    gradient
}

/// With one token, the gradient of the last layer's last matrix is the outer product of its bias's, which is exact, and of what
/// GELU gave, which is kept in 8 bits: each element is off by at most 1/254 of its row's largest, and some rounding.
#[test]
fn a_gradient_is_off_by_the_rounding_of_what_was_kept() {
    device::run("compress_activations::a_gradient_is_off_by_the_rounding_of_what_was_kept", COMPUTING, || {
        let one = Sizes { b: 1, s: 1, ..SIZES };
        let [plain, compressed] =
            [None, INT8].map(|compression| measure(&one.plan(Family::Gpt2, true, with(compression))));
        assert_eq!(plain.loss.to_bits(), compressed.loss.to_bits(), "forward reads nothing compressed");
        let [bias, weight] = ["bias", "weight"].map(|part| format!("transformer.h.2.mlp.proj.{part}"));
        assert_eq!(of(&plain, &bias), of(&compressed, &bias));
        let width = 4 * one.h as usize;
        let (exact, coarse) = (of(&plain, &weight), of(&compressed, &weight));
        assert_ne!(exact, coarse, "8 bits were not used");
        for (exact, coarse) in exact.chunks(width).zip(coarse.chunks(width)) {
            let largest = exact.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
            for (exact, coarse) in exact.iter().zip(coarse) {
                assert!((exact - coarse).abs() <= largest / 254.0 * 1.0001, "{coarse} against {exact} of {largest}");
            }
        }
    });
}

/// An element is off by at most 1/254 of its block's largest, which is some three times the root mean square, and by a third of
/// a square of that in the mean: 0.7 %. Ten such tensors a layer, three layers and what one brings into the next: the check
/// allows √(3 · 10) · 0.7 % = 4 % of a gradient's norm, twice.
#[test]
fn gradients_follow_those_of_fp32() {
    device::run("compress_activations::gradients_follow_those_of_fp32", COMPUTING, || {
        for family in [Family::Gpt2, Family::Bert] {
            let [plain, compressed] =
                [None, INT8].map(|compression| measure(&SIZES.plan(family, true, with(compression))));
            for ((name, exact), (_, coarse)) in plain.gradients.iter().zip(&compressed.gradients) {
                let norm = |values: &mut dyn Iterator<Item = f32>| values.map(|x| x * x).sum::<f32>().sqrt();
                let off = norm(&mut exact.iter().zip(coarse).map(|(exact, coarse)| exact - coarse));
                let size = norm(&mut exact.iter().copied());
                // The gradient of k's bias is 0 but for rounding, and stands in one tensor with those of q and v.
                assert!(off <= 0.08 * size, "{family:?} {name}: off by {off} of {size}");
            }
            assert_same(&measure(&SIZES.plan(family, true, with(INT8))), &compressed);
        }
    });
}

/// The same of activations of 16 bits. Beside 8 % the check allows what rounding to 16 bits may do, as precision.rs has it for a
/// layer: 3 · √(32/3) units, and √3 times that for three. Forward reads nothing compressed.
#[test]
fn gradients_in_16_bits_follow_too() {
    device::run("compress_activations::gradients_in_16_bits_follow_too", COMPUTING, || {
        let bf16 = 2_f32.powi(-8);
        // Of the few masked words of this BERT the first loss scale makes more than fp16 holds.
        for (precision, unit, families) in [
            (Precision::AmpFp16, 2_f32.powi(-11), &[Family::Gpt2][..]),
            (Precision::AmpBf16, bf16, &[Family::Gpt2, Family::Bert]),
            (Precision::Bf16, bf16, &[Family::Gpt2, Family::Bert]),
        ] {
            for &family in families {
                let of = |compression| {
                    let mut techniques = with(compression);
                    techniques.types.precision = precision;
                    measure(&SIZES.plan(family, true, techniques))
                };
                let [plain, compressed] = [None, INT8].map(of);
                assert_eq!(plain.loss.to_bits(), compressed.loss.to_bits(), "{precision:?} {family:?}");
                let mut differ = 0;
                for ((name, exact), (_, coarse)) in plain.gradients.iter().zip(&compressed.gradients) {
                    let norm = |values: &mut dyn Iterator<Item = f32>| values.map(|x| x * x).sum::<f32>().sqrt();
                    let off = norm(&mut exact.iter().zip(coarse).map(|(exact, coarse)| exact - coarse));
                    let size = norm(&mut exact.iter().copied());
                    let allowed = 0.08 + 3.0 * (3.0_f32 * 32.0 / 3.0).sqrt() * unit;
                    assert!(off <= allowed * size, "{precision:?} {family:?} {name}: off by {off} of {size}");
                    differ += u32::from(off > 0.0);
                }
                assert!(differ > 20, "8 bits were not used: {differ} gradients differ");
            }
        }
    });
}

#[test]
fn a_gpt_learns() {
    device::run("compress_activations::a_gpt_learns", COMPUTING, || {
        let mut arguments = small();
        arguments.techniques.activations.compress_activations = INT8;
        let compressed = losses(&arguments);
        assert_learns(&compressed);
        assert_eq!(compressed[0], losses(&small())[0]);
        for precision in [Precision::AmpFp16, Precision::AmpBf16, Precision::Bf16] {
            arguments.techniques.types.precision = precision;
            assert_learns(&losses(&arguments));
        }
    });
}
