//! ResNets in 16 bits: losses that fall as fp32's do, gradients against fp32's, the loss scale, other techniques with it.

use crate::device::{self, COMPUTING};
use crate::resnet_training::{losses, tiny};
use memscope_samples::resnet::{
    Batch, BlockKind, Configuration, Plan, ResnetArguments, ResnetTechniques, Trainer, images, targets,
};
use memscope_samples::techniques::{Checkpoint, GradientArguments, Kind, Precision, PrecisionArguments, ZeroGrad};
use memscope_samples::{Device, Element};

const LOW: [Precision; 3] = [Precision::AmpFp16, Precision::AmpBf16, Precision::Bf16];

/// The tiny network with AdamW, which all precisions have.
fn with(precision: Precision) -> ResnetArguments {
    let types = PrecisionArguments { precision, inject_inf: None };
    let techniques = ResnetTechniques { optimizer: Kind::AdamW, types, ..ResnetTechniques::default() };
    ResnetArguments { techniques, ..tiny() }
}

fn assert_learns(losses: &[f32]) {
    let end = losses[losses.len() - 5..].iter().sum::<f32>() / 5.0;
    assert!(end < 6_f32.ln() / 2.0, "after {} steps {end}: {losses:?}", losses.len());
}

#[test]
fn every_precision_learns() {
    device::run("resnet_precision::every_precision_learns", COMPUTING, || {
        let exact = losses(&with(Precision::Fp32));
        for precision in LOW {
            let low = losses(&with(precision));
            assert_learns(&low);
            assert_ne!(low, exact, "{precision:?}");
            // Of the same weights, before any update.
            assert!((low[0] - exact[0]).abs() < 0.05, "{} in fp32, {} in {precision:?}", exact[0], low[0]);
        }
    });
}

/// Names, weights and gradients of every parameter, and the loss of one batch; with the weights of `weights` if they are given.
fn gradients(plan: &Plan, weights: Option<&[Of]>) -> (f32, Vec<Of>) {
    let mut trainer = Trainer::new(plan, Device::open().unwrap()).unwrap();
    for (parameter, (_, weights, _)) in trainer.parameters_mut().into_iter().zip(weights.unwrap_or_default()) {
        parameter.weight_mut().set(weights).unwrap();
    }
    let targets = targets(plan.configuration.classes, plan.batch, 3, 9);
    let batch = Batch { images: images(&targets, plan.image, 3, 9), targets };
    let loss = trainer.gradients(&batch).unwrap().expect("this device computes");
    let stored = if plan.techniques.precision() == Precision::Bf16 { Element::Bf16 } else { Element::Fp32 };
    let all = trainer.parameters_mut().into_iter().map(|parameter| {
        let gradient = parameter.gradient().expect("backward reaches every parameter");
        assert_eq!((gradient.element(), parameter.weight().element()), (stored, stored), "{}", parameter.name());
        (parameter.name().to_owned(), parameter.weight().to_host().unwrap(), gradient.to_host().unwrap())
    });
    (loss, all.collect())
}

/// A parameter: its name, its weights, its gradient.
type Of = (String, Vec<f32>, Vec<f32>);

fn size(values: impl Iterator<Item = f32>) -> f64 {
    values.map(|value| f64::from(value).powi(2)).sum::<f64>().sqrt()
}

/// Of the same weights, which are bf16 numbers where the parameters are, in a network of one block.
///
/// From the images to the loss a number is rounded to 16 bits by some 10 results in a row, each of which moves it by a unit u at
/// most (2⁻¹¹ of fp16, 2⁻⁸ of bf16) of what is summed there. That matters most at the ReLUs: what a normalisation gives has a
/// density of at most 0.4 at 0, so that of the numbers before one of three (four in a bottleneck) a share of 2 · 0.4 · 10·u may
/// come to lie on the other side of 0 and let their gradient through, or not. Changing a share f of the terms changes a norm by
/// √f of itself.
#[test]
fn gradients_are_those_of_fp32_within_the_roundings() {
    device::run("resnet_precision::gradients_are_those_of_fp32_within_the_roundings", COMPUTING, || {
        for (kind, relus) in [(BlockKind::Basic, 3.0), (BlockKind::Bottleneck, 4.0)] {
            for precision in LOW {
                let unit = if precision == Precision::AmpFp16 { 2_f64.powi(-11) } else { 2_f64.powi(-8) };
                let plan = |precision| {
                    let plan = Plan::new(&with(precision)).unwrap();
                    let configuration = Configuration { kind, blocks: [1, 0, 0, 0], ..plan.configuration };
                    Plan { configuration, ..plan }
                };
                let (low_loss, low) = gradients(&plan(precision), None);
                let (exact_loss, exact) = gradients(&plan(Precision::Fp32), Some(&low));
                assert!(f64::from((low_loss - exact_loss).abs()) < 4.0 * unit * f64::from(exact_loss), "{precision:?}");
                for ((name, _, low), (_, _, exact)) in low.iter().zip(&exact) {
                    let distance = size(low.iter().zip(exact).map(|(low, exact)| low - exact));
                    let share = distance / size(exact.iter().copied());
                    assert!(share < (relus * 0.8 * 10.0 * unit).sqrt(), "{kind:?}, {precision:?}, {name}: {share}");
                    assert!(share > 0.0, "{kind:?}, {precision:?}, {name}: not rounded at all");
                }
            }
        }
    });
}

/// The step with an infinity in a gradient changes no weight; the scale is halved, and training goes on.
#[test]
fn an_injected_infinity_skips_a_step_and_halves_the_scale() {
    device::run("resnet_precision::an_injected_infinity_skips_a_step_and_halves_the_scale", COMPUTING, || {
        let mut arguments = with(Precision::AmpFp16);
        arguments.techniques.types.inject_inf = Some(2);
        let mut trainer = Trainer::new(&Plan::new(&arguments).unwrap(), Device::open().unwrap()).unwrap();
        let weights = |trainer: &mut Trainer| -> Vec<Vec<f32>> {
            trainer.parameters_mut().iter().map(|parameter| parameter.weight().to_host().unwrap()).collect()
        };
        let mut before = weights(&mut trainer);
        for (step, scale) in [(1, 65_536.0), (2, 65_536.0), (3, 32_768.0)] {
            trainer.step().unwrap();
            let scaled = trainer.scaled().expect("fp16 has a scale");
            assert_eq!((scaled.scale, scaled.skipped), (scale, step == 2), "step {step}");
            let after = weights(&mut trainer);
            assert_eq!(after == before, step == 2, "step {step}");
            before = after;
        }
        assert_learns(&losses(&arguments));
    });
}

/// Blocks that are computed again read the same casts: the same losses, bit for bit. Parameters that are updated early too.
#[test]
fn checkpointing_and_early_updates_change_no_bit() {
    device::run("resnet_precision::checkpointing_and_early_updates_change_no_bit", COMPUTING, || {
        for precision in LOW {
            let mut arguments = ResnetArguments { steps: Some(3), ..with(precision) };
            let plain = losses(&arguments);
            for checkpoint in [Checkpoint::Every(1), Checkpoint::Every(3), Checkpoint::Auto] {
                arguments.techniques.checkpoint = checkpoint;
                assert_eq!(losses(&arguments), plain, "{precision:?}, {checkpoint:?}");
            }
            if precision != Precision::AmpFp16 {
                arguments.techniques.gradients.optimizer_in_backward = true;
                assert_eq!(losses(&arguments), plain, "{precision:?} in backward");
            }
        }
    });
}

#[test]
fn it_combines_with_accumulation_kept_gradients_and_other_optimizers() {
    let test = "resnet_precision::it_combines_with_accumulation_kept_gradients_and_other_optimizers";
    device::run(test, COMPUTING, || {
        for precision in LOW {
            let mut arguments = with(precision);
            arguments.techniques.gradients =
                GradientArguments { accumulate: Some(2), zero_grad: ZeroGrad::Zero, ..GradientArguments::default() };
            assert_learns(&losses(&arguments));
        }
        for optimizer in [Kind::Sgd, Kind::Momentum, Kind::AdamW8bit, Kind::Adafactor] {
            let mut arguments = with(Precision::AmpBf16);
            arguments.techniques.optimizer = optimizer;
            assert_learns(&losses(&arguments));
        }
    });
}
