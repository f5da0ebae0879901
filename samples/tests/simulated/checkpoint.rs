//! Checkpointing: the same gradients bit for bit, and bytes by hand.

use crate::device::{self, COMPUTING};
use crate::measured::{Sizes, assert_same, measure};
use crate::training::{losses, small};
use memscope_samples::Device;
use memscope_samples::gpt::{Family, GptArguments, Trainer};
use memscope_samples::techniques::{ActivationArguments, Checkpoint, Techniques};

/// A vocabulary so small that the layers decide where the peak is.
const DEEP: Sizes = Sizes { layers: 7, b: 2, s: 9, h: 12, a: 3, v: 11 };
/// A vocabulary so large that the loss does.
const WIDE: Sizes = Sizes { layers: 3, b: 2, s: 9, h: 12, a: 3, v: 997 };

fn with(checkpoint: Checkpoint) -> Techniques {
    Techniques { activations: ActivationArguments { checkpoint, ..Default::default() }, ..Default::default() }
}

#[test]
fn gradients_are_those_of_plain_training_bit_for_bit() {
    device::run("checkpoint::gradients_are_those_of_plain_training_bit_for_bit", COMPUTING, || {
        for (family, tied) in [(Family::Gpt2, true), (Family::Gpt2, false), (Family::Bert, true)] {
            let plain = measure(&DEEP.plan(family, tied, with(Checkpoint::None)));
            let every = (1..=7).map(Checkpoint::Every);
            for checkpoint in every.chain([Checkpoint::Sqrt, Checkpoint::Selective, Checkpoint::Auto]) {
                assert_same(&measure(&DEEP.plan(family, tied, with(checkpoint))), &plain);
            }
        }
    });
}

/// ⌈L/k⌉·c + k·α, and what is kept around the layers: at the loss without a segment, in backward without the head.
#[test]
fn activations_are_at_most_the_inputs_and_one_segment() {
    device::run("checkpoint::activations_are_at_most_the_inputs_and_one_segment", COMPUTING, || {
        for sizes in [DEEP, WIDE] {
            let (c, alpha, layers) = (sizes.row(), sizes.layer(), sizes.layers);
            for family in [Family::Gpt2, Family::Bert] {
                let at_loss = sizes.around(family) + sizes.head();
                let plain = measure(&sizes.plan(family, true, with(Checkpoint::None)));
                assert_eq!(plain.activations, layers * alpha + at_loss);
                let mut in_backward = Vec::new();
                for k in 1..=layers {
                    let measured = measure(&sizes.plan(family, true, with(Checkpoint::Every(k))));
                    let inputs = layers.div_ceil(k) * c;
                    in_backward.push(inputs + k * alpha + sizes.embedding(family));
                    let expected = in_backward[k as usize - 1].max(inputs + at_loss);
                    assert_eq!(measured.activations, expected, "{family:?}, every {k} of {layers}");
                    assert_eq!(measured.weights, plain.weights);
                    // All together falls too, unless one segment is all.
                    assert!(measured.peak < plain.peak || k == layers, "{family:?}, every {k}");
                }
                // The loss decides in the one model, the layers in the other.
                assert_eq!(in_backward[0] < layers * c + at_loss, sizes.v == WIDE.v);
            }
        }
    });
}

/// Everything but the probabilities; in backward one layer's come again, when its MLP's and what came after are gone.
#[test]
fn selective_drops_the_probabilities() {
    device::run("checkpoint::selective_drops_the_probabilities", COMPUTING, || {
        for sizes in [DEEP, WIDE] {
            let measured = measure(&sizes.plan(Family::Gpt2, true, with(Checkpoint::Selective)));
            let rest = sizes.layer() - sizes.matrix();
            let at_loss = sizes.layers * rest + sizes.around(Family::Gpt2) + sizes.head();
            let norm_1 = 2 * sizes.row() + 2 * 4 * sizes.n();
            let in_backward = (sizes.layers - 1) * rest + norm_1 + 3 * sizes.row() + sizes.matrix();
            assert_eq!(measured.activations, at_loss.max(in_backward));
        }
    });
}

/// √7 is 2.65 and so 3; α is 16 rows and more of 1, and so √(7/18) is 0.6: every layer, as 8 + 18 < 4 + 2 · 18 says too.
#[test]
fn lengths_of_segments_are_chosen_as_the_formula_says() {
    device::run("checkpoint::lengths_of_segments_are_chosen_as_the_formula_says", COMPUTING, || {
        let peak = |checkpoint| measure(&DEEP.plan(Family::Gpt2, true, with(checkpoint))).activations;
        assert_eq!(peak(Checkpoint::Sqrt), peak(Checkpoint::Every(3)));
        assert_eq!(peak(Checkpoint::Auto), peak(Checkpoint::Every(1)));
        let trainer =
            Trainer::new(&DEEP.plan(Family::Gpt2, true, with(Checkpoint::Auto)), Device::open().unwrap()).unwrap();
        let choice = trainer.choice().unwrap();
        assert!(choice.starts_with("checkpoint every=1: "), "{choice}");
        for bytes in [DEEP.layer(), DEEP.row(), 7 * DEEP.row() + DEEP.layer(), 7 * DEEP.layer()] {
            assert!(choice.contains(&bytes.to_string()), "{choice} without {bytes}");
        }
    });
}

#[test]
fn training_is_plain_training_with_other_techniques_too() {
    device::run("checkpoint::training_is_plain_training_with_other_techniques_too", COMPUTING, || {
        for (accumulate, early) in [(None, false), (Some(2), false), (None, true)] {
            let mut plain = GptArguments { steps: Some(4), layers: Some(3), ..small() };
            plain.techniques.gradients.accumulate = accumulate;
            plain.techniques.gradients.optimizer_in_backward = early;
            let mut checkpointed = plain.clone();
            checkpointed.techniques.activations.checkpoint = Checkpoint::Every(2);
            assert_eq!(losses(&checkpointed), losses(&plain));
        }
    });
}
