//! Telemetry samples in the order of changes: device rows, and which of them are exact.
//!
//! Owns: the window around a sample. Refuses: to fill in what NVML did not tell.

use std::collections::{HashMap, HashSet};

use crate::allocation::Model;
use crate::journal::entry::{Nanoseconds, TelemetrySample};
use crate::ledger::DeviceRows;

use super::device::DeviceTrack;

/// A sample's window reaches this far before the first question to NVML and after its last answer: a call of the driver takes
/// time, and its record is written before it (a free) or after it (an allocation).
pub(crate) const WINDOW_NS: u64 = 1_000_000;

/// Walks the samples beside the changes.
pub(super) struct SampleWalk<'m> {
    samples: Vec<&'m TelemetrySample>,
    next: usize,
    pids: HashSet<u32>,
    positions: HashMap<&'m str, usize>,
}

impl<'m> SampleWalk<'m> {
    /// Over the samples of a model from a position on.
    pub fn new(model: &'m Model, from: usize) -> SampleWalk<'m> {
        let mut samples: Vec<&TelemetrySample> = model.telemetry.get(from..).unwrap_or_default().iter().collect();
        samples.sort_by_key(|sample| sample.time);
        if samples.is_empty() {
            return SampleWalk { samples, next: 0, pids: HashSet::new(), positions: HashMap::new() };
        }
        SampleWalk {
            samples,
            next: 0,
            pids: model.processes.iter().map(|process| process.info.pid).collect(),
            positions: model
                .devices
                .iter()
                .enumerate()
                .filter(|(_, device)| device.alias.is_none())
                .filter_map(|(position, device)| Some((device.uuid.as_deref()?, position)))
                .collect(),
        }
    }

    /// Evaluates the samples before this time; all changes up to theirs have been taken in.
    pub fn advance(&mut self, until: Nanoseconds, devices: &mut [DeviceTrack]) {
        while let Some(sample) = self.samples.get(self.next).filter(|sample| sample.time < until) {
            self.evaluate(sample, devices);
            self.next += 1;
        }
    }

    /// Evaluates the samples that are left.
    pub fn finish(&mut self, devices: &mut [DeviceTrack]) {
        while let Some(sample) = self.samples.get(self.next) {
            self.evaluate(sample, devices);
            self.next += 1;
        }
    }

    fn evaluate(&self, sample: &TelemetrySample, devices: &mut [DeviceTrack]) {
        for answer in &sample.devices {
            let uuid = crate::allocation::canonical(&answer.uuid);
            let Some(track) = self.positions.get(uuid.as_str()).and_then(|position| devices.get_mut(*position)) else {
                continue;
            };
            let reserved = track.now.rows.reserved;
            let Some(rows) = DeviceRows::evaluate(sample.time, answer, reserved, |pid| self.pids.contains(&pid)) else {
                continue;
            };
            let quiet = track.driver_event.is_none_or(|event| sample.begin.0.saturating_sub(event.0) > WINDOW_NS);
            track.sample(rows, quiet);
        }
    }
}
