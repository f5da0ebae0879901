//! Makes a report from a model.
//!
//! Owns: which figure goes to which key. Refuses: to compute over time (`timeline`) and to judge (`findings`).

use std::collections::BTreeSet;

use memscope_wire::Object;

use crate::allocation::{Allocation, Change, Model, Sites};
use crate::findings;
use crate::journal::entry::{Nanoseconds, TelemetrySample};
use crate::keep::KeptSpan;
use crate::ledger::EventRows;
use crate::profile::Reading;
use crate::timeline::{DeviceFigures, DeviceTrack, Extreme as Largest, Lifetime, Merge, Settled, State, StepFigures};

use super::snapshot::{Held, Moment, Tops, Words};
use super::{
    ByCategory, CategoryPeaks, DevicePeaks, DeviceReport, Extreme, HostReport, Instant, InstantError, KeptReport,
    KeptTime, Ledger, ObjectReport, ProcessReport, Report, Rows, SCHEMA_VERSION, Snapshot, Spread, StepReport,
    TelemetryReport, Totals, seconds,
};

/// What stands for host memory where a device's UUID stands.
pub(crate) const HOST: &str = "host";

/// Whose memory a moment is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The model's position of a device.
    Device(usize),
    /// Host memory of all processes.
    Host,
}

impl Place {
    /// The device's UUID, or what stands for host memory.
    pub fn text(self, model: &Model) -> String {
        match self {
            Place::Device(device) => device_text(model, device),
            Place::Host => HOST.to_owned(),
        }
    }

    fn figures(self, settled: &Settled) -> &DeviceFigures {
        match self {
            Place::Device(device) => &settled.devices[device],
            Place::Host => &settled.host,
        }
    }

    /// The model's position of the device; `None` for host memory.
    pub fn device(self) -> Option<u16> {
        match self {
            Place::Device(device) => Some(device as u16),
            Place::Host => None,
        }
    }

    /// True for what its live bytes count.
    fn counts(self, model: &Model, allocation: &Allocation) -> bool {
        allocation.is_leaf()
            && match self {
                Place::Device(device) => allocation.on_device() && model.resolve(allocation.device) as usize == device,
                Place::Host => allocation.memory.on_host(),
            }
    }
}

impl Model {
    /// The report of the session as it stands. Walks all changes: of the order of 0.1 s a million.
    ///
    /// # Errors
    /// When the session has no such moment.
    pub fn report(&self, instant: Instant) -> crate::Result<Report> {
        self.report_counted(instant, &Reading::default())
    }

    /// The same; `counted` counts meanwhile, of the model's changes, those that are walked. When all are, about a third of the work is
    /// left.
    ///
    /// # Errors
    /// When the session has no such moment.
    pub fn report_counted(&self, instant: Instant, counted: &Reading) -> crate::Result<Report> {
        let settled = Settled::of_counted(self, counted);
        let mut report = build(self, &settled);
        report.asked = instant.asked();
        (report.at, report.host.at) = at(self, &settled, instant)?;
        Ok(report)
    }
}

impl Words for Model {
    fn name(&self, number: u32) -> String {
        self.names.text(number)
    }

    fn scope(&self, node: u32) -> String {
        self.scopes.path(node, &self.names)
    }

    fn line(&self, node: u32) -> String {
        self.stacks.text(node, &self.names)
    }

    fn pid(&self, process: u32) -> u32 {
        self.processes.get(process as usize).map_or(0, |process| process.info.pid)
    }
}

/// The report of a whole session, without a moment that was asked for.
pub(crate) fn build(model: &Model, settled: &Settled) -> Report {
    let peak_device = peak_device(settled);
    let sites = Sites::of(&model.stacks, &model.names);
    let snapshot = |state: fn(&DeviceFigures) -> Option<State>| {
        let device = peak_device?;
        Some(detailed(model, settled, &sites, Place::Device(device), state(&settled.devices[device])?))
    };
    let mut report = Report {
        schema_version: SCHEMA_VERSION,
        memscope_version: model.session.version.clone(),
        command: model.session.command.clone(),
        exit_status: model.end.as_ref().and_then(|end| end.exit_status),
        outlived: model.end.as_ref().map_or_else(Vec::new, |end| end.outlived.clone()),
        duration_s: seconds(model.end.as_ref().map_or(settled.last_time, |end| end.time)),
        simulated: model.session.simulated.is_some(),
        simulated_device: model.session.simulated.clone(),
        compute: model.computes(),
        node: model.session.called().map(str::to_owned),
        devices: named_devices(model).map(|device| device_report(model, settled, device)).collect(),
        processes: processes(model),
        peak: snapshot(|figures| figures.live),
        category_peaks: category_peaks(settled),
        end: snapshot(|figures| Some(figures.end)),
        asked: None,
        at: None,
        steps: named_devices(model)
            .flat_map(|device| {
                let uuid = device_text(model, device);
                settled.devices[device].steps.iter().map(move |step| step_figures(&uuid, step))
            })
            .collect(),
        host: host_report(model, settled, &sites),
        totals: totals(model),
        kept: kept_report(model, settled.stands_since),
        dropped_events: model.processes.iter().map(|process| process.counters.dropped).sum(),
        findings: Vec::new(),
    };
    report.findings = findings::detect(&findings::Evidence::of_settled(model, settled));
    report
}

fn host_report(model: &Model, settled: &Settled, sites: &Sites) -> HostReport {
    let figures = &settled.host;
    let peak = figures.live;
    let held = peak.is_some();
    HostReport {
        peak: peak.map(|state| extreme(&state, state.rows.live_bytes())).unwrap_or_default(),
        at_peak: peak.map(|state| Rows::from(&state.rows)).unwrap_or_default(),
        at_end: Rows::from(&figures.end.rows),
        moment: peak.map(|state| detailed(model, settled, sites, Place::Host, state)),
        end: held.then(|| detailed(model, settled, sites, Place::Host, figures.end)),
        at: None,
        steps: figures.steps.iter().filter(|_| held).map(|step| step_figures(HOST, step)).collect(),
    }
}

/// What is kept allocation by allocation, when not everything was to be.
fn kept_report(model: &Model, stands_since: Option<Nanoseconds>) -> Option<KeptReport> {
    let figures_from_s = stands_since.map(seconds);
    let asked = model.session.keep?.to_string();
    let span = |span: &KeptSpan| KeptTime { begin_s: seconds(span.begin), end_s: span.end.map(seconds) };
    Some(match model.kept() {
        Some(kept) => {
            let spans = kept.spans.iter().map(span).collect();
            KeptReport { asked, spans, summed: kept.summed, figures_from_s }
        }
        None => {
            let spans = vec![KeptTime { begin_s: 0.0, end_s: None }];
            KeptReport { asked, spans, summed: 0, figures_from_s }
        }
    })
}

/// The same in a sentence; `None` when everything is kept.
pub(crate) fn kept_sentence(model: &Model, stands_since: Option<Nanoseconds>) -> Option<String> {
    model.kept().and(kept_report(model, stands_since)).map(|kept| kept.sentence())
}

/// Positions of the devices that stand for themselves.
pub(crate) fn named_devices(model: &Model) -> impl Iterator<Item = usize> {
    (0..model.devices.len()).filter(|position| model.devices[*position].alias.is_none())
}

/// A device's UUID as nvidia-smi spells it.
pub(crate) fn device_text(model: &Model, device: usize) -> String {
    match model.devices.get(device) {
        Some(device) => match &device.uuid {
            Some(uuid) if uuid.starts_with("mig-") => format!("MIG-{}", &uuid[4..]),
            Some(uuid) => format!("GPU-{uuid}"),
            None => format!("unknown-{}", device.ordinal),
        },
        None => "none".to_owned(),
    }
}

/// The device where live bytes were largest, the first of equals.
pub(crate) fn peak_device(settled: &Settled) -> Option<usize> {
    let live = |figures: &DeviceFigures| figures.live.map(|state| state.rows.live_bytes());
    let peaks = settled.devices.iter().enumerate().filter_map(|(position, figures)| Some((live(figures)?, position)));
    peaks.max_by_key(|(bytes, position)| (*bytes, std::cmp::Reverse(*position))).map(|(_, position)| position)
}

fn extreme(state: &State, bytes: u64) -> Extreme {
    Extreme { bytes, time_s: seconds(state.time), step: state.step }
}

fn device_report(model: &Model, settled: &Settled, position: usize) -> DeviceReport {
    let device = &model.devices[position];
    let figures = &settled.devices[position];
    let ledger = |state: &State| Ledger::of(state, figures.sample_near(state));
    let sample_of = |used: Largest| figures.samples.iter().find(|sample| sample.rows.time == used.time);
    DeviceReport {
        uuid: device_text(model, position),
        name: answers(model, position).find_map(|answer| answer.name.clone()),
        capacity: device.capacity.or_else(|| answers(model, position).find_map(|answer| answer.total)),
        peak: DevicePeaks {
            live: figures.live.map(|state| extreme(&state, state.rows.live_bytes())).unwrap_or_default(),
            reserved: figures.reserved.map(|state| extreme(&state, state.rows.reserved)).unwrap_or_default(),
            device_used: figures.device_used.map(Extreme::from),
            device_used_exact: figures.device_used.and_then(sample_of).map(|sample| sample.settled),
        },
        ledger_at_peak: figures.live.as_ref().map(ledger),
        ledger_at_end: ledger(&figures.end),
        telemetry: telemetry(model, position, figures),
    }
}

/// NVML's answers for one device.
fn answers(model: &Model, position: usize) -> impl Iterator<Item = &crate::journal::entry::DeviceSample> {
    let uuid = model.devices[position].uuid.as_deref();
    let of = move |sample: &'_ TelemetrySample| {
        sample.devices.iter().position(|answer| Some(crate::allocation::canonical(&answer.uuid).as_str()) == uuid)
    };
    model.telemetry.iter().filter_map(move |sample| sample.devices.get(of(sample)?))
}

fn telemetry(model: &Model, position: usize, figures: &DeviceFigures) -> Option<TelemetryReport> {
    let samples = answers(model, position).count() as u64;
    let spread = |value: fn(&crate::journal::entry::DeviceSample) -> Option<u32>| {
        let mut spread: Option<(u32, u64, u64, u32)> = None;
        for value in answers(model, position).filter_map(value) {
            let (min, sum, count, max) = spread.unwrap_or((value, 0, 0, value));
            spread = Some((min.min(value), sum + u64::from(value), count + 1, max.max(value)));
        }
        spread.map(|(min, sum, count, max)| Spread { min, mean: sum as f64 / count as f64, max })
    };
    (samples > 0).then(|| TelemetryReport {
        samples,
        exact_samples: figures.samples.iter().filter(|sample| sample.settled).count() as u64,
        utilization_percent: spread(|answer| answer.utilization),
        temperature_celsius: spread(|answer| answer.temperature),
        power_milliwatts: spread(|answer| answer.power),
        clock_megahertz: spread(|answer| answer.clock),
    })
}

fn processes(model: &Model) -> Vec<ProcessReport> {
    let mut counts: Vec<u64> = model.processes.iter().map(|process| process.forgotten).collect();
    for allocation in &model.allocations {
        counts[allocation.process as usize] += 1;
    }
    let begin = model.carried.as_ref().map(|carried| carried.corrected(model));
    let before = |process: usize| begin.as_ref().and_then(|walk| walk.processes.get(process));
    let report = |(position, (process, allocations)): (usize, (&crate::allocation::Process, u64))| {
        let (peak, peak_reserved) = peaks(model, process, before(position));
        ProcessReport {
            pid: process.info.pid,
            parent_pid: process.info.parent_pid,
            start_time: process.info.start_time,
            exec_count: process.info.exec_count,
            rank: process.info.rank,
            world_size: process.info.world_size,
            local_rank: process.info.local_rank,
            name: process.info.name.clone(),
            devices: devices_of(model, process),
            peak_live: Some(peak.live_bytes()),
            peak_by_category: Some(ByCategory::from_numbers(peak.live)),
            peak_reserved: Some(peak_reserved),
            executable: process.info.executable.clone(),
            command: process.info.command.clone(),
            allocations,
            dropped_events: process.counters.dropped,
            ended: process.counters.ended,
            objects: objects(process),
        }
    };
    model.processes.iter().zip(counts).enumerate().map(report).collect()
}

/// UUIDs of the devices that a process named, each once.
fn devices_of(model: &Model, process: &crate::allocation::Process) -> Vec<String> {
    let positions: BTreeSet<u16> = process.devices.values().map(|device| model.resolve(*device)).collect();
    positions.into_iter().map(|device| device_text(model, device.into())).collect()
}

/// The rows of a process alone where its live bytes were largest, and its largest reserved bytes: its own changes are in the order
/// in which they happened. They go on from what is summed, where not all is kept.
fn peaks(model: &Model, process: &crate::allocation::Process, before: Option<&DeviceTrack>) -> (EventRows, u64) {
    let mut rows = before.map(|track| track.now.rows).unwrap_or_default();
    let mut peak = before.and_then(|track| track.figures.live).map(|state| state.rows).unwrap_or_default();
    let mut reserved = before.and_then(|track| track.figures.reserved).map_or(0, |state| state.rows.reserved);
    for change in (0..process.changes()).filter_map(|position| process.change(position)) {
        let (Change::Birth(id) | Change::Death(id)) = change else { continue };
        let allocation = &model.allocations[id.0 as usize];
        if !allocation.on_device() {
            continue;
        }
        match change {
            Change::Birth(_) => rows.enter(allocation),
            _ => rows.leave(allocation),
        }
        reserved = reserved.max(rows.reserved);
        if rows.live_bytes() > peak.live_bytes() {
            peak = rows;
        }
    }
    (peak, reserved)
}

fn objects(process: &crate::allocation::Process) -> Vec<ObjectReport> {
    let kinds = Object::ALL.into_iter().zip(process.object_counts).filter(|(_, count)| count.made > 0);
    kinds.map(|(kind, count)| ObjectReport { object: kind.name().into(), made: count.made, most: count.most }).collect()
}

fn category_peaks(settled: &Settled) -> CategoryPeaks {
    let mut largest = [Largest::default(); crate::ledger::CATEGORIES];
    for figures in &settled.devices {
        for (largest, own) in largest.iter_mut().zip(figures.categories) {
            if own.bytes > largest.bytes {
                *largest = own;
            }
        }
    }
    let [unknown, weights, gradients, activations, optimizer, inputs, workspace] = largest.map(Extreme::from);
    CategoryPeaks { weights, gradients, activations, optimizer, inputs, workspace, unknown }
}

/// One step as the report says it.
pub(crate) fn step_figures(device: &str, step: &StepFigures) -> StepReport {
    StepReport {
        device: device.to_owned(),
        step: step.number,
        turn: step.turn,
        begin_s: seconds(step.begin),
        end_s: step.end.map(|state| seconds(state.time)),
        peak: Extreme { step: Some(step.number), ..extreme(&step.peak, step.peak.rows.live_bytes()) },
        by_category: ByCategory::from_numbers(step.peak.rows.live),
        live_at_end: step.end.map(|state| state.rows.live_bytes()),
    }
}

fn totals(model: &Model) -> Totals {
    let mut totals = model.forgotten;
    model.allocations.iter().for_each(|allocation| totals.count(allocation));
    let refused = |marker: &&crate::allocation::Marker| marker.failure().is_some();
    totals.refused += model.markers.iter().filter(refused).count() as u64;
    totals
}

/// What an allocation of a model is for a snapshot.
pub(crate) fn held(model: &Model, sites: &Sites, allocation: &Allocation, lifetime: Lifetime) -> Held {
    Held {
        birth: lifetime.birth,
        time: model.processes[allocation.process as usize]
            .time(allocation.birth_ticks, model.session.start_monotonic_ns),
        address: allocation.address,
        requested: allocation.requested,
        category: allocation.category,
        origin: allocation.origin,
        name: allocation.name,
        scope: allocation.scope,
        function: allocation.function,
        site: sites.site(allocation.stack),
        step: allocation.step.checked_sub(1).map(|position| model.steps.value(position)),
        process: allocation.process,
    }
}

/// What is live in device memory of one device right after a change.
pub(crate) fn live_at<'m>(
    model: &'m Model,
    lifetimes: &'m [Lifetime],
    device: usize,
    order: u32,
) -> impl Iterator<Item = (&'m Allocation, Lifetime)> + use<'m> {
    live_in(model, lifetimes, Place::Device(device), order)
}

/// What is live in a place right after a change.
pub(crate) fn live_in<'m>(
    model: &'m Model,
    lifetimes: &'m [Lifetime],
    place: Place,
    order: u32,
) -> impl Iterator<Item = (&'m Allocation, Lifetime)> + use<'m> {
    lived_in(model, lifetimes, place, (order, order))
}

/// What is live in a place right after one change, or any later one until another.
pub(crate) fn lived_in<'m>(
    model: &'m Model,
    lifetimes: &'m [Lifetime],
    place: Place,
    (from, until): (u32, u32),
) -> impl Iterator<Item = (&'m Allocation, Lifetime)> + use<'m> {
    let lived = move |lifetime: &Lifetime| lifetime.birth <= until && from < lifetime.death;
    let all = model.allocations.iter().zip(lifetimes.iter().copied());
    all.filter(move |(allocation, lifetime)| lived(lifetime) && place.counts(model, allocation))
}

/// A state in detail: of one that is summed only, as far as it was told before.
fn detailed(model: &Model, settled: &Settled, sites: &Sites, place: Place, state: State) -> Snapshot {
    let carried = || model.carried_peak(place, &state).map(|peak| peak.snapshot.clone());
    let summed = !model.keeps(state.order);
    let made = || snapshot(model, &settled.lifetimes, place.figures(settled), sites, place, state);
    match summed.then(carried) {
        Some(Some(carried)) => carried,
        // What lives now of what lived then would be taken for all of it.
        Some(None) => snapshot(model, &[], place.figures(settled), sites, place, state),
        None => made(),
    }
}

/// A state in detail, from the allocations that are there.
pub(crate) fn snapshot(
    model: &Model,
    lifetimes: &[Lifetime],
    figures: &DeviceFigures,
    sites: &Sites,
    place: Place,
    state: State,
) -> Snapshot {
    let mut tops = Tops::default();
    let mut scope = None;
    for (allocation, lifetime) in live_in(model, lifetimes, place, state.order) {
        if lifetime.birth == state.order {
            scope = Some(model.scope(allocation.scope)).filter(|scope| !scope.is_empty());
        }
        tops.add(held(model, sites, allocation, lifetime));
    }
    let moment = Moment {
        device: place.text(model),
        state,
        phase: model.name(state.phase),
        scope,
        sample: figures.sample_near(&state).copied(),
    };
    moment.snapshot(&tops, model)
}

/// The moment on a device, and of host memory, where each has it.
fn at(
    model: &Model,
    settled: &Settled,
    instant: Instant,
) -> Result<(Option<Snapshot>, Option<Snapshot>), InstantError> {
    let host = settled.host.live.is_some();
    let largest = |states: Vec<(usize, State)>| {
        states.into_iter().max_by_key(|(device, state)| (state.rows.live_bytes(), std::cmp::Reverse(*device)))
    };
    let (found, of_host) = match instant {
        Instant::Peak => (None, None),
        Instant::End => {
            (peak_device(settled).map(|device| (device, settled.devices[device].end)), Some(settled.host.end))
        }
        Instant::Step(number) => {
            let peak = |figures: &DeviceFigures| figures.step_named(number).map(|step| step.peak);
            let peaks = named_devices(model).filter_map(|device| Some((device, peak(&settled.devices[device])?)));
            let found = (largest(peaks.collect()), peak(&settled.host));
            if found.0.is_none() && (found.1.is_none() || !host) {
                let devices = named_devices(model).map(|device| &settled.devices[device]);
                let figures = devices.chain([&settled.host]).flat_map(|figures| &figures.steps);
                return Err(InstantError::no_step(number, figures.map(|step| step.number)));
            }
            let summed = |state: &State| !model.keeps(state.order);
            if found.0.as_ref().map_or(found.1.as_ref(), |(_, state)| Some(state)).is_some_and(summed) {
                return Err(InstantError::Summed {
                    asked: instant.to_string(),
                    kept: kept_sentence(model, settled.stands_since).unwrap_or_default(),
                });
            }
            found
        }
        Instant::Time(time)
            if model.kept().is_some_and(|kept| !kept.has_time(time))
                || settled.stands_since.is_some_and(|since| since <= time) =>
        {
            return Err(InstantError::Summed {
                asked: instant.to_string(),
                kept: kept_sentence(model, settled.stands_since).unwrap_or_default(),
            });
        }
        Instant::Time(time) => {
            let (devices, of_host) = states_at(model, settled, time);
            (largest(devices), Some(of_host))
        }
    };
    let sites = Sites::of(&model.stacks, &model.names);
    let snapshot = |(place, state): (Place, State)| {
        let mut snapshot = detailed(model, settled, &sites, place, state);
        if let Instant::Time(_) = instant {
            // A time lies between changes: no allocation made it.
            snapshot.scope = None;
        }
        snapshot
    };
    let found = found.map(|(device, state)| (Place::Device(device), state));
    let of_host = of_host.filter(|_| host).map(|state| (Place::Host, state));
    Ok((found.map(snapshot), of_host.map(snapshot)))
}

/// Each device, and host memory, right after the last change at or before a time.
fn states_at(model: &Model, settled: &Settled, time: Nanoseconds) -> (Vec<(usize, State)>, State) {
    let begin = model.carried.as_ref().map(|carried| carried.walk.walked.clone()).unwrap_or_default();
    let order = Merge::new(model, &settled.exits, &begin).take_while(|moment| moment.time <= time).last();
    let carried = model.carried.as_ref().map(|carried| *carried.walk.clock.around(time).0.end());
    let Some(order) = order.map(|moment| moment.order).or(carried) else {
        let nothing = State { time, ..State::default() };
        return (named_devices(model).map(|device| (device, nothing)).collect(), nothing);
    };
    let phases = settled.markers.iter().filter(|moment| moment.time <= time);
    let phase = phases.rev().find_map(|moment| model.markers[moment.marker as usize].phase()).unwrap_or_default();
    let state = |figures: &DeviceFigures| State { phase, ..figures.state_at(order, time) };
    let mut states: Vec<State> = settled.devices.iter().map(state).collect();
    let mut host = state(&settled.host);
    for (allocation, lifetime) in model.allocations.iter().zip(&settled.lifetimes) {
        if !lifetime.spans(order) {
            continue;
        }
        if allocation.memory.on_host() {
            host.enter(allocation);
        } else if let Some(state) = states.get_mut(model.resolve(allocation.device) as usize) {
            state.enter(allocation);
        }
    }
    (named_devices(model).map(|device| (device, states[device])).collect(), host)
}
