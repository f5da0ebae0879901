//! A parameter on the device: its weight, and what training adds to it.
//!
//! Owns: when a gradient and the optimizer's moments come into being, which is as in PyTorch: a gradient when backward first
//! reaches it, until it is set to none; the moments at the first optimizer step, for good.

use super::network::{Description, Initial};
use crate::{Device, Error, Tensor, operations};
use memscope_client::Category;
use std::rc::Rc;

/// A parameter with its gradient and moments.
pub struct Parameter {
    description: Description,
    weight: Tensor,
    gradient: Option<Tensor>,
    moments: Option<[Tensor; 2]>,
}

impl Parameter {
    /// Allocates the weight and gives it its first values, made on the device.
    pub(super) fn new(device: &Rc<Device>, description: Description, seed: u64) -> Result<Parameter, Error> {
        let weight = Tensor::floats(device, Category::Weights, &description.name, &description.shape)?;
        match description.initial {
            Initial::Constant(value) => operations::fill(&weight, value)?,
            Initial::Normal(deviation) => operations::init_normal(&weight, deviation, seed)?,
        }
        Ok(Parameter { description, weight, gradient: None, moments: None })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// True for tables and matrices, which decay; norms and biases do not.
    pub(super) fn is_matrix(&self) -> bool {
        self.description.shape.len() > 1
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
        if self.gradient.is_none() {
            let Description { name, shape, .. } = &self.description;
            let name = format!("{name}.grad");
            self.gradient = Some(Tensor::floats(self.weight.device(), Category::Gradients, &name, shape)?);
        }
        Ok((self.gradient.as_ref().expect("made above"), accumulate))
    }

    /// Frees the gradient.
    pub(super) fn zero_gradient(&mut self) {
        self.gradient = None;
    }

    /// Makes the optimizer's two moments, zeros, at the first call.
    pub(super) fn reach_moments(&mut self) -> Result<(), Error> {
        if self.moments.is_none() {
            let make = |moment: &str| {
                let Description { name, shape, .. } = &self.description;
                let name = format!("{name}.{moment}");
                let tensor = Tensor::floats(self.weight.device(), Category::Optimizer, &name, shape)?;
                operations::fill(&tensor, 0.0)?;
                Ok::<Tensor, Error>(tensor)
            };
            self.moments = Some([make("exp_avg")?, make("exp_avg_sq")?]);
        }
        Ok(())
    }

    /// The moments, if the optimizer has made them.
    pub fn moments(&self) -> Option<&[Tensor; 2]> {
        self.moments.as_ref()
    }
}
