//! Launchers of the layer normalisation kernels.

use super::{dimension, launch};
use crate::{Error, Tensor};
use memscope_kernels::geometry;

/// Added to the variance, as in PyTorch.
const EPSILON: f32 = 1e-5;

/// output = input normalised a row, times weight, plus bias; mean and rstd are written too.
pub(crate) fn layernorm_forward(
    output: &Tensor,
    statistics: [&Tensor; 2],
    input: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
) -> Result<(), Error> {
    let [mean, rstd] = statistics;
    let (rows, width) = (mean.elements(), weight.elements());
    assert_eq!((output.elements(), input.elements()), (rows * width, rows * width), "{}", input.name());
    let arguments = [
        output.into(),
        mean.into(),
        rstd.into(),
        input.into(),
        weight.into(),
        bias.into(),
        dimension(width).into(),
        EPSILON.into(),
    ];
    launch(output, "layernorm_forward", geometry::rows(rows), &arguments)
}

/// The gradient of the input.
pub(crate) fn layernorm_backward_input(
    grad_input: &Tensor,
    grad_output: &Tensor,
    input: &Tensor,
    weight: &Tensor,
    statistics: [&Tensor; 2],
) -> Result<(), Error> {
    let [mean, rstd] = statistics;
    let (rows, width) = (mean.elements(), weight.elements());
    assert_eq!((grad_input.elements(), grad_output.elements()), (rows * width, rows * width), "{}", input.name());
    let arguments = [
        grad_input.into(),
        grad_output.into(),
        input.into(),
        weight.into(),
        mean.into(),
        rstd.into(),
        dimension(width).into(),
    ];
    launch(grad_input, "layernorm_backward_input", geometry::rows(rows), &arguments)
}

/// The gradients of weight and bias, in this order, added to what is there if `accumulate`.
pub(crate) fn layernorm_backward_parameters(
    gradients: [&Tensor; 2],
    grad_output: &Tensor,
    input: &Tensor,
    statistics: [&Tensor; 2],
    accumulate: bool,
) -> Result<(), Error> {
    let [grad_weight, grad_bias] = gradients;
    let [mean, rstd] = statistics;
    let (rows, width) = (mean.elements(), grad_weight.elements());
    assert_eq!((input.elements(), grad_output.elements()), (rows * width, rows * width), "{}", input.name());
    let arguments = [
        grad_weight.into(),
        grad_bias.into(),
        grad_output.into(),
        input.into(),
        mean.into(),
        rstd.into(),
        dimension(rows).into(),
        dimension(width).into(),
        u32::from(accumulate).into(),
    ];
    let shape = geometry::columns(dimension(width));
    launch(grad_weight, "layernorm_backward_parameters", shape, &arguments)
}
