//! A model in training: weights, optimizer, and the phases of a step.
//!
//! Owns: what a step does, in which order, and what it tells memscope. Refuses: to print.

use super::arguments::Plan;
use super::backward;
use super::data::{self, Batch};
use super::forward;
use super::model::Family;
use super::network::Network;
use super::optimizer::Optimizer;
use super::parameter::Parameter;
use super::pass::{Inputs, Pass};
use super::random::Random;
use super::scopes;
use crate::{Device, Error, Tensor};
use memscope_client::{self as memscope, Category};
use std::rc::Rc;

/// A model in training.
pub struct Trainer {
    plan: Plan,
    device: Rc<Device>,
    network: Network<Parameter>,
    optimizer: Optimizer,
    steps: u64,
}

impl Trainer {
    /// Allocates the weights on `device` and gives them their first values.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or [`Error::Driver`].
    pub fn new(plan: &Plan, device: Device) -> Result<Trainer, Error> {
        let device = Rc::new(device);
        let mut ordinal = 0;
        memscope::phase("model");
        let network = Network::build(&plan.configuration, &mut |description| {
            let _scopes = scopes::module(module_of(&description.name));
            ordinal += 1;
            Parameter::new(&device, description, Random::new(plan.seed, &[0, ordinal]).bits())
        })?;
        let optimizer = Optimizer::new(plan.learning_rate);
        Ok(Trainer { plan: plan.clone(), device, network, optimizer, steps: 0 })
    }

    /// One training step; its loss, or none on a device that does not compute.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or [`Error::Driver`].
    pub fn step(&mut self) -> Result<Option<f32>, Error> {
        self.steps += 1;
        memscope::step(self.steps);
        let Plan { configuration, batch, sequence, seed, .. } = &self.plan;
        let batch = data::batch(configuration, *batch, *sequence, *seed, self.steps);
        let loss = self.gradients(&batch)?;
        memscope::phase("optimizer");
        self.optimizer.step(self.network.parameters_mut())?;
        Ok(loss)
    }

    /// The loss of a batch.
    ///
    /// # Errors
    /// As [`Trainer::step`].
    pub fn loss(&self, batch: &Batch) -> Result<Option<f32>, Error> {
        let pass = self.pass();
        let inputs = self.upload(batch)?;
        let (logits, _) = forward::forward(&pass, &self.network, &inputs)?;
        let (loss, _) = forward::loss(&pass, logits, &inputs)?;
        self.read(&loss)
    }

    /// Sets all gradients to none, then computes those of a batch's loss, and the loss.
    ///
    /// # Errors
    /// As [`Trainer::step`].
    pub fn gradients(&mut self, batch: &Batch) -> Result<Option<f32>, Error> {
        memscope::phase("data");
        self.network.parameters_mut().into_iter().for_each(Parameter::zero_gradient);
        let inputs = self.upload(batch)?;
        memscope::phase("forward");
        let pass = Pass { device: &self.device, plan: &self.plan };
        let (logits, saved) = forward::forward(&pass, &self.network, &inputs)?;
        memscope::phase("loss");
        let (loss, log_probabilities) = forward::loss(&pass, logits, &inputs)?;
        memscope::phase("backward");
        backward::backward(&pass, &mut self.network, &inputs, saved, log_probabilities)?;
        self.read(&loss)
    }

    /// Every parameter, in the order of the forward pass.
    pub fn parameters_mut(&mut self) -> Vec<&mut Parameter> {
        self.network.parameters_mut()
    }

    fn pass(&self) -> Pass<'_> {
        Pass { device: &self.device, plan: &self.plan }
    }

    fn upload(&self, batch: &Batch) -> Result<Inputs, Error> {
        let input = |name: &str, values: &[i64]| Tensor::integers(&self.device, Category::Inputs, name, values);
        Ok(Inputs {
            tokens: input("input.tokens", &batch.tokens)?,
            targets: input("input.targets", &batch.targets)?,
            // One sentence: all tokens are of the first type.
            token_types: match self.plan.configuration.family {
                Family::Gpt2 => None,
                Family::Bert => Some(input("input.token_types", &vec![0; batch.tokens.len()])?),
            },
            counted: batch.counted,
        })
    }

    /// The loss on the host, after everything launched before it.
    fn read(&self, loss: &Tensor) -> Result<Option<f32>, Error> {
        match self.device.computes() {
            true => Ok(Some(loss.to_host()?[0])),
            false => Ok(None),
        }
    }
}

/// The module of a parameter: its name without the last part.
pub(super) fn module_of(parameter: &str) -> &str {
    parameter.rsplit_once('.').map_or(parameter, |(module, _)| module)
}
