//! Gradients that are accumulated, kept from step to step, or freed in the backward pass: what training comes to is the same.

use crate::device::{self, COMPUTING};
use crate::training::{losses, small};
use memscope_samples::Device;
use memscope_samples::gpt::{GptArguments, Model, Plan, Trainer, batch};
use memscope_samples::techniques::{GradientArguments, Kind, Techniques, ZeroGrad};

fn with(gradients: GradientArguments) -> GptArguments {
    GptArguments { techniques: Techniques { gradients, ..Techniques::default() }, steps: Some(8), ..small() }
}

/// Tied and untied, GPT-2 and BERT, whose parameters are used differently.
fn models(arguments: &GptArguments) -> [GptArguments; 3] {
    let bert = GptArguments { model: Model::BertBase, vocabulary: Some(256), ..arguments.clone() };
    [arguments.clone(), GptArguments { untied: true, ..arguments.clone() }, bert]
}

fn plain() -> GptArguments {
    with(GradientArguments::default())
}

#[test]
fn zeros_are_as_good_as_none() {
    device::run("lifetimes::zeros_are_as_good_as_none", COMPUTING, || {
        let zeros = with(GradientArguments { zero_grad: ZeroGrad::Zero, ..GradientArguments::default() });
        for (zeros, plain) in models(&zeros).iter().zip(&models(&plain())) {
            assert_eq!(losses(zeros), losses(plain));
        }
    });
}

#[test]
fn an_optimizer_in_backward_trains_bit_for_bit_as_one_after_it() {
    device::run("lifetimes::an_optimizer_in_backward_trains_bit_for_bit_as_one_after_it", COMPUTING, || {
        let early = with(GradientArguments { optimizer_in_backward: true, ..GradientArguments::default() });
        for (early, plain) in models(&early).iter().zip(&models(&plain())) {
            assert_eq!(losses(early), losses(plain));
            let mut trainer = Trainer::new(&Plan::new(early).unwrap(), Device::open().unwrap()).unwrap();
            trainer.step().unwrap();
            assert!(trainer.parameters_mut().iter().all(|parameter| parameter.gradient().is_none()));
            for kind in [Kind::Adafactor, Kind::AdamW8bit, Kind::Momentum] {
                let [mut early, mut plain] = [early.clone(), plain.clone()];
                early.techniques.optimizer.kind = kind;
                plain.techniques.optimizer.kind = kind;
                assert_eq!(losses(&early), losses(&plain), "{kind:?}");
            }
        }
    });
}

/// A gradient is a sum over the rows of a batch, here 4 · 32, of products that have come through some tens of operations.
/// Another order of the sum moves it by at most 128 units of the size of what is summed, and in the mean by the root of
/// that; beside the largest gradient of its tensor, the check allows 64 units of 2⁻²⁴.
#[test]
fn micro_batches_add_up_to_the_batch() {
    device::run("lifetimes::micro_batches_add_up_to_the_batch", COMPUTING, || {
        for whole in models(&plain()) {
            let plan = Plan::new(&whole).unwrap();
            let batch = batch(&plan.configuration, plan.batch, plan.sequence, 3, 9);
            let gradients = |plan: &Plan| {
                let mut trainer = Trainer::new(plan, Device::open().unwrap()).unwrap();
                let loss = trainer.gradients(&batch).unwrap().expect("this device computes");
                let of = |parameter: &&mut memscope_samples::gpt::Parameter| {
                    (parameter.name().to_owned(), parameter.gradient().expect("reached").to_host().unwrap())
                };
                (loss, trainer.parameters_mut().iter().map(of).collect::<Vec<_>>())
            };
            let (loss, expected) = gradients(&plan);
            for count in [2, 4] {
                let mut plan = plan.clone();
                plan.techniques.gradients.accumulate = Some(count);
                let (sum, summed) = gradients(&plan);
                assert!((sum - loss).abs() < 1e-5, "{sum} against {loss}");
                for ((name, expected), (_, summed)) in expected.iter().zip(&summed) {
                    let largest = expected.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
                    let allowed = 64.0 / 16_777_216.0 * largest;
                    for (expected, summed) in expected.iter().zip(summed) {
                        assert!((expected - summed).abs() <= allowed, "{name}, {count}: {summed} against {expected}");
                    }
                }
            }
        }
    });
}
