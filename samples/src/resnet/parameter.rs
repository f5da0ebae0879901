//! A tensor of the network on the device: its values, and what training adds to a parameter.
//!
//! Owns: when a gradient and the optimizer's velocity come into being, which is as in PyTorch: a gradient when backward
//! first reaches it, until it is set to none; the velocity at the first optimizer step, for good.

use crate::gpt::{Description, Initial};
use crate::{Device, Error, Tensor, operations};
use memscope_client::Category;
use std::rc::Rc;

/// A parameter with its gradient and velocity, or a running statistic, which never has them.
pub struct Parameter {
    description: Description,
    weight: Tensor,
    gradient: Option<Tensor>,
    velocity: Option<Tensor>,
}

impl Parameter {
    /// Allocates the weight and gives it its first values, made on the device.
    pub(super) fn new(device: &Rc<Device>, description: Description, seed: u64) -> Result<Parameter, Error> {
        let weight = Tensor::floats(device, Category::Weights, &description.name, &description.shape)?;
        match description.initial {
            Initial::Constant(value) => operations::fill(&weight, value)?,
            Initial::Normal(deviation) => operations::init_normal(&weight, deviation, seed)?,
        }
        Ok(Parameter { description, weight, gradient: None, velocity: None })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// The weight.
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// The weight, to be replaced.
    pub fn weight_mut(&mut self) -> &mut Tensor {
        &mut self.weight
    }

    /// The gradient, if backward has reached it.
    pub fn gradient(&self) -> Option<&Tensor> {
        self.gradient.as_ref()
    }

    /// The gradient to write to, and whether it holds values to be added to.
    pub(super) fn reach_gradient(&mut self) -> Result<(&Tensor, bool), Error> {
        let accumulate = self.gradient.is_some();
        let gradient = match self.gradient.take() {
            Some(gradient) => gradient,
            None => self.beside(Category::Gradients, "grad")?,
        };
        Ok((self.gradient.insert(gradient), accumulate))
    }

    /// Frees the gradient.
    pub(super) fn zero_gradient(&mut self) {
        self.gradient = None;
    }

    /// Makes the optimizer's velocity, zeros, at the first call.
    pub(super) fn reach_velocity(&mut self) -> Result<(), Error> {
        if self.velocity.is_none() {
            let velocity = self.beside(Category::Optimizer, "momentum_buffer")?;
            operations::fill(&velocity, 0.0)?;
            self.velocity = Some(velocity);
        }
        Ok(())
    }

    /// The velocity, if the optimizer has made it.
    pub fn velocity(&self) -> Option<&Tensor> {
        self.velocity.as_ref()
    }

    /// A tensor of the weight's shape, named after it.
    fn beside(&self, category: Category, what: &str) -> Result<Tensor, Error> {
        let Description { name, shape, .. } = &self.description;
        Tensor::floats(self.weight.device(), category, &format!("{name}.{what}"), shape)
    }
}
