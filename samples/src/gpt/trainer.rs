//! A model in training: weights, optimizer, and the phases of a step.
//!
//! Owns: what a step does, in which order, and what it tells memscope. Refuses: to print.

use super::arguments::Plan;
use super::backward;
use super::chunked;
use super::data::{self, Batch};
use super::forward;
use super::layers;
use super::loss;
use super::model::Family;
use super::network::Network;
use super::parameter::Parameter;
use super::pass::{FromLoss, Inputs, Pass};
use super::random::Random;
use super::scopes;
use super::update::Updates;
use crate::ranks::Group;
use crate::techniques::{
    Checkpoint, Choice, GradientArguments, Keeping, PoolCount, Rank, Scaled, micro_batches, zero_gradient,
};
use crate::{Device, Error, Tensor};
use memscope_client::{self as memscope, Category};
use std::rc::Rc;

/// A model in training.
pub struct Trainer {
    plan: Plan,
    /// What one pass works on: the plan, or that of a micro-batch.
    micro: Plan,
    device: Rc<Device>,
    network: Network<Parameter>,
    updates: Updates,
    steps: u64,
    /// What `--checkpoint auto` chose.
    choice: Option<Choice>,
}

impl Trainer {
    /// Allocates the weights on `device` and gives them their first values.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or [`Error::Driver`].
    pub fn new(plan: &Plan, device: Device) -> Result<Trainer, Error> {
        Trainer::in_group(plan, device, None)
    }

    /// The same, as one of several ranks: `plan` is that of all of them together.
    ///
    /// # Errors
    /// As [`Trainer::new`]; and [`Error::Ranks`], of this and every other call, when another rank has failed.
    pub fn in_group(plan: &Plan, device: Device, group: Option<Group>) -> Result<Trainer, Error> {
        let device = plan.techniques.prepare(device)?;
        let mut rank = Rank::join(group, &plan.techniques, &device)?;
        let mut ordinal = 0;
        memscope::phase("model");
        let element = plan.techniques.precision().stored();
        let mut network = Network::build(&plan.configuration, &plan.techniques.sharing, &mut |description| {
            let _scopes = scopes::module(module_of(&description.name));
            ordinal += 1;
            let mut parameter =
                Parameter::new(&device, description, element, Random::new(plan.seed, &[0, ordinal]).bits())?;
            rank.as_ref().map_or(Ok(()), |rank| rank.made(&mut parameter))?;
            Ok::<Parameter, Error>(parameter)
        })?;
        if network.decoder.is_none() {
            // The head's weight too.
            network.tokens.is_used(2);
        }
        let layers = network.layers();
        for (set, block) in network.blocks.iter_mut().enumerate() {
            let uses = network.layers_together.min(layers - set * network.layers_together);
            block.parameters_mut().into_iter().for_each(|parameter| parameter.is_used(uses as u32));
        }
        if plan.techniques.sharing.lora.is_some() {
            let parameters = network.parameters_mut().into_iter();
            parameters.filter(|parameter| !parameter.name().contains(".lora_")).for_each(Parameter::freeze);
        }
        if let Some(rank) = rank.as_mut().filter(|_| !plan.techniques.gradients.optimizer_in_backward) {
            rank.prepare(&device, network.parameters_mut())?;
        }
        let passes = plan.techniques.ranks.count() * plan.techniques.gradients.micro_batches();
        let mut plan = plan.clone();
        let mut micro = Plan { batch: plan.batch / passes, ..plan.clone() };
        let mut choice = None;
        if plan.techniques.activations.checkpoint == Checkpoint::Auto {
            let pass = Pass {
                device: &device,
                plan: &micro,
                optimizer: None,
                keeping: Keeping::Kept,
                rank: rank.as_ref(),
                loss_scale: 1.0,
            };
            let chosen = layers::choose_segments(&pass, &network)?;
            for plan in [&mut plan, &mut micro] {
                plan.techniques.activations.checkpoint = Checkpoint::Every(chosen.every);
            }
            choice = Some(chosen);
        }
        let updates = Updates::new(&device, &plan.techniques, plan.learning_rate, rank)?;
        Ok(Trainer { plan, micro, device, network, updates, steps: 0, choice })
    }

    /// What a technique chose by itself, in words.
    pub fn choice(&self) -> Option<String> {
        self.choice.map(|choice| choice.to_string())
    }

    /// How ranks exchange tensors, in words, where there was a choice.
    pub fn exchange(&self) -> Option<String> {
        self.updates.exchange()
    }

    /// The device that holds the model.
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
        let Plan { configuration, batch, sequence, seed, techniques, .. } = &self.plan;
        self.micro.sequence = techniques.workload.length(*sequence, *seed, self.steps);
        let batch = data::batch(configuration, *batch, self.micro.sequence, *seed, self.steps);
        let batch = match &self.updates.rank {
            None => batch,
            Some(rank) => micro_batches(&batch, rank.group.world() as u64).swap_remove(rank.group.rank()),
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

    /// The loss of a batch.
    ///
    /// # Errors
    /// As [`Trainer::step`].
    pub fn loss(&self, batch: &Batch) -> Result<Option<f32>, Error> {
        let pass = self.pass();
        let inputs = self.upload(batch)?;
        let (logits, saved) = forward::forward(&pass, &self.network, &inputs)?;
        let loss = match logits {
            Some(logits) => {
                let [loss, _] = loss::forward(&pass, "loss", logits, &inputs.targets, inputs.counted)?;
                loss
            }
            None => chunked::loss(&pass, &self.network, &saved.decoder_input, &inputs)?,
        };
        self.read(&loss)
    }

    /// Takes away the gradients of the step before, then computes those of a batch's loss, and the loss.
    ///
    /// # Errors
    /// As [`Trainer::step`].
    pub fn gradients(&mut self, batch: &Batch) -> Result<Option<f32>, Error> {
        let loss = self.passes(batch, false)?;
        self.updates.unscale(&self.network.parameters_mut())?;
        Ok(loss)
    }

    /// Forward and backward of every micro-batch; the sum of their losses.
    fn passes(&mut self, batch: &Batch, update: bool) -> Result<Option<f32>, Error> {
        memscope::phase("data");
        let GradientArguments { zero_grad, .. } = self.plan.techniques.gradients;
        self.network.parameters_mut().into_iter().try_for_each(|parameter| zero_gradient(zero_grad, parameter))?;
        let mut loss = Some(0.0);
        for batch in micro_batches(batch, self.plan.techniques.gradients.micro_batches()) {
            loss = loss.zip(self.both_ways(&batch, update)?).map(|(sum, loss)| sum + loss);
        }
        Ok(loss)
    }

    /// Forward and backward of one micro-batch; its loss. With `update`, parameters are updated on the way.
    fn both_ways(&mut self, batch: &Batch, update: bool) -> Result<Option<f32>, Error> {
        memscope::phase("data");
        let inputs = self.upload(batch)?;
        // Autocast begins here, with an empty cache.
        self.network.parameters_mut().into_iter().for_each(|parameter| parameter.drop_cast());
        memscope::phase("forward");
        let optimizer = update.then_some(&self.updates.optimizer);
        let pass = Pass {
            device: &self.device,
            plan: &self.micro,
            optimizer,
            keeping: Keeping::Kept,
            loss_scale: self.updates.loss_scale(),
            rank: self.updates.rank.as_ref(),
        };
        let (logits, saved) = forward::forward(&pass, &self.network, &inputs)?;
        memscope::phase("loss");
        let (loss, from_loss) = match logits {
            Some(logits) => {
                let _scope = memscope::scope("loss");
                let [loss, log_probabilities] = loss::forward(&pass, "loss", logits, &inputs.targets, inputs.counted)?;
                (loss, FromLoss::LogProbabilities(log_probabilities))
            }
            None => {
                let input = &saved.decoder_input;
                let [loss, gradient] = chunked::loss_and_gradients(&pass, &mut self.network, input, &inputs)?;
                (loss, FromLoss::Gradient(gradient))
            }
        };
        // Autocast ends here: backward reads weights in their cast, but not biases, nor what it casts again with its layer.
        self.network.parameters_mut().into_iter().for_each(|parameter| parameter.drop_unread_cast());
        memscope::phase("backward");
        backward::backward(&pass, &mut self.network, &inputs, saved, from_loss)?;
        self.read(&loss)
    }

    /// What the caching pool has, with `--allocator caching`.
    pub fn pool(&self) -> Option<PoolCount> {
        self.device.pool()
    }

    /// Every parameter, in the order of the forward pass.
    pub fn parameters_mut(&mut self) -> Vec<&mut Parameter> {
        self.network.parameters_mut()
    }

    fn pass(&self) -> Pass<'_> {
        Pass {
            device: &self.device,
            plan: &self.plan,
            optimizer: None,
            keeping: Keeping::Kept,
            loss_scale: 1.0,
            rank: self.updates.rank.as_ref(),
        }
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
pub(crate) fn module_of(parameter: &str) -> &str {
    parameter.rsplit_once('.').map_or(parameter, |(module, _)| module)
}
