//! The second pass: replays the settled changes in the order of time.
//!
//! Owns: the one walk from which all figures come. Refuses: to keep what can be made from its result.

use std::collections::BTreeSet;

use memscope_wire::MemoryKind;

use crate::allocation::{Allocation, Change, MarkerKind, Model, flag};
use crate::journal::entry::Nanoseconds;

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
            ending: ending(model, &exits),
            lifetimes: vec![Lifetime { birth: 0, death: ALIVE }; model.allocations.len()],
            markers: Vec::with_capacity(model.markers.len()),
        };
        let mut samples = SampleWalk::new(model);
        let mut changes = 0;
        for moment in Merge::new(model, &exits) {
            samples.advance(moment.time, &mut walk.devices);
            walk.end_processes_before(moment.time);
            walk.change(&moment);
            watch(&moment, &walk.devices);
            changes = moment.order;
        }
        walk.end_processes_before(Nanoseconds(u64::MAX));
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

/// When processes ended well: all that ended, in a session that did.
fn ending(model: &Model, exits: &[Option<Nanoseconds>]) -> BTreeSet<(Nanoseconds, usize)> {
    let well = model.end.as_ref().is_some_and(|end| end.exit_status == Some(0));
    let ended = exits.iter().enumerate().filter_map(|(process, exit)| Some(((*exit)?, process)));
    ended.filter(|_| well).collect()
}

struct Walk<'m> {
    model: &'m Model,
    devices: Vec<DeviceTrack>,
    resolved: Vec<u16>,
    host: DeviceTrack,
    process_devices: Vec<Vec<u16>>,
    /// Processes whose end is still to come.
    ending: BTreeSet<(Nanoseconds, usize)>,
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
                // A process's last records have the time of its end; what it left to its end comes after all of them.
                if allocation.is(flag::AT_EXIT) && self.ending.remove(&(time, moment.process)) {
                    self.end_process(moment.process, time);
                }
                self.lifetimes[id.0 as usize].death = order;
                if let Some(track) = self.track(&allocation) {
                    track.death(order, time, &allocation);
                }
            }
            Change::Marker(number) => self.marker(moment, number),
            Change::Void => {}
        }
    }

    fn end_processes_before(&mut self, time: Nanoseconds) {
        while let Some((exit, process)) = self.ending.first().copied().filter(|(exit, _)| *exit < time) {
            self.ending.pop_first();
            self.end_process(process, exit);
        }
    }

    fn end_process(&mut self, process: usize, exit: Nanoseconds) {
        for device in &self.process_devices[process] {
            self.devices[*device as usize].end_process(process, exit);
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
                    self.devices[*device as usize].step(order, time, process, number);
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
