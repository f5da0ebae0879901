//! What lies beside memory over time: telemetry, the device as a whole, and live bytes of each device and process.
//!
//! Owns: which samples speak for which part of a span. Refuses: to fill gaps; where there was no sample there is none.

use std::ops::Range;
use std::sync::Arc;

use crate::allocation::{Model, canonical};
use crate::journal::entry::{DeviceSample, Nanoseconds, TelemetrySample};
use crate::timeline::{SampleRows, Series, Walk};

use super::part::{Part, Positions};
use super::query::{Target, TracksQuery};

/// Most parts a span is divided into.
const MOST: usize = 1 << 12;

/// What lies beside memory in a span of time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TracksView {
    /// The span that was asked for.
    pub range: Range<Nanoseconds>,
    /// Telemetry of the target's devices; of a process, of all.
    pub devices: Vec<DeviceTelemetry>,
    /// Live bytes of each device, where there are several, then of each process, where there are several: over all time.
    pub lanes: Vec<Lane>,
}

/// Telemetry of one device in the span.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DeviceTelemetry {
    /// Its position among the answer's devices.
    pub device: u16,
    /// At most one for each part of the span, in the order of time; the last one before the span comes first.
    pub samples: Vec<TelemetryPoint>,
    /// The device as a whole, in the same way.
    pub rows: Vec<SampleRows>,
}

/// What NVML said within one part of the span. What it did not say is `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TelemetryPoint {
    /// When the part's last sample was taken.
    pub time: Nanoseconds,
    /// Largest percent of time with a kernel running.
    pub utilization: Option<u32>,
    /// Highest temperature, degrees Celsius.
    pub temperature: Option<u32>,
    /// Largest power, milliwatts.
    pub power: Option<u32>,
    /// Fastest graphics clock, MHz.
    pub clock: Option<u32>,
    /// Most received over PCIe, bytes a second.
    pub pcie_receive: Option<u64>,
    /// Most sent over PCIe, bytes a second.
    pub pcie_send: Option<u64>,
}

/// Live bytes of a device or process.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lane {
    /// Which.
    pub target: Target,
    /// Over all time.
    pub series: Arc<Series>,
}

impl TelemetryPoint {
    fn of(time: Nanoseconds, sample: &DeviceSample) -> TelemetryPoint {
        let DeviceSample { utilization, temperature, power, clock, pcie_receive, pcie_send, .. } = *sample;
        TelemetryPoint { time, utilization, temperature, power, clock, pcie_receive, pcie_send }
    }

    /// What is absent in one is taken from the other.
    fn merge(&mut self, later: &TelemetryPoint) {
        self.time = later.time;
        self.utilization = self.utilization.max(later.utilization);
        self.temperature = self.temperature.max(later.temperature);
        self.power = self.power.max(later.power);
        self.clock = self.clock.max(later.clock);
        self.pcie_receive = self.pcie_receive.max(later.pcie_receive);
        self.pcie_send = self.pcie_send.max(later.pcie_send);
    }
}

/// What was asked for.
pub(super) fn view(model: &Model, walk: &Walk, positions: &Positions, part: Part, query: &TracksQuery) -> TracksView {
    let wanted = |device: &u16| match part {
        Part::Device(own) => *device == own,
        Part::All | Part::Process(_) => true,
        Part::Host => false,
    };
    let devices = positions.devices.iter().enumerate().filter(|(_, device)| wanted(device));
    let device = |(position, device): (usize, &u16)| {
        let rows = walk.devices.get(*device as usize).map(|track| &track.figures.samples[..]).unwrap_or_default();
        DeviceTelemetry {
            device: position as u16,
            samples: samples(model, *device, query),
            rows: thinned(rows, query, |rows| rows.rows.time, |rows| (rows.settled, rows.rows.device_used)),
        }
    };
    TracksView {
        range: query.range.clone(),
        devices: devices.map(device).collect(),
        lanes: lanes(walk, positions, part),
    }
}

fn lanes(walk: &Walk, positions: &Positions, part: Part) -> Vec<Lane> {
    let mut lanes = Vec::new();
    if positions.devices.len() > 1 {
        let tracks = positions.devices.iter().enumerate();
        let tracks = tracks.filter_map(|(position, device)| Some((position, walk.devices.get(*device as usize)?)));
        lanes.extend(tracks.map(|(position, track)| (Target::Device(position as u16), track)));
    }
    // Of a process, device memory is summed up; host memory is not.
    if walk.processes.len() > 1 && part != Part::Host {
        let tracks = walk.processes.iter().enumerate();
        lanes.extend(tracks.map(|(position, track)| (Target::Process(position as u32), track)));
    }
    let lane = |(target, track): (Target, &crate::timeline::DeviceTrack)| Lane {
        target,
        series: Arc::new(track.series().clone()),
    };
    lanes.into_iter().map(lane).collect()
}

fn samples(model: &Model, device: u16, query: &TracksQuery) -> Vec<TelemetryPoint> {
    let Some(uuid) = model.devices[device as usize].uuid.as_deref() else { return Vec::new() };
    let here = span(&model.telemetry, query, |sample| sample.time);
    let point = |sample: &TelemetrySample| {
        let found = sample.devices.iter().find(|device| canonical(&device.uuid) == uuid)?;
        Some(TelemetryPoint::of(sample.time, found))
    };
    let mut points: Vec<(u64, TelemetryPoint)> = Vec::new();
    for point in here.iter().filter_map(point) {
        let slot = query.part(point.time);
        match points.last_mut().filter(|(last, _)| *last == slot) {
            Some((_, last)) => last.merge(&point),
            None => points.push((slot, point)),
        }
    }
    points.into_iter().map(|(_, point)| point).collect()
}

/// Of each part of the span the one that ranks highest; and the last one before the span.
fn thinned<Sample: Copy, Rank: Ord>(
    samples: &[Sample],
    query: &TracksQuery,
    time: impl Fn(&Sample) -> Nanoseconds,
    rank: impl Fn(&Sample) -> Rank,
) -> Vec<Sample> {
    let mut kept: Vec<(u64, Sample)> = Vec::new();
    for sample in span(samples, query, &time) {
        let slot = query.part(time(sample));
        match kept.last_mut().filter(|(last, _)| *last == slot) {
            Some((_, last)) if rank(sample) > rank(last) => *last = *sample,
            Some(_) => {}
            None => kept.push((slot, *sample)),
        }
    }
    kept.into_iter().map(|(_, sample)| sample).collect()
}

/// Those within the span, and the last one before it.
fn span<'s, Sample>(samples: &'s [Sample], query: &TracksQuery, time: impl Fn(&Sample) -> Nanoseconds) -> &'s [Sample] {
    let first = samples.partition_point(|sample| time(sample) < query.range.start).saturating_sub(1);
    let until = samples.partition_point(|sample| time(sample) < query.range.end);
    &samples[first..until.max(first)]
}

impl TracksQuery {
    /// The part of the span in which a time is; what is before it is in a part of its own.
    fn part(&self, time: Nanoseconds) -> u64 {
        let length = self.range.end.0.saturating_sub(self.range.start.0).max(1);
        let parts = self.parts.clamp(1, MOST) as u128;
        match time.0.checked_sub(self.range.start.0) {
            Some(offset) => (u128::from(offset) * parts / u128::from(length)) as u64 + 1,
            None => 0,
        }
    }
}
