//! What findings are made from.
//!
//! Owns: the figures that detection looks at, whoever has them. Refuses: to detect.

use crate::allocation::{Allocation, Model};
use crate::ledger::EventRows;
use crate::report::live_at;
use crate::timeline::{DeviceFigures, Lifetime, MarkerMoment, Settled, StepBegins, Walk};

/// A session that was walked to its end, or as far as it has come.
pub(crate) struct Evidence<'a> {
    pub model: &'a Model,
    /// By allocation.
    pub lifetimes: &'a [Lifetime],
    /// By the model's position of the device.
    pub devices: Vec<&'a DeviceFigures>,
    pub markers: &'a [MarkerMoment],
    pub begins: &'a StepBegins,
    /// The ledger where live bytes were largest, on the device where they were largest.
    pub peak: Option<EventRows>,
}

impl<'a> Evidence<'a> {
    /// Of a session as far as it has come.
    pub fn of_walk(model: &'a Model, walk: &'a Walk) -> Evidence<'a> {
        let devices = walk.devices.iter().map(|track| &track.figures).collect();
        Evidence::new(model, &walk.lifetimes, devices, &walk.markers, &walk.begins)
    }

    /// Of a whole session.
    pub fn of_settled(model: &'a Model, settled: &'a Settled) -> Evidence<'a> {
        let devices = settled.devices.iter().collect();
        Evidence::new(model, &settled.lifetimes, devices, &settled.markers, &settled.begins)
    }

    fn new(
        model: &'a Model,
        lifetimes: &'a [Lifetime],
        devices: Vec<&'a DeviceFigures>,
        markers: &'a [MarkerMoment],
        begins: &'a StepBegins,
    ) -> Evidence<'a> {
        let peaks = devices.iter().enumerate().filter_map(|(device, figures)| Some((device, figures.live?.rows)));
        let peak = peaks.max_by_key(|(device, rows)| (rows.live_bytes(), std::cmp::Reverse(*device)));
        let peak = peak.map(|(_, rows)| rows);
        Evidence { model, lifetimes, devices, markers, begins, peak }
    }

    /// The same, each with how many whole steps it had outlived.
    pub fn outlived_at(&self, device: usize, order: u32) -> impl Iterator<Item = (&'a Allocation, u64)> + use<'a> {
        let begins = self.begins;
        self.live_at(device, order)
            .map(move |(allocation, life)| (allocation, begins.outlived(allocation.process, life, order)))
    }

    /// What was live in device memory of one device right after a change.
    pub fn live_at(&self, device: usize, order: u32) -> impl Iterator<Item = (&'a Allocation, Lifetime)> + use<'a> {
        live_at(self.model, self.lifetimes, device, order)
    }
}
