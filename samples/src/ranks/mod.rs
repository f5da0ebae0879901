//! Ranks: the processes that train one model together, one on each device.
//!
//! Owns: starting them ([`launch`]), and what they do together ([`Group`]: barrier, all-reduce, reduce-scatter, all-gather),
//! through shared memory of the host. Refuses: to know what is reduced or gathered, which is techniques/parallel.rs.
//!
//! A collective copies from the device, through the host, to the device. On real GPUs NCCL would do it from device to device:
//! [`Group`] is the seam for it, and nothing else would change. There is no NCCL here yet.

mod group;
mod launch;

pub use group::{Group, part};
pub(crate) use launch::launch;
