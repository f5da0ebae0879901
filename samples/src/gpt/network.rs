//! The network: its parameters with their names, shapes and first values, arranged by module.
//!
//! Owns: one description, generic over what a parameter is, from which parameters are both counted (model.rs) and allocated
//! (trainer.rs). Refuses: the device, and what modules compute.

use super::model::{Configuration, Family, TOKEN_TYPES};

/// A parameter before it is allocated.
#[derive(Clone, PartialEq, Debug)]
pub struct Description {
    /// Its name, e.g. `transformer.h.3.attn.qkv.weight`.
    pub name: String,
    /// Rows and columns, or the one size of a vector.
    pub shape: Vec<u64>,
    /// Its first values.
    pub initial: Initial,
}

/// First values of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Initial {
    /// All the same.
    Constant(f32),
    /// Normally distributed with mean 0 and this deviation.
    Normal(f32),
}

/// A fully connected layer: output = input · weightᵀ + bias.
pub(crate) struct Linear<P> {
    /// (outputs, inputs)
    pub weight: P,
    /// (outputs)
    pub bias: P,
}

/// A layer normalisation.
pub(crate) struct Norm<P> {
    /// (width)
    pub weight: P,
    /// (width)
    pub bias: P,
}

/// A transformer block. In GPT-2 each norm comes before its part, in BERT after.
pub(crate) struct Block<P> {
    pub norm_1: Norm<P>,
    /// (3 · width, width)
    pub qkv: Linear<P>,
    /// (width, width)
    pub projection: Linear<P>,
    pub norm_2: Norm<P>,
    /// (4 · width, width)
    pub expand: Linear<P>,
    /// (width, 4 · width)
    pub contract: Linear<P>,
}

/// What only BERT has.
pub(crate) struct BertParts<P> {
    /// (token types, width)
    pub token_types: P,
    pub embedding_norm: Norm<P>,
    /// (width, width)
    pub transform: Linear<P>,
    /// (vocabulary)
    pub decoder_bias: P,
}

/// All parameters of a model, each a `P`.
pub(crate) struct Network<P> {
    /// (vocabulary, width)
    pub tokens: P,
    /// (positions, width)
    pub positions: P,
    pub blocks: Vec<Block<P>>,
    /// Names of the layers' modules, e.g. `transformer.h.3`.
    pub layer_names: Vec<String>,
    /// Before GPT-2's head, or inside BERT's.
    pub final_norm: Norm<P>,
    /// (vocabulary, width); the token embedding when there is none.
    pub decoder: Option<P>,
    pub bert: Option<BertParts<P>>,
}

impl<P> Network<P> {
    /// The network of this configuration, each parameter made by `make`, in the order of the forward pass.
    pub fn build<E>(
        configuration: &Configuration,
        make: &mut dyn FnMut(Description) -> Result<P, E>,
    ) -> Result<Network<P>, E> {
        let Configuration { family, layers, width, vocabulary, positions, tied, .. } = *configuration;
        let (model, blocks_in, block, head) = match family {
            Family::Gpt2 => ("transformer", "transformer", "h", "lm_head"),
            Family::Bert => ("bert.embeddings", "bert.encoder", "layer", "cls.predictions"),
        };
        let mut maker = Maker { make, layers, deviation: first_deviation(width) };
        let tokens = maker.table(format!("{model}.wte.weight"), vocabulary, width)?;
        let positions = maker.table(format!("{model}.wpe.weight"), positions, width)?;
        let embedding = match family {
            Family::Gpt2 => None,
            Family::Bert => {
                let token_types = maker.table(format!("{model}.token_types.weight"), TOKEN_TYPES, width)?;
                Some((token_types, maker.norm(&format!("{model}.norm"), width)?))
            }
        };
        let layer_names: Vec<String> = (0..layers).map(|layer| format!("{blocks_in}.{block}.{layer}")).collect();
        let blocks = layer_names.iter().map(|name| maker.block(name, width)).collect::<Result<Vec<_>, E>>()?;
        let (final_norm, transform) = match family {
            Family::Gpt2 => (maker.norm(&format!("{model}.ln_f"), width)?, None),
            Family::Bert => {
                let transform = maker.linear(&format!("{head}.transform"), width, width, false)?;
                (maker.norm(&format!("{head}.norm"), width)?, Some(transform))
            }
        };
        let decoder_name = if family == Family::Gpt2 { head.to_owned() } else { format!("{head}.decoder") };
        let decoder = match tied {
            true => None,
            false => Some(maker.table(format!("{decoder_name}.weight"), vocabulary, width)?),
        };
        let bert = match embedding.zip(transform) {
            None => None,
            Some(((token_types, embedding_norm), transform)) => Some(BertParts {
                token_types,
                embedding_norm,
                transform,
                decoder_bias: maker.vector(format!("{decoder_name}.bias"), vocabulary, 0.0)?,
            }),
        };
        Ok(Network { tokens, positions, blocks, layer_names, final_norm, decoder, bert })
    }

    /// How many layers there are.
    pub fn layers(&self) -> usize {
        self.layer_names.len()
    }

    /// A layer's name and block.
    pub fn layer(&self, layer: usize) -> (&str, &Block<P>) {
        (&self.layer_names[layer], &self.blocks[layer])
    }

    /// A layer's name and block.
    pub fn layer_mut(&mut self, layer: usize) -> (&str, &mut Block<P>) {
        (&self.layer_names[layer], &mut self.blocks[layer])
    }

    /// Every parameter, in the order in which they were made.
    pub fn parameters_mut(&mut self) -> Vec<&mut P> {
        let mut all = vec![&mut self.tokens, &mut self.positions];
        let mut after = Vec::new();
        let mut last = None;
        if let Some(bert) = &mut self.bert {
            all.extend([&mut bert.token_types, &mut bert.embedding_norm.weight, &mut bert.embedding_norm.bias]);
            after.extend([&mut bert.transform.weight, &mut bert.transform.bias]);
            last = Some(&mut bert.decoder_bias);
        }
        for block in &mut self.blocks {
            let Block { norm_1, qkv, projection, norm_2, expand, contract } = block;
            all.extend([&mut norm_1.weight, &mut norm_1.bias, &mut qkv.weight, &mut qkv.bias]);
            all.extend([&mut projection.weight, &mut projection.bias, &mut norm_2.weight, &mut norm_2.bias]);
            all.extend([&mut expand.weight, &mut expand.bias, &mut contract.weight, &mut contract.bias]);
        }
        all.extend(after);
        all.extend([&mut self.final_norm.weight, &mut self.final_norm.bias]);
        all.extend(&mut self.decoder);
        all.extend(last);
        all
    }
}

/// Deviation of first weights: 0.02 as in both papers, whose narrowest model has width 768. A narrower one gets more, so
/// that the sum over a row keeps its size; with 0.02 its residual stream is so small that steps of the usual learning rate
/// carry it through zero, where normalisation turns it round and the loss jumps.
fn first_deviation(width: u64) -> f32 {
    0.02 * (768.0 / width.min(768) as f32).sqrt()
}

/// Makes the parameters of modules.
struct Maker<'a, P, E> {
    make: &'a mut dyn FnMut(Description) -> Result<P, E>,
    layers: u64,
    deviation: f32,
}

impl<P, E> Maker<'_, P, E> {
    fn table(&mut self, name: String, rows: u64, columns: u64) -> Result<P, E> {
        (self.make)(Description { name, shape: vec![rows, columns], initial: Initial::Normal(self.deviation) })
    }

    fn vector(&mut self, name: String, size: u64, value: f32) -> Result<P, E> {
        (self.make)(Description { name, shape: vec![size], initial: Initial::Constant(value) })
    }

    fn norm(&mut self, name: &str, width: u64) -> Result<Norm<P>, E> {
        let weight = self.vector(format!("{name}.weight"), width, 1.0)?;
        Ok(Norm { weight, bias: self.vector(format!("{name}.bias"), width, 0.0)? })
    }

    /// With `onto_residual`, the deviation is divided by √(2 · layers), as GPT-2 does for what is added to the residual
    /// stream, so that the sum does not grow with depth.
    fn linear(&mut self, name: &str, outputs: u64, inputs: u64, onto_residual: bool) -> Result<Linear<P>, E> {
        let deviation = self.deviation / if onto_residual { (2.0 * self.layers as f32).sqrt() } else { 1.0 };
        let weight = (self.make)(Description {
            name: format!("{name}.weight"),
            shape: vec![outputs, inputs],
            initial: Initial::Normal(deviation),
        })?;
        Ok(Linear { weight, bias: self.vector(format!("{name}.bias"), outputs, 0.0)? })
    }

    fn block(&mut self, name: &str, width: u64) -> Result<Block<P>, E> {
        Ok(Block {
            norm_1: self.norm(&format!("{name}.ln_1"), width)?,
            qkv: self.linear(&format!("{name}.attn.qkv"), 3 * width, width, false)?,
            projection: self.linear(&format!("{name}.attn.proj"), width, width, true)?,
            norm_2: self.norm(&format!("{name}.ln_2"), width)?,
            expand: self.linear(&format!("{name}.mlp.fc"), 4 * width, width, false)?,
            contract: self.linear(&format!("{name}.mlp.proj"), width, 4 * width, true)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Model;
    use super::*;

    #[test]
    fn names_are_unique_and_the_optimizer_sees_every_one() {
        for model in [Model::Tiny, Model::BertBase] {
            for tied in [true, false] {
                let configuration = Configuration { tied, ..model.configuration() };
                let Ok(mut network) = Network::build(&configuration, &mut Ok::<_, std::convert::Infallible>);
                let listed: Vec<String> =
                    network.parameters_mut().into_iter().map(|parameter| parameter.name.clone()).collect();
                let made: Vec<String> =
                    configuration.parameters().into_iter().map(|parameter| parameter.name).collect();
                assert_eq!(listed, made);
                assert_eq!(made.iter().collect::<std::collections::BTreeSet<_>>().len(), made.len());
            }
        }
    }

    #[test]
    fn names_follow_the_modules() {
        let names: Vec<String> =
            Model::Gpt2Small.configuration().parameters().into_iter().map(|parameter| parameter.name).collect();
        assert!(names.contains(&"transformer.h.3.attn.qkv.weight".to_owned()));
        assert!(names.contains(&"transformer.wte.weight".to_owned()));
    }
}
