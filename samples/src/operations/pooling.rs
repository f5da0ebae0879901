//! Launchers of the pooling kernels.

use super::{dimension, launch};
use crate::device::Argument;
use crate::{Error, Tensor};
use memscope_kernels::geometry;

/// The windows of a max pooling over planes; a plane is one channel of one image.
#[derive(Clone, Copy)]
pub(crate) struct Windows {
    pub planes: u64,
    pub height: u64,
    pub width: u64,
    pub side: u64,
    pub stride: u64,
    pub padding: u64,
}

impl Windows {
    /// Height and width of the output.
    pub fn out(&self) -> [u64; 2] {
        [self.height, self.width].map(|size| (size + 2 * self.padding - self.side) / self.stride + 1)
    }

    fn sizes(&self) -> [Argument; 6] {
        [self.planes, self.height, self.width, self.side, self.stride, self.padding].map(|size| dimension(size).into())
    }

    fn check(&self, whole: &Tensor, pooled: [&Tensor; 2]) {
        let [height, width] = self.out();
        assert_eq!(whole.elements(), self.planes * self.height * self.width, "{}", whole.name());
        for tensor in pooled {
            assert_eq!(tensor.elements(), self.planes * height * width, "{}", tensor.name());
        }
    }
}

/// output = the largest of each window; 64-bit indices say where in its plane it was.
pub(crate) fn maxpool_forward(
    output: &Tensor,
    indices: &Tensor,
    input: &Tensor,
    windows: &Windows,
) -> Result<(), Error> {
    windows.check(input, [output, indices]);
    let tensors = [output, indices, input].map(Argument::from);
    let arguments: Vec<_> = tensors.into_iter().chain(windows.sizes()).collect();
    launch(output, "maxpool_forward", geometry::elementwise(output.elements()), &arguments)
}

/// The gradient of the input.
pub(crate) fn maxpool_backward(
    grad_input: &Tensor,
    grad_output: &Tensor,
    indices: &Tensor,
    windows: &Windows,
) -> Result<(), Error> {
    windows.check(grad_input, [grad_output, indices]);
    let tensors = [grad_input, grad_output, indices].map(Argument::from);
    let arguments: Vec<_> = tensors.into_iter().chain(windows.sizes()).collect();
    launch(grad_input, "maxpool_backward", geometry::elementwise(grad_input.elements()), &arguments)
}

/// output = the mean of each plane of the input, which has as many planes as the output has elements.
pub(crate) fn averagepool_forward(output: &Tensor, input: &Tensor) -> Result<(), Error> {
    let positions = input.elements() / output.elements();
    assert_eq!(input.elements(), output.elements() * positions, "{}", input.name());
    let arguments = [output.into(), input.into(), dimension(positions).into()];
    launch(output, "averagepool_forward", geometry::rows(output.elements()), &arguments)
}

/// The gradient of the input.
pub(crate) fn averagepool_backward(grad_input: &Tensor, grad_output: &Tensor) -> Result<(), Error> {
    let (planes, positions) = (grad_output.elements(), grad_input.elements() / grad_output.elements());
    assert_eq!(grad_input.elements(), planes * positions, "{}", grad_input.name());
    let arguments = [grad_input.into(), grad_output.into(), dimension(planes).into(), dimension(positions).into()];
    launch(grad_input, "averagepool_backward", geometry::elementwise(grad_input.elements()), &arguments)
}
