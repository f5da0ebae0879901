//! Launchers of the convolution kernels. They take no workspace: the columns of the product are never in memory.

use super::{dimension, launch};
use crate::device::Argument;
use crate::{Error, Tensor};
use memscope_kernels::geometry;

/// The sizes of a convolution with a square filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ConvolutionShape {
    pub images: u64,
    pub channels: u64,
    pub height: u64,
    pub width: u64,
    pub filters: u64,
    pub side: u64,
    pub stride: u64,
    pub padding: u64,
}

impl ConvolutionShape {
    /// Height and width of the output.
    pub fn out(&self) -> [u64; 2] {
        [self.height, self.width].map(|size| (size + 2 * self.padding - self.side) / self.stride + 1)
    }

    fn inputs(&self) -> u64 {
        self.images * self.channels * self.height * self.width
    }

    fn outputs(&self) -> u64 {
        let [height, width] = self.out();
        self.images * self.filters * height * width
    }

    fn weights(&self) -> u64 {
        self.filters * self.channels * self.side * self.side
    }

    /// The kernels' arguments: three tensors of these numbers of elements, then the sizes.
    fn arguments(&self, tensors: [(&Tensor, u64); 3]) -> Vec<Argument> {
        for (tensor, elements) in tensors {
            assert_eq!(tensor.element(), tensors[0].0.element(), "{}", tensor.name());
            assert_eq!(tensor.elements(), elements, "{} in {self:?}", tensor.name());
        }
        let ConvolutionShape { images, channels, height, width, filters, side, stride, padding } = *self;
        let sizes = [images, channels, height, width, filters, side, stride, padding];
        let tensors = tensors.map(|(tensor, _)| tensor.into());
        tensors.into_iter().chain(sizes.map(|size| dimension(size).into())).collect()
    }
}

/// output = input convolved with weight.
pub(crate) fn convolution_forward(
    output: &Tensor,
    input: &Tensor,
    weight: &Tensor,
    shape: &ConvolutionShape,
) -> Result<(), Error> {
    let arguments = shape.arguments([(output, shape.outputs()), (input, shape.inputs()), (weight, shape.weights())]);
    let [height, width] = shape.out();
    let grid = geometry::matmul(dimension(shape.images * height * width), dimension(shape.filters), 1);
    launch(output, "convolution_forward", grid, &arguments)
}

/// The gradient of the input.
pub(crate) fn convolution_backward_input(
    grad_input: &Tensor,
    grad_output: &Tensor,
    weight: &Tensor,
    shape: &ConvolutionShape,
) -> Result<(), Error> {
    let tensors = [(grad_input, shape.inputs()), (grad_output, shape.outputs()), (weight, shape.weights())];
    let rows = dimension(shape.images * shape.height * shape.width);
    let grid = geometry::matmul(rows, dimension(shape.channels), 1);
    launch(grad_input, "convolution_backward_input", grid, &shape.arguments(tensors))
}

/// The gradient of the weight, added to what is there if `accumulate`.
pub(crate) fn convolution_backward_weight(
    grad_weight: &Tensor,
    grad_output: &Tensor,
    input: &Tensor,
    shape: &ConvolutionShape,
    accumulate: bool,
) -> Result<(), Error> {
    let tensors = [(grad_weight, shape.weights()), (grad_output, shape.outputs()), (input, shape.inputs())];
    let mut arguments = shape.arguments(tensors);
    arguments.push(u32::from(accumulate).into());
    let rows = dimension(shape.channels * shape.side * shape.side);
    let grid = geometry::matmul(rows, dimension(shape.filters), 1);
    launch(grad_weight, "convolution_backward_weight", grid, &arguments)
}
