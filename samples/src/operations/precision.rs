//! Launchers of conversions between element types, of unscaling, and of the bf16 update.

use super::AdamW;
use crate::tensor::Element;
use crate::{Error, Tensor};
use memscope_kernels::geometry;

/// output = input in the output's type, added to what is there if `accumulate`.
pub(crate) fn cast(output: &Tensor, input: &Tensor, accumulate: bool) -> Result<(), Error> {
    let elements = output.elements();
    assert_eq!(input.elements(), elements, "{}", input.name());
    let [output_element, input_element] = [output, input].map(|tensor| tensor.element().code());
    let accumulate = u32::from(accumulate);
    let kinds = [output_element.into(), input_element.into(), accumulate.into()];
    let arguments = [&[output.into(), input.into(), elements.into()], &kinds[..]].concat();
    output.device().launch("cast", geometry::elementwise(elements), &arguments)
}

/// output, of bf16, = input, of fp32, rounded stochastically by `seed`.
pub(crate) fn round_bf16(output: &Tensor, input: &Tensor, seed: u64) -> Result<(), Error> {
    let elements = output.elements();
    assert_eq!((output.element(), input.element()), (Element::Bf16, Element::Fp32), "{}", input.name());
    assert_eq!(input.elements(), elements, "{}", input.name());
    let arguments = [output.into(), input.into(), elements.into(), seed.into()];
    output.device().launch("round_bf16", geometry::elementwise(elements), &arguments)
}

/// gradient is multiplied by `factor`; `found` (1) becomes 1 if any of it was infinite or NaN.
pub(crate) fn unscale(gradient: &Tensor, found: &Tensor, factor: f32) -> Result<(), Error> {
    let elements = gradient.elements();
    let arguments = [gradient.into(), found.into(), elements.into(), factor.into()];
    gradient.device().launch("unscale", geometry::elementwise(elements), &arguments)
}

/// As [`super::adamw`], all in bf16, rounded stochastically by `seed`.
pub(crate) fn adamw_bf16(
    weight: &Tensor,
    moments: [&Tensor; 2],
    gradient: &Tensor,
    by: &AdamW,
    seed: u64,
) -> Result<(), Error> {
    let elements = weight.elements();
    for tensor in [moments[0], moments[1], gradient] {
        assert_eq!((tensor.elements(), tensor.element()), (elements, weight.element()), "{}", tensor.name());
    }
    let tensors = [weight.into(), moments[0].into(), moments[1].into(), gradient.into(), elements.into()];
    let arguments = [&tensors[..], &by.arguments(), &[seed.into()]].concat();
    weight.device().launch("adamw_bf16", geometry::elementwise(elements), &arguments)
}
