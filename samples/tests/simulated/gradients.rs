//! Backward against central finite differences of the loss, on models small enough to try each.
//!
//! The difference is the five-point one, (8·(L(ε) - L(-ε)) - (L(2ε) - L(-2ε))) / 12ε. The loss of these models is near
//! ln 11 = 2.4, and fp32 carries it to a few units of its last place, 2.4e-7, say 1e-6: noise of at most 18/12 · 1e-6 / ε.
//! With ε = 0.005 that is 3e-4, beside which the error of truncation, ε⁴/30 of the fifth derivative, is nothing. The check
//! allows 3e-4 and, for the rounding of the gradient itself, 0.1 %. To keep gradients well above that, the weights are made
//! larger than training would make them: most gradients are then between 0.01 and 1.

use crate::device;
use memscope_samples::Device;
use memscope_samples::gpt::{Batch, Configuration, Family, Plan, Trainer};
use memscope_samples::techniques::{SharingArguments, Techniques};

/// A model of odd sizes, so that no tile or warp is full.
fn plan(family: Family, tied: bool) -> Plan {
    let configuration = Configuration { family, layers: 2, width: 6, heads: 3, vocabulary: 11, positions: 7, tied };
    let techniques = Techniques::default();
    Plan { configuration, batch: 2, sequence: 5, steps: 1, learning_rate: 0.0, seed: 7, techniques }
}

/// Repeated tokens, so that rows share an entry of the embedding, and targets that do not count.
fn batch() -> Batch {
    Batch { tokens: vec![3, 1, 3, 10, 0, 7, 7, 3, 2, 1], targets: vec![1, -1, 10, 0, 4, 7, 3, -1, 1, 9], counted: 8 }
}

fn check(plan: &Plan) {
    let mut trainer = Trainer::new(plan, Device::open().unwrap()).unwrap();
    enlarge(&mut trainer);
    let batch = batch();
    trainer.gradients(&batch).unwrap();
    let count = trainer.parameters_mut().len();
    let lora = plan.techniques.sharing.lora;
    let mut checked = 0;
    for index in 0..count {
        let (name, gradient) = {
            let parameter = &trainer.parameters_mut()[index];
            let name = parameter.name().to_owned();
            if lora.is_some() && !name.contains(".lora_") {
                assert!(parameter.gradient().is_none(), "{name} is frozen");
                continue;
            }
            (name, parameter.gradient().expect("backward reaches every parameter").to_host().unwrap())
        };
        let weights = trainer.parameters_mut()[index].weight().to_host().unwrap();
        // Every element of small parameters, a sample of larger ones that meets every row and column.
        for element in (0..weights.len()).step_by(1 + weights.len() / 40) {
            const STEP: f32 = 0.005;
            let mut loss = |steps: f32| {
                let mut moved = weights.clone();
                moved[element] += steps * STEP;
                trainer.parameters_mut()[index].weight_mut().set(&moved).unwrap();
                f64::from(trainer.loss(&batch).unwrap().expect("this device computes"))
            };
            let (near, far) = (loss(1.0) - loss(-1.0), loss(2.0) - loss(-2.0));
            let difference = (8.0 * near - far) / (12.0 * f64::from(STEP));
            trainer.parameters_mut()[index].weight_mut().set(&weights).unwrap();
            let computed = f64::from(gradient[element]);
            let allowed = 3e-4 + 1e-3 * difference.abs();
            assert!((computed - difference).abs() <= allowed, "{name}[{element}]: {computed} against {difference}");
            checked += 1;
        }
    }
    // Fewer parameters have a gradient of their own where weights are shared or frozen.
    let least = if plan.techniques.sharing == SharingArguments::default() { 500 } else { 250 };
    assert!(checked > least, "only {checked} elements checked");
}

/// Makes matrices so large that gradients stand out from rounding, and moves norms and biases from their special values.
fn enlarge(trainer: &mut Trainer) {
    let mut state = 1_u32;
    for parameter in trainer.parameters_mut() {
        let mut weights = parameter.weight().to_host().unwrap();
        for weight in &mut weights {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let uniform = state as f32 / u32::MAX as f32 - 0.5;
            *weight = if *weight == 1.0 { 1.0 + uniform } else { *weight * 2.0 + 0.4 * uniform };
        }
        parameter.weight_mut().set(&weights).unwrap();
    }
}

/// The gradients of a batch in two micro-batches, which are one sequence each.
#[test]
fn accumulated_over_micro_batches() {
    device::run("gradients::accumulated_over_micro_batches", device::COMPUTING, || {
        for (family, tied) in [(Family::Gpt2, true), (Family::Gpt2, false), (Family::Bert, true)] {
            let mut plan = plan(family, tied);
            plan.techniques.gradients.accumulate = Some(2);
            check(&plan);
        }
    });
}

/// One set of weights for both layers, one projection for q and k, and adapters beside frozen weights.
#[test]
fn of_shared_weights_and_of_adapters() {
    device::run("gradients::of_shared_weights_and_of_adapters", device::COMPUTING, || {
        let none = SharingArguments::default();
        for sharing in [
            SharingArguments { share_layers: Some(2), share_qk: true, ..none },
            SharingArguments { share_qk: true, ..none },
            SharingArguments { lora: Some(3), ..none },
        ] {
            for family in [Family::Gpt2, Family::Bert] {
                let mut plan = plan(family, true);
                plan.techniques.sharing = sharing;
                check(&plan);
            }
        }
    });
}

#[test]
fn gpt2_with_a_tied_head() {
    device::run("gradients::gpt2_with_a_tied_head", device::COMPUTING, || check(&plan(Family::Gpt2, true)));
}

#[test]
fn gpt2_with_a_head_of_its_own() {
    device::run("gradients::gpt2_with_a_head_of_its_own", device::COMPUTING, || check(&plan(Family::Gpt2, false)));
}

#[test]
fn bert_with_a_tied_decoder() {
    device::run("gradients::bert_with_a_tied_decoder", device::COMPUTING, || check(&plan(Family::Bert, true)));
}

#[test]
fn bert_with_a_decoder_of_its_own() {
    device::run("gradients::bert_with_a_decoder_of_its_own", device::COMPUTING, || check(&plan(Family::Bert, false)));
}
