//! What becomes of gradients at the start of a step (`--zero-grad`): freed, or filled with zeros.
//!
//! Gradient bytes in forward and in the loss: 0 when freed; 4·P, from the second step on, when they become zeros. By
//! arithmetic. What is trained is the same.

use crate::Error;
use crate::gpt::Parameter;

/// What becomes of gradients at the start of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum ZeroGrad {
    /// Freed, as PyTorch does by default
    #[default]
    None,
    /// Filled with zeros
    Zero,
}

/// Does so with one parameter's.
pub(crate) fn zero_gradient(how: ZeroGrad, parameter: &mut Parameter) -> Result<(), Error> {
    match how {
        ZeroGrad::None => {
            parameter.free_gradient();
            Ok(())
        }
        ZeroGrad::Zero => parameter.zero_gradient(),
    }
}
