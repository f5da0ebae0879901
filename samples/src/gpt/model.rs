//! What a model is: its sizes, by name or given, and how many parameters they make.
//!
//! Owns: the configurations and their limits. Refuses: the parameters themselves (network.rs) and the device.
//!
//! GPT-2 is as published (Radford et al. 2019): blocks that normalise before attention and MLP, causal attention, the head
//! tied to the token embedding. BERT is as published (Devlin et al. 2018) for masked words: blocks that normalise
//! after each addition, attention in both directions, token types, and a head of dense, GELU, normalisation and a decoder
//! tied to the token embedding with a bias of its own. The pooler, which only next-sentence prediction uses, is left out,
//! so that bert-base has 109,514,298 parameters. Both use the tanh form of GELU, and no dropout.

use super::network::{Description, Network};
use crate::Error;
use crate::techniques::SharingArguments;

/// A model by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Model {
    /// A GPT of 0.9 million parameters that learns bytes in seconds on a CPU.
    Tiny,
    /// BERT base, trained on masked words.
    BertBase,
    /// GPT-2 small, 124,439,808 parameters.
    #[value(name = "gpt2-124m")]
    Gpt2Small,
    /// GPT-2 medium, 354,823,168 parameters.
    #[value(name = "gpt2-medium")]
    Gpt2Medium,
    /// GPT-2 large, 774,030,080 parameters.
    #[value(name = "gpt2-large")]
    Gpt2Large,
    /// GPT-2 xl, 1,557,611,200 parameters.
    #[value(name = "gpt2-xl")]
    Gpt2Xl,
}

/// Which of the two architectures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Predicts the next token.
    Gpt2,
    /// Predicts masked tokens.
    Bert,
}

/// The sizes of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Configuration {
    /// Architecture.
    pub family: Family,
    /// Blocks.
    pub layers: u64,
    /// Width of the residual stream.
    pub width: u64,
    /// Attention heads; they divide the width.
    pub heads: u64,
    /// Tokens that the model knows.
    pub vocabulary: u64,
    /// Longest sequence.
    pub positions: u64,
    /// The head uses the token embedding as its weight.
    pub tied: bool,
}

/// Kinds of tokens that BERT tells apart (first and second sentence).
pub const TOKEN_TYPES: u64 = 2;

impl Model {
    /// Its sizes as published.
    pub fn configuration(self) -> Configuration {
        let gpt2 = |layers, width, heads| Configuration {
            family: Family::Gpt2,
            layers,
            width,
            heads,
            vocabulary: 50_257,
            positions: 1024,
            tied: true,
        };
        match self {
            Model::Tiny => Configuration { vocabulary: 256, positions: 256, ..gpt2(4, 128, 4) },
            Model::BertBase => {
                Configuration { family: Family::Bert, vocabulary: 30_522, positions: 512, ..gpt2(12, 768, 12) }
            }
            Model::Gpt2Small => gpt2(12, 768, 12),
            Model::Gpt2Medium => gpt2(24, 1024, 16),
            Model::Gpt2Large => gpt2(36, 1280, 20),
            Model::Gpt2Xl => gpt2(48, 1600, 25),
        }
    }
}

impl Configuration {
    /// Every parameter of the model, in the order of the forward pass.
    pub fn parameters(&self) -> Vec<Description> {
        self.parameters_with(&SharingArguments::default())
    }

    /// The same, of a model whose weights are shared or frozen.
    pub(super) fn parameters_with(&self, sharing: &SharingArguments) -> Vec<Description> {
        let mut all = Vec::new();
        let built = Network::build(self, sharing, &mut |description| {
            all.push(description);
            Ok::<(), std::convert::Infallible>(())
        });
        match built {
            Ok(_) => all,
        }
    }

    /// How many numbers the parameters are. The sizes must have been checked ([`Configuration::check`]).
    pub fn parameter_count(&self) -> u64 {
        self.parameters().iter().map(|parameter| parameter.shape.iter().product::<u64>()).sum()
    }

    /// Checks that the sizes make a model, and that the kernels can address it.
    ///
    /// # Errors
    /// [`Error::Arguments`] with the size at fault.
    pub fn check(&self) -> Result<(), Error> {
        let Configuration { layers, width, heads, vocabulary, positions, .. } = *self;
        // Beyond any model there is; so that no product of two of them and a batch leaves 64 bits.
        in_range("--layers", layers, 1, 10_000)?;
        in_range("--width", width, 1, 1 << 20)?;
        in_range("--heads", heads, 1, 1 << 16)?;
        in_range("--vocabulary", vocabulary, 2, 4_000_000)?;
        in_range("--positions", positions, 1, 1 << 24)?;
        if width % heads != 0 {
            return Err(Error::Arguments(format!(
                "--heads {heads} does not divide --width {width}: each head takes an equal part of the width"
            )));
        }
        Ok(())
    }
}

/// Checks a learning rate.
pub(crate) fn is_rate(rate: f32) -> Result<(), Error> {
    match rate.is_finite() && rate >= 0.0 {
        true => Ok(()),
        false => Err(Error::Arguments(format!(
            "--lr {rate} is not a learning rate: it must be a finite number of at least 0"
        ))),
    }
}

/// Checks one size.
pub(crate) fn in_range(argument: &str, size: u64, least: u64, most: u64) -> Result<(), Error> {
    match (least..=most).contains(&size) {
        true => Ok(()),
        false => Err(Error::Arguments(format!("{argument} {size} is out of range: it must be {least} to {most}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_models_have_their_published_sizes() {
        for (model, count) in [
            (Model::Gpt2Small, 124_439_808),
            (Model::Gpt2Medium, 354_823_168),
            (Model::Gpt2Large, 774_030_080),
            (Model::Gpt2Xl, 1_557_611_200),
        ] {
            assert_eq!(model.configuration().parameter_count(), count, "{model:?}");
            model.configuration().check().expect("a published model is in range");
        }
    }

    /// By hand, from the shapes in the paper.
    #[test]
    fn bert_base_for_masked_words() {
        let embeddings = (30_522 + 512 + 2) * 768 + 2 * 768;
        let attention = 4 * (768 * 768 + 768) + 2 * 768;
        let mlp = (768 * 3072 + 3072) + (3072 * 768 + 768) + 2 * 768;
        let head = (768 * 768 + 768) + 2 * 768 + 30_522;
        let count = embeddings + 12 * (attention + mlp) + head;
        assert_eq!(count, 109_514_298);
        assert_eq!(Model::BertBase.configuration().parameter_count(), count);
    }

    #[test]
    fn a_head_of_its_own_adds_its_weight() {
        for model in [Model::Gpt2Small, Model::BertBase] {
            let tied = model.configuration();
            let untied = Configuration { tied: false, ..tied };
            assert_eq!(untied.parameter_count() - tied.parameter_count(), tied.vocabulary * tied.width);
        }
    }
}
