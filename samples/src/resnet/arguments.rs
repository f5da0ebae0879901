//! The arguments of `memscope sample resnet`, and the plan that they make.
//!
//! Owns: defaults and every check that can be made before the device is touched. Refuses: to train.

use super::model::{Configuration, Model};
use crate::Error;
use crate::gpt::{in_range, is_rate};
use crate::techniques::{Kind, OptimizerArguments, Techniques};

/// Trains a ResNet in fp32 on images made from a seed, each tensor an allocation of its own, as PyTorch would without its
/// cache.
#[derive(clap::Args, Clone, Debug)]
pub struct ResnetArguments {
    /// Network to train
    #[arg(long, value_enum, default_value = "tiny")]
    pub model: Model,
    /// Images in a batch [default: 32]
    #[arg(long, value_name = "N")]
    pub batch: Option<u64>,
    /// Height and width of an image [default: 32 for tiny, else 224]
    #[arg(long, value_name = "N")]
    pub image: Option<u64>,
    /// Classes to tell apart [default: 10 for tiny, else 1000]
    #[arg(long, value_name = "N")]
    pub classes: Option<u64>,
    /// Training steps [default: 30 for tiny, else 3]
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Optimizer
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Kind::Momentum)]
    pub optimizer: Kind,
    /// Learning rate [default: of momentum 0.05 for tiny, else 0.1 · batch / 256; of AdamW 0.001; else as for gpt]
    #[arg(long = "lr", value_name = "RATE")]
    pub learning_rate: Option<f32>,
    /// Seed of the first weights and of the images
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
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
        let batch = arguments.batch.unwrap_or(32);
        let configuration = Configuration { classes: arguments.classes.unwrap_or(published.classes), ..published };
        let optimizer = OptimizerArguments { kind: arguments.optimizer, ..OptimizerArguments::default() };
        let rate = match arguments.optimizer {
            Kind::Momentum if tiny => 0.05,
            // Goyal et al. 2017: proportional to the batch.
            Kind::Momentum => 0.1 * batch as f32 / 256.0,
            _ => optimizer.default_rate(1e-3),
        };
        let plan = Plan {
            configuration,
            batch,
            image: arguments.image.unwrap_or(if tiny { 32 } else { 224 }),
            steps: arguments.steps.unwrap_or(if tiny { 30 } else { 3 }),
            learning_rate: arguments.learning_rate.unwrap_or(rate),
            seed: arguments.seed,
            techniques: Techniques { optimizer, ..Techniques::default() },
        };
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), Error> {
        let Plan { configuration, batch, image, .. } = *self;
        in_range("--batch", batch, 1, MAX_BATCH)?;
        in_range("--image", image, 1, MAX_IMAGE)?;
        in_range("--batch × --image²", batch * image * image, 1, MAX_PIXELS)?;
        in_range("--classes", configuration.classes, 2, MAX_CLASSES)?;
        in_range("--steps", self.steps, 1, 1_000_000_000)?;
        if batch == 1 && configuration.last_side(image) == 1 {
            return Err(Error::Arguments(format!(
                "--batch 1 of --image {image} leaves one value a channel in the last stage, and batch normalisation needs \
                 two: give a larger batch or image"
            )));
        }
        is_rate(self.learning_rate)?;
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
        ] {
            let Err(Error::Arguments(text)) = plan(line) else { panic!("{line} was taken") };
            assert!(text.contains(words), "{line}: {text}");
        }
        plan("--batch 1 --image 33").unwrap();
        plan("--batch 2 --image 1").unwrap();
    }
}
