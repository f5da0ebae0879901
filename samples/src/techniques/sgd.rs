//! Stochastic gradient descent: the update needs nothing but the gradient. With momentum it keeps a velocity.
//!
//! Optimizer bytes: 0; with momentum 4·P. By arithmetic: one fp32 number a parameter.

use super::optimizer::{State, Update};
use crate::{Error, Tensor, operations};
use memscope_client::Category;

/// PyTorch's usual momentum.
const MOMENTUM: f32 = 0.9;

/// Learning rates where none is given; a velocity sums about ten gradients.
pub(super) const RATE: f32 = 0.1;
pub(super) const MOMENTUM_RATE: f32 = 0.01;

/// w ← w - rate · g
pub(super) fn update(parameter: &Update<'_>, rate: f32) -> Result<(), Error> {
    operations::sgd(parameter.weight, parameter.gradient, rate)
}

/// b ← 0.9·b + g; w ← w - rate · b. The velocity begins as 0.
pub(super) fn update_with_momentum(parameter: &mut Update<'_>, rate: f32) -> Result<(), Error> {
    let Update { name, shape, weight, gradient, state, .. } = parameter;
    if state.is_none() {
        let name = format!("{name}.momentum_buffer");
        let velocity = Tensor::floats(weight.device(), Category::Optimizer, &name, shape)?;
        operations::fill(&velocity, 0.0)?;
        **state = Some(State::Velocity(velocity));
    }
    let Some(State::Velocity(velocity)) = state else { unreachable!("only this optimizer made the state") };
    operations::sgd_momentum(weight, velocity, gradient, &operations::Momentum { rate, momentum: MOMENTUM, decay: 0.0 })
}
