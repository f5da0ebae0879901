//! The optimizer in the backward pass (`--optimizer-in-backward`): a parameter is updated as soon as its gradient is complete,
//! and the gradient is freed.
//!
//! Gradient bytes at most: the largest gradient, 4·V·h of an untied GPT. A tied token embedding is the head too: it is complete
//! only at the end of backward, and the largest of the others comes beside it, 4·(V·h + 4·h²). By arithmetic. What is trained
//! is the same: no weight is read after its update in the same backward pass.
//!
//! With ranks a gradient is summed over them first, by itself, as in LOMO (Lv et al. 2023): ddp has no buckets then.

use crate::Error;
use crate::gpt::{Optimizer, Parameter};

/// Backward has added to a parameter's gradient for the last time: the parameter is updated.
pub(crate) fn complete(optimizer: &Optimizer, parameter: &mut Parameter) -> Result<(), Error> {
    optimizer.update(parameter)?;
    parameter.free_gradient();
    Ok(())
}
