//! The network: its parameters with their names, shapes and first values, arranged by module.
//!
//! Owns: one description, generic over what a parameter is, from which parameters are both counted (model.rs) and allocated
//! (trainer.rs). Refuses: the device, and what modules compute.

use super::model::{Configuration, Family, TOKEN_TYPES};
use crate::techniques::SharingArguments;

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
    pub adapter: Option<Adapter<P>>,
}

/// What low-rank adaptation trains beside a frozen matrix: output += input · downᵀ · upᵀ.
pub(crate) struct Adapter<P> {
    /// (rank, inputs)
    pub down: P,
    /// (outputs, rank)
    pub up: P,
}

impl<P> Linear<P> {
    fn parameters_mut(&mut self) -> impl Iterator<Item = &mut P> {
        let adapter = self.adapter.iter_mut().flat_map(|adapter| [&mut adapter.down, &mut adapter.up]);
        [&mut self.weight, &mut self.bias].into_iter().chain(adapter)
    }
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
    /// (3 · width, width), or where q is k (2 · width, width)
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
    /// Layers that use one block, one after another.
    pub layers_together: usize,
    /// Names of the layers' modules, e.g. `transformer.h.3`.
    pub layer_names: Vec<String>,
    /// Before GPT-2's head, or inside BERT's.
    pub final_norm: Norm<P>,
    /// (vocabulary, width); the token embedding when there is none.
    pub decoder: Option<P>,
    pub bert: Option<BertParts<P>>,
}

impl<P> Block<P> {
    /// Every parameter, in the order in which they were made.
    pub fn parameters_mut(&mut self) -> Vec<&mut P> {
        let Block { norm_1, qkv, projection, norm_2, expand, contract } = self;
        let mut all = vec![&mut norm_1.weight, &mut norm_1.bias];
        all.extend(qkv.parameters_mut().chain(projection.parameters_mut()));
        all.extend([&mut norm_2.weight, &mut norm_2.bias]);
        all.extend(expand.parameters_mut().chain(contract.parameters_mut()));
        all
    }

    /// Every parameter that its passes read.
    pub fn read(&self) -> Vec<&P> {
        let Block { norm_1, qkv, projection, norm_2, expand, contract } = self;
        let norms = [norm_1.all(), norm_2.all()].concat();
        [norms, qkv.all(), projection.all(), expand.all(), contract.all()].concat()
    }
}

impl<P> Norm<P> {
    fn all(&self) -> [&P; 2] {
        [&self.weight, &self.bias]
    }
}

impl<P> Linear<P> {
    fn all(&self) -> Vec<&P> {
        let adapter = self.adapter.iter().flat_map(|adapter| [&adapter.down, &adapter.up]);
        [&self.weight, &self.bias].into_iter().chain(adapter).collect()
    }
}

impl<P> Network<P> {
    /// Every parameter that the embedding reads.
    pub fn read_by_embedding(&self) -> Vec<&P> {
        let mut all = vec![&self.tokens, &self.positions];
        if let Some(bert) = &self.bert {
            all.push(&bert.token_types);
            all.extend(bert.embedding_norm.all());
        }
        all
    }

    /// Every parameter that the head reads before the decoder.
    pub fn read_by_head(&self) -> Vec<&P> {
        let mut all = self.final_norm.all().to_vec();
        if let Some(bert) = &self.bert {
            all.extend(bert.transform.all());
        }
        all
    }

    /// Every parameter that the decoder reads.
    pub fn read_by_decoder(&self) -> Vec<&P> {
        let mut all = vec![self.decoder.as_ref().unwrap_or(&self.tokens)];
        if let Some(bert) = &self.bert {
            all.push(&bert.decoder_bias);
        }
        all
    }

    /// The network of this configuration, each parameter made by `make`, in the order of the forward pass.
    pub fn build<E>(
        configuration: &Configuration,
        sharing: &SharingArguments,
        make: &mut dyn FnMut(Description) -> Result<P, E>,
    ) -> Result<Network<P>, E> {
        let Configuration { family, layers, width, vocabulary, positions, tied, .. } = *configuration;
        let (model, blocks_in, block, head) = match family {
            Family::Gpt2 => ("transformer", "transformer", "h", "lm_head"),
            Family::Bert => ("bert.embeddings", "bert.encoder", "layer", "cls.predictions"),
        };
        let mut maker = Maker { make, layers, deviation: first_deviation(width), sharing: *sharing };
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
        let layers_together = sharing.layers_together() as usize;
        let of_blocks = layer_names.iter().step_by(layers_together);
        let blocks = of_blocks.map(|name| maker.block(name, width)).collect::<Result<Vec<_>, E>>()?;
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
        Ok(Network { tokens, positions, blocks, layers_together, layer_names, final_norm, decoder, bert })
    }

    /// How many layers there are.
    pub fn layers(&self) -> usize {
        self.layer_names.len()
    }

    /// A layer's name and block.
    pub fn layer(&self, layer: usize) -> (&str, &Block<P>) {
        (&self.layer_names[layer], &self.blocks[layer / self.layers_together])
    }

    /// A layer's name and block.
    pub fn layer_mut(&mut self, layer: usize) -> (&str, &mut Block<P>) {
        (&self.layer_names[layer], &mut self.blocks[layer / self.layers_together])
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
            all.extend(block.parameters_mut());
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
    sharing: SharingArguments,
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
        Ok(Linear { weight, bias: self.vector(format!("{name}.bias"), outputs, 0.0)?, adapter: None })
    }

    /// A layer inside a block, with an adapter if only those are trained. An adapter begins as nothing.
    fn adapted(&mut self, name: &str, outputs: u64, inputs: u64, onto_residual: bool) -> Result<Linear<P>, E> {
        let linear = self.linear(name, outputs, inputs, onto_residual)?;
        let Some(rank) = self.sharing.lora else { return Ok(linear) };
        let down = self.table(format!("{name}.lora_down"), rank, inputs)?;
        let (name, shape) = (format!("{name}.lora_up"), vec![outputs, rank]);
        let up = (self.make)(Description { name, shape, initial: Initial::Constant(0.0) })?;
        Ok(Linear { adapter: Some(Adapter { down, up }), ..linear })
    }

    fn block(&mut self, name: &str, width: u64) -> Result<Block<P>, E> {
        Ok(Block {
            norm_1: self.norm(&format!("{name}.ln_1"), width)?,
            qkv: match self.sharing.share_qk {
                false => self.adapted(&format!("{name}.attn.qkv"), 3 * width, width, false)?,
                true => self.linear(&format!("{name}.attn.qv"), 2 * width, width, false)?,
            },
            projection: self.adapted(&format!("{name}.attn.proj"), width, width, true)?,
            norm_2: self.norm(&format!("{name}.ln_2"), width)?,
            expand: self.adapted(&format!("{name}.mlp.fc"), 4 * width, width, false)?,
            contract: self.adapted(&format!("{name}.mlp.proj"), width, 4 * width, true)?,
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
                let none = SharingArguments::default();
                let adapted = SharingArguments { lora: Some(2), share_layers: Some(3), ..none };
                for sharing in [none, adapted, SharingArguments { share_qk: true, ..none }] {
                    let make = &mut Ok::<_, std::convert::Infallible>;
                    let Ok(mut network) = Network::build(&configuration, &sharing, make);
                    let listed: Vec<String> =
                        network.parameters_mut().into_iter().map(|parameter| parameter.name.clone()).collect();
                    let made = configuration.parameters_with(&sharing);
                    let made: Vec<String> = made.into_iter().map(|parameter| parameter.name).collect();
                    assert_eq!(listed, made);
                    assert_eq!(made.iter().collect::<std::collections::BTreeSet<_>>().len(), made.len());
                }
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
