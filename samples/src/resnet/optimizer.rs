//! SGD with momentum in fp32, fused: one kernel a parameter and no temporaries.
//!
//! Owns: the numbers of the update. Refuses: to hold the velocity (parameter.rs).

use super::parameter::Parameter;
use crate::gpt::scopes;
use crate::{Error, operations};

/// torchvision's numbers for ResNets; every parameter decays.
const MOMENTUM: f32 = 0.9;
const DECAY: f32 = 1e-4;

/// Updates every parameter that has a gradient.
pub(super) fn step(parameters: Vec<&mut Parameter>, learning_rate: f32) -> Result<(), Error> {
    for parameter in parameters {
        if parameter.gradient().is_none() {
            continue;
        }
        let _scopes = scopes::module(super::trainer::module_of(parameter.name()));
        parameter.reach_velocity()?;
        let (Some(velocity), Some(gradient)) = (parameter.velocity(), parameter.gradient()) else { continue };
        let by = operations::Momentum { rate: learning_rate, momentum: MOMENTUM, decay: DECAY };
        operations::sgd_momentum(parameter.weight(), velocity, gradient, &by)?;
    }
    Ok(())
}
