//! What a network is: its sizes by name, and how many parameters they make.
//!
//! Owns: the configurations. Refuses: the parameters themselves (network.rs) and the device.
//!
//! The networks are those of He et al. 2015 (arXiv 1512.03385) as torchvision has them: in a bottleneck that halves the
//! plane it is the 3 × 3 convolution that strides ("v1.5"), convolutions have no bias, and the skip connection is a 1 × 1
//! convolution with its normalisation where sizes differ.

use super::network::{Kind, Network};
use crate::gpt::Description;

/// A network by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Model {
    /// A ResNet of 0.3 million parameters, one block a stage, that learns small images in seconds on a CPU.
    Tiny,
    /// ResNet-18, 11,689,512 parameters.
    #[value(name = "18")]
    Resnet18,
    /// ResNet-50, 25,557,032 parameters.
    #[value(name = "50")]
    Resnet50,
    /// ResNet-152, 60,192,808 parameters.
    #[value(name = "152")]
    Resnet152,
}

/// What a block is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockKind {
    /// Two 3 × 3 convolutions.
    Basic,
    /// 1 × 1 to the stage's width, 3 × 3, and 1 × 1 to four times the width.
    Bottleneck,
}

/// The sizes of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Configuration {
    /// What its blocks are.
    pub kind: BlockKind,
    /// Blocks in each stage.
    pub blocks: [u64; 4],
    /// Channels of the stem and of the first stage; each further stage has twice as many.
    pub width: u64,
    /// Classes that the head tells apart.
    pub classes: u64,
}

impl Model {
    /// Its sizes as published.
    pub fn configuration(self) -> Configuration {
        let published = |kind, blocks| Configuration { kind, blocks, width: 64, classes: 1000 };
        match self {
            Model::Tiny => Configuration { width: 16, classes: 10, ..published(BlockKind::Basic, [1; 4]) },
            Model::Resnet18 => published(BlockKind::Basic, [2, 2, 2, 2]),
            Model::Resnet50 => published(BlockKind::Bottleneck, [3, 4, 6, 3]),
            Model::Resnet152 => published(BlockKind::Bottleneck, [3, 8, 36, 3]),
        }
    }

    /// Its name as it is written.
    pub fn name(self) -> &'static str {
        match self {
            Model::Tiny => "tiny ResNet",
            Model::Resnet18 => "ResNet-18",
            Model::Resnet50 => "ResNet-50",
            Model::Resnet152 => "ResNet-152",
        }
    }
}

impl BlockKind {
    /// Channels of a block's output, in widths of its stage.
    pub fn expansion(self) -> u64 {
        match self {
            BlockKind::Basic => 1,
            BlockKind::Bottleneck => 4,
        }
    }
}

impl Configuration {
    /// Every parameter of the network, in the order of the forward pass; running statistics are none.
    pub fn parameters(&self) -> Vec<Description> {
        let mut all = Vec::new();
        let built = Network::build(self, &mut |kind, description| {
            if kind == Kind::Parameter {
                all.push(description);
            }
            Ok::<(), std::convert::Infallible>(())
        });
        match built {
            Ok(_) => all,
        }
    }

    /// How many numbers the parameters are.
    pub fn parameter_count(&self) -> u64 {
        self.parameters().iter().map(|parameter| parameter.shape.iter().product::<u64>()).sum()
    }

    /// Height and width of the planes of the last stage, for images of this side: stem, pooling and three stages halve it,
    /// rounding up.
    pub fn last_side(&self, image: u64) -> u64 {
        (0..5).fold(image, |side, _| side.div_ceil(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_networks_have_their_published_sizes() {
        for (model, count) in
            [(Model::Resnet18, 11_689_512), (Model::Resnet50, 25_557_032), (Model::Resnet152, 60_192_808)]
        {
            assert_eq!(model.configuration().parameter_count(), count, "{model:?}");
        }
    }

    /// By hand: stem, four stages of two convolutions and a norm each, the skips between stages, head.
    #[test]
    fn the_tiny_network_by_hand() {
        let convolution = |channels: u64, filters: u64, side: u64| channels * filters * side * side + 2 * filters;
        let block = |channels, width| {
            let skip = if channels == width { 0 } else { convolution(channels, width, 1) };
            convolution(channels, width, 3) + convolution(width, width, 3) + skip
        };
        let blocks = block(16, 16) + block(16, 32) + block(32, 64) + block(64, 128);
        let count = convolution(3, 16, 7) + blocks + 128 * 10 + 10;
        assert_eq!(Model::Tiny.configuration().parameter_count(), count);
    }
}
