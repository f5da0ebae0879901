//! ResNets: a loss that falls and repeats, when memory comes and goes, runs without compute.

use crate::device::{self, COMPUTING, Simulated};
use cudarc::driver::result::mem_get_info;
use memscope_samples::Device;
use memscope_samples::resnet::{self, Model, Plan, Progress, ResnetArguments, ResnetTechniques, Trainer};
use memscope_samples::techniques::Kind;

/// The tiny network, on small images.
pub fn tiny() -> ResnetArguments {
    let (batch, image, classes) = (Some(16.into()), Some(24), Some(6));
    let (steps, techniques) = (Some(30), ResnetTechniques::default());
    ResnetArguments { model: Model::Tiny, batch, image, classes, steps, learning_rate: None, seed: 1, techniques }
}

pub fn losses(arguments: &ResnetArguments) -> Vec<f32> {
    let outcome = resnet::train(arguments, &mut |_| Ok(())).unwrap();
    outcome.losses.into_iter().map(|loss| loss.expect("this device computes")).collect()
}

#[test]
fn the_tiny_network_learns_and_repeats_bit_for_bit() {
    device::run("resnet_training::the_tiny_network_learns_and_repeats_bit_for_bit", COMPUTING, || {
        let first = losses(&tiny());
        let nothing = 6_f32.ln();
        let end = first[first.len() - 5..].iter().sum::<f32>() / 5.0;
        assert!((first[0] - nothing).abs() < 1.0, "the first loss is {}, ln 6 is {nothing}", first[0]);
        assert!(end < nothing / 3.0, "after {} steps the loss is {end}: {first:?}", first.len());
        let bits = |losses: &[f32]| losses.iter().map(|loss| loss.to_bits()).collect::<Vec<_>>();
        let few = ResnetArguments { steps: Some(3), ..tiny() };
        assert_eq!(bits(&losses(&few)), bits(&first[..3]));
        assert_ne!(bits(&losses(&ResnetArguments { seed: 2, ..few })), bits(&first[..3]));
    });
}

#[test]
fn it_learns_with_every_optimizer() {
    device::run("resnet_training::it_learns_with_every_optimizer", COMPUTING, || {
        for optimizer in [Kind::Sgd, Kind::AdamW, Kind::AdamW8bit, Kind::Adafactor] {
            let techniques = ResnetTechniques { optimizer, ..ResnetTechniques::default() };
            let losses = losses(&ResnetArguments { techniques, ..tiny() });
            let end = losses[losses.len() - 5..].iter().sum::<f32>() / 5.0;
            assert!(end < 6_f32.ln() / 2.0, "{optimizer:?}: after {} steps {end}: {losses:?}", losses.len());
        }
    });
}

#[test]
fn gradients_and_velocities_come_and_go_as_in_pytorch() {
    device::run("resnet_training::gradients_and_velocities_come_and_go_as_in_pytorch", COMPUTING, || {
        let plan = Plan::new(&tiny()).unwrap();
        let free = || mem_get_info().expect("a context is current").0;
        // Kept open throughout, so that the context stays and only the tensors differ.
        let open = Device::open().unwrap();
        let at_first = free();
        let mut trainer = Trainer::new(&plan, Device::open().unwrap()).unwrap();
        assert!(trainer.parameters_mut().iter().all(|p| p.gradient().is_none() && p.velocity().is_none()));
        trainer.step().unwrap();
        assert!(trainer.parameters_mut().iter().all(|p| p.gradient().is_some() && p.velocity().is_some()));
        let after_one = free();
        trainer.step().unwrap();
        assert_eq!(free(), after_one, "a step leaves something behind");
        drop(trainer);
        assert_eq!(free(), at_first, "a tensor was not freed");
        drop(open);
    });
}

/// A step of SGD with momentum by hand: the velocity and the weight after two steps, from the gradients that they saw.
#[test]
fn weights_move_by_their_velocity() {
    device::run("resnet_training::weights_move_by_their_velocity", COMPUTING, || {
        let plan = Plan { learning_rate: 0.01, ..Plan::new(&tiny()).unwrap() };
        let mut trainer = Trainer::new(&plan, Device::open().unwrap()).unwrap();
        let host = |trainer: &mut Trainer| {
            let parameter = &mut trainer.parameters_mut()[0];
            let gradient = parameter.gradient().map(|gradient| gradient.to_host().unwrap());
            (parameter.weight().to_host().unwrap(), gradient)
        };
        let mut weights = vec![host(&mut trainer).0];
        let mut velocity = vec![0.0_f64; weights[0].len()];
        for _ in 0..2 {
            trainer.step().unwrap();
            let (after, gradient) = host(&mut trainer);
            let (before, gradient) = (&weights[weights.len() - 1], gradient.expect("a step leaves its gradients"));
            for (index, velocity) in velocity.iter_mut().enumerate() {
                *velocity = 0.9 * *velocity + f64::from(gradient[index]);
                let expected = f64::from(before[index]) - 0.01 * *velocity;
                assert!((f64::from(after[index]) - expected).abs() < 1e-6, "{index}: {} not {expected}", after[index]);
            }
            weights.push(after);
        }
    });
}

#[test]
fn without_compute_a_large_network_takes_no_time() {
    let test = "resnet_training::without_compute_a_large_network_takes_no_time";
    device::run(test, Simulated { device: "h100-80gb", computes: false }, || {
        let arguments = ResnetArguments {
            model: Model::Resnet152,
            batch: Some(256.into()),
            image: None,
            classes: None,
            steps: Some(2),
            learning_rate: None,
            seed: 1,
            techniques: ResnetTechniques::default(),
        };
        let mut lines = Vec::new();
        let outcome = resnet::train(&arguments, &mut |progress: Progress| {
            lines.push(progress.to_string());
            Ok(())
        });
        assert_eq!(outcome.unwrap(), resnet::Outcome { parameters: 60_192_808, losses: vec![None, None] });
        assert!(lines[0].starts_with("ResNet-152, 1000 classes: 60192808 parameters; batch 256 × 224 × 224 pixels"));
        assert!(lines[2].starts_with("step 2/2  loss not computed"), "{}", lines[2]);
    });
}
