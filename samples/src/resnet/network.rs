//! The network: its parameters and running statistics with their names, shapes and first values, arranged by module.
//!
//! Owns: one description, generic over what a tensor is, from which parameters are both counted (model.rs) and allocated
//! (trainer.rs). Refuses: the device, and what modules compute. Names are torchvision's.

use super::model::{BlockKind, Configuration};
use crate::gpt::{Description, Initial};

/// What a tensor of the network is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Trained.
    Parameter,
    /// A running statistic, which forward moves and nothing reads in training.
    Statistic,
}

/// A convolution with a square filter and no bias.
pub(crate) struct Convolution<P> {
    /// (filters, channels, side, side)
    pub weight: P,
    pub filter: Filter,
}

/// The sizes of a convolution's filters. Padding is half of the side, so that only the stride makes the plane smaller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Filter {
    pub channels: u64,
    pub filters: u64,
    pub side: u64,
    pub stride: u64,
}

/// A batch normalisation, (channels) each.
pub(crate) struct Norm<P> {
    pub weight: P,
    pub bias: P,
    /// Mean and variance.
    pub running: [P; 2],
}

/// A convolution and the normalisation after it.
pub(crate) struct Unit<P> {
    /// Name of the convolution's module, e.g. `layer1.0.conv2`.
    pub name: String,
    pub convolution: Convolution<P>,
    /// Name of the normalisation's module, e.g. `layer1.0.bn2`.
    pub norm_name: String,
    pub norm: Norm<P>,
}

/// A residual block: its units in a row, each followed by a ReLU, and before the last ReLU the skip connection is added.
pub(crate) struct Block<P> {
    /// Name of the block's module, e.g. `layer1.0`.
    pub name: String,
    pub units: Vec<Unit<P>>,
    /// Of the skip connection, where the sizes of input and output differ.
    pub downsample: Option<Unit<P>>,
}

impl<P> Unit<P> {
    /// Every parameter that its passes read.
    pub fn read(&self) -> [&P; 3] {
        [&self.convolution.weight, &self.norm.weight, &self.norm.bias]
    }
}

impl<P> Block<P> {
    /// Every parameter that its passes read.
    pub fn read(&self) -> Vec<&P> {
        self.units.iter().chain(&self.downsample).flat_map(Unit::read).collect()
    }
}

/// A fully connected layer: output = input · weightᵀ + bias.
pub(crate) struct Linear<P> {
    /// (outputs, inputs)
    pub weight: P,
    /// (outputs)
    pub bias: P,
}

impl<P> Linear<P> {
    /// Both parameters.
    pub fn read(&self) -> [&P; 2] {
        [&self.weight, &self.bias]
    }
}

/// All tensors of a network that outlive a step, each a `P`.
pub(crate) struct Network<P> {
    pub stem: Unit<P>,
    pub blocks: Vec<Block<P>>,
    pub head: Linear<P>,
}

/// Channels of an image.
pub(super) const COLOURS: u64 = 3;

impl<P> Network<P> {
    /// The network of this configuration, each tensor made by `make`, in the order of the forward pass.
    pub fn build<E>(
        configuration: &Configuration,
        make: &mut dyn FnMut(Kind, Description) -> Result<P, E>,
    ) -> Result<Network<P>, E> {
        let Configuration { kind, blocks, width, classes } = *configuration;
        let mut maker = Maker { make };
        let filter = Filter { channels: COLOURS, filters: width, side: 7, stride: 2 };
        let stem = maker.unit("conv1".to_owned(), "bn1".to_owned(), filter)?;
        let mut channels = width;
        let mut all = Vec::new();
        for (stage, &count) in blocks.iter().enumerate() {
            for index in 0..count {
                let stride = if stage > 0 && index == 0 { 2 } else { 1 };
                let name = format!("layer{}.{index}", stage + 1);
                all.push(maker.block(name, kind, channels, width << stage, stride)?);
                channels = (width << stage) * kind.expansion();
            }
        }
        let head = maker.linear("fc", classes, channels)?;
        Ok(Network { stem, blocks: all, head })
    }

    /// Every parameter, in the order in which they were made; no running statistics.
    pub fn parameters_mut(&mut self) -> Vec<&mut P> {
        fn of_unit<P>(unit: &mut Unit<P>) -> [&mut P; 3] {
            [&mut unit.convolution.weight, &mut unit.norm.weight, &mut unit.norm.bias]
        }
        let mut all = Vec::from(of_unit(&mut self.stem));
        for block in &mut self.blocks {
            all.extend(block.units.iter_mut().chain(&mut block.downsample).flat_map(of_unit));
        }
        all.extend([&mut self.head.weight, &mut self.head.bias]);
        all
    }

    /// Every running statistic, in the order in which they were made.
    pub fn statistics(&self) -> Vec<&P> {
        let of_blocks = self.blocks.iter().flat_map(|block| block.units.iter().chain(&block.downsample));
        std::iter::once(&self.stem).chain(of_blocks).flat_map(|unit| &unit.norm.running).collect()
    }
}

/// Makes the tensors of modules.
struct Maker<'a, P, E> {
    make: &'a mut dyn FnMut(Kind, Description) -> Result<P, E>,
}

impl<P, E> Maker<'_, P, E> {
    fn vector(&mut self, kind: Kind, name: String, size: u64, value: f32) -> Result<P, E> {
        (self.make)(kind, Description { name, shape: vec![size], initial: Initial::Constant(value) })
    }

    /// First weights as in torchvision: He et al. 2015 (arXiv 1502.01852), by the number of outputs that an input reaches.
    fn unit(&mut self, name: String, norm_name: String, filter: Filter) -> Result<Unit<P>, E> {
        let Filter { channels, filters, side, .. } = filter;
        let weight = (self.make)(
            Kind::Parameter,
            Description {
                name: format!("{name}.weight"),
                shape: vec![filters, channels, side, side],
                initial: Initial::Normal((2.0 / (filters * side * side) as f32).sqrt()),
            },
        )?;
        let norm = Norm {
            weight: self.vector(Kind::Parameter, format!("{norm_name}.weight"), filters, 1.0)?,
            bias: self.vector(Kind::Parameter, format!("{norm_name}.bias"), filters, 0.0)?,
            running: [
                self.vector(Kind::Statistic, format!("{norm_name}.running_mean"), filters, 0.0)?,
                self.vector(Kind::Statistic, format!("{norm_name}.running_var"), filters, 1.0)?,
            ],
        };
        Ok(Unit { name, convolution: Convolution { weight, filter }, norm_name, norm })
    }

    fn block(&mut self, name: String, kind: BlockKind, channels: u64, width: u64, stride: u64) -> Result<Block<P>, E> {
        // (filters, side, stride) of each unit.
        let sizes = match kind {
            BlockKind::Basic => vec![(width, 3, stride), (width, 3, 1)],
            BlockKind::Bottleneck => vec![(width, 1, 1), (width, 3, stride), (4 * width, 1, 1)],
        };
        let outputs = width * kind.expansion();
        let mut units = Vec::new();
        let mut inputs = channels;
        for (number, (filters, side, stride)) in (1..).zip(sizes) {
            let filter = Filter { channels: inputs, filters, side, stride };
            units.push(self.unit(format!("{name}.conv{number}"), format!("{name}.bn{number}"), filter)?);
            inputs = filters;
        }
        let downsample = match stride == 1 && channels == outputs {
            true => None,
            false => {
                let filter = Filter { channels, filters: outputs, side: 1, stride };
                Some(self.unit(format!("{name}.downsample.0"), format!("{name}.downsample.1"), filter)?)
            }
        };
        Ok(Block { name, units, downsample })
    }

    /// First weights with the deviation of PyTorch's uniform ones, 1/√(3·inputs); the bias is 0.
    fn linear(&mut self, name: &str, outputs: u64, inputs: u64) -> Result<Linear<P>, E> {
        let weight = (self.make)(
            Kind::Parameter,
            Description {
                name: format!("{name}.weight"),
                shape: vec![outputs, inputs],
                initial: Initial::Normal((1.0 / (3 * inputs) as f32).sqrt()),
            },
        )?;
        Ok(Linear { weight, bias: self.vector(Kind::Parameter, format!("{name}.bias"), outputs, 0.0)? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Model;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_the_optimizer_sees_every_parameter() {
        for model in [Model::Tiny, Model::Resnet18, Model::Resnet152] {
            let configuration = model.configuration();
            let (mut parameters, mut statistics) = (Vec::new(), Vec::new());
            let Ok(mut network) = Network::build(&configuration, &mut |kind, description: Description| {
                match kind {
                    Kind::Parameter => parameters.push(description.name.clone()),
                    Kind::Statistic => statistics.push(description.name.clone()),
                }
                Ok::<String, std::convert::Infallible>(description.name)
            });
            let listed: Vec<String> = network.parameters_mut().into_iter().map(|name| name.clone()).collect();
            assert_eq!(listed, parameters);
            assert_eq!(network.statistics(), statistics.iter().collect::<Vec<_>>());
            let all: BTreeSet<&String> = parameters.iter().chain(&statistics).collect();
            assert_eq!(all.len(), parameters.len() + statistics.len());
            // A mean and a variance for the weight, bias and convolution of each unit; the head has two parameters.
            assert_eq!(3 * statistics.len(), 2 * (parameters.len() - 2));
        }
    }

    #[test]
    fn names_are_those_of_torchvision() {
        let names: Vec<String> =
            Model::Resnet50.configuration().parameters().into_iter().map(|parameter| parameter.name).collect();
        for name in ["conv1.weight", "bn1.bias", "layer3.5.conv3.weight", "layer1.0.downsample.1.weight", "fc.bias"] {
            assert!(names.contains(&name.to_owned()), "{name}");
        }
    }
}
