//! What findings are made from.
//!
//! Owns: the figures that detection looks at, whoever has them. Refuses: to detect.

use crate::allocation::{Allocation, Model};
use crate::ledger::EventRows;
use crate::report::live_at;
use crate::timeline::{DeviceFigures, Lifetime, MarkerMoment};

/// A session that was walked to its end, or as far as it has come.
pub(crate) struct Evidence<'a> {
    pub model: &'a Model,
    /// By allocation.
    pub lifetimes: &'a [Lifetime],
    /// By the model's position of the device.
    pub devices: Vec<&'a DeviceFigures>,
    pub markers: &'a [MarkerMoment],
    /// The ledger where live bytes were largest, on the device where they were largest.
    pub peak: Option<EventRows>,
}

impl<'a> Evidence<'a> {
    pub fn new(
        model: &'a Model,
        lifetimes: &'a [Lifetime],
        devices: Vec<&'a DeviceFigures>,
        markers: &'a [MarkerMoment],
    ) -> Evidence<'a> {
        let peaks = devices.iter().enumerate().filter_map(|(device, figures)| Some((device, figures.live?.rows)));
        let peak = peaks.max_by_key(|(device, rows)| (rows.live_bytes(), std::cmp::Reverse(*device)));
        let peak = peak.map(|(_, rows)| rows);
        Evidence { model, lifetimes, devices, markers, peak }
    }

    /// What was live in device memory of one device right after a change.
    pub fn live_at(&self, device: usize, order: u32) -> impl Iterator<Item = (&'a Allocation, Lifetime)> + use<'a> {
        live_at(self.model, self.lifetimes, device, order)
    }
}
