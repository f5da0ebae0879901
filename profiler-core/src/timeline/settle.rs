//! The second pass: replays the settled changes in the order of time.
//!
//! Owns: the one walk from which all figures come. Refuses: to keep what can be made from its result.

use memscope_wire::MemoryKind;

use crate::allocation::{Allocation, Change, MarkerKind, Model, flag};

use super::device::DeviceTrack;
use super::merge::{Merge, Moment, exits};
use super::samples::SampleWalk;
use super::{ALIVE, Lifetime, MarkerMoment, Settled, State};

impl Settled {
    /// Replays a session. The model may still be live: what it does not know yet is not in the figures.
    pub fn of(model: &Model) -> Settled {
        Settled::watch(model, |_, _| {})
    }

    /// The same, and shows the tracks after each change.
    pub(super) fn watch(model: &Model, mut watch: impl FnMut(&Moment, &[DeviceTrack])) -> Settled {
        let exits = exits(model);
        let last_time = exits.iter().flatten().copied().chain([model.last_time()]).max().unwrap_or_default();
        let mut walk = Walk {
            model,
            devices: (0..model.devices.len()).map(|_| DeviceTrack::new(last_time)).collect(),
            resolved: (0..model.devices.len() as u16).map(|position| model.resolve(position)).collect(),
            host: DeviceTrack::new(last_time),
            process_devices: process_devices(model),
            lifetimes: vec![Lifetime { birth: 0, death: ALIVE }; model.allocations.len()],
            markers: Vec::with_capacity(model.markers.len()),
        };
        let mut samples = SampleWalk::new(model);
        let mut changes = 0;
        for moment in Merge::new(model, &exits) {
            samples.advance(moment.time, &mut walk.devices);
            walk.change(&moment);
            watch(&moment, &walk.devices);
            changes = moment.order;
        }
        samples.finish(&mut walk.devices);
        let host = walk.host.finish(last_time);
        Settled {
            lifetimes: walk.lifetimes,
            changes,
            devices: walk.devices.into_iter().map(|track| track.finish(last_time)).collect(),
            host_peak: host.live,
            host_end: host.end,
            markers: walk.markers,
            exits,
            last_time,
        }
    }
}

/// Positions of the devices that each process named, each once.
fn process_devices(model: &Model) -> Vec<Vec<u16>> {
    let resolved = |process: &crate::allocation::Process| {
        let mut devices: Vec<u16> = process.devices.values().map(|position| model.resolve(*position)).collect();
        devices.sort_unstable();
        devices.dedup();
        devices
    };
    model.processes.iter().map(resolved).collect()
}

struct Walk<'m> {
    model: &'m Model,
    devices: Vec<DeviceTrack>,
    resolved: Vec<u16>,
    host: DeviceTrack,
    process_devices: Vec<Vec<u16>>,
    lifetimes: Vec<Lifetime>,
    markers: Vec<MarkerMoment>,
}

impl Walk<'_> {
    fn change(&mut self, moment: &Moment) {
        let Moment { order, time, .. } = *moment;
        match moment.change {
            Change::Birth(id) => {
                let allocation = self.model.allocations[id.0 as usize];
                self.lifetimes[id.0 as usize].birth = order;
                if let Some(track) = self.track(&allocation) {
                    track.birth(order, time, &allocation);
                }
            }
            Change::Death(id) => {
                let allocation = self.model.allocations[id.0 as usize];
                self.lifetimes[id.0 as usize].death = order;
                if let Some(track) = self.track(&allocation) {
                    track.death(order, time, &allocation);
                }
            }
            Change::Marker(number) => self.marker(moment, number),
            Change::Void => {}
        }
    }

    fn track(&mut self, allocation: &Allocation) -> Option<&mut DeviceTrack> {
        if allocation.is(flag::OUTSIDE) {
            return None;
        }
        if allocation.memory == MemoryKind::Host {
            return Some(&mut self.host);
        }
        let position = *self.resolved.get(allocation.device as usize)?;
        self.devices.get_mut(position as usize)
    }

    fn marker(&mut self, moment: &Moment, number: u32) {
        let Moment { order, time, process, .. } = *moment;
        let mut state: Option<State> = None;
        match &self.model.markers[number as usize].kind {
            MarkerKind::Step(step) => {
                let number = self.model.steps.value(*step);
                for device in &self.process_devices[process] {
                    self.devices[*device as usize].step(order, time, number);
                }
            }
            MarkerKind::Phase(phase) => {
                for device in &self.process_devices[process] {
                    self.devices[*device as usize].phase(order, time, *phase);
                }
            }
            MarkerKind::Failure(failure) => {
                let position = self.resolved.get(failure.device as usize).copied();
                state = position.map(|position| self.devices[position as usize].state_at(order, time));
            }
        }
        self.markers.push(MarkerMoment { marker: number, order, time, state });
    }
}
