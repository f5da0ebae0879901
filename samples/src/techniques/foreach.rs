//! AdamW over all parameters at once, as PyTorch does it when it is not fused: every operation for every parameter before the
//! next operation.
//!
//! Workspace bytes in the step: 4·P, since the denominators √v̂ + ε of all parameters are alive before the first is used. By
//! arithmetic, and as PyTorch's multi-tensor path allocates. The fused kernel ([`super::adamw`]) needs none, and the weights
//! come out the same.

use super::adamw;
use super::optimizer::{State, Update};
use crate::{Error, Tensor, operations};
use memscope_client::Category;

/// The first operation: a parameter's moments take its gradient in.
pub(crate) fn moments(parameter: &mut Update<'_>, step: i32) -> Result<(), Error> {
    let by = adamw::numbers(0.0, step, false);
    adamw::reach_moments(parameter)?;
    operations::adamw_moments(both(parameter), parameter.gradient, &by)
}

/// The second: its denominator, a temporary.
pub(crate) fn denominator(parameter: &Update<'_>, step: i32) -> Result<Tensor, Error> {
    let by = adamw::numbers(0.0, step, false);
    let name = format!("{}.denominator", parameter.name);
    let denominator = Tensor::floats(parameter.weight.device(), Category::Workspace, &name, parameter.shape)?;
    operations::adamw_denominator(&denominator, both(parameter)[1], &by)?;
    Ok(denominator)
}

/// The third: its weight moves.
pub(crate) fn apply(parameter: &Update<'_>, denominator: &Tensor, rate: f32, step: i32) -> Result<(), Error> {
    let by = adamw::numbers(rate, step, parameter.is_matrix());
    operations::adamw_apply(parameter.weight, both(parameter)[0], denominator, &by)
}

fn both<'a>(parameter: &'a Update<'_>) -> [&'a Tensor; 2] {
    let Some(State::Moments([first, second])) = &*parameter.state else { unreachable!("made by the first operation") };
    [first, second]
}
