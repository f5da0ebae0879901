//! Dynamic loss scaling (Micikevicius et al. 2018, section 3.2; the rule and its numbers are PyTorch's GradScaler's).
//!
//! fp16 has no number below 2⁻²⁴, and gradients often are: they are computed of scale · loss, and divided by the scale before
//! anything else reads them. The scale starts at 2¹⁶. When any gradient is infinite or NaN, the step is skipped and the scale
//! halved; after 2000 clean steps it is doubled.
//!
//! Bytes: 4 on the device, the flag that unscaling raises (optimizer). The scale itself is the host's here; PyTorch keeps it on the
//! device, with the count of clean steps. bf16 has fp32's range and needs none of this.

use crate::{Device, Error, Tensor, operations};
use memscope_client::Category;
use std::rc::Rc;

/// The rule, apart from any device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScaleRule {
    /// What the loss is multiplied with.
    pub scale: f32,
    /// Clean steps since the scale last changed.
    pub clean_steps: u32,
}

impl ScaleRule {
    /// The first scale.
    pub const FIRST: f32 = 65_536.0;
    /// Clean steps after which the scale grows.
    pub const GROWTH_INTERVAL: u32 = 2000;

    /// The scale of the first step.
    pub fn new() -> ScaleRule {
        ScaleRule { scale: ScaleRule::FIRST, clean_steps: 0 }
    }

    /// What comes after a step in which an infinity or NaN was found, or none.
    pub fn after(self, found: bool) -> ScaleRule {
        let ScaleRule { scale, clean_steps } = self;
        if found {
            // Never down to 0, from which no doubling leads back.
            return ScaleRule { scale: (scale * 0.5).max(f32::MIN_POSITIVE), clean_steps: 0 };
        }
        match clean_steps + 1 {
            ScaleRule::GROWTH_INTERVAL => ScaleRule { scale: scale * 2.0, clean_steps: 0 },
            clean_steps => ScaleRule { scale, clean_steps },
        }
    }
}

impl Default for ScaleRule {
    fn default() -> Self {
        ScaleRule::new()
    }
}

/// What became of the loss scale in a step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scaled {
    /// The scale of the step.
    pub scale: f32,
    /// An infinity or NaN was found: nothing was updated.
    pub skipped: bool,
}

/// The loss scale of a training.
pub(crate) struct LossScale {
    rule: ScaleRule,
    found: Tensor,
}

impl LossScale {
    pub fn new(device: &Rc<Device>) -> Result<LossScale, Error> {
        let found = Tensor::floats(device, Category::Optimizer, "loss_scale.found_inf", &[1])?;
        Ok(LossScale { rule: ScaleRule::new(), found })
    }

    /// What the loss is multiplied with.
    pub fn scale(&self) -> f32 {
        self.rule.scale
    }

    /// Divides gradients by the scale; true if any was infinite or NaN. A device that does not compute has none.
    pub fn unscale<'a>(&self, gradients: impl Iterator<Item = &'a Tensor>) -> Result<bool, Error> {
        operations::fill(&self.found, 0.0)?;
        for gradient in gradients {
            operations::unscale(gradient, &self.found, 1.0 / self.rule.scale)?;
        }
        match self.found.device().computes() {
            true => Ok(self.found.to_host()?[0] != 0.0),
            false => Ok(false),
        }
    }

    /// A step is over: what became of its scale.
    pub fn end_step(&mut self, found: bool) -> Scaled {
        let scaled = Scaled { scale: self.rule.scale, skipped: found };
        self.rule = self.rule.after(found);
        scaled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps, whether each found an infinity, and the scale after them, worked out by hand.
    #[test]
    fn the_scale_follows_the_table() {
        let table = [
            (1, true, 32_768.0),
            (1, true, 16_384.0),
            (1999, false, 16_384.0),
            (1, false, 32_768.0),
            (1999, false, 32_768.0),
            // One step before it would have grown: the count begins again.
            (1, true, 16_384.0),
            (1999, false, 16_384.0),
            (1, false, 32_768.0),
            (4000, false, 131_072.0),
            (3, true, 16_384.0),
        ];
        let mut rule = ScaleRule::new();
        assert_eq!(rule.scale, 65_536.0);
        for (row, (steps, found, scale)) in table.into_iter().enumerate() {
            rule = (0..steps).fold(rule, |rule, _| rule.after(found));
            assert_eq!(rule.scale, scale, "row {row}");
        }
    }
}
