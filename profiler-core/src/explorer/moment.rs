//! A moment of a target: where it is in the order of changes, and the ledgers there.
//!
//! Owns: finding it, and the ledgers of every part at a moment of the past, by going through what lived then. Refuses: lists.

use memscope_wire::MemoryKind;

use crate::allocation::{Model, flag};
use crate::findings::reaches;
use crate::journal::entry::Nanoseconds;
use crate::ledger::EventRows;
use crate::timeline::{Bucket, DeviceTrack, MarkerMoment, Series, State, Walk};

use super::part::{Part, order_at};
use super::query::At;

/// Where a moment is.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, for the time of an answer")]
pub(super) enum Place {
    /// The last change that is known.
    Now,
    /// Right after a change; with the state of the target, where it is kept.
    Past(u32, Option<State>),
}

/// Finds a moment of a target. One that does not exist is before all changes.
pub(super) fn place(model: &Model, walk: &Walk, part: Part, at: At, ended: bool) -> Place {
    let state = |state: Option<State>| {
        let state = state.unwrap_or_default();
        Place::Past(state.order, Some(state))
    };
    let track = part.track(walk);
    match at {
        At::Live if !ended => Place::Now,
        At::Live => state(track.map(|track| track.end())),
        At::Peak => state(track.and_then(|track| track.figures.live)),
        At::Step(number) => state(track.and_then(|track| Some(track.step_named(number)?.peak))),
        At::StepFrom(begin) => state(track.and_then(|track| {
            let steps = &track.figures.steps;
            Some(steps[steps.binary_search_by_key(&begin, |step| step.begin).ok()?].peak)
        })),
        At::Time(time) => Place::Past(order_at(model, walk, time), None),
        At::Refused(time) => {
            let refused = |moment: &&MarkerMoment| {
                moment.time == time && model.markers[moment.marker as usize].failure().is_some()
            };
            let refused = walk.markers.iter().filter(refused).map(|moment| moment.order).max();
            Place::Past(refused.unwrap_or_else(|| order_at(model, walk, time)), None)
        }
    }
}

/// When memory ran out for a part, of several times that at which most was live; of equal ones the last.
pub(super) fn ran_out(model: &Model, walk: &Walk, part: Part) -> Option<Nanoseconds> {
    let ran_out = walk.markers.iter().filter(|moment| {
        let marker = &model.markers[moment.marker as usize];
        let concerns = match part {
            Part::All => true,
            Part::Device(device) => moment.device == Some(device),
            Part::Process(process) => marker.process == process,
            Part::Host => false,
        };
        concerns && marker.failure().is_some_and(|failure| reaches(model, marker.process, failure))
    });
    let live = |moment: &&MarkerMoment| moment.state.as_ref().map(|state| state.rows.live_bytes());
    ran_out.max_by_key(live).map(|moment| moment.time)
}

/// The ledgers of all parts right after a change.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledgers {
    /// By the model's position: device memory and managed memory.
    pub devices: Vec<(EventRows, EventRows)>,
    /// By position of the process: the same on all devices.
    pub processes: Vec<(EventRows, EventRows)>,
    pub host: EventRows,
}

impl Ledgers {
    /// As they are now.
    pub fn now(walk: &Walk) -> Ledgers {
        let rows = |track: &DeviceTrack| (track.now.rows, track.now.managed);
        Ledgers {
            devices: walk.devices.iter().map(rows).collect(),
            processes: walk.processes.iter().map(rows).collect(),
            host: walk.host.now.rows,
        }
    }

    /// As they were, made anew from what lived then.
    pub fn past(model: &Model, walk: &Walk, order: u32) -> Ledgers {
        let mut ledgers = Ledgers {
            devices: vec![Default::default(); model.devices.len()],
            processes: vec![Default::default(); model.processes.len()],
            host: EventRows::default(),
        };
        let all = super::live::Live { model, walk, part: Part::All, order, time: Nanoseconds(0) };
        for (_, allocation) in all.allocations().filter(|(_, allocation)| !allocation.is(flag::OUTSIDE)) {
            if allocation.memory.on_host() {
                ledgers.host.enter(allocation);
                continue;
            }
            let device = model.resolve(allocation.device) as usize;
            let (Some(device), Some(process)) =
                (ledgers.devices.get_mut(device), ledgers.processes.get_mut(allocation.process as usize))
            else {
                continue;
            };
            for (rows, managed) in [device, process] {
                (if allocation.memory == MemoryKind::Managed { managed } else { rows }).enter(allocation);
            }
        }
        ledgers
    }

    /// What the series tell of a time whose allocations are not all there.
    pub fn remembered(walk: &Walk, time: Nanoseconds) -> Ledgers {
        let rows = |track: &DeviceTrack| (remembered(track.series(), time), EventRows::default());
        Ledgers {
            devices: walk.devices.iter().map(rows).collect(),
            processes: walk.processes.iter().map(rows).collect(),
            host: rows(&walk.host).0,
        }
    }

    /// What is known of one part exactly takes the place of what is there.
    pub fn put(&mut self, part: Part, (rows, managed): (EventRows, EventRows)) {
        let place = match part {
            Part::Host => return self.host = rows,
            Part::Device(device) => self.devices.get_mut(device as usize),
            Part::Process(process) => self.processes.get_mut(process as usize),
            Part::All => match &mut self.devices[..] {
                [device] => Some(device),
                _ => None,
            },
        };
        place.into_iter().for_each(|place| *place = (rows, managed));
    }

    /// The sums of one part.
    pub fn of(&self, part: Part) -> (EventRows, EventRows) {
        let found = match part {
            Part::Host => return (self.host, EventRows::default()),
            Part::Device(device) => self.devices.get(device as usize),
            Part::Process(process) => self.processes.get(process as usize),
            Part::All => {
                let mut sum = (EventRows::default(), EventRows::default());
                for (rows, managed) in &self.devices {
                    sum.0.merge(rows);
                    sum.1.merge(managed);
                }
                return sum;
            }
        };
        found.copied().unwrap_or_default()
    }
}

/// The state of a part at a time of the past.
pub(super) fn state_at(model: &Model, walk: &Walk, part: Part, ledgers: &Ledgers, at: (u32, Nanoseconds)) -> State {
    let (order, time) = at;
    let (rows, managed) = ledgers.of(part);
    let mut state = State { order, time, rows, managed, ..State::default() };
    if let Some(track) = part.track(walk) {
        state.step = track.figures.state_at(order, time).step;
    }
    let concerns = |process: u32| match part {
        Part::Process(own) => process == own,
        _ => true,
    };
    // The phase that began last, in whatever process of the part: as a report says it.
    let markers = walk.markers.iter().rev().filter(|moment| moment.time <= time);
    let mut phases = markers.filter_map(|moment| {
        let marker = &model.markers[moment.marker as usize];
        marker.phase().filter(|_| concerns(marker.process))
    });
    state.phase = phases.next().unwrap_or_default();
    state
}

/// What the series tells of a time whose allocations have been forgotten: live bytes by category, and the rest of what was
/// reserved as cached.
pub(super) fn remembered(series: &Series, time: Nanoseconds) -> EventRows {
    let bucket = (time.0 / series.width_ns.max(1)) as usize;
    series.buckets.get(bucket).or(series.buckets.last()).map(Bucket::rows).unwrap_or_default()
}
