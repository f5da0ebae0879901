//! Ranks: the processes that train one model together, one on each device.
//!
//! Owns: starting them ([`launch`]), and what they do together ([`Group`]: barrier, all-reduce, reduce-scatter, all-gather),
//! through shared memory of the host. Refuses: to know what is reduced or gathered, which is techniques/parallel.rs.
//!
//! A collective of [`Group`] copies from the device, through the host, to the device. On real GPUs NCCL does it from device to
//! device where it can be loaded ([`Exchange`]); numbers of the host always go through [`Group`].

mod exchange;
mod group;
mod launch;
mod nccl;

pub(crate) use exchange::Exchange;
pub use group::{Group, part};
pub(crate) use launch::launch;
