//! What comes after the passes of a step: gradients are summed over ranks and freed of the loss scale, and parameters updated,
//! or not.
//!
//! Owns: optimizer, loss scale and this process's place among ranks, and the order in which they act. Refuses: passes.

use super::optimizer::Optimizer;
use super::parameter::Parameter;
use crate::techniques::{LossScale, Precision, Rank, Scaled, Techniques};
use crate::{Device, Error, Tensor};
use memscope_client as memscope;
use std::rc::Rc;

/// What updates a network.
pub(crate) struct Updates {
    pub optimizer: Optimizer,
    /// Of fp16 only.
    loss_scale: Option<LossScale>,
    scaled: Option<Scaled>,
    /// This process among others that train the same model.
    pub rank: Option<Rank>,
}

impl Updates {
    pub fn new(device: &Rc<Device>, techniques: &Techniques, rate: f32, rank: Option<Rank>) -> Result<Updates, Error> {
        let loss_scale = match techniques.precision() {
            Precision::AmpFp16 => Some(LossScale::new(device)?),
            _ => None,
        };
        let optimizer = Optimizer::new(techniques.optimizer, rate).with_offload(techniques.offload);
        Ok(Updates { optimizer, loss_scale, scaled: None, rank })
    }

    /// How ranks exchange tensors, in words, where there was a choice.
    pub fn exchange(&self) -> Option<String> {
        self.rank.as_ref().and_then(|rank| rank.exchange.choice.clone())
    }

    /// What the loss is multiplied with before backward.
    pub fn loss_scale(&self) -> f32 {
        self.loss_scale.as_ref().map_or(1.0, LossScale::scale)
    }

    /// What became of the loss scale in the last step; none where there is no scale.
    pub fn scaled(&self) -> Option<Scaled> {
        self.scaled
    }

    /// Divides gradients by the loss scale, if there is one; true if any was infinite or NaN, of any rank.
    pub fn unscale(&self, parameters: &[&mut Parameter]) -> Result<bool, Error> {
        let Some(scale) = &self.loss_scale else { return Ok(false) };
        memscope::phase("unscale");
        let found = scale.unscale(parameters.iter().filter_map(|parameter| parameter.summed_gradient()))?;
        // A part's overflow is in no other rank's: all skip the step, or none.
        self.rank.as_ref().map_or(Ok(found), |rank| rank.any(found))
    }

    /// Ends step `step`, whose passes left this loss and the gradients of these parameters; the loss of all ranks together.
    pub fn finish(
        &mut self,
        techniques: &Techniques,
        step: u64,
        mut parameters: Vec<&mut Parameter>,
        loss: Option<f32>,
    ) -> Result<Option<f32>, Error> {
        let mut loss = loss;
        if let Some(rank) = &self.rank {
            // In backward they have been summed, and freed.
            if !techniques.gradients.optimizer_in_backward {
                rank.reduce(again(&mut parameters))?;
            }
            loss = rank.sum(loss)?;
        }
        if techniques.types.inject_inf == Some(step) {
            // As an overflow would; of ranks, in what the first one has.
            let is_first = self.rank.as_ref().is_none_or(|rank| rank.group.rank() == 0);
            let first = parameters.first().filter(|_| is_first).and_then(|parameter| parameter.summed_gradient());
            first.map_or(Ok(()), |gradient: &Tensor| gradient.set_first(&[f32::INFINITY]))?;
        }
        let found = self.unscale(&parameters)?;
        self.scaled = self.loss_scale.as_mut().map(|scale| scale.end_step(found));
        if found {
            self.optimizer.skip_step();
        } else if !techniques.gradients.optimizer_in_backward {
            memscope::phase("optimizer");
            self.optimizer.step(again(&mut parameters))?;
        }
        if let Some(rank) = &self.rank {
            rank.gather_weights(parameters)?;
        }
        Ok(loss)
    }
}

/// The same parameters for another use.
fn again<'a>(parameters: &'a mut [&mut Parameter]) -> Vec<&'a mut Parameter> {
    parameters.iter_mut().map(|parameter| &mut **parameter).collect()
}
