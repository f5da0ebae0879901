//! A walk over a model's changes in the order of time, which goes on when more have come.
//!
//! Owns: which change concerns which part of the session (each device, host memory, and where wanted each process and all
//! together), the lifetimes, and the times of positions. Refuses: sums (`device`), and facts that come late (`late`).
//!
//! Over a whole session the order is exact. While it runs, what one process did is read in parts, a fraction of a second
//! each: what is read later than it happened counts from then on.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::allocation::{Allocation, Change, MarkerKind, Model, flag};
use crate::journal::entry::Nanoseconds;
use crate::keep::KeptSpan;
use crate::profile::Reading;

use super::begins::StepBegins;
use super::clock::OrderClock;
use super::device::DeviceTrack;
use super::lives::Lives;
use super::merge::{Merge, Moment, Walked, exit, exits};
use super::passing::thresholds;
use super::samples::SampleWalk;
use super::{ALIVE, LAST, Lifetime, MarkerMoment};

/// Changes that are counted at a time.
const COUNTED: u32 = 1024;

/// The parts of a session, and how far their changes were walked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Walk {
    /// By the model's position of the device.
    pub devices: Vec<DeviceTrack>,
    /// Host memory of all processes: pinned, and CPU tensors. It has the steps and phases of all of them.
    pub host: DeviceTrack,
    /// All devices together, and each process, where they are wanted.
    pub all: Option<DeviceTrack>,
    pub processes: Vec<DeviceTrack>,
    /// By allocation; a birth at 0 has not been walked.
    pub lifetimes: Vec<Lifetime>,
    /// How many of them have ended.
    pub dead: usize,
    /// True when changes are not there any more, so that the past cannot be walked anew.
    pub has_forgotten: bool,
    /// Allocations that had ended by this time are not there any more.
    pub forgotten_before: Option<Nanoseconds>,
    /// The position in the order of changes by which they had.
    pub forgotten: u32,
    pub markers: Vec<MarkerMoment>,
    /// Where the steps of each process begin.
    pub begins: StepBegins,
    /// When the driver refused an allocation.
    pub refusals: Vec<Nanoseconds>,
    /// When each process that ended gave back what it held.
    pub exits: Vec<Option<Nanoseconds>>,
    pub walked: Walked,
    /// When positions came to their end ([`LAST`]), if they did.
    pub stands_since: Option<Nanoseconds>,
    /// Samples of the model that were taken in.
    pub samples: usize,
    /// The moment of a position.
    pub clock: OrderClock,
    /// The end, where it is known.
    last: Nanoseconds,
    pub(super) resolved: Vec<u16>,
    pub(super) process_devices: Vec<Vec<u16>>,
    /// Processes whose end is still to come.
    ending: BTreeSet<(Nanoseconds, usize)>,
}

impl Walk {
    /// Over devices and host memory, for a session that lasts so long.
    pub fn new(last: Nanoseconds) -> Walk {
        Walk { host: DeviceTrack::new(last), last, ..Walk::default() }
    }

    /// Over a session of which so many changes are gone.
    pub fn beginning_after(mut self, changes: u32) -> Walk {
        self.walked.order = changes;
        self
    }

    /// Over all together and each process, too.
    pub fn with_parts(last: Nanoseconds) -> Walk {
        Walk { all: Some(DeviceTrack::new(last)), ..Walk::new(last) }
    }

    /// Over all changes of a session of which no more is known, or will come. With its parts, where they are wanted.
    pub fn whole(model: &Model, parts: bool, counted: &Reading) -> (Walk, Nanoseconds) {
        let exits = exits(model);
        let last = exits.iter().flatten().copied().chain([model.last_time()]).max().unwrap_or_default();
        // Of one process on one device, all together and the process are that device.
        let one = is_one_part(model) && model.carried.is_none();
        let mut walk = match &model.carried {
            Some(carried) => carried.corrected(model),
            None if parts && !one => Walk::with_parts(last),
            None => Walk::new(last),
        };
        walk.ending = ending(&exits);
        walk.exits = exits;
        walk.advance_counted(model, counted);
        walk.finish(model, last);
        if parts && one {
            walk.all = Some(walk.devices[0].without_samples());
            walk.processes = vec![walk.devices[0].without_samples()];
        }
        (walk, last)
    }

    /// No more changes come, and this was the last moment.
    pub fn finish(&mut self, model: &Model, last: Nanoseconds) {
        self.end_processes_before(Nanoseconds(u64::MAX));
        let well = ended_well(model);
        self.tracks().for_each(|track| track.finish(last, well));
    }

    /// True when all that it counts is a model's: of one that was read from a file that anyone may have written.
    pub fn fits(&self, model: &Model) -> bool {
        let devices = model.devices.len();
        let tracks = self.devices.iter().chain([&self.host]).chain(&self.all).chain(&self.processes);
        self.devices.len() <= devices
            && self.resolved.len() <= devices
            && self.process_devices.len() <= model.processes.len()
            && self.process_devices.iter().flatten().all(|device| usize::from(*device) < devices)
            && self.processes.len() <= model.processes.len()
            && self.samples <= model.telemetry.len()
            && self.ending.iter().all(|(_, process)| *process < self.process_devices.len())
            && self.walked.order < ALIVE
            && self.clock.is_sound()
            && self.markers.iter().all(|moment| (moment.marker as usize) < model.markers.len())
            && tracks.into_iter().all(DeviceTrack::is_sound)
    }

    /// The same of one that has gone as far as the model.
    pub fn is_of(&self, model: &Model) -> bool {
        self.fits(model)
            && self.lifetimes.len() == model.allocations.len()
            && self.dead <= self.lifetimes.len()
            && self.walked.changes.len() <= model.processes.len()
            && self.exits.len() <= model.processes.len()
    }

    /// True while all memory is host memory: the driver has given none of a device, and none that is managed.
    pub fn is_of_host(&self) -> bool {
        self.has_host_memory() && !self.devices.iter().any(DeviceTrack::held_any)
    }

    /// True once there was host memory that is recorded.
    pub fn has_host_memory(&self) -> bool {
        self.host.held_any()
    }

    /// All parts.
    pub fn tracks(&mut self) -> impl Iterator<Item = &mut DeviceTrack> {
        self.devices.iter_mut().chain([&mut self.host]).chain(&mut self.all).chain(&mut self.processes)
    }

    /// How often thresholds were passed.
    pub fn passings(&self) -> u64 {
        self.devices.iter().flat_map(|track| &track.figures.passings).map(|passings| passings.times).sum()
    }

    /// Walks what is new.
    pub fn advance(&mut self, model: &Model) {
        self.advance_counted(model, &Reading::default());
    }

    /// The same; `counted` counts the changes.
    fn advance_counted(&mut self, model: &Model, counted: &Reading) {
        self.meet(model);
        let mut samples = SampleWalk::new(model, self.samples);
        self.samples = model.telemetry.len();
        let exits = std::mem::take(&mut self.exits);
        let mut merge = Merge::new(model, &exits, &self.walked);
        let lives = Lives(model);
        for moment in merge.by_ref() {
            samples.advance(moment.time, &mut self.devices);
            self.end_processes_before(moment.time);
            self.clock.note(moment.order, moment.time);
            if moment.order == LAST {
                self.stands_since.get_or_insert(moment.time);
            }
            self.change(model, &lives, &moment);
            if moment.order.is_multiple_of(COUNTED) {
                counted.add(u64::from(COUNTED));
            }
        }
        self.walked = merge.walked();
        samples.finish(&mut self.devices);
        self.exits = exits;
    }

    /// Takes in devices, processes and allocations that are new.
    fn meet(&mut self, model: &Model) {
        self.lifetimes.resize(model.allocations.len(), Lifetime { birth: 0, death: ALIVE });
        let last = self.last;
        self.devices.resize_with(model.devices.len(), || DeviceTrack::new(last));
        if !model.session.alerts.is_empty() {
            for (device, track) in self.devices.iter_mut().enumerate() {
                thresholds(model, device).for_each(|threshold| track.watch(threshold));
            }
        }
        if self.all.is_some() {
            self.processes.resize_with(model.processes.len(), || DeviceTrack::new(last));
        }
        self.resolved = resolved(model);
        self.process_devices = process_devices(model);
        self.exits.resize(model.processes.len(), None);
        for process in 0..model.processes.len() {
            if self.exits[process].is_none() {
                self.exits[process] = exit(model, process);
                self.ending.extend(self.exits[process].map(|exit| (exit, process)));
            }
        }
    }

    /// True when devices turned out to be others than they were taken for: past changes belong to other parts than those in
    /// which they were counted.
    pub fn is_mistaken(&self, model: &Model) -> bool {
        let known = resolved(model);
        let moved = self.resolved.iter().zip(&known).any(|(was, is)| was != is);
        // Steps and phases of a process count for all devices that it ever names.
        let named = process_devices(model);
        let late = self.process_devices.iter().zip(&named).enumerate().filter(|(_, (was, is))| was != is);
        let marked = |process: usize| {
            self.markers.iter().any(|moment| model.markers[moment.marker as usize].process as usize == process)
        };
        moved || late.into_iter().any(|(process, _)| marked(process))
    }

    fn change(&mut self, model: &Model, lives: &Lives<'_>, moment: &Moment) {
        let Moment { order, time, .. } = *moment;
        match moment.change {
            Change::Birth(id) => {
                let allocation = model.allocations[id.0 as usize];
                self.lifetimes[id.0 as usize].birth = order;
                self.each_track(&allocation, |track| track.birth(order, time, &allocation, lives));
            }
            Change::Death(id) => {
                let allocation = model.allocations[id.0 as usize];
                // A process's last records have the time of its end; what it left to its end comes after all of them.
                if allocation.is(flag::AT_EXIT) && self.ending.remove(&(time, moment.process)) {
                    self.end_process(moment.process, time);
                }
                self.lifetimes[id.0 as usize].death = order;
                self.dead += 1;
                self.each_track(&allocation, |track| track.death(order, time, &allocation));
            }
            Change::Marker(number) => self.marker(model, lives, moment, number),
            Change::Void => {}
        }
    }

    /// Allocations are gone that had ended by a position in the order; `keep` says by number which stay.
    /// The moments of spans that are kept can still be asked for.
    pub fn forget(&mut self, keep: &[bool], last: u32, spans: &[KeptSpan]) {
        let mut number = 0;
        self.lifetimes.retain(|_| {
            number += 1;
            keep[number - 1]
        });
        self.dead -= keep.len() - self.lifetimes.len();
        self.has_forgotten = true;
        self.forgotten_before = Some(self.clock.time_of(last));
        self.forgotten = last;
        self.clock.forget_before(last, spans);
    }

    /// Markers are gone; `keep` says by number which stay. Of the times of refusals so many are kept.
    pub fn forget_markers(&mut self, keep: &[bool], refusals: usize) {
        self.has_forgotten = true;
        let mut next = 0;
        let numbers: Vec<u32> = keep.iter().map(|keep| (next, next += u32::from(*keep)).0).collect();
        self.markers.retain_mut(|moment| {
            let was = moment.marker as usize;
            moment.marker = numbers[was];
            keep[was]
        });
        if let Some(first) = self.markers.first() {
            self.begins.forget_before(first.order);
        }
        let surplus = self.refusals.len().saturating_sub(refusals);
        self.refusals.drain(..surplus);
    }

    /// Devices turned out to be others, and the past cannot be walked anew: what they hold is theirs from now on.
    pub fn move_devices(&mut self, model: &Model) {
        for (position, is) in resolved(model).into_iter().enumerate() {
            if self.resolved.get(position).is_some_and(|was| *was != is) && position != is as usize {
                let was = std::mem::take(&mut self.devices[position].now);
                if let Some(track) = self.devices.get_mut(is as usize) {
                    track.now.rows.merge(&was.rows);
                    track.now.managed.merge(&was.managed);
                    track.now.order = track.now.order.max(was.order);
                }
            }
        }
        self.meet(model);
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
        for track in self.all.iter_mut().chain(self.processes.get_mut(process)).chain([&mut self.host]) {
            track.end_process(process, exit);
        }
    }

    /// The parts in whose sums an allocation counts.
    pub(super) fn each_track(&mut self, allocation: &Allocation, mut act: impl FnMut(&mut DeviceTrack)) {
        if allocation.is(flag::OUTSIDE) {
            return;
        }
        if allocation.memory.on_host() {
            return act(&mut self.host);
        }
        let Some(position) = self.resolved.get(allocation.device as usize) else { return };
        if let Some(track) = self.devices.get_mut(*position as usize) {
            act(track);
            self.all.iter_mut().for_each(&mut act);
            self.processes.get_mut(allocation.process as usize).into_iter().for_each(act);
        }
    }

    fn marker(&mut self, model: &Model, lives: &Lives<'_>, moment: &Moment, number: u32) {
        let Moment { order, time, process, .. } = *moment;
        let (mut device, mut state) = (None, None);
        let parts = self.all.iter_mut().chain(self.processes.get_mut(process)).chain([&mut self.host]);
        match &model.markers[number as usize].kind {
            MarkerKind::Step(step) => {
                let number = model.steps.value(*step);
                self.begins.note(process, order, number);
                for device in &self.process_devices[process] {
                    self.devices[*device as usize].step((order, time), process, number, lives);
                }
                parts.for_each(|track| track.step((order, time), process, number, lives));
            }
            MarkerKind::Phase(phase) => {
                for device in &self.process_devices[process] {
                    self.devices[*device as usize].phase((order, time), process, *phase, lives);
                }
                parts.for_each(|track| track.phase((order, time), process, *phase, lives));
            }
            MarkerKind::Failure(failure) => {
                self.refusals.push(time);
                device = self.resolved.get(failure.device as usize).copied();
                state = device.map(|position| Box::new(self.devices[position as usize].state_at(order, time)));
            }
        }
        self.markers.push(MarkerMoment { marker: number, order, time, device, state });
    }
}

/// What each device turned out to be.
fn resolved(model: &Model) -> Vec<u16> {
    (0..model.devices.len() as u16).map(|position| model.resolve(position)).collect()
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

/// True when every change of device memory, every step and every phase is one device's and one process's.
fn is_one_part(model: &Model) -> bool {
    model.devices.len() == 1 && model.processes.len() == 1 && process_devices(model) == [[0]]
}

/// When processes ended.
fn ending(exits: &[Option<Nanoseconds>]) -> BTreeSet<(Nanoseconds, usize)> {
    exits.iter().enumerate().filter_map(|(process, exit)| Some(((*exit)?, process))).collect()
}

fn ended_well(model: &Model) -> bool {
    model.end.as_ref().is_some_and(|end| end.exit_status == Some(0))
}
