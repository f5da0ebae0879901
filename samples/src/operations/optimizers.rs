//! Launchers of the optimizers' kernels; AdamW in fp32 is in elementwise.rs.

use super::{AdamW, dimension};
use crate::techniques::{Factors, States};
use crate::{Error, Tensor};
use memscope_kernels::geometry;

/// weight -= rate · gradient.
pub(crate) fn sgd(weight: &Tensor, gradient: &Tensor, rate: f32) -> Result<(), Error> {
    let elements = weight.elements();
    assert_eq!(gradient.elements(), elements, "{}", gradient.name());
    let arguments = [weight.into(), gradient.into(), elements.into(), rate.into()];
    weight.device().launch("sgd", geometry::elementwise(elements), &arguments)
}

/// The moments take the gradient in.
pub(crate) fn adamw_moments(moments: [&Tensor; 2], gradient: &Tensor, by: &AdamW) -> Result<(), Error> {
    let elements = gradient.elements();
    let [first, second] = moments;
    assert_eq!((first.elements(), second.elements()), (elements, elements), "{}", gradient.name());
    let arguments = [first.into(), second.into(), gradient.into(), elements.into(), by.beta1.into(), by.beta2.into()];
    gradient.device().launch("adamw_moments", geometry::elementwise(elements), &arguments)
}

/// denominator = √(second moment / correction) + epsilon.
pub(crate) fn adamw_denominator(denominator: &Tensor, second: &Tensor, by: &AdamW) -> Result<(), Error> {
    let elements = denominator.elements();
    assert_eq!(second.elements(), elements, "{}", second.name());
    let arguments = [denominator.into(), second.into(), elements.into(), by.epsilon.into(), by.correction2.into()];
    denominator.device().launch("adamw_denominator", geometry::elementwise(elements), &arguments)
}

/// The weight moves by first moment / denominator.
pub(crate) fn adamw_apply(weight: &Tensor, first: &Tensor, denominator: &Tensor, by: &AdamW) -> Result<(), Error> {
    let elements = weight.elements();
    assert_eq!((first.elements(), denominator.elements()), (elements, elements), "{}", weight.name());
    let AdamW { rate, decay, correction1, .. } = *by;
    let (rate, decay, correction1) = (rate.into(), decay.into(), correction1.into());
    let arguments = [weight.into(), first.into(), denominator.into(), elements.into(), rate, decay, correction1];
    weight.device().launch("adamw_apply", geometry::elementwise(elements), &arguments)
}

/// As [`super::adamw`], with moments of 8 bits.
pub(crate) fn adamw8bit(weight: &Tensor, states: &States, gradient: &Tensor, by: &AdamW) -> Result<(), Error> {
    let elements = weight.elements();
    let States { codes: [first, second], absmax: [first_absmax, second_absmax] } = states;
    for tensor in [first, second, gradient] {
        assert_eq!(tensor.elements(), elements, "{}", tensor.name());
    }
    for absmax in [first_absmax, second_absmax] {
        assert_eq!(absmax.elements(), elements.div_ceil(256), "{}", absmax.name());
    }
    let tensors = [
        weight.into(),
        first.into(),
        second.into(),
        first_absmax.into(),
        second_absmax.into(),
        gradient.into(),
        elements.into(),
    ];
    let arguments = [&tensors[..], &by.arguments()].concat();
    weight.device().launch("adamw8bit", geometry::elementwise(elements), &arguments)
}

/// The numbers of one Adafactor update; see kernels/cu/adafactor.cu.
pub(crate) struct Adafactor {
    pub blend: f32,
    pub rate: f32,
    pub floor: f32,
}

/// The factors of a matrix's second moment take its gradient in.
pub(crate) fn adafactor_factors(factors: &Factors, gradient: &Tensor, by: &Adafactor) -> Result<(), Error> {
    let Factors { rows: row_state, columns: column_state } = factors;
    let (of_rows, of_columns) = (row_state.elements(), column_state.elements());
    assert_eq!(gradient.elements(), of_rows * of_columns, "{}", gradient.name());
    let (rows, columns) = (dimension(of_rows), dimension(of_columns));
    let launch = |kernel, geometry, arguments: &[_]| gradient.device().launch(kernel, geometry, arguments);
    let arguments = [row_state.into(), gradient.into(), columns.into(), by.blend.into()];
    launch("adafactor_rows", geometry::rows(of_rows), &arguments)?;
    let arguments = [column_state.into(), gradient.into(), rows.into(), columns.into(), by.blend.into()];
    launch("adafactor_columns", geometry::columns(columns), &arguments)
}

/// The first of two scalars becomes the mean of the row factors.
pub(crate) fn adafactor_mean(scalars: &Tensor, factors: &Factors) -> Result<(), Error> {
    assert_eq!(scalars.elements(), 2, "{}", scalars.name());
    let rows = &factors.rows;
    let arguments = [scalars.into(), rows.into(), dimension(rows.elements()).into()];
    rows.device().launch("adafactor_mean", geometry::one_block(), &arguments)
}

/// Two partial sums a row, of the squares of the update and of the weight.
pub(crate) fn adafactor_partials(
    partials: &Tensor,
    weight: &Tensor,
    factors: &Factors,
    gradient: &Tensor,
    scalars: &Tensor,
) -> Result<(), Error> {
    let Factors { rows: row_state, columns: column_state } = factors;
    let (of_rows, of_columns) = (row_state.elements(), column_state.elements());
    let elements = of_rows * of_columns;
    assert_eq!((weight.elements(), gradient.elements()), (elements, elements), "{}", weight.name());
    assert_eq!(partials.elements(), 2 * of_rows, "{}", partials.name());
    let arguments = [
        partials.into(),
        weight.into(),
        gradient.into(),
        row_state.into(),
        column_state.into(),
        scalars.into(),
        dimension(of_columns).into(),
    ];
    weight.device().launch("adafactor_partials", geometry::rows(of_rows), &arguments)
}

/// The second of two scalars becomes the size of the step, from the partial sums of so many rows, of a matrix of `elements`.
pub(crate) fn adafactor_step(
    scalars: &Tensor,
    partials: &Tensor,
    rows: u64,
    elements: u64,
    by: &Adafactor,
) -> Result<(), Error> {
    assert!(2 * rows <= partials.elements(), "{}", partials.name());
    let rows = dimension(rows).into();
    let arguments = [scalars.into(), partials.into(), rows, elements.into(), by.rate.into(), by.floor.into()];
    scalars.device().launch("adafactor_step", geometry::one_block(), &arguments)
}

/// A matrix moves by the update.
pub(crate) fn adafactor_apply(
    weight: &Tensor,
    factors: &Factors,
    gradient: &Tensor,
    scalars: &Tensor,
) -> Result<(), Error> {
    let Factors { rows: row_state, columns: column_state } = factors;
    let (of_rows, of_columns) = (row_state.elements(), column_state.elements());
    let elements = of_rows * of_columns;
    assert_eq!((weight.elements(), gradient.elements()), (elements, elements), "{}", weight.name());
    let arguments = [
        weight.into(),
        gradient.into(),
        row_state.into(),
        column_state.into(),
        scalars.into(),
        dimension(of_rows).into(),
        dimension(of_columns).into(),
    ];
    weight.device().launch("adafactor_apply", geometry::elementwise(elements), &arguments)
}

/// Updates a vector and its second moment.
pub(crate) fn adafactor_vector(
    weight: &Tensor,
    second_moment: &Tensor,
    gradient: &Tensor,
    by: &Adafactor,
) -> Result<(), Error> {
    let elements = weight.elements();
    assert_eq!((second_moment.elements(), gradient.elements()), (elements, elements), "{}", weight.name());
    let arguments = [
        weight.into(),
        second_moment.into(),
        gradient.into(),
        dimension(elements).into(),
        by.blend.into(),
        by.rate.into(),
        by.floor.into(),
    ];
    weight.device().launch("adafactor_vector", geometry::one_block(), &arguments)
}
