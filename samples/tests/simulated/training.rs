//! Losses that fall and repeat, when memory comes and goes, runs without compute, and running out of memory.

use crate::device::{self, COMPUTING, Simulated};
use cudarc::driver::result::mem_get_info;
use memscope_samples::gpt::{self, GptArguments, Model, Plan, Progress, Trainer};
use memscope_samples::techniques::Techniques;
use memscope_samples::{Device, Error};

/// A small GPT whose losses are cheap even where the simulator is built without optimisation.
pub fn small() -> GptArguments {
    GptArguments {
        model: Model::Tiny,
        layers: Some(1),
        width: Some(32),
        heads: Some(4),
        vocabulary: None,
        positions: None,
        untied: false,
        batch: Some(4.into()),
        sequence: Some(32),
        steps: Some(30),
        learning_rate: Some(5e-3),
        seed: 1,
        techniques: Techniques::default(),
    }
}

pub fn losses(arguments: &GptArguments) -> Vec<f32> {
    let outcome = gpt::train(arguments, &mut |_| Ok(())).unwrap();
    outcome.losses.into_iter().map(|loss| loss.expect("this device computes")).collect()
}

/// From near ln(vocabulary), where a model that knows nothing begins, to far below it.
pub fn assert_learns(losses: &[f32]) {
    let nothing = 256_f32.ln();
    let end = losses[losses.len() - 5..].iter().sum::<f32>() / 5.0;
    assert!((losses[0] - nothing).abs() < 0.5, "the first loss is {}, ln 256 is {nothing}", losses[0]);
    assert!(end < nothing - 1.5, "after {} steps the loss is {end}: {losses:?}", losses.len());
}

#[test]
fn a_tied_gpt_learns_and_repeats_bit_for_bit() {
    device::run("training::a_tied_gpt_learns_and_repeats_bit_for_bit", COMPUTING, || {
        let first = losses(&small());
        assert_learns(&first);
        let bits = |losses: &[f32]| losses.iter().map(|loss| loss.to_bits()).collect::<Vec<_>>();
        let few = GptArguments { steps: Some(5), ..small() };
        assert_eq!(bits(&losses(&few)), bits(&first[..5]));
        assert_ne!(bits(&losses(&GptArguments { seed: 2, ..few })), bits(&first[..5]));
    });
}

#[test]
fn an_untied_gpt_learns_otherwise() {
    device::run("training::an_untied_gpt_learns_otherwise", COMPUTING, || {
        let untied = losses(&GptArguments { untied: true, ..small() });
        assert_learns(&untied);
        assert_ne!(untied[..2], losses(&GptArguments { steps: Some(2), ..small() }));
    });
}

#[test]
fn a_small_bert_learns() {
    device::run("training::a_small_bert_learns", COMPUTING, || {
        let arguments = GptArguments { model: Model::BertBase, vocabulary: Some(256), ..small() };
        assert_learns(&losses(&GptArguments { steps: Some(40), ..arguments }));
    });
}

#[test]
fn gradients_and_moments_come_and_go_as_in_pytorch() {
    device::run("training::gradients_and_moments_come_and_go_as_in_pytorch", COMPUTING, || {
        let plan = Plan::new(&small()).unwrap();
        let free = || mem_get_info().expect("a context is current").0;
        // Kept open throughout, so that the context stays and only the tensors differ.
        let open = Device::open().unwrap();
        let at_first = free();
        let mut trainer = Trainer::new(&plan, Device::open().unwrap()).unwrap();
        assert!(trainer.parameters_mut().iter().all(|p| p.gradient().is_none() && p.moments().is_none()));
        trainer.step().unwrap();
        assert!(trainer.parameters_mut().iter().all(|p| p.gradient().is_some() && p.moments().is_some()));
        let after_one = free();
        trainer.step().unwrap();
        assert_eq!(free(), after_one, "a step leaves something behind");
        drop(trainer);
        assert_eq!(free(), at_first, "a tensor was not freed");
        drop(open);
    });
}

#[test]
fn without_compute_the_loss_is_not_computed() {
    let test = "training::without_compute_the_loss_is_not_computed";
    device::run(test, Simulated { device: "h100-80gb", computes: false }, || {
        let arguments = GptArguments {
            model: Model::Gpt2Xl,
            layers: None,
            width: None,
            heads: None,
            learning_rate: None,
            batch: Some(1.into()),
            steps: Some(2),
            ..small()
        };
        let mut lines = Vec::new();
        let outcome = gpt::train(&arguments, &mut |progress: Progress| {
            lines.push(progress.to_string());
            Ok(())
        });
        assert_eq!(outcome.unwrap(), gpt::Outcome { parameters: 1_557_611_200, losses: vec![None, None] });
        assert!(lines[0].contains("1557611200 parameters") && lines[0].contains("(simulated)"), "{}", lines[0]);
        assert!(lines[2].starts_with("step 2/2  loss not computed"), "{}", lines[2]);
    });
}

#[test]
fn out_of_memory_says_what_was_asked_and_what_was_free() {
    const GIBIBYTE: u64 = 1 << 30;
    let test = "training::out_of_memory_says_what_was_asked_and_what_was_free";
    device::run(test, Simulated { device: "1073741824", computes: false }, || {
        let arguments = GptArguments { model: Model::Gpt2Small, layers: None, width: None, heads: None, ..small() };
        let error = gpt::train(&arguments, &mut |_| Ok(())).unwrap_err();
        let text = error.to_string();
        let Error::OutOfMemory { tensor, bytes, free: Some(free), total: Some(total), .. } = error else {
            panic!("{text}");
        };
        // The weights fit and their gradients do too; the two moments do not.
        assert!(tensor.contains(".exp_avg"), "{tensor}");
        assert!(free < bytes && total == GIBIBYTE, "{text}");
        assert!(text.contains(&tensor) && text.contains(&bytes.to_string()) && text.contains("(optimizer)"), "{text}");
        assert_eq!(text.lines().count(), 1);
    });
}
