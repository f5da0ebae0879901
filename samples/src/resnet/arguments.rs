//! The arguments of `memscope sample resnet`, and the plan that they make.
//!
//! Owns: defaults and every check that can be made before the device is touched. Refuses: to train.

use super::flags::ResnetTechniques;
use super::model::{Configuration, Model};
use crate::Error;
use crate::gpt::{in_range, is_rate};
use crate::techniques::{BatchSize, Kind, Techniques, Workload};

/// Trains a ResNet on images made from a seed, each tensor an allocation of its own, as PyTorch would without its cache.
#[derive(clap::Args, Clone, Debug)]
pub struct ResnetArguments {
    /// Network to train
    #[arg(long, value_enum, default_value = "tiny")]
    pub model: Model,
    /// Images in a batch, or `auto` for as many as fit, found by trials [default: 32]
    #[arg(long, value_name = "N|auto")]
    pub batch: Option<BatchSize>,
    /// Height and width of an image [default: 32 for tiny, else 224]
    #[arg(long, value_name = "N")]
    pub image: Option<u64>,
    /// Classes to tell apart [default: 10 for tiny, else 1000]
    #[arg(long, value_name = "N")]
    pub classes: Option<u64>,
    /// Training steps [default: 30 for tiny, else 3]
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Learning rate [default: of momentum 0.05 for tiny, else 0.1 · batch / 256; of AdamW 0.001; else as for gpt]
    #[arg(long = "lr", value_name = "RATE")]
    pub learning_rate: Option<f32>,
    /// Seed of the first weights and of the images
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The memory techniques.
    #[command(flatten)]
    pub techniques: ResnetTechniques,
}

/// What is to be trained, checked.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The network's sizes.
    pub configuration: Configuration,
    /// Images in a batch.
    pub batch: u64,
    /// Height and width of an image.
    pub image: u64,
    /// Training steps.
    pub steps: u64,
    /// Learning rate.
    pub learning_rate: f32,
    /// Seed.
    pub seed: u64,
    /// The memory techniques.
    pub techniques: Techniques,
}

/// Most pixels in a batch, one channel counted: a convolution has a row of its product for each.
const MAX_PIXELS: u64 = i32::MAX as u64;
/// Limits of each size alone, so that no product of them leaves 64 bits.
const MAX_BATCH: u64 = 1 << 16;
const MAX_IMAGE: u64 = 1 << 15;
const MAX_CLASSES: u64 = 4_000_000;

impl Plan {
    /// The plan that the arguments make.
    ///
    /// # Errors
    /// [`Error::Arguments`] when no network can be made or trained so; the device has not been touched.
    pub fn new(arguments: &ResnetArguments) -> Result<Plan, Error> {
        let tiny = arguments.model == Model::Tiny;
        let published = arguments.model.configuration();
        let configuration = Configuration { classes: arguments.classes.unwrap_or(published.classes), ..published };
        let techniques = arguments.techniques.checked(configuration.blocks.iter().sum())?;
        let image = arguments.image.unwrap_or(if tiny { 32 } else { 224 });
        let batch = match arguments.batch {
            Some(BatchSize::Given(images)) => images,
            // Of `auto`, the smallest: where the search begins.
            Some(BatchSize::Auto) => {
                let least = if configuration.last_side(techniques.workload.shortest(image)) == 1 { 2 } else { 1 };
                least * techniques.ranks.count() * techniques.gradients.micro_batches()
            }
            None => 32,
        };
        let rate = match techniques.optimizer.kind {
            Kind::Momentum if tiny => 0.05,
            // Goyal et al. 2017: proportional to the batch.
            Kind::Momentum => 0.1 * batch as f32 / 256.0,
            _ => techniques.optimizer.default_rate(1e-3),
        };
        let plan = Plan {
            configuration,
            batch,
            image,
            steps: arguments.steps.unwrap_or(if tiny { 30 } else { 3 }),
            learning_rate: arguments.learning_rate.unwrap_or(rate),
            seed: arguments.seed,
            techniques,
        };
        plan.check()?;
        if arguments.batch == Some(BatchSize::Auto) && plan.techniques.workload.workload == Workload::Varying {
            return Err(Error::Arguments(
                "--batch auto does not combine with --workload varying: its trials take two steps, and a later one may be larger"
                    .to_owned(),
            ));
        }
        Ok(plan)
    }

    /// The largest batch that kernels can take.
    pub(super) fn largest_batch(&self) -> u64 {
        (MAX_PIXELS / (self.image * self.image)).min(MAX_BATCH)
    }

    /// Height and width of what the first block reads: convolution and pooling of the stem halve the image, rounding up.
    pub(super) fn side_of_blocks(&self) -> u64 {
        self.image.div_ceil(2).div_ceil(2)
    }

    fn check(&self) -> Result<(), Error> {
        let Plan { configuration, batch, image, .. } = *self;
        in_range("--batch", batch, 1, MAX_BATCH)?;
        in_range("--image", image, 1, MAX_IMAGE)?;
        in_range("--batch × --image²", batch * image * image, 1, MAX_PIXELS)?;
        in_range("--classes", configuration.classes, 2, MAX_CLASSES)?;
        in_range("--steps", self.steps, 1, 1_000_000_000)?;
        is_rate(self.learning_rate)?;
        let micro_batches = self.techniques.gradients.micro_batches();
        let ranks = self.techniques.ranks.count();
        if !batch.is_multiple_of(ranks) {
            return Err(Error::Arguments(format!(
                "--ranks {ranks} does not divide --batch {batch}, which is the batch of all ranks together"
            )));
        }
        if !(batch / ranks).is_multiple_of(micro_batches) {
            return Err(Error::Arguments(format!(
                "--accumulate {micro_batches} does not divide {}",
                match ranks {
                    1 => format!("--batch {batch}, which is the whole batch"),
                    _ => format!("a rank's share of --batch, {}", batch / ranks),
                }
            )));
        }
        let fewest = configuration.width.min(configuration.classes);
        if fewest < ranks {
            return Err(Error::Arguments(format!(
                "--ranks {ranks} is more than {fewest}, the elements of the smallest parameter: a rank would have no part of it"
            )));
        }
        // Of the smallest pass: normalisation has no variance of one value.
        let smallest = self.techniques.workload.shortest(image);
        if batch / ranks / micro_batches == 1 && configuration.last_side(smallest) == 1 {
            return Err(Error::Arguments(format!(
                "{} of --image {image}{} leaves one value a channel in the last stage, and batch normalisation needs two: \
                 give a larger batch or image",
                match ranks * micro_batches {
                    1 => "--batch 1".to_owned(),
                    passes => format!("--batch {batch} in {passes} passes"),
                },
                if smallest == image { String::new() } else { format!(", which may vary to {smallest},") },
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        resnet: ResnetArguments,
    }

    fn plan(line: &str) -> Result<Plan, Error> {
        let words = std::iter::once("resnet").chain(line.split_whitespace());
        Plan::new(&Line::try_parse_from(words).expect("the line is well-formed").resnet)
    }

    #[test]
    fn a_network_brings_its_own_defaults() {
        let plan = plan("--model 50 --batch 64").unwrap();
        assert_eq!(plan.configuration, Model::Resnet50.configuration());
        assert_eq!((plan.batch, plan.image, plan.steps, plan.learning_rate), (64, 224, 3, 0.025));
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_argument_at_fault() {
        for (line, words) in [
            ("--batch 0", "--batch 0 is out of range"),
            ("--image 0", "--image 0 is out of range"),
            ("--classes 1", "--classes 1 is out of range"),
            ("--steps 0", "--steps 0 is out of range"),
            ("--lr=-1", "--lr -1 is not a learning rate"),
            ("--lr NaN", "--lr NaN is not a learning rate"),
            ("--batch 1 --image 32", "--batch 1 of --image 32 leaves one value a channel"),
            ("--batch 65536 --image 224", "--batch × --image² 3288334336 is out of range"),
            ("--image 18446744073709551615", "--image 18446744073709551615 is out of range"),
            ("--checkpoint selective", "--checkpoint selective drops attention probabilities"),
            ("--checkpoint every=5", "--checkpoint every=5 is out of range: the model has 4 layers"),
            ("--foreach", "--foreach is of --optimizer adamw"),
            ("--inject-inf 3", "--inject-inf shows the loss scale of --precision amp-fp16"),
            ("--precision amp-fp16 --optimizer-in-backward", "does not combine with --optimizer-in-backward"),
            ("--accumulate 3", "--accumulate 3 does not divide --batch 32"),
            ("--accumulate 32 --image 32", "--batch 32 in 32 passes of --image 32 leaves one value a channel"),
            ("--batch 1 --image 64 --workload varying", "--image 64, which may vary to 16, leaves one value a channel"),
            ("--ranks 2", "--ranks needs --parallel"),
            ("--ranks 3 --parallel ddp", "--ranks 3 does not divide --batch 32"),
            ("--ranks 16 --parallel ddp --accumulate 4", "--accumulate 4 does not divide a rank's share of --batch, 2"),
            ("--ranks 16 --parallel ddp", "--ranks 16 is more than 10, the elements of the smallest parameter"),
            ("--batch auto --workload varying", "--batch auto does not combine with --workload varying"),
            ("--empty-cache", "--empty-cache empties the cache of --allocator caching"),
            ("--memory-fraction 2", "--memory-fraction 2 is not a share"),
            ("--offload optimizer", "--offload optimizer does not combine with this --optimizer"),
        ] {
            let Err(Error::Arguments(text)) = plan(line) else { panic!("{line} was taken") };
            assert!(text.contains(words), "{line}: {text}");
        }
        plan("--batch 1 --image 33").unwrap();
        plan("--batch 2 --image 1").unwrap();
    }
}
