//! A network in training: weights, running statistics, and the phases of a step.
//!
//! Owns: what a step does, in which order, and what it tells memscope. Refuses: to print.

use super::arguments::Plan;
use super::data::{self, Batch};
use super::network::Network;
use super::pass::{Inputs, Pass};
use super::{backward, forward};
use crate::gpt::{Parameter, Updates, module_of, random::Random, scopes};
use crate::tensor::Element;
use crate::{Device, Error, Tensor};
use memscope_client::{self as memscope, Category};
use std::rc::Rc;

/// A network in training.
pub struct Trainer {
    plan: Plan,
    device: Rc<Device>,
    network: Network<Parameter>,
    updates: Updates,
    steps: u64,
}

impl Trainer {
    /// Allocates the weights and running statistics on `device` and gives them their first values.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or [`Error::Driver`].
    pub fn new(plan: &Plan, device: Device) -> Result<Trainer, Error> {
        let device = plan.techniques.prepare(device)?;
        let mut ordinal = 0;
        memscope::phase("model");
        let network = Network::build(&plan.configuration, &mut |_, description| {
            let _scopes = scopes::module(module_of(&description.name));
            ordinal += 1;
            Parameter::new(&device, description, Element::Fp32, Random::new(plan.seed, &[0, ordinal]).bits())
        })?;
        let updates = Updates::new(&device, &plan.techniques, plan.learning_rate, None)?;
        Ok(Trainer { plan: plan.clone(), device, network, updates, steps: 0 })
    }

    /// One training step; its loss, or none on a device that does not compute.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or [`Error::Driver`].
    pub fn step(&mut self) -> Result<Option<f32>, Error> {
        self.steps += 1;
        memscope::step(self.steps);
        let Plan { configuration, batch, image, seed, .. } = self.plan;
        let targets = data::targets(configuration.classes, batch, seed, self.steps);
        let images = match self.device.computes() {
            true => data::images(&targets, image, seed, self.steps),
            false => Vec::new(),
        };
        self.updates.optimizer.begin_step();
        let loss = self.gradients(&Batch { images, targets })?;
        self.updates.finish(&self.plan.techniques, self.steps, self.network.parameters_mut(), loss)
    }

    /// Sets all gradients to none, then computes those of a batch's loss, and the loss. The running statistics move.
    ///
    /// # Errors
    /// As [`Trainer::step`].
    pub fn gradients(&mut self, batch: &Batch) -> Result<Option<f32>, Error> {
        memscope::phase("data");
        self.network.parameters_mut().into_iter().for_each(Parameter::free_gradient);
        let inputs = self.upload(batch)?;
        memscope::phase("forward");
        let pass = Pass { device: &self.device, plan: &self.plan };
        let (logits, saved) = forward::forward(&pass, &self.network, &inputs)?;
        memscope::phase("loss");
        let (loss, log_probabilities) = forward::loss(&pass, logits, &inputs)?;
        memscope::phase("backward");
        backward::backward(&pass, &mut self.network, &inputs, saved, log_probabilities)?;
        match self.device.computes() {
            true => Ok(Some(loss.to_host()?[0])),
            false => Ok(None),
        }
    }

    /// Every parameter, in the order of the forward pass.
    pub fn parameters_mut(&mut self) -> Vec<&mut Parameter> {
        self.network.parameters_mut()
    }

    /// The running mean and variance of every normalisation, in the order of the forward pass.
    pub fn statistics(&self) -> Vec<&Parameter> {
        self.network.statistics()
    }

    fn upload(&self, batch: &Batch) -> Result<Inputs, Error> {
        let Plan { batch: count, image, .. } = self.plan;
        let shape = [count, super::network::COLOURS, image, image];
        let mut images = Tensor::floats(&self.device, Category::Inputs, "input.images", &shape)?;
        if !batch.images.is_empty() {
            images.set(&batch.images)?;
        }
        let targets = Tensor::integers(&self.device, Category::Inputs, "input.targets", &batch.targets)?;
        Ok(Inputs { images: Rc::new(images), targets })
    }
}
