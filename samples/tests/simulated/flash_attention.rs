//! Flash attention: the gradients of attention written out, and the matrix's bytes gone.

use crate::device::{self, COMPUTING};
use crate::measured::{Sizes, assert_near, assert_same, measure};
use crate::training::{assert_learns, losses, small};
use memscope_samples::gpt::Family;
use memscope_samples::techniques::{ActivationArguments, Attention, Checkpoint, Techniques};

const SIZES: Sizes = Sizes { layers: 3, b: 2, s: 41, h: 12, a: 3, v: 11 };

fn with(attention: Attention, checkpoint: Checkpoint) -> Techniques {
    let mut activations = ActivationArguments::default();
    (activations.attention, activations.checkpoint) = (attention, checkpoint);
    Techniques { activations, ..Default::default() }
}

/// Both compute the same in another order: a softmax over 41 keys and sums of 4 products, forward and back through three
/// layers, each some tens of roundings; the check allows 256 of them beside a tensor's largest.
#[test]
fn gradients_are_those_of_attention_written_out() {
    device::run("flash_attention::gradients_are_those_of_attention_written_out", COMPUTING, || {
        for family in [Family::Gpt2, Family::Bert] {
            let measured = |attention, checkpoint| measure(&SIZES.plan(family, true, with(attention, checkpoint)));
            let flash = measured(Attention::Flash, Checkpoint::None);
            assert_near(&flash, &measured(Attention::Math, Checkpoint::None), 256.0);
            assert_same(&measured(Attention::Flash, Checkpoint::Every(2)), &flash);
        }
    });
}

#[test]
fn the_matrix_is_replaced_by_one_number_a_query_and_head() {
    device::run("flash_attention::the_matrix_is_replaced_by_one_number_a_query_and_head", COMPUTING, || {
        for family in [Family::Gpt2, Family::Bert] {
            let [math, flash] = [Attention::Math, Attention::Flash]
                .map(|attention| measure(&SIZES.plan(family, true, with(attention, Checkpoint::None))));
            let Sizes { layers, b, s, a, .. } = SIZES;
            assert_eq!(math.activations - flash.activations, layers * (4 * b * a * s * s - 4 * b * a * s));
            // Written out, the probabilities' gradient and the scores' are there together; in tiles, the largest temporaries
            // are the MLP's, two of four rows each with the gradient of its output and of its input.
            assert!(math.workspace >= 2 * SIZES.matrix());
            assert!(flash.workspace < SIZES.matrix(), "{} against {}", flash.workspace, SIZES.matrix());
        }
    });
}

#[test]
fn a_gpt_learns() {
    device::run("flash_attention::a_gpt_learns", COMPUTING, || {
        let mut arguments = small();
        arguments.techniques.activations.attention = Attention::Flash;
        assert_learns(&losses(&arguments));
    });
}
