//! AdamW in fp32 (Loshchilov and Hutter 2019), fused: one kernel a parameter and no temporaries.
//!
//! Optimizer bytes: 8·P. By arithmetic: two fp32 moments a parameter.

use super::optimizer::{State, Update};
use crate::{Error, Tensor, operations};
use memscope_client::Category;

/// The usual numbers; weights decay if they are matrices.
const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPSILON: f32 = 1e-8;
const DECAY: f32 = 0.01;

/// The numbers of the update in step `step`, counted from 1.
pub(super) fn numbers(rate: f32, step: i32, decays: bool) -> operations::AdamW {
    // In f64, since 1 - beta2 is small.
    let correction = |beta: f32| (1.0 - f64::from(beta).powi(step)) as f32;
    operations::AdamW {
        rate,
        beta1: BETA1,
        beta2: BETA2,
        epsilon: EPSILON,
        decay: if decays { DECAY } else { 0.0 },
        correction1: correction(BETA1),
        correction2: correction(BETA2),
    }
}

/// Updates a parameter, whose moments begin as 0.
pub(super) fn update(parameter: &mut Update<'_>, rate: f32, step: i32) -> Result<(), Error> {
    let by = numbers(rate, step, parameter.is_matrix());
    reach_moments(parameter)?;
    let Some(State::Moments([first, second])) = parameter.state else { unreachable!("made above") };
    operations::adamw(parameter.weight, [first, second], parameter.gradient, &by)
}

/// Makes the two moments, zeros, at the first call.
pub(super) fn reach_moments(parameter: &mut Update<'_>) -> Result<(), Error> {
    let Update { name, shape, weight, state, .. } = parameter;
    if state.is_none() {
        let make = |moment: &str| {
            let (name, element) = (format!("{name}.{moment}"), weight.element());
            let tensor = Tensor::of(weight.device(), Category::Optimizer, &name, element, shape)?;
            operations::fill(&tensor, 0.0)?;
            Ok::<Tensor, Error>(tensor)
        };
        **state = Some(State::Moments([make("exp_avg")?, make("exp_avg_sq")?]));
    }
    Ok(())
}
