//! Trainers that show each memory technique, on any CUDA device.
//!
//! Owns: the trainers, and the launchers of the kernels in kernels/. Refuses: to know memscope: a trainer annotates its
//! memory through memscope-client, as any user's program would, and finds libcuda as any program does.
//!
//! The trainers are [`gpt`] and [`resnet`]. What each keeps in memory and when is in its `memory.md`, which its module
//! documentation shows. The memory techniques are in [`techniques`], one file each.

mod device;
mod error;
pub mod gpt;
mod ledger;
mod operations;
mod pinned;
mod ranks;
pub mod resnet;
pub mod techniques;
mod tensor;
mod training;

pub use device::Device;
pub use error::Error;
pub use ranks::{Group, part};
pub use tensor::{Element, Tensor};
pub use training::{Outcome, Progress};
