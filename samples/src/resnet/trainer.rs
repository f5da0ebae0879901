//! A network in training: weights, running statistics, and the phases of a step.
//!
//! Owns: what a step does, in which order, and what it tells memscope. Refuses: to print.

use super::arguments::Plan;
use super::data::{self, Batch};
use super::network::{Kind, Network};
use super::pass::{Inputs, Pass};
use super::{backward, blocks, forward};
use crate::gpt::{Parameter, Updates, module_of, random::Random, scopes};
use crate::ranks::Group;
use crate::techniques::{Checkpoint, GradientArguments, Keeping, PoolCount, Rank, Scaled, UnlikeChoice, zero_gradient};
use crate::tensor::Element;
use crate::{Device, Error, Tensor};
use memscope_client::{self as memscope, Category};
use std::rc::Rc;

/// A network in training.
pub struct Trainer {
    plan: Plan,
    /// What one pass works on: the plan, or that of a micro-batch.
    micro: Plan,
    device: Rc<Device>,
    network: Network<Parameter>,
    updates: Updates,
    steps: u64,
    /// What `--checkpoint auto` chose.
    choice: Option<UnlikeChoice>,
}

impl Trainer {
    /// Allocates the weights and running statistics on `device` and gives them their first values.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or [`Error::Driver`].
    pub fn new(plan: &Plan, device: Device) -> Result<Trainer, Error> {
        Trainer::in_group(plan, device, None)
    }

    /// The same, as one of several ranks: `plan` is that of all of them together. Each has running statistics of its own.
    ///
    /// # Errors
    /// As [`Trainer::new`]; and [`Error::Ranks`], of this and every other call, when another rank has failed.
    pub fn in_group(plan: &Plan, device: Device, group: Option<Group>) -> Result<Trainer, Error> {
        let device = plan.techniques.prepare(device)?;
        let mut rank = Rank::join(group, &plan.techniques, &device)?;
        let mut ordinal = 0;
        memscope::phase("model");
        let stored = plan.techniques.precision().stored();
        let mut network = Network::build(&plan.configuration, &mut |kind, description| {
            let _scopes = scopes::module(module_of(&description.name));
            ordinal += 1;
            // Running statistics move by a tenth of a difference, which bf16 would often round away.
            let element = if kind == Kind::Statistic { Element::Fp32 } else { stored };
            let mut parameter =
                Parameter::new(&device, description, element, Random::new(plan.seed, &[0, ordinal]).bits())?;
            let rank = rank.as_ref().filter(|_| kind == Kind::Parameter);
            rank.map_or(Ok(()), |rank| rank.made(&mut parameter))?;
            Ok::<Parameter, Error>(parameter)
        })?;
        if let Some(rank) = rank.as_mut().filter(|_| !plan.techniques.gradients.optimizer_in_backward) {
            rank.prepare(&device, network.parameters_mut())?;
        }
        let updates = Updates::new(&device, &plan.techniques, plan.learning_rate, rank)?;
        let passes = plan.techniques.ranks.count() * plan.techniques.gradients.micro_batches();
        let micro = Plan { batch: plan.batch / passes, ..plan.clone() };
        let mut trainer = Trainer { plan: plan.clone(), micro, device, network, updates, steps: 0, choice: None };
        if plan.techniques.activations.checkpoint == Checkpoint::Auto {
            let chosen =
                blocks::choose_segments(&pass_of(&trainer.device, &trainer.micro, &trainer.updates), &trainer.network)?;
            for plan in [&mut trainer.plan, &mut trainer.micro] {
                plan.techniques.activations.checkpoint = Checkpoint::Every(chosen.every);
            }
            trainer.choice = Some(chosen);
        }
        Ok(trainer)
    }

    /// What a technique chose by itself, in words.
    pub fn choice(&self) -> Option<String> {
        self.choice.as_ref().map(UnlikeChoice::to_string)
    }

    /// How ranks exchange tensors, in words, where there was a choice.
    pub fn exchange(&self) -> Option<String> {
        self.updates.exchange()
    }

    /// The device that holds the network.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// One training step; its loss, or none on a device that does not compute.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or [`Error::Driver`].
    pub fn step(&mut self) -> Result<Option<f32>, Error> {
        memscope::step(self.steps + 1);
        self.uncounted_step()
    }

    /// A step that memscope is not told the number of: one of a trial, before those of the training.
    pub(super) fn uncounted_step(&mut self) -> Result<Option<f32>, Error> {
        self.steps += 1;
        let Plan { configuration, batch, image, seed, ref techniques, .. } = self.plan;
        self.micro.image = techniques.workload.length(image, seed, self.steps);
        let targets = data::targets(configuration.classes, batch, seed, self.steps);
        let images = match self.device.computes() {
            true => data::images(&targets, self.micro.image, seed, self.steps),
            false => Vec::new(),
        };
        let batch = Batch { images, targets };
        let batch = match &self.updates.rank {
            None => batch,
            Some(rank) => batch.micro_batches(rank.group.world() as u64).swap_remove(rank.group.rank()),
        };
        self.updates.optimizer.begin_step();
        let loss = self.passes(&batch, self.plan.techniques.gradients.optimizer_in_backward)?;
        let loss = self.updates.finish(&self.plan.techniques, self.steps, self.network.parameters_mut(), loss)?;
        if self.plan.techniques.workload.empty_cache {
            self.device.empty_cache();
        }
        Ok(loss)
    }

    /// What became of the loss scale in the last step; none where there is no scale.
    pub fn scaled(&self) -> Option<Scaled> {
        self.updates.scaled()
    }

    /// What the caching pool has, with `--allocator caching`.
    pub fn pool(&self) -> Option<PoolCount> {
        self.device.pool()
    }

    /// Takes away the gradients of the step before, then computes those of a batch's loss, and the loss. The running statistics
    /// move.
    ///
    /// # Errors
    /// As [`Trainer::step`].
    pub fn gradients(&mut self, batch: &Batch) -> Result<Option<f32>, Error> {
        let loss = self.passes(batch, false)?;
        self.updates.unscale(&self.network.parameters_mut())?;
        Ok(loss)
    }

    /// Every parameter, in the order of the forward pass.
    pub fn parameters_mut(&mut self) -> Vec<&mut Parameter> {
        self.network.parameters_mut()
    }

    /// The running mean and variance of every normalisation, in the order of the forward pass.
    pub fn statistics(&self) -> Vec<&Parameter> {
        self.network.statistics()
    }

    /// Forward and backward of every micro-batch; the sum of their losses. With `update`, parameters are updated on the way.
    fn passes(&mut self, batch: &Batch, update: bool) -> Result<Option<f32>, Error> {
        memscope::phase("data");
        let GradientArguments { zero_grad, .. } = self.plan.techniques.gradients;
        self.network.parameters_mut().into_iter().try_for_each(|parameter| zero_gradient(zero_grad, parameter))?;
        let mut loss = Some(0.0);
        for batch in batch.micro_batches(self.plan.techniques.gradients.micro_batches()) {
            loss = loss.zip(self.both_ways(&batch, update)?).map(|(sum, loss)| sum + loss);
        }
        Ok(loss)
    }

    /// Forward and backward of one micro-batch; its share of the loss.
    fn both_ways(&mut self, batch: &Batch, update: bool) -> Result<Option<f32>, Error> {
        memscope::phase("data");
        let inputs = self.upload(batch)?;
        // Autocast begins here, with an empty cache.
        self.network.parameters_mut().into_iter().for_each(|parameter| parameter.drop_cast());
        memscope::phase("forward");
        let pass = Pass {
            counted: self.plan.batch,
            optimizer: update.then_some(&self.updates.optimizer),
            ..pass_of(&self.device, &self.micro, &self.updates)
        };
        let (logits, saved) = forward::forward(&pass, &self.network, &inputs)?;
        memscope::phase("loss");
        let (loss, log_probabilities) = forward::loss(&pass, logits, &inputs)?;
        // Autocast ends here: backward reads weights in their cast, but not the bias, nor what it casts again with its block.
        self.network.parameters_mut().into_iter().for_each(|parameter| parameter.drop_unread_cast());
        memscope::phase("backward");
        backward::backward(&pass, &mut self.network, &inputs, saved, log_probabilities)?;
        match self.device.computes() {
            true => Ok(Some(loss.to_host()?[0])),
            false => Ok(None),
        }
    }

    fn upload(&self, batch: &Batch) -> Result<Inputs, Error> {
        let Plan { batch: count, image, .. } = self.micro;
        let shape = [count, super::network::COLOURS, image, image];
        let stored = self.plan.techniques.precision().stored();
        let mut images = Tensor::of(&self.device, Category::Inputs, "input.images", stored, &shape)?;
        if !batch.images.is_empty() {
            images.set(&batch.images)?;
        }
        let targets = Tensor::integers(&self.device, Category::Inputs, "input.targets", &batch.targets)?;
        Ok(Inputs { images: Rc::new(images), targets })
    }
}

/// A pass over a micro-batch, which updates nothing.
fn pass_of<'a>(device: &'a Rc<Device>, plan: &'a Plan, updates: &'a Updates) -> Pass<'a> {
    Pass {
        device,
        plan,
        counted: plan.batch,
        optimizer: None,
        keeping: Keeping::Kept,
        rank: updates.rank.as_ref(),
        loss_scale: updates.loss_scale(),
    }
}
