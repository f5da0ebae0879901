//! Where a session that ran out of memory is to be opened.
//!
//! Owns: which finding that is. Refuses: figures: they are the finding's.

use crate::findings::{Detail, Finding, Largest};
use crate::journal::entry::Nanoseconds;
use crate::report::nanoseconds;

use super::answer::{DeviceView, ProcessView};

/// The out-of-memory that met the most live memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gravest {
    /// Position of its finding.
    pub finding: usize,
    /// When.
    pub time: Nanoseconds,
    /// Position of its device among the answer's.
    pub device: Option<u16>,
    /// Position of its process among the answer's.
    pub process: Option<u32>,
    /// Bytes asked for.
    pub requested: u64,
    /// The category that held most then, where most of it was made, and its holder; `None` when nothing was live.
    pub largest: Option<Largest>,
}

impl Gravest {
    /// Finds it among the findings.
    pub(super) fn of(findings: &[Finding], devices: &[DeviceView], processes: &[ProcessView]) -> Option<Gravest> {
        let ooms = findings.iter().enumerate().filter_map(|(position, finding)| match &finding.detail {
            Detail::Oom(oom) => Some((position, oom)),
            _ => None,
        });
        let (finding, oom) = ooms.max_by_key(|(position, oom)| (oom.live, std::cmp::Reverse(*position)))?;
        let device = devices.iter().position(|device| device.uuid == oom.device);
        let process = processes.iter().position(|process| process.pid == oom.pid);
        Some(Gravest {
            finding,
            time: nanoseconds(oom.time_s),
            device: device.map(|device| device as u16),
            process: process.map(|process| process as u32),
            requested: oom.requested,
            largest: oom.largest.clone(),
        })
    }
}
