//! A target and a moment in the model's terms.
//!
//! Owns: which allocations belong to a target and count in its sums, and where its states are kept. Refuses: lists.

use memscope_wire::MemoryKind;

use crate::allocation::{Allocation, Model, flag};
use crate::journal::entry::Nanoseconds;
use crate::report::named_devices;
use crate::timeline::{DeviceTrack, Walk};

use super::called;
use super::query::Target;

/// A part of the session; a position that does not exist is all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    All,
    /// The model's position of a device that stands for itself.
    Device(u16),
    Process(u32),
    /// Host memory of all processes.
    Host,
}

/// Positions among the answer's devices and the model's.
#[derive(Debug)]
pub(super) struct Positions {
    /// The model's position by the answer's.
    pub devices: Vec<u16>,
    /// The answer's position by the model's, for devices that turned out to be another one, too.
    shown: Vec<Option<u16>>,
    /// What each is called, by the answer's position.
    numbers: Vec<u32>,
}

impl Positions {
    pub fn of(model: &Model) -> Positions {
        let devices: Vec<u16> = named_devices(model).map(|device| device as u16).collect();
        let shown = |device: u16| devices.iter().position(|other| *other == model.resolve(device)).map(|at| at as u16);
        let shown = (0..model.devices.len() as u16).map(shown).collect();
        let ordinals: Vec<u32> = devices.iter().map(|device| model.devices[*device as usize].ordinal).collect();
        Positions { shown, numbers: called::numbers(&ordinals), devices }
    }

    /// What the device of an allocation is called; `None` for host memory.
    pub fn number(&self, allocation: &Allocation) -> Option<u32> {
        self.numbers.get(self.shown(allocation)? as usize).copied()
    }

    /// Where an allocation's device is in the answer.
    pub fn shown(&self, allocation: &Allocation) -> Option<u16> {
        if allocation.memory.on_host() {
            return None;
        }
        self.shown.get(allocation.device as usize).copied().flatten()
    }

    /// Where a device of the model is in the answer.
    pub fn shown_device(&self, device: u16) -> Option<u16> {
        self.shown.get(device as usize).copied().flatten()
    }

    /// The part that is meant. Of a session without device memory, all of it is its host memory.
    pub fn part(&self, model: &Model, walk: &Walk, target: Target) -> (Part, Target) {
        let all = || match walk.is_of_host() {
            true => (Part::Host, Target::All),
            false => (Part::All, Target::All),
        };
        match target {
            Target::Device(position) => match self.devices.get(position as usize) {
                Some(device) => (Part::Device(*device), target),
                None => all(),
            },
            Target::Process(process) if (process as usize) < model.processes.len() => (Part::Process(process), target),
            Target::Host if walk.has_host_memory() => (Part::Host, target),
            _ => all(),
        }
    }
}

impl Part {
    /// True for what belongs to the part, wherever it lives.
    pub fn has(self, model: &Model, allocation: &Allocation) -> bool {
        match self {
            Part::All => true,
            Part::Device(device) => !allocation.memory.on_host() && model.resolve(allocation.device) == device,
            Part::Process(process) => allocation.process == process,
            Part::Host => allocation.memory.on_host(),
        }
    }

    /// True for what counts in its sums, as the timeline counts: device memory of the part, or host memory of all of it.
    pub fn counts(self, model: &Model, allocation: &Allocation) -> bool {
        if allocation.is(flag::OUTSIDE) {
            return false;
        }
        let known = || (model.resolve(allocation.device) as usize) < model.devices.len();
        match self {
            Part::Host => allocation.memory.on_host(),
            _ => {
                !allocation.memory.on_host()
                    && allocation.memory != MemoryKind::Managed
                    && known()
                    && self.has(model, allocation)
            }
        }
    }

    /// True when all device memory of the session belongs to it.
    pub fn is_whole(self, model: &Model, positions: &Positions) -> bool {
        match self {
            Part::All => true,
            Part::Device(_) => positions.devices.len() == 1,
            Part::Process(_) => model.processes.len() == 1,
            Part::Host => false,
        }
    }

    /// Its figures; `None` before its first change was walked.
    pub fn track(self, walk: &Walk) -> Option<&DeviceTrack> {
        match self {
            Part::All => walk.all.as_ref(),
            Part::Device(device) => walk.devices.get(device as usize),
            Part::Process(process) => walk.processes.get(process as usize),
            Part::Host => Some(&walk.host),
        }
    }

    /// The one device of the part, if it has one.
    pub fn device(self, positions: &Positions) -> Option<u16> {
        match self {
            Part::Device(device) => Some(device),
            Part::All => match positions.devices[..] {
                [device] => Some(device),
                _ => None,
            },
            Part::Process(_) | Part::Host => None,
        }
    }
}

/// When an allocation was made.
pub(super) fn birth_time(model: &Model, allocation: &Allocation) -> Nanoseconds {
    let process = &model.processes[allocation.process as usize];
    process.time(allocation.birth_ticks, model.session.start_monotonic_ns)
}

/// When an allocation that has ended did so.
pub(super) fn death_time(model: &Model, walk: &Walk, allocation: &Allocation) -> Nanoseconds {
    let exit = walk.exits.get(allocation.process as usize).copied().flatten();
    let process = &model.processes[allocation.process as usize];
    let death = || process.time(allocation.death_ticks, model.session.start_monotonic_ns);
    exit.filter(|_| allocation.is(flag::AT_EXIT)).unwrap_or_else(death)
}

/// The position of the last change at or before a time.
pub(super) fn order_at(model: &Model, walk: &Walk, time: Nanoseconds) -> u32 {
    let (range, first) = walk.clock.around(time);
    if *range.end() == 0 {
        return 0;
    }
    let mut near: Vec<(u32, Nanoseconds)> = Vec::new();
    for (allocation, lifetime) in model.allocations.iter().zip(&walk.lifetimes) {
        if range.contains(&lifetime.birth) {
            near.push((lifetime.birth, birth_time(model, allocation)));
        }
        if range.contains(&lifetime.death) {
            near.push((lifetime.death, death_time(model, walk, allocation)));
        }
    }
    let markers = walk.markers.iter().filter(|moment| range.contains(&moment.order));
    near.extend(markers.map(|moment| (moment.order, moment.time)));
    near.sort_unstable();
    // The first of them is at or before the time, with all before it; what it is may have been forgotten since.
    let mut found = *range.start();
    let mut latest = first;
    for (order, at) in near {
        latest = latest.max(at);
        if latest > time {
            break;
        }
        found = found.max(order);
    }
    found
}
