//! Weights that are shared or frozen: bytes by hand, and training. Gradients are in gradients.rs.

use crate::device::{self, COMPUTING};
use crate::measured::{Sizes, assert_same, measure};
use crate::training::{assert_learns, losses, small};
use memscope_client::Category;
use memscope_samples::Device;
use memscope_samples::gpt::{Family, GptArguments, Trainer};
use memscope_samples::techniques::{Checkpoint, SharingArguments, Techniques};

const SIZES: Sizes = Sizes { layers: 5, b: 2, s: 9, h: 12, a: 3, v: 11 };

fn with(sharing: SharingArguments) -> Techniques {
    Techniques { sharing, ..Techniques::default() }
}

/// Bytes of weights, gradients and optimizer state after a step.
fn states(family: Family, tied: bool, sharing: SharingArguments) -> [u64; 3] {
    let mut trainer = Trainer::new(&SIZES.plan(family, tied, with(sharing)), Device::open().unwrap()).unwrap();
    trainer.step().unwrap();
    [Category::Weights, Category::Gradients, Category::Optimizer].map(|category| trainer.device().live_bytes(category))
}

/// Parameters of a block with an attention of this many: two norms and the MLP beside it.
fn block(of_attention: u64) -> u64 {
    let h = SIZES.h;
    2 * 2 * h + of_attention + (4 * h * h + 4 * h) + (4 * h * h + h)
}

/// Of GPT-2: two tables, the final norm, and so many parameters of blocks.
fn model(of_blocks: u64) -> u64 {
    let Sizes { s, h, v, .. } = SIZES;
    v * h + (s + 2) * h + 2 * h + of_blocks
}

fn plain() -> u64 {
    block((3 * SIZES.h * SIZES.h + 3 * SIZES.h) + (SIZES.h * SIZES.h + SIZES.h))
}

#[test]
fn shared_weights_count_once() {
    device::run("sharing::shared_weights_count_once", COMPUTING, || {
        let of = |parameters: u64| [4 * parameters, 4 * parameters, 8 * parameters];
        let none = SharingArguments::default();
        assert_eq!(states(Family::Gpt2, true, none), of(model(5 * plain())));
        let tied = SharingArguments { tie_embeddings: true, ..none };
        assert_eq!(states(Family::Gpt2, true, tied), of(model(5 * plain())));
        assert_eq!(states(Family::Gpt2, false, none), of(model(5 * plain()) + SIZES.v * SIZES.h));
        // Five layers: sets of two, two and one; and one set.
        for (together, sets) in [(1, 5), (2, 3), (4, 2), (5, 1)] {
            let sharing = SharingArguments { share_layers: Some(together), ..none };
            assert_eq!(states(Family::Gpt2, true, sharing), of(model(sets * plain())), "{together} together");
        }
        // A matrix of h² and its bias are missing.
        let sharing = SharingArguments { share_qk: true, ..none };
        let saved = SIZES.h * SIZES.h + SIZES.h;
        assert_eq!(states(Family::Gpt2, true, sharing), of(model(5 * (plain() - saved))));
    });
}

/// Matrices of 3h + h, h + h, 4h + h and h + 4h rows and columns, each with a rank of 3.
#[test]
fn only_adapters_have_gradients_and_states() {
    device::run("sharing::only_adapters_have_gradients_and_states", COMPUTING, || {
        let sharing = SharingArguments { lora: Some(3), ..Default::default() };
        let h = SIZES.h;
        let adapters = 5 * 3 * ((3 * h + h) + (h + h) + (4 * h + h) + (h + 4 * h));
        let [weights, gradients, optimizer] = states(Family::Gpt2, true, sharing);
        assert_eq!(weights, 4 * (model(5 * plain()) + adapters));
        assert_eq!([gradients, optimizer], [4 * adapters, 8 * adapters]);
        let mut trainer =
            Trainer::new(&SIZES.plan(Family::Gpt2, true, with(sharing)), Device::open().unwrap()).unwrap();
        let frozen = |trainer: &mut Trainer| {
            let parameters = trainer.parameters_mut();
            let frozen = parameters.iter().filter(|parameter| !parameter.name().contains(".lora_"));
            frozen.map(|parameter| parameter.weight().to_host().unwrap()).collect::<Vec<_>>()
        };
        let before = frozen(&mut trainer);
        trainer.step().unwrap();
        assert_eq!(frozen(&mut trainer), before);
    });
}

#[test]
fn activations_are_those_of_each_use() {
    device::run("sharing::activations_are_those_of_each_use", COMPUTING, || {
        let measured = |sharing| measure(&SIZES.plan(Family::Gpt2, true, with(sharing))).activations;
        let none = SharingArguments::default();
        let expected = 5 * SIZES.layer() + SIZES.around(Family::Gpt2) + SIZES.head();
        assert_eq!(measured(none), expected);
        assert_eq!(measured(SharingArguments { share_layers: Some(5), ..none }), expected);
        assert_eq!(measured(SharingArguments { lora: Some(2), ..none }), expected);
        // q is k, and kept once.
        assert_eq!(measured(SharingArguments { share_qk: true, ..none }), expected - 5 * SIZES.row());
    });
}

/// With checkpoints, and updated in backward, a shared weight is still updated once, by the sum.
#[test]
fn sharing_combines() {
    device::run("sharing::sharing_combines", COMPUTING, || {
        let none = SharingArguments::default();
        for sharing in [
            SharingArguments { share_layers: Some(2), ..none },
            SharingArguments { share_qk: true, share_layers: Some(3), ..none },
            SharingArguments { lora: Some(2), share_layers: Some(3), ..none },
        ] {
            let plain = SIZES.plan(Family::Bert, true, with(sharing));
            let mut checkpointed = plain.clone();
            checkpointed.techniques.activations.checkpoint = Checkpoint::Every(2);
            assert_same(&measure(&checkpointed), &measure(&plain));
            let mut chunked = plain.clone();
            chunked.techniques.activations.chunked_loss = Some(1);
            let (chunked, plain) = (measure(&chunked), measure(&plain));
            assert_eq!(chunked.gradients.len(), plain.gradients.len());

            let mut late = GptArguments { steps: Some(4), layers: Some(3), ..small() };
            late.techniques.sharing = sharing;
            let mut early = late.clone();
            early.techniques.gradients.optimizer_in_backward = true;
            assert_eq!(losses(&early), losses(&late));
        }
    });
}

#[test]
fn every_kind_learns() {
    device::run("sharing::every_kind_learns", COMPUTING, || {
        let none = SharingArguments::default();
        let learns = |sharing, layers, steps, rate| {
            let mut arguments =
                GptArguments { layers: Some(layers), steps: Some(steps), learning_rate: Some(rate), ..small() };
            arguments.techniques.sharing = sharing;
            assert_learns(&losses(&arguments));
        };
        learns(SharingArguments { share_layers: Some(2), ..none }, 2, 30, 5e-3);
        learns(SharingArguments { share_qk: true, ..none }, 1, 30, 5e-3);
        // A frozen head turns normalised vectors, of length √32, by rows of random numbers, of length 0.55, into logits of at
        // most 3: no loss near that of trained embeddings can come of it.
        let mut adapted = GptArguments { layers: Some(2), learning_rate: Some(2e-2), ..small() };
        adapted.techniques.sharing = SharingArguments { lora: Some(8), ..none };
        let losses = losses(&adapted);
        let end = losses[25..].iter().sum::<f32>() / 5.0;
        assert!(end < losses[0] - 0.7, "after 30 steps the loss is {end}: {losses:?}");
    });
}
