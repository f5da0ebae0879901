//! The arguments of `memscope sample gpt`, and the plan that they make.
//!
//! Owns: defaults and every check that can be made before the device is touched. Refuses: to train.

use super::model::{Configuration, Model, in_range, is_rate};
use crate::Error;
use crate::techniques::{BatchSize, Techniques, Workload};

/// Trains a GPT or BERT on a small text, each tensor an allocation of its own, as PyTorch would without its cache.
#[derive(clap::Args, Clone, Debug)]
pub struct GptArguments {
    /// Model to train; the sizes below replace its own
    #[arg(long, value_enum, default_value = "tiny")]
    pub model: Model,
    /// Transformer blocks
    #[arg(long, value_name = "N")]
    pub layers: Option<u64>,
    /// Width of the residual stream
    #[arg(long, value_name = "N")]
    pub width: Option<u64>,
    /// Attention heads; they must divide the width
    #[arg(long, value_name = "N")]
    pub heads: Option<u64>,
    /// Tokens in the vocabulary
    #[arg(long, value_name = "N")]
    pub vocabulary: Option<u64>,
    /// Longest sequence that the model has positions for
    #[arg(long, value_name = "N")]
    pub positions: Option<u64>,
    /// Give the head a weight of its own instead of the token embedding's
    #[arg(long)]
    pub untied: bool,
    /// Sequences in a batch, or `auto` for as many as fit, found by trials [default: 8 for tiny and bert-base, else 4]
    #[arg(long, value_name = "N|auto")]
    pub batch: Option<BatchSize>,
    /// Tokens in a sequence [default: 64 for tiny, 128 for bert-base, else 1024; at most the positions]
    #[arg(long = "seq", value_name = "N")]
    pub sequence: Option<u64>,
    /// Training steps [default: 30 for tiny, else 3]
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Learning rate [default: 0.001 for tiny, else 0.0003; 0.1 for sgd, 0.01 for momentum and adafactor]
    #[arg(long = "lr", value_name = "RATE")]
    pub learning_rate: Option<f32>,
    /// Seed of the first weights and of the batches
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The memory techniques.
    #[command(flatten)]
    pub techniques: Techniques,
}

/// What is to be trained, checked.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The model's sizes.
    pub configuration: Configuration,
    /// Sequences in a batch.
    pub batch: u64,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// Training steps.
    pub steps: u64,
    /// Learning rate.
    pub learning_rate: f32,
    /// Seed.
    pub seed: u64,
    /// The memory techniques.
    pub techniques: Techniques,
}

/// Most rows of attention scores: one block of a launch for each.
const MAX_ROWS: u64 = i32::MAX as u64;
/// Most tokens in a batch, which the host holds too.
const MAX_TOKENS: u64 = 1 << 24;

impl Plan {
    /// The plan that the arguments make.
    ///
    /// # Errors
    /// [`Error::Arguments`] when no model can be made or trained so; the device has not been touched.
    pub fn new(arguments: &GptArguments) -> Result<Plan, Error> {
        let published = arguments.model.configuration();
        let configuration = Configuration {
            layers: arguments.layers.unwrap_or(published.layers),
            width: arguments.width.unwrap_or(published.width),
            heads: arguments.heads.unwrap_or(published.heads),
            vocabulary: arguments.vocabulary.unwrap_or(published.vocabulary),
            positions: arguments.positions.unwrap_or(published.positions),
            tied: !arguments.untied,
            ..published
        };
        configuration.check()?;
        let (batch, sequence, steps, learning_rate) = match arguments.model {
            Model::Tiny => (8, 64, 30, 1e-3),
            Model::BertBase => (8, 128, 3, 3e-4),
            _ => (4, 1024, 3, 3e-4),
        };
        let plan = Plan {
            batch: match arguments.batch {
                Some(BatchSize::Given(sequences)) => sequences,
                // Of `auto`, the smallest: where the search begins.
                Some(BatchSize::Auto) => {
                    arguments.techniques.gradients.micro_batches().saturating_mul(arguments.techniques.ranks.count())
                }
                None => batch,
            },
            sequence: arguments.sequence.unwrap_or(sequence.min(configuration.positions)),
            steps: arguments.steps.unwrap_or(steps),
            learning_rate: arguments
                .learning_rate
                .unwrap_or_else(|| arguments.techniques.optimizer.default_rate(learning_rate)),
            seed: arguments.seed,
            techniques: arguments.techniques.clone(),
            configuration,
        };
        plan.check()?;
        if arguments.batch == Some(BatchSize::Auto) && plan.techniques.workload.workload == Workload::Varying {
            return Err(Error::Arguments(
                "--batch auto does not combine with --workload varying: its trials take two steps, and a later one may be longer"
                    .to_owned(),
            ));
        }
        Ok(plan)
    }

    /// Tokens in a batch.
    pub fn rows(&self) -> u64 {
        self.batch * self.sequence
    }

    /// The largest batch that kernels and host can take.
    pub(super) fn largest_batch(&self) -> u64 {
        (MAX_TOKENS / self.sequence).min(MAX_ROWS / (self.sequence * self.configuration.heads))
    }

    /// How many numbers the parameters are, with the techniques: shared ones once, and adapters too.
    pub fn parameter_count(&self) -> u64 {
        let descriptions = self.configuration.parameters_with(&self.techniques.sharing);
        descriptions.iter().map(|parameter| parameter.shape.iter().product::<u64>()).sum()
    }

    fn check(&self) -> Result<(), Error> {
        let Configuration { heads, positions, .. } = self.configuration;
        in_range("--batch", self.batch, 1, MAX_TOKENS)?;
        in_range("--seq", self.sequence, 1, MAX_TOKENS)?;
        in_range("--batch × --seq", self.batch * self.sequence, 1, MAX_TOKENS)?;
        in_range("--steps", self.steps, 1, 1_000_000_000)?;
        if self.sequence > positions {
            return Err(Error::Arguments(format!(
                "--seq {} is longer than the model's {positions} positions; give --positions to make a model with more",
                self.sequence
            )));
        }
        if self.rows() * heads > MAX_ROWS {
            return Err(Error::Arguments(format!(
                "--batch {} × --seq {} × {heads} heads is more than {MAX_ROWS}, the most rows that a launch can hold",
                self.batch, self.sequence
            )));
        }
        is_rate(self.learning_rate)?;
        self.techniques.check()?;
        let micro_batches = self.techniques.gradients.micro_batches();
        let ranks = self.techniques.ranks.count();
        if !self.batch.is_multiple_of(ranks) {
            return Err(Error::Arguments(format!(
                "--ranks {ranks} does not divide --batch {}, which is the batch of all ranks together",
                self.batch
            )));
        }
        if !(self.batch / ranks).is_multiple_of(micro_batches) {
            return Err(Error::Arguments(format!(
                "--accumulate {micro_batches} does not divide {}",
                match ranks {
                    1 => format!("--batch {}, which is the whole batch", self.batch),
                    _ => format!("a rank's share of --batch, {}", self.batch / ranks),
                }
            )));
        }
        for (flag, size) in [("--width", self.configuration.width), ("--vocabulary", self.configuration.vocabulary)] {
            if size < ranks {
                return Err(Error::Arguments(format!(
                    "--ranks {ranks} is more than {flag} {size}: a rank would have no part of a bias"
                )));
            }
        }
        let Configuration { layers, width, tied, .. } = self.configuration;
        // Of the shortest pass.
        let shortest = self.techniques.workload.shortest(self.sequence);
        let rows = self.batch * shortest / (micro_batches * ranks);
        self.techniques.activations.check(layers, width / heads, rows)?;
        self.techniques.sharing.check(layers, width, tied)?;
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
        gpt: GptArguments,
    }

    fn plan(line: &str) -> Result<Plan, Error> {
        let words = std::iter::once("gpt").chain(line.split_whitespace());
        Plan::new(&Line::try_parse_from(words).expect("the line is well-formed").gpt)
    }

    #[test]
    fn a_model_brings_its_own_sizes_and_defaults() {
        let plan = plan("--model gpt2-124m").unwrap();
        assert_eq!(plan.configuration, Model::Gpt2Small.configuration());
        assert_eq!((plan.batch, plan.sequence, plan.steps), (4, 1024, 3));
    }

    #[test]
    fn sizes_replace_those_of_the_model() {
        let plan = plan("--layers 3 --width 96 --heads 6 --vocabulary 300 --positions 16 --untied --batch 2").unwrap();
        let Configuration { layers, width, heads, vocabulary, positions, tied, .. } = plan.configuration;
        assert_eq!((layers, width, heads, vocabulary, positions, tied), (3, 96, 6, 300, 16, false));
        assert_eq!((plan.batch, plan.sequence), (2, 16));
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_argument_at_fault() {
        for (line, words) in [
            ("--heads 3", "--heads 3 does not divide --width 128"),
            ("--layers 0", "--layers 0 is out of range"),
            ("--width 0", "--width 0 is out of range"),
            ("--heads 0", "--heads 0 is out of range"),
            ("--vocabulary 1", "--vocabulary 1 is out of range"),
            ("--positions 0", "--positions 0 is out of range"),
            ("--batch 0", "--batch 0 is out of range"),
            ("--seq 0", "--seq 0 is out of range"),
            ("--steps 0", "--steps 0 is out of range"),
            ("--seq 257", "--seq 257 is longer than the model's 256 positions"),
            ("--lr NaN", "--lr NaN is not a learning rate"),
            ("--lr=-1", "--lr -1 is not a learning rate"),
            ("--width 18446744073709551615", "--width 18446744073709551615 is out of range"),
            ("--batch 16777216 --seq 256", "--batch × --seq 4294967296 is out of range"),
            ("--embedding-states fp32", "--embedding-states says how --optimizer adamw8bit keeps"),
            ("--foreach --optimizer sgd", "--foreach is of --optimizer adamw"),
            ("--accumulate 0", "--accumulate 0 is out of range"),
            ("--accumulate 3 --batch 8", "--accumulate 3 does not divide --batch 8"),
            ("--optimizer-in-backward --accumulate 2", "--optimizer-in-backward does not combine with --accumulate"),
            ("--optimizer-in-backward --zero-grad zero", "does not combine with --zero-grad zero"),
            ("--optimizer-in-backward --foreach", "does not combine with --foreach"),
            ("--inject-inf 3", "--inject-inf shows the loss scale of --precision amp-fp16"),
            ("--precision amp-fp16 --optimizer-in-backward", "does not combine with --optimizer-in-backward"),
            ("--precision bf16 --foreach", "--precision bf16 does not combine with --foreach"),
            ("--offload optimizer --optimizer sgd", "--offload optimizer does not combine with this --optimizer"),
            ("--offload optimizer --foreach", "--offload optimizer does not combine with --foreach"),
            ("--offload optimizer --optimizer-in-backward", "does not combine with --optimizer-in-backward"),
            ("--memory-fraction 0", "--memory-fraction 0 is not a share"),
            ("--memory-fraction 1.5", "--memory-fraction 1.5 is not a share"),
            ("--checkpoint every=0", "--checkpoint every=0 is out of range"),
            (
                "--attention flash --heads 1 --width 129",
                "--attention flash takes heads of at most 128 and these have 129",
            ),
            (
                "--attention flash --checkpoint selective",
                "--checkpoint selective does not combine with --attention flash",
            ),
            ("--tie-embeddings --untied", "--tie-embeddings and --untied are opposites"),
            ("--share-layers 5", "--share-layers 5 is out of range: the model has 4 layers"),
            ("--share-layers 0", "--share-layers 0 is out of range"),
            ("--share-qk --lora 4", "--share-qk does not combine with --lora"),
            ("--lora 0", "--lora 0 is out of range"),
            ("--lora 129", "--lora 129 is out of range"),
            (
                "--compress-activations int8 --checkpoint sqrt",
                "--compress-activations does not combine with --checkpoint",
            ),
            ("--chunked-loss 0", "--chunked-loss 0 is out of range"),
            ("--chunked-loss 9 --batch 2 --seq 4", "--chunked-loss 9 is out of range: a batch has 8 rows"),
            ("--chunked-loss 5 --batch 2 --seq 4 --accumulate 2", "a batch has 4 rows"),
            ("--checkpoint every=5", "--checkpoint every=5 is out of range: the model has 4 layers"),
            (
                "--memory-fraction 0.5 --allocator caching",
                "--memory-fraction does not combine with --allocator caching",
            ),
            ("--batch auto --workload varying", "--batch auto does not combine with --workload varying"),
            ("--ranks 2", "--ranks needs --parallel"),
            ("--parallel ddp", "--parallel needs --ranks"),
            ("--ranks 0 --parallel ddp", "--ranks 0 is out of range"),
            ("--ranks 65 --parallel ddp", "--ranks 65 is out of range"),
            ("--ranks 3 --parallel ddp --batch 8", "--ranks 3 does not divide --batch 8"),
            ("--ranks 2 --parallel ddp --batch 8 --accumulate 8", "--accumulate 8 does not divide a rank's share"),
            ("--ranks 8 --parallel ddp --width 4 --heads 1", "--ranks 8 is more than --width 4"),
            ("--ranks 8 --parallel ddp --vocabulary 7", "--ranks 8 is more than --vocabulary 7"),
            ("--empty-cache", "--empty-cache empties the cache of --allocator caching"),
            ("--batch 65536 --width 65536 --heads 65536 --seq 64", "is more than 2147483647"),
        ] {
            let Err(Error::Arguments(text)) = plan(line) else { panic!("{line} was taken") };
            assert!(text.contains(words), "{line}: {text}");
        }
    }

    proptest::proptest! {
        /// Whatever is taken can be multiplied out: no size of any tensor overflows.
        #[test]
        fn no_plan_overflows(
            layers in 0..20_000_u64, width in 0_u64.., heads in 0_u64.., vocabulary in 0_u64.., positions in 0_u64..,
            batch in 0_u64.., sequence in 0_u64.., small in proptest::bool::ANY,
        ) {
            let limit = |size: u64, most: u64| Some(if small { size % most } else { size });
            let arguments = GptArguments {
                model: Model::Tiny,
                layers: Some(layers % 100),
                width: limit(width, 1 << 20),
                heads: limit(heads, 4),
                vocabulary: limit(vocabulary, 1 << 22),
                positions: limit(positions, 1 << 24),
                untied: true,
                batch: limit(batch, 64).map(BatchSize::Given),
                sequence: limit(sequence, 1 << 20),
                steps: None,
                learning_rate: None,
                seed: 0,
                techniques: Techniques::default(),
            };
            if let Ok(plan) = Plan::new(&arguments) {
                let Configuration { width, heads, vocabulary, .. } = plan.configuration;
                let bytes = |elements: &[u64]| elements.iter().try_fold(4_u64, |product, size| product.checked_mul(*size));
                proptest::prop_assert!(bytes(&[plan.rows(), vocabulary]).is_some());
                proptest::prop_assert!(bytes(&[plan.rows(), 4, width]).is_some());
                proptest::prop_assert!(bytes(&[plan.rows(), heads, plan.sequence]).is_some());
                proptest::prop_assert!(plan.configuration.parameter_count() > 0);
            }
        }
    }
}
