//! AdamW in fp32 (Loshchilov and Hutter 2019), fused: one kernel a parameter and no temporaries.
//!
//! Owns: the numbers of the update and the count of steps. Refuses: to hold the moments (parameter.rs).

use super::parameter::Parameter;
use super::scopes;
use super::trainer::module_of;
use crate::{Error, operations};

/// The optimizer.
pub(super) struct Optimizer {
    learning_rate: f32,
    steps: i32,
}

/// The usual numbers; weights decay if they are matrices.
const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPSILON: f32 = 1e-8;
const DECAY: f32 = 0.01;

impl Optimizer {
    pub fn new(learning_rate: f32) -> Optimizer {
        Optimizer { learning_rate, steps: 0 }
    }

    /// Updates every parameter that has a gradient.
    pub fn step(&mut self, parameters: Vec<&mut Parameter>) -> Result<(), Error> {
        self.steps += 1;
        // In f64, since 1 - beta2 is small.
        let correction = |beta: f32| (1.0 - f64::from(beta).powi(self.steps)) as f32;
        for parameter in parameters {
            if parameter.gradient().is_none() {
                continue;
            }
            let _scopes = scopes::module(module_of(parameter.name()));
            parameter.reach_moments()?;
            let by = operations::AdamW {
                rate: self.learning_rate,
                beta1: BETA1,
                beta2: BETA2,
                epsilon: EPSILON,
                decay: if parameter.is_matrix() { DECAY } else { 0.0 },
                correction1: correction(BETA1),
                correction2: correction(BETA2),
            };
            let ([first, second], Some(gradient)) = (parameter.moments().expect("made above"), parameter.gradient())
            else {
                continue;
            };
            operations::adamw(parameter.weight(), [first, second], gradient, &by)?;
        }
        Ok(())
    }
}
