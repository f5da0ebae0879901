//! Launchers of the batch normalisation kernels.

use super::{dimension, launch_two};
use crate::device::Argument;
use crate::{Error, Tensor};
use memscope_kernels::geometry;

/// Added to the variance, as in PyTorch.
const EPSILON: f32 = 1e-5;
/// Share of the batch in the new running statistics, as in PyTorch.
const MOMENTUM: f32 = 0.1;

/// The tensors of one batch normalisation, (channels) each.
pub(crate) struct BatchNorm<'a> {
    pub weight: &'a Tensor,
    /// Of the batch, for backward.
    pub mean: &'a Tensor,
    /// 1 / √(variance + epsilon) of the batch, for backward.
    pub rstd: &'a Tensor,
}

impl BatchNorm<'_> {
    /// Images, channels, and positions of a plane.
    fn sizes(&self, input: &Tensor, images: u64) -> [u32; 3] {
        let channels = self.weight.elements();
        let positions = input.elements() / images / channels;
        assert_eq!(input.elements(), images * channels * positions, "{}", input.name());
        for statistic in [self.mean, self.rstd] {
            assert_eq!(statistic.elements(), channels, "{}", statistic.name());
        }
        [images, channels, positions].map(dimension)
    }
}

/// output = input normalised a channel, times weight, plus bias; mean and rstd are written, and the running mean and variance
/// move towards the batch's if `moves`.
pub(crate) fn batchnorm_forward(
    output: &Tensor,
    input: &Tensor,
    norm: &BatchNorm<'_>,
    bias: &Tensor,
    running: [&Tensor; 2],
    images: u64,
    moves: bool,
) -> Result<(), Error> {
    let sizes = norm.sizes(input, images);
    assert_eq!(output.elements(), input.elements(), "{}", output.name());
    for tensor in [bias, running[0], running[1]] {
        assert_eq!(tensor.elements(), norm.weight.elements(), "{}", tensor.name());
    }
    let [running_mean, running_variance] = running;
    let tensors = [output, norm.mean, norm.rstd, running_mean, running_variance, input, norm.weight, bias];
    let mut arguments = Vec::from(tensors.map(Argument::from));
    arguments.extend(sizes.map(Argument::from));
    // With a share of 0 they stay as they are, to the bit.
    arguments.extend([if moves { MOMENTUM } else { 0.0 }, EPSILON].map(Argument::from));
    let launch = geometry::rows(norm.weight.elements());
    launch_two([output, norm.weight], "batchnorm_forward", launch, &arguments)
}

/// The gradient of the input, and those of weight and bias, in this order, added to what is there if `accumulate`.
pub(crate) fn batchnorm_backward(
    grad_input: &Tensor,
    gradients: [&Tensor; 2],
    grad_output: &Tensor,
    input: &Tensor,
    norm: &BatchNorm<'_>,
    images: u64,
    accumulate: bool,
) -> Result<(), Error> {
    let sizes = norm.sizes(input, images);
    assert_eq!((grad_input.elements(), grad_output.elements()), (input.elements(), input.elements()));
    for gradient in gradients {
        assert_eq!(gradient.elements(), norm.weight.elements(), "{}", gradient.name());
    }
    let [grad_weight, grad_bias] = gradients;
    let tensors = [grad_input, grad_weight, grad_bias, grad_output, input, norm.weight, norm.mean, norm.rstd];
    let mut arguments = Vec::from(tensors.map(Argument::from));
    arguments.extend(sizes.map(Argument::from));
    arguments.push(u32::from(accumulate).into());
    let launch = geometry::rows(norm.weight.elements());
    launch_two([grad_input, norm.weight], "batchnorm_backward", launch, &arguments)
}
