//! The loss in chunks: the loss and the gradients of the whole, and what exists of n · V.

use crate::device::{self, COMPUTING};
use crate::measured::{Sizes, assert_near, measure};
use crate::training::{assert_learns, losses, small};
use memscope_samples::gpt::Family;
use memscope_samples::techniques::Techniques;

/// A vocabulary so large that the loss decides where the peaks are.
const SIZES: Sizes = Sizes { layers: 2, b: 2, s: 9, h: 12, a: 3, v: 499 };

fn with(chunked_loss: Option<u64>) -> Techniques {
    let mut techniques = Techniques::default();
    techniques.activations.chunked_loss = chunked_loss;
    techniques
}

/// The same numbers are added in another order: up to 18 rows in a gradient of the head, 16 of them in the loss. The check
/// allows 64 roundings beside a tensor's largest.
#[test]
fn loss_and_gradients_are_those_of_the_whole() {
    device::run("chunked_loss::loss_and_gradients_are_those_of_the_whole", COMPUTING, || {
        for (family, tied) in [(Family::Gpt2, true), (Family::Gpt2, false), (Family::Bert, true)] {
            let whole = measure(&SIZES.plan(family, tied, with(None)));
            // One chunk, chunks that divide the rows and that do not, and a row each.
            for chunks in [1, 3, 4, 18] {
                assert_near(&measure(&SIZES.plan(family, tied, with(Some(chunks)))), &whole, 64.0);
            }
        }
    });
}

#[test]
fn only_a_chunk_of_the_logits_exists() {
    device::run("chunked_loss::only_a_chunk_of_the_logits_exists", COMPUTING, || {
        for family in [Family::Gpt2, Family::Bert] {
            let whole = measure(&SIZES.plan(family, true, with(None)));
            assert_eq!(whole.workspace, 2 * SIZES.head() + 4, "and the loss");
            for chunks in [1, 3, 4] {
                let measured = measure(&SIZES.plan(family, true, with(Some(chunks))));
                let layers = SIZES.layers * SIZES.layer();
                assert_eq!(measured.activations, layers + SIZES.around(family));
                // Log-probabilities and two gradients of a chunk, the gradient of the head's input, and the loss.
                let of_chunk = 4 * SIZES.n().div_ceil(chunks) * SIZES.v;
                assert_eq!(measured.workspace, 3 * of_chunk + SIZES.row() + 4, "{family:?} in {chunks}");
                assert_eq!(measured.peak < whole.peak, chunks > 1);
            }
        }
    });
}

#[test]
fn training_goes_on_with_other_techniques() {
    device::run("chunked_loss::training_goes_on_with_other_techniques", COMPUTING, || {
        let mut arguments = small();
        arguments.techniques.activations.chunked_loss = Some(5);
        assert_learns(&losses(&arguments));
        let mut early = arguments.clone();
        early.techniques.gradients.optimizer_in_backward = true;
        early.steps = Some(4);
        assert_eq!(losses(&early), losses(&arguments)[..4]);
    });
}
