//! The session, its devices and its processes as a view shows them.
//!
//! Owns: which of their facts are told, at which moment. Refuses: the target's figures.

use crate::allocation::{Model, canonical};
use crate::journal::entry::{DeviceSample, Nanoseconds};
use crate::report::device_text;
use crate::timeline::State;

use super::answer::{DeviceView, ProcessView, SessionView};
use super::answering::Asked;
use super::explorer::Explorer;
use super::moment::Ledgers;
use super::part::{Part, Positions};
use super::query::At;

/// How many samples before a moment are looked through for one device.
const SAMPLES_BACK: usize = 4096;

impl Explorer {
    pub(super) fn last_time(&self) -> Nanoseconds {
        self.ended_at.unwrap_or_else(|| self.model.last_time())
    }

    pub(super) fn session(&self) -> SessionView {
        let model = &self.model;
        SessionView {
            info: model.session.clone(),
            state: self.state,
            reading: false, // a follower knows
            exit_status: model.end.as_ref().and_then(|end| end.exit_status),
            last_time: self.last_time(),
            allocations: model.seen(),
            dropped_events: model.processes.iter().map(|process| process.counters.dropped).sum(),
            listed: self.listed(),
            to_read: 0,
            stacks: !model.stacks.is_empty(),
            notices: self.notices.clone(),
        }
    }

    pub(super) fn devices(&self, positions: &Positions, ledgers: &Ledgers, asked: &Asked) -> Vec<DeviceView> {
        let view = |device: &u16| {
            let sample = self.sample(*device, asked);
            let track = self.walk.devices.get(*device as usize);
            let rows = ledgers.devices.get(*device as usize).map(|(rows, _)| *rows).unwrap_or_default();
            let state = State { order: asked.order, time: asked.time, rows, ..State::default() };
            let near = track.and_then(|track| track.figures.sample_near(&state));
            DeviceView {
                uuid: device_text(&self.model, *device as usize),
                name: self.latest(*device).and_then(|sample| sample.name.clone()),
                ordinal: self.model.devices[*device as usize].ordinal,
                capacity: self.device_capacity(*device),
                rows,
                peak_live: track.and_then(|track| track.figures.live).map_or(0, |state| state.rows.live_bytes()),
                sample: sample.cloned(),
                exact: near.filter(|sample| sample.rows.reserved == rows.reserved).copied(),
            }
        };
        positions.devices.iter().map(view).collect()
    }

    pub(super) fn processes(&self, ledgers: &Ledgers) -> Vec<ProcessView> {
        let view = |(position, process): (usize, &crate::allocation::Process)| ProcessView {
            pid: process.info.pid,
            rank: process.info.rank,
            world_size: process.info.world_size,
            name: process.info.name.clone(),
            executable: process.info.executable.clone(),
            ended: process.counters.ended,
            live: ledgers.processes.get(position).map_or(0, |(rows, _)| rows.live_bytes()),
        };
        self.model.processes.iter().enumerate().map(view).collect()
    }

    /// Total memory of the target's devices.
    pub(super) fn capacity(&self, positions: &Positions, part: Part) -> Option<u64> {
        match part {
            Part::Device(device) => self.device_capacity(device),
            Part::All if positions.devices.is_empty() => None,
            Part::All => positions
                .devices
                .iter()
                .try_fold(0u64, |sum, device| Some(sum.wrapping_add(self.device_capacity(*device)?))),
            Part::Process(_) | Part::Host => None,
        }
    }

    fn device_capacity(&self, device: u16) -> Option<u64> {
        self.model.devices[device as usize].capacity.or_else(|| self.latest(device)?.total)
    }

    /// What NVML said last of a device.
    fn latest(&self, device: u16) -> Option<&DeviceSample> {
        let uuid = self.model.devices[device as usize].uuid.as_deref()?;
        answer_of(&self.model, *self.latest_sample.get(uuid)?, uuid)
    }

    /// What NVML said of a device last before the moment.
    fn sample(&self, device: u16, asked: &Asked) -> Option<&DeviceSample> {
        if asked.at == At::Live {
            return self.latest(device);
        }
        let uuid = self.model.devices[device as usize].uuid.as_deref()?;
        let before = self.model.telemetry.partition_point(|sample| sample.time <= asked.time);
        (before.saturating_sub(SAMPLES_BACK)..before).rev().find_map(|position| answer_of(&self.model, position, uuid))
    }
}

fn answer_of<'m>(model: &'m Model, position: usize, uuid: &str) -> Option<&'m DeviceSample> {
    model.telemetry.get(position)?.devices.iter().find(|answer| canonical(&answer.uuid) == uuid)
}
