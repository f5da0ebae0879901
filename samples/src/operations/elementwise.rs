//! Launchers of the kernels that work on single elements.

use super::{launch, launch_two};
use crate::device::Argument;
use crate::{Error, Tensor};
use memscope_kernels::geometry;

/// Every element of `output` becomes `value`.
pub(crate) fn fill(output: &Tensor, value: f32) -> Result<(), Error> {
    let elements = output.elements();
    let arguments = [output.into(), elements.into(), value.into()];
    launch(output, "fill", geometry::elementwise(elements), &arguments)
}

/// `output` becomes normally distributed with mean 0, the same for the same seed.
pub(crate) fn init_normal(output: &Tensor, deviation: f32, seed: u64) -> Result<(), Error> {
    let elements = output.elements();
    let arguments = [output.into(), elements.into(), deviation.into(), seed.into()];
    output.device().launch("init_normal", geometry::elementwise(elements), &arguments)
}

/// output = a + b; the output may be one of them.
pub(crate) fn add(output: &Tensor, a: &Tensor, b: &Tensor) -> Result<(), Error> {
    let elements = output.elements();
    assert_eq!((a.elements(), b.elements()), (elements, elements), "{} + {}", a.name(), b.name());
    let arguments = [output.into(), a.into(), b.into(), elements.into()];
    launch_two([output, b], "add", geometry::elementwise(elements), &arguments)
}

/// output = gelu(input).
pub(crate) fn gelu_forward(output: &Tensor, input: &Tensor) -> Result<(), Error> {
    let elements = output.elements();
    assert_eq!(input.elements(), elements, "{}", input.name());
    let arguments = [output.into(), input.into(), elements.into()];
    launch(output, "gelu_forward", geometry::elementwise(elements), &arguments)
}

/// grad_input = grad_output · gelu'(input).
pub(crate) fn gelu_backward(grad_input: &Tensor, grad_output: &Tensor, input: &Tensor) -> Result<(), Error> {
    let elements = grad_input.elements();
    assert_eq!((grad_output.elements(), input.elements()), (elements, elements), "{}", input.name());
    let arguments = [grad_input.into(), grad_output.into(), input.into(), elements.into()];
    launch(grad_input, "gelu_backward", geometry::elementwise(elements), &arguments)
}

/// The numbers of one AdamW update; see kernels/cu/adamw.cu.
pub(crate) struct AdamW {
    pub rate: f32,
    pub beta1: f32,
    pub beta2: f32,
    pub epsilon: f32,
    pub decay: f32,
    pub correction1: f32,
    pub correction2: f32,
}

impl AdamW {
    /// As the last arguments of its kernels.
    pub fn arguments(&self) -> [Argument; 7] {
        let AdamW { rate, beta1, beta2, epsilon, decay, correction1, correction2 } = *self;
        [rate, beta1, beta2, epsilon, decay, correction1, correction2].map(Argument::from)
    }
}

/// Updates `weight` and its moments from its gradient.
pub(crate) fn adamw(weight: &Tensor, moments: [&Tensor; 2], gradient: &Tensor, by: &AdamW) -> Result<(), Error> {
    let elements = weight.elements();
    for tensor in [moments[0], moments[1], gradient] {
        assert_eq!(tensor.elements(), elements, "{}", tensor.name());
    }
    let tensors = [weight.into(), moments[0].into(), moments[1].into(), gradient.into(), elements.into()];
    let arguments = [&tensors[..], &by.arguments()].concat();
    weight.device().launch("adamw", geometry::elementwise(elements), &arguments)
}

/// output = max(input, 0); the output may be the input.
pub(crate) fn relu_forward(output: &Tensor, input: &Tensor) -> Result<(), Error> {
    let elements = output.elements();
    assert_eq!(input.elements(), elements, "{}", input.name());
    let arguments = [output.into(), input.into(), elements.into()];
    launch(output, "relu_forward", geometry::elementwise(elements), &arguments)
}

/// grad_input = grad_output where the output was positive, else 0.
pub(crate) fn relu_backward(grad_input: &Tensor, grad_output: &Tensor, output: &Tensor) -> Result<(), Error> {
    let elements = grad_input.elements();
    assert_eq!((grad_output.elements(), output.elements()), (elements, elements), "{}", output.name());
    let arguments = [grad_input.into(), grad_output.into(), output.into(), elements.into()];
    launch(grad_input, "relu_backward", geometry::elementwise(elements), &arguments)
}

/// The numbers of one update by SGD with momentum; see kernels/cu/momentum.cu.
pub(crate) struct Momentum {
    pub rate: f32,
    pub momentum: f32,
    pub decay: f32,
}

/// Updates `weight` and its velocity from its gradient.
pub(crate) fn sgd_momentum(weight: &Tensor, velocity: &Tensor, gradient: &Tensor, by: &Momentum) -> Result<(), Error> {
    let elements = weight.elements();
    assert_eq!((velocity.elements(), gradient.elements()), (elements, elements), "{}", weight.name());
    let arguments = [
        weight.into(),
        velocity.into(),
        gradient.into(),
        elements.into(),
        by.rate.into(),
        by.momentum.into(),
        by.decay.into(),
    ];
    weight.device().launch("sgd_momentum", geometry::elementwise(elements), &arguments)
}
