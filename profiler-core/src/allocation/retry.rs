//! A framework's allocator that asks a second time.
//!
//! Owns: which refusal of pool memory was not the last word. PyTorch's cudaMallocAsync backend trims the pool when the driver
//! refuses, and asks again, once; only then does the program get an error. Refuses: refusals of memory that a framework caches
//! itself, which it reports (`findings`), and those of programs without a framework: nobody stands between.

use memscope_wire::MemoryKind;

use serde::{Deserialize, Serialize};

use super::apply::At;
use super::model::Model;

/// A request to the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// The driver's function, a name.
    pub function: u32,
    pub requested: u64,
    pub thread: u32,
}

impl Model {
    /// Memory was asked for: with what result it was refused, `None` when it was given.
    pub(super) fn ask_again(&mut self, at: At, asked: Asked, memory: MemoryKind, refused: Option<i32>) {
        let process = &mut self.processes[at.process];
        if memory != MemoryKind::Pool || (process.asked.is_none() && (refused.is_none() || !process.framework)) {
            return;
        }
        let again = process.asked.take() == Some(asked);
        // A refusal whose line was told has become an error.
        let first = self.recent_refusals(at.process).next().filter(|first| again && first.line == 0);
        let second_try = first.map(|first| first.asked_again = true).is_some();
        if refused.is_some() && !second_try {
            self.processes[at.process].asked = Some(asked);
        }
    }
}
