//! Residual blocks that are computed again: the same gradients and running statistics bit for bit, and bytes by hand.

use crate::device::{self, COMPUTING};
use crate::resnet_training::tiny;
use memscope_client::Category;
use memscope_samples::Device;
use memscope_samples::resnet::{Batch, Plan, ResnetArguments, ResnetTechniques, Trainer, images, targets};
use memscope_samples::techniques::Checkpoint;

fn with(checkpoint: Checkpoint) -> ResnetArguments {
    ResnetArguments { techniques: ResnetTechniques { checkpoint, ..ResnetTechniques::default() }, ..tiny() }
}

/// Loss, gradients, running statistics, and the most bytes of activations of one batch.
struct Measured {
    loss: u32,
    numbers: Vec<Vec<u32>>,
    activations: u64,
}

fn measure(checkpoint: Checkpoint) -> Measured {
    let plan = Plan::new(&with(checkpoint)).unwrap();
    let mut trainer = Trainer::new(&plan, Device::open().unwrap()).unwrap();
    let targets = targets(plan.configuration.classes, plan.batch, 3, 9);
    let batch = Batch { images: images(&targets, plan.image, 3, 9), targets };
    trainer.device().forget_peaks();
    let loss = trainer.gradients(&batch).unwrap().expect("this device computes").to_bits();
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
    let mut numbers: Vec<Vec<u32>> =
        trainer.statistics().iter().map(|statistic| bits(statistic.weight().to_host().unwrap())).collect();
    for parameter in trainer.parameters_mut() {
        numbers.push(bits(parameter.gradient().expect("backward reaches every parameter").to_host().unwrap()));
    }
    Measured { loss, numbers, activations: trainer.device().peak_bytes(Category::Activations) }
}

const ALL: [Checkpoint; 6] = [
    Checkpoint::Every(1),
    Checkpoint::Every(2),
    Checkpoint::Every(3),
    Checkpoint::Every(4),
    Checkpoint::Sqrt,
    Checkpoint::Auto,
];

/// In PyTorch the running statistics would move twice, once for each time that a block is computed.
#[test]
fn gradients_and_running_statistics_are_those_of_plain_training_bit_for_bit() {
    let test = "resnet_checkpoint::gradients_and_running_statistics_are_those_of_plain_training_bit_for_bit";
    device::run(test, COMPUTING, || {
        let plain = measure(Checkpoint::None);
        for checkpoint in ALL {
            let again = measure(checkpoint);
            assert_eq!(again.loss, plain.loss, "{checkpoint:?}");
            assert!(again.numbers == plain.numbers, "{checkpoint:?}");
        }
    });
}

/// The tiny network on 16 images of 24 × 24, by hand: planes of 6, 3, 2 and 1 from the pooling on, channels 16, 32, 64, 128.
#[test]
fn activations_are_at_most_the_inputs_and_one_segment() {
    device::run("resnet_checkpoint::activations_are_at_most_the_inputs_and_one_segment", COMPUTING, || {
        let (b, side, channels) = (16, [6, 3, 2, 1_u64], [16, 32, 64, 128_u64]);
        // Of each block: two convolutions' outputs and two ReLUs', and the skip's convolution where there is one; statistics.
        let map = |block: usize| 4 * b * channels[block] * side[block] * side[block];
        let units = |block: usize| if block == 0 { 2 } else { 3 };
        let alpha = |block: usize| (2 + units(block)) * map(block) + units(block) * 8 * channels[block];
        // A block's input is the output of the one before, the first's the pooling's.
        let input = |block: usize| if block == 0 { map(0) } else { map(block - 1) };
        // The stem without the pooling's output: two tensors on 12 × 12, statistics, indices of 8 bytes.
        let stem = 2 * 4 * b * 16 * 12 * 12 + 8 * 16 + 2 * map(0);
        let at_loss = 4 * b * 128 + 4 * b * 6;
        let plain = stem + input(0) + (0..4).map(alpha).sum::<u64>() + at_loss;
        assert_eq!(measure(Checkpoint::None).activations, plain);
        let most = |every: usize| {
            // Segments from the end: the first may be short.
            let starts: Vec<usize> =
                (0..4_usize).rev().step_by(every).map(|last| (last + 1).saturating_sub(every)).rev().collect();
            let ends = starts.iter().skip(1).copied().chain([4]);
            let mut inputs = 0;
            let in_backward = starts.iter().zip(ends).map(|(&start, end)| {
                inputs += input(start);
                inputs + (start..end).map(alpha).sum::<u64>()
            });
            let most = in_backward.max().expect("there is a segment");
            stem + most.max(starts.iter().map(|&start| input(start)).sum::<u64>() + at_loss)
        };
        for every in 1..=4 {
            assert_eq!(measure(Checkpoint::Every(every as u64)).activations, most(every), "every {every}");
        }
        let least = (1..=4).map(most).min().unwrap();
        assert_eq!(measure(Checkpoint::Auto).activations, least);
        assert!(least < plain);
    });
}
