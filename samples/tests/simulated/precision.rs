//! Mixed precision and bf16: losses that fall as fp32's do, gradients against fp32's, the loss scale, stochastic rounding that
//! repeats.

use crate::device::{self, COMPUTING};
use crate::training::{assert_learns, losses, small};
use memscope_samples::gpt::{self, GptArguments, Model, Plan, Progress, Trainer, batch};
use memscope_samples::techniques::{
    Attention, Checkpoint, GradientArguments, Kind, Precision, PrecisionArguments, Techniques, ZeroGrad,
};
use memscope_samples::{Device, Element};

fn with(precision: Precision) -> GptArguments {
    let types = PrecisionArguments { precision, inject_inf: None };
    GptArguments { techniques: Techniques { types, ..Techniques::default() }, ..small() }
}

const LOW: [Precision; 3] = [Precision::AmpFp16, Precision::AmpBf16, Precision::Bf16];

/// Tied and untied GPT-2, and BERT.
fn models(arguments: &GptArguments) -> [GptArguments; 3] {
    let bert = GptArguments { model: Model::BertBase, vocabulary: Some(256), ..arguments.clone() };
    [arguments.clone(), GptArguments { untied: true, ..arguments.clone() }, bert]
}

/// Mixed precision follows fp32 step by step; bf16 alone, whose weights have 8 bits, learns as well in the end.
#[test]
fn every_precision_learns() {
    device::run("precision::every_precision_learns", COMPUTING, || {
        let exact = losses(&small());
        for precision in LOW {
            let low = losses(&with(precision));
            assert_learns(&low);
            assert_ne!(low, exact, "{precision:?}");
            let allowed = if precision == Precision::Bf16 { 0.3 } else { 0.05 };
            for (step, (exact, low)) in exact.iter().zip(&low).enumerate() {
                assert!((exact - low).abs() < allowed, "step {step}: {exact} in fp32, {low} in {precision:?}");
            }
        }
    });
}

#[test]
fn a_small_bert_learns_in_mixed_precision() {
    device::run("precision::a_small_bert_learns_in_mixed_precision", COMPUTING, || {
        for precision in [Precision::AmpFp16, Precision::AmpBf16] {
            let arguments = GptArguments { model: Model::BertBase, vocabulary: Some(256), ..with(precision) };
            assert_learns(&losses(&GptArguments { steps: Some(40), ..arguments }));
        }
    });
}

/// A parameter: its name, its weights, its gradient, which is empty of one that is frozen.
type Of = (String, Vec<f32>, Vec<f32>);

/// Gradients of every parameter and the loss of one batch, with the weights of `weights` if they are given.
fn gradients(arguments: &GptArguments, weights: Option<&[Vec<f32>]>) -> (f32, Vec<Of>) {
    let plan = Plan::new(arguments).unwrap();
    let batch = batch(&plan.configuration, plan.batch, plan.sequence, 3, 9);
    let mut trainer = Trainer::new(&plan, Device::open().unwrap()).unwrap();
    for (parameter, weights) in trainer.parameters_mut().into_iter().zip(weights.unwrap_or_default()) {
        parameter.weight_mut().set(weights).unwrap();
    }
    // An adapter begins as nothing: its other half would have no gradient.
    for parameter in trainer.parameters_mut().into_iter().filter(|one| one.name().ends_with(".lora_up")) {
        let values: Vec<f32> = (0..parameter.weight().elements()).map(|i| (i % 7) as f32 * 0.125 - 0.375).collect();
        parameter.weight_mut().set(&values).unwrap();
    }
    let loss = trainer.gradients(&batch).unwrap().expect("this device computes");
    let adapted = plan.techniques.sharing.lora.is_some();
    let of = |parameter: &&mut gpt::Parameter| {
        let (name, weights) = (parameter.name().to_owned(), parameter.weight().to_host().unwrap());
        let Some(gradient) = parameter.gradient() else {
            assert!(adapted && !name.contains(".lora_"), "backward does not reach {name}");
            return (name, weights, Vec::new());
        };
        assert_eq!(gradient.element(), parameter.weight().element(), "{name}");
        (name, weights, gradient.to_host().unwrap())
    };
    (loss, trainer.parameters_mut().iter().map(of).collect())
}

fn size(values: impl Iterator<Item = f32>) -> f64 {
    values.map(|value| f64::from(value).powi(2)).sum::<f64>().sqrt()
}

/// What precision is combined with, and the model that it needs.
struct Combination {
    name: &'static str,
    change: fn(&mut GptArguments),
    /// Roundings in a row beside those of the plain model, there and back.
    more: f64,
}

const COMBINATIONS: [Combination; 7] = [
    Combination { name: "nothing else", change: |_| (), more: 0.0 },
    // In bf16 alone each chunk's part of the head's gradient is rounded, and so is the sum at each chunk.
    Combination {
        name: "a loss in 5 chunks",
        change: |arguments| arguments.techniques.activations.chunked_loss = Some(5),
        more: 8.0,
    },
    // No matrix is rounded between scores and context: fewer roundings than written out.
    Combination {
        name: "flash attention",
        change: |arguments| arguments.techniques.activations.attention = Attention::Flash,
        more: 0.0,
    },
    Combination {
        name: "checkpoints",
        change: |arguments| {
            arguments.layers = Some(2);
            arguments.techniques.activations.checkpoint = Checkpoint::Every(1);
        },
        more: OF_A_LAYER,
    },
    Combination {
        name: "shared layers",
        change: |arguments| {
            arguments.layers = Some(2);
            arguments.techniques.sharing.share_layers = Some(2);
        },
        more: OF_A_LAYER,
    },
    Combination {
        name: "queries that are keys",
        change: |arguments| arguments.techniques.sharing.share_qk = true,
        more: 0.0,
    },
    // Two products more beside each.
    Combination {
        name: "adapters",
        change: |arguments| {
            (arguments.layers, arguments.learning_rate) = (Some(2), Some(2e-2));
            arguments.techniques.sharing.lora = Some(8);
        },
        more: OF_A_LAYER + 2.0 * 2.0 * 8.0,
    },
];

/// Roundings in a row of one layer more, there and back.
const OF_A_LAYER: f64 = 2.0 * 12.0;

/// Of the same weights, which are bf16 numbers where the parameters are, in fp32 with the same technique. From the embedding
/// to the loss a number of this model of one layer is rounded to 16 bits by some 16 results in a row, and by as many on the way
/// back; each moves it by a unit u at most (2⁻¹¹ of fp16, 2⁻⁸ of bf16) of the numbers that are summed there, and by u/√3 in the
/// mean square. They go either way, so that a gradient is off by √(32/3)·u = 3.3·u of its size; where terms cancel, by more
/// of what is left: the check allows three times that, of the tensor's norm.
#[test]
fn gradients_are_those_of_fp32_within_the_roundings() {
    device::run("precision::gradients_are_those_of_fp32_within_the_roundings", COMPUTING, || {
        for (Combination { name, change, more }, precision) in
            COMBINATIONS.iter().flat_map(|combination| LOW.map(|precision| (combination, precision)))
        {
            let unit = if precision == Precision::AmpFp16 { 2_f64.powi(-11) } else { 2_f64.powi(-8) };
            let changed = |mut arguments: GptArguments| {
                change(&mut arguments);
                arguments
            };
            for (low, exact) in models(&changed(with(precision))).iter().zip(&models(&changed(small()))) {
                let (low_loss, low) = gradients(low, None);
                let weights: Vec<Vec<f32>> = low.iter().map(|(_, weights, _)| weights.clone()).collect();
                let (exact_loss, exact) = gradients(exact, Some(&weights));
                assert!(f64::from((low_loss - exact_loss).abs()) < 4.0 * unit * f64::from(exact_loss));
                let mut farthest = 0.0_f64;
                for ((parameter, _, low), (_, _, exact)) in low.iter().zip(&exact).filter(|(low, _)| !low.2.is_empty())
                {
                    let distance = size(low.iter().zip(exact).map(|(low, exact)| low - exact));
                    let units = distance / size(exact.iter().copied()) / unit;
                    farthest = farthest.max(units);
                    let allowed = 3.0 * ((32.0 + more) / 3.0).sqrt();
                    assert!(units < allowed, "{precision:?} with {name}, {parameter}: {units} units");
                    assert!(units > 0.0, "{precision:?} with {name}, {parameter}: not rounded at all");
                }
                println!("{precision:?} with {name}: {farthest:.1} units at most");
            }
        }
    });
}

/// Losses fall, and are those of fp32 with the same technique.
#[test]
fn every_combination_learns() {
    device::run("precision::every_combination_learns", COMPUTING, || {
        for Combination { name, change, .. } in &COMBINATIONS[1..] {
            let changed = |mut arguments: GptArguments| {
                change(&mut arguments);
                losses(&arguments)
            };
            let exact = changed(small());
            for precision in LOW {
                let low = changed(with(precision));
                // Adapters of a random model learn less than others do: sharing.rs says why.
                let end = low[25..].iter().sum::<f32>() / 5.0;
                assert!(end < low[0] - 0.7, "{precision:?} with {name}: {low:?}");
                // Adapters take steps of four times the length, which carry a difference further.
                let allowed = if precision == Precision::Bf16 { 0.3 } else { 0.1 };
                for (step, (exact, low)) in exact.iter().zip(&low).enumerate() {
                    assert!((exact - low).abs() < allowed, "{precision:?} with {name}, step {step}: {exact}, {low}");
                }
            }
        }
    });
}

/// Accumulated over micro-batches, and added to zeros that were kept: the same gradients within the same bound.
#[test]
fn precision_combines_with_accumulation_and_kept_gradients() {
    device::run("precision::precision_combines_with_accumulation_and_kept_gradients", COMPUTING, || {
        for precision in LOW {
            let mut arguments = with(precision);
            arguments.techniques.gradients =
                GradientArguments { accumulate: Some(2), zero_grad: ZeroGrad::Zero, ..GradientArguments::default() };
            assert_learns(&losses(&arguments));
        }
        let mut early = with(Precision::AmpBf16);
        early.steps = Some(6);
        let plain = losses(&early);
        early.techniques.gradients.optimizer_in_backward = true;
        assert_eq!(losses(&early), plain);
    });
}

/// The step with an infinity in a gradient changes no weight; the scale is halved, and training goes on.
#[test]
fn an_injected_infinity_skips_a_step_and_halves_the_scale() {
    device::run("precision::an_injected_infinity_skips_a_step_and_halves_the_scale", COMPUTING, || {
        let mut arguments = with(Precision::AmpFp16);
        arguments.techniques.types.inject_inf = Some(3);
        let mut trainer = Trainer::new(&Plan::new(&arguments).unwrap(), Device::open().unwrap()).unwrap();
        let weights = |trainer: &mut Trainer| -> Vec<Vec<f32>> {
            trainer.parameters_mut().iter().map(|parameter| parameter.weight().to_host().unwrap()).collect()
        };
        let mut before = weights(&mut trainer);
        for (step, scale) in [(1, 65_536.0), (2, 65_536.0), (3, 65_536.0), (4, 32_768.0), (5, 32_768.0)] {
            trainer.step().unwrap();
            let scaled = trainer.scaled().expect("fp16 has a scale");
            assert_eq!((scaled.scale, scaled.skipped), (scale, step == 3), "step {step}");
            let after = weights(&mut trainer);
            assert_eq!(after == before, step == 3, "step {step}");
            before = after;
        }
        let mut lines = Vec::new();
        let outcome = gpt::train(&arguments, &mut |progress: Progress| {
            lines.push(progress.to_string());
            Ok(())
        });
        assert_learns(&outcome.unwrap().losses.into_iter().map(Option::unwrap).collect::<Vec<f32>>());
        assert!(lines[2].contains("  scale 65536  "), "{}", lines[2]);
        assert!(lines[3].contains("  scale 65536, step skipped: a gradient is infinite or NaN  "), "{}", lines[3]);
        assert!(lines[4].contains("  scale 32768  "), "{}", lines[4]);
    });
}

/// Blocks that are computed again read the same casts: the same losses, bit for bit.
#[test]
fn checkpointing_changes_no_bit() {
    device::run("precision::checkpointing_changes_no_bit", COMPUTING, || {
        for precision in LOW {
            for arguments in models(&GptArguments { steps: Some(3), layers: Some(3), ..with(precision) }) {
                let kept = losses(&arguments);
                for checkpoint in [Checkpoint::Every(2), Checkpoint::Selective, Checkpoint::Auto] {
                    let mut arguments = arguments.clone();
                    arguments.techniques.activations.checkpoint = checkpoint;
                    assert_eq!(losses(&arguments), kept, "{precision:?}, {checkpoint:?}");
                }
            }
        }
    });
}

/// bf16 alone with each other optimizer: losses that fall about as in fp32, and repeat.
#[test]
fn every_optimizer_learns_in_bf16() {
    device::run("precision::every_optimizer_learns_in_bf16", COMPUTING, || {
        for (kind, steps, learning_rate) in [
            (Kind::Sgd, 60, None),
            (Kind::Momentum, 60, None),
            (Kind::Adafactor, 60, None),
            (Kind::AdamW8bit, 30, Some(5e-3)),
        ] {
            let arguments = |precision| {
                let mut arguments = GptArguments { steps: Some(steps), learning_rate, ..with(precision) };
                arguments.techniques.optimizer.kind = kind;
                arguments
            };
            let (exact, low) = (losses(&arguments(Precision::Fp32)), losses(&arguments(Precision::Bf16)));
            assert_learns(&low);
            let end = |losses: &[f32]| losses[losses.len() - 5..].iter().sum::<f32>() / 5.0;
            assert!((end(&exact) - end(&low)).abs() < 0.3, "{kind:?}: {} in fp32, {} in bf16", end(&exact), end(&low));
            let few = GptArguments { steps: Some(3), ..arguments(Precision::Bf16) };
            assert_eq!(losses(&few), low[..3], "{kind:?}");
        }
    });
}

/// An update in fp32, rounded up or down: each weight is one of the two bf16 numbers around w - rate · g, and where there is a
/// choice, both happen.
#[test]
fn sgd_in_bf16_is_its_definition_rounded() {
    device::run("precision::sgd_in_bf16_is_its_definition_rounded", COMPUTING, || {
        let mut arguments = with(Precision::Bf16);
        arguments.techniques.optimizer.kind = Kind::Sgd;
        arguments.learning_rate = Some(0.01);
        let mut trainer = Trainer::new(&Plan::new(&arguments).unwrap(), Device::open().unwrap()).unwrap();
        let weights = |trainer: &mut Trainer| -> Vec<Vec<f32>> {
            trainer.parameters_mut().iter().map(|parameter| parameter.weight().to_host().unwrap()).collect()
        };
        let before = weights(&mut trainer);
        trainer.step().unwrap();
        let after = weights(&mut trainer);
        let (mut up, mut down) = (0, 0);
        for (index, parameter) in trainer.parameters_mut().iter().enumerate() {
            let gradient = parameter.gradient().expect("it stays until the next step").to_host().unwrap();
            for ((before, after), gradient) in before[index].iter().zip(&after[index]).zip(gradient) {
                let exact = before - 0.01 * gradient;
                // The upper half of the bits is the bf16 number on the side of zero; the next is one more.
                let below = f32::from_bits(exact.to_bits() & 0xffff_0000);
                let above = f32::from_bits((exact.to_bits() & 0xffff_0000) + 0x1_0000);
                assert!(*after == below || *after == above, "{}: {after} is not beside {exact}", parameter.name());
                up += u32::from(*after == above);
                down += u32::from(*after == below && exact != below);
            }
        }
        assert!(up > 100 && down > 100, "{up} up, {down} down");
    });
}

#[test]
fn bf16_repeats_bit_for_bit() {
    device::run("precision::bf16_repeats_bit_for_bit", COMPUTING, || {
        let arguments = GptArguments { steps: Some(6), ..with(Precision::Bf16) };
        assert_eq!(losses(&arguments), losses(&arguments));
        let mut trainer = Trainer::new(&Plan::new(&arguments).unwrap(), Device::open().unwrap()).unwrap();
        trainer.step().unwrap();
        for parameter in trainer.parameters_mut() {
            let moments = parameter.moments().expect("made at the first step");
            for tensor in [parameter.weight(), parameter.gradient().expect("kept"), &moments[0], &moments[1]] {
                assert_eq!(tensor.element(), Element::Bf16, "{}", tensor.name());
            }
        }
    });
}
