//! What becomes of the results that backward reads: kept, dropped and computed again ([`super::checkpoint`]), or kept in 8 bits
//! ([`super::compress_activations`]).
//!
//! Owns: category and name of a result, by what becomes of it. Refuses: to choose what becomes of it.

use crate::tensor::Element;
use crate::{Device, Error, Tensor};
use memscope_client::Category;
use std::rc::Rc;

/// What becomes of the results that backward reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keeping {
    /// They are kept.
    Kept,
    /// They are not, save the output of a block if `output`: to be kept itself, as the input of what comes after.
    Dropped { output: bool },
    /// A copy in 8 bits is kept instead, save of statistics and of the output as above.
    Compressed { output: bool },
    /// They were not kept, and are computed again for backward.
    Again,
}

impl Keeping {
    /// Memory for such a result.
    pub fn tensor(self, device: &Rc<Device>, element: Element, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        match self {
            Keeping::Kept => Tensor::of(device, Category::Activations, name, element, shape),
            Keeping::Dropped { .. } | Keeping::Compressed { .. } => {
                Tensor::of(device, Category::Workspace, name, element, shape)
            }
            Keeping::Again => Tensor::of(device, Category::Activations, &format!("{name}.recomputed"), element, shape),
        }
    }

    /// Of statistics, which are not compressed.
    pub fn of_statistics(self) -> Keeping {
        match self {
            Keeping::Compressed { .. } => Keeping::Kept,
            other => other,
        }
    }

    /// Of the output of a block.
    pub fn of_output(self) -> Keeping {
        match self {
            Keeping::Dropped { output: true } | Keeping::Compressed { output: true } => Keeping::Kept,
            other => other,
        }
    }
}
