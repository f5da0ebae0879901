//! Records become allocations: who holds which bytes, from when to when, and what for.
//!
//! Owns: the live model ([`Model`]) and the facts about one allocation ([`Allocation`]). Refuses: to judge (`findings`), to
//! add up over the whole session (`timeline`), and to read or write files.
//!
//! One process's records are applied in slot order, which is exact. Processes are applied in the order in which their
//! entries arrive; figures that need all processes in the order of time are made by `timeline`, in a second pass.

mod apply;
mod context;
mod device;
mod doubts;
mod elsewhere;
mod forget;
mod inference;
mod lifetime;
mod mapping;
mod memory;
mod model;
mod names;
mod owner;
mod passes;
mod process;
mod registration;
mod retry;
mod row;
mod simulation;
mod sound;
mod stacks;
mod written;

pub use device::Device;
pub(crate) use device::canonical;
pub(crate) use elsewhere::POOL_RESERVE;
pub(crate) use inference::{EXIT, Role};
pub use model::{Changes, DeviceProgress, Model, Progress, Retag, StepMark};
pub use names::{Names, Scopes};
pub use row::{Allocation, AllocationId, Container, flag};
pub use stacks::{Sites, StackNode, Stacks};

pub(crate) use model::{Failure, Marker, MarkerKind};
pub(crate) use passes::Unused;
pub(crate) use process::{Change, MAX_NUMBER, Packed, Process};
pub(crate) use simulation::Reads;
