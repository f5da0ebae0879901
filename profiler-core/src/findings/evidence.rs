//! What findings are made from.
//!
//! Owns: the figures that detection looks at, whoever has them. Refuses: to detect.

use crate::allocation::{Allocation, Model};
use crate::ledger::{CATEGORIES, EventRows};
use crate::report::{Place, live_at, live_in, lived_in, named_devices};
use crate::timeline::{DeviceFigures, Lifetime, MarkerMoment, Settled, StepBegins, Walk};

/// A session that was walked to its end, or as far as it has come.
pub(crate) struct Evidence<'a> {
    pub model: &'a Model,
    /// By allocation.
    pub lifetimes: &'a [Lifetime],
    /// By the model's position of the device.
    pub devices: Vec<&'a DeviceFigures>,
    pub host: &'a DeviceFigures,
    pub markers: &'a [MarkerMoment],
    pub begins: &'a StepBegins,
    /// The ledger where live bytes were largest, on the device where they were largest.
    pub peak: Option<EventRows>,
}

impl<'a> Evidence<'a> {
    /// Of a session as far as it has come.
    pub fn of_walk(model: &'a Model, walk: &'a Walk) -> Evidence<'a> {
        let devices = walk.devices.iter().map(|track| &track.figures).collect();
        Evidence::new(model, &walk.lifetimes, (devices, &walk.host.figures), &walk.markers, &walk.begins)
    }

    /// Of a whole session.
    pub fn of_settled(model: &'a Model, settled: &'a Settled) -> Evidence<'a> {
        let devices = settled.devices.iter().collect();
        Evidence::new(model, &settled.lifetimes, (devices, &settled.host), &settled.markers, &settled.begins)
    }

    fn new(
        model: &'a Model,
        lifetimes: &'a [Lifetime],
        (devices, host): (Vec<&'a DeviceFigures>, &'a DeviceFigures),
        markers: &'a [MarkerMoment],
        begins: &'a StepBegins,
    ) -> Evidence<'a> {
        let peaks = devices.iter().enumerate().filter_map(|(device, figures)| Some((device, figures.live?.rows)));
        let peak = peaks.max_by_key(|(device, rows)| (rows.live_bytes(), std::cmp::Reverse(*device)));
        let peak = peak.map(|(_, rows)| rows);
        Evidence { model, lifetimes, devices, host, markers, begins, peak }
    }

    /// The places whose memory goes from step to step: the devices; of a session without device memory, host memory.
    pub fn places(&self) -> impl Iterator<Item = Place> + use<'a> {
        let of_host = self.devices.iter().all(|figures| figures.live.is_none());
        named_devices(self.model).map(Place::Device).chain(of_host.then_some(Place::Host))
    }

    /// What was walked of a place.
    pub fn figures(&self, place: Place) -> Option<&'a DeviceFigures> {
        match place {
            Place::Device(device) => self.devices.get(device).copied(),
            Place::Host => Some(self.host),
        }
    }

    /// What was live in a place right after a change.
    pub fn live_in(&self, place: Place, order: u32) -> impl Iterator<Item = (&'a Allocation, Lifetime)> + use<'a> {
        live_in(self.model, self.lifetimes, place, order)
    }

    /// The most that lived of each category in a place, each at its own moment, from right after one change to right after another.
    pub fn most_within(&self, place: Place, (from, until): (u32, u32)) -> [u64; CATEGORIES] {
        let mut changes: Vec<(u32, usize, i128)> = Vec::new();
        for (allocation, life) in lived_in(self.model, self.lifetimes, place, (from, until)) {
            let (category, bytes) = (allocation.category as usize, i128::from(allocation.requested));
            changes.push((life.birth.max(from), category, bytes));
            if life.death <= until {
                changes.push((life.death, category, -bytes));
            }
        }
        changes.sort_unstable();
        let (mut now, mut most) = ([0i128; CATEGORIES], [0i128; CATEGORIES]);
        for (_, category, bytes) in changes {
            now[category] += bytes;
            most[category] = most[category].max(now[category]);
        }
        most.map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// The same of device memory, each with how many whole steps it had outlived.
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
