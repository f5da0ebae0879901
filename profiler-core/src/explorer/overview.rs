//! What a profile tells before its rows are read: enough to draw its timeline at once.
//!
//! Owns: an answer made from what the profile holds ready. Refuses: lists, processes, and any other moment than the peak.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::ledger::EventRows;
use crate::profile::Profile;
use crate::report::{self, Ledger, Snapshot, StepReport, nanoseconds};
use crate::timeline::State;

use super::answer::{Answer, DeviceView, MomentView, Running, ScopeTotal, SessionView, StepView};
use super::gravest::Gravest;
use super::query::{At, Target};
use super::steps;

/// An answer about the device of the largest live bytes (where none had any, about host memory), at its peak (where it has none, at
/// the end of the session), in a hundredth of a second: its session, devices, peak, series, step marks, steps, refusals, findings
/// and largest scopes. There are no processes and no lists in it, of steps no number of allocations and no shape, and the rows of
/// devices are those of the end.
///
/// # Errors
/// When the profile's tables are damaged.
pub fn overview_of(profile: &Profile) -> crate::Result<Answer> {
    let report = profile.summary();
    let info = profile.session().clone();
    let devices: Vec<DeviceView> = report
        .devices
        .iter()
        .zip(profile.ordinals()?)
        .map(|(device, ordinal)| DeviceView {
            uuid: device.uuid.clone(),
            name: device.name.clone(),
            ordinal,
            capacity: device.capacity,
            rows: rows(&device.ledger_at_end.rows),
            peak_live: device.peak.live.bytes,
            sample: None,
            exact: None,
        })
        .collect();
    // Devices of which only an ordinal is known have one name: the report's peak is on the device of the largest peak.
    let device = devices.iter().enumerate().max_by_key(|(at, device)| (device.peak_live, Reverse(*at)));
    let device = device.map_or(0, |(position, _)| position);
    let of_host = report.is_of_host();
    let peak = if of_host { &report.host.moment } else { &report.peak };
    let capacity = devices.get(device).and_then(|device| device.capacity).filter(|_| !of_host);
    let moment = |snapshot: &Snapshot| MomentView { capacity, ..moment(snapshot) };
    let ledger = report.devices.get(device).map(|device| &device.ledger_at_end).filter(|_| !of_host);
    // Where no device memory was ever live, the report has no moment, and so no step and no phase.
    let at_end = |ledger: &Ledger| MomentView { state: state(ledger, None), capacity, ..MomentView::default() };
    let all = match of_host {
        true => views(&report.host.steps),
        false => views(&profile.steps_of(device)?),
    };
    let series = if of_host { profile.host_series()? } else { profile.series_of(device)? };
    let gravest = match Gravest::of(&report.findings, &devices, &[]) {
        Some(gravest) => {
            let steps = gravest.device.map_or(Ok(Vec::new()), |device| profile.steps_of(device.into()))?;
            Some(gravest.among(steps.iter().map(|step| nanoseconds(step.begin_s))))
        }
        None => None,
    };
    let marks = steps::thinned(all.iter().map(|step| (step.begin, step.number)), 0);
    let scopes = peak.iter().flat_map(|peak| &peak.top_scope_groups).map(ScopeTotal::from);
    Ok(Answer {
        session: SessionView {
            info,
            state: Running::Ended,
            reading: true,
            exit_status: report.exit_status,
            last_time: nanoseconds(report.duration_s),
            allocations: profile.allocations() + report.kept.as_ref().map_or(0, |kept| kept.summed),
            to_read: profile.allocations(),
            dropped_events: report.dropped_events,
            ..SessionView::default()
        },
        target: if of_host || devices.is_empty() { Target::All } else { Target::Device(device as u16) },
        of_host,
        has_host: report.host.peak.bytes > 0,
        at: if peak.is_some() { At::Peak } else { At::Live },
        now: peak.as_ref().map(moment).or_else(|| ledger.map(at_end)).unwrap_or_default(),
        peak: peak.as_ref().map(moment),
        series: Arc::new(series),
        step_marks: Arc::new(marks),
        refusals: Arc::new(profile.refusals()?),
        steps_repeat: all.iter().any(|step| step.turn > 1),
        steps_total: all.len(),
        steps: all,
        top_scopes: Arc::new(scopes.collect()),
        top_scopes_bytes: peak.as_ref().map_or(0, |peak| peak.bytes),
        gravest,
        findings: Arc::new(report.findings.clone()),
        devices,
        ..Answer::default()
    })
}

/// Steps as far as they are told.
fn views(steps: &[StepReport]) -> Vec<StepView> {
    let mut before: Option<u64> = None;
    let view = |step: &StepReport| {
        let growth = step.live_at_end.zip(before).map(|(end, before)| end.wrapping_sub(before) as i64);
        before = step.live_at_end;
        StepView {
            number: step.step,
            turn: step.turn,
            begin: nanoseconds(step.begin_s),
            end: step.end_s.map(nanoseconds),
            peak: step.peak.bytes,
            at_peak: step.by_category.numbers(),
            at_end: step.live_at_end,
            growth,
            ..StepView::default()
        }
    };
    steps.iter().map(view).collect()
}

fn rows(rows: &report::Rows) -> EventRows {
    EventRows {
        reserved: rows.reserved,
        live: rows.by_category.numbers(),
        rounding: rows.rounding,
        cached: rows.cached,
        pools: rows.pools,
    }
}

fn state(ledger: &Ledger, step: Option<u64>) -> State {
    let (rows, managed) = (rows(&ledger.rows), rows(&ledger.managed));
    State { order: 0, time: nanoseconds(ledger.time_s), step, phase: 0, rows, managed }
}

fn moment(snapshot: &Snapshot) -> MomentView {
    let phase = snapshot.phase.clone().unwrap_or_default();
    MomentView { state: state(&snapshot.ledger, snapshot.step), phase, ..MomentView::default() }
}
