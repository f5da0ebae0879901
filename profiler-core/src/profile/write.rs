//! Writes a profile.
//!
//! Owns: which fact goes to which column. Refuses: to leave half a file behind.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};

use crate::allocation::{Allocation, AllocationId, MarkerKind, Model, Process, flag};
use crate::error::{Error, Result};
use crate::journal::entry::{Nanoseconds, SessionInfo};
use crate::keep::Kept;
use crate::report::{self, HostReport, Report, device_text, named_devices};
use crate::timeline::{ALIVE, Bucket, Series, Settled, StepFigures};

use super::archive::Writing;
use super::summed::{self, SUMMED};
use super::table::{self, Column, Field, GROUP_ROWS};
use super::{FORMAT_VERSION, MANIFEST, member, schema};

/// What the manifest says.
#[derive(Serialize, Deserialize)]
pub(super) struct Manifest {
    /// `memscope-profile`.
    pub format: String,
    pub format_version: u32,
    pub session: SessionInfo,
    /// Rows of the table of allocations.
    pub allocations: u64,
    /// Changes in the session's order: births, deaths and markers.
    pub changes: u32,
    /// Which moments have their rows, when that is not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
    /// The report of the peak, without steps (tables hold them).
    pub report: Report,
}

/// How a manifest begins in every version.
#[derive(Deserialize)]
pub(super) struct ManifestHead {
    pub format: String,
    pub format_version: u32,
}

pub(super) const FORMAT: &str = "memscope-profile";

/// The one table that has no rows of what is not kept.
const ALLOCATIONS: &str = "allocations";
/// Key of what is kept, in that table's own metadata.
const KEPT: &str = "memscope.kept";

/// Writes the session as a profile, under its name only when it is complete. Returns the report that it holds ready.
///
/// # Errors
/// When the file exists and `force` is false, and when it cannot be written.
pub fn write(model: &Model, path: impl AsRef<Path>, force: bool) -> Result<Report> {
    let path = path.as_ref();
    let mut out = Writing::new(path, force)?;
    let settled = Settled::of(model);
    let mut report = report::build(model, &settled);
    let tables = Tables { model, settled: &settled };
    let steps = std::mem::take(&mut report.steps);
    let host_steps = std::mem::take(&mut report.host.steps);
    let manifest = Manifest {
        format: FORMAT.to_owned(),
        format_version: FORMAT_VERSION,
        session: model.session.clone(),
        allocations: model.allocations.len() as u64,
        changes: settled.changes,
        kept: model.kept().map(|kept| Kept { stands_since: settled.stands_since, ..kept.clone() }),
        report,
    };
    let failed = |error: std::io::Error| Error::io("write", path)(error);
    let text = serde_json::to_vec_pretty(&manifest).map_err(|error| failed(error.into()))?;
    out.member(MANIFEST)?.write_all(&text).map_err(failed)?;
    if let Some(carried) = summed::of(model, &settled) {
        summed::write(&carried, out.member(SUMMED)?).map_err(failed)?;
    }
    let mut table = |name: &str, fields: &[Field], groups: usize, group: &mut dyn FnMut(usize) -> Vec<Column>| {
        let member = out.member(&member(name))?;
        // Whoever has this table alone knows that its rows are not all.
        let said = manifest.kept.as_ref().filter(|_| name == ALLOCATIONS).map(serde_json::to_string).transpose();
        let said = said.map_err(|error| failed(error.into()))?.map(|text| (KEPT, text));
        table::write(member, fields, said, groups, group).map_err(|error| match error {
            // What the file system said, without the crate's wrapping.
            ParquetError::External(cause) => failed(std::io::Error::other(cause)),
            error => failed(std::io::Error::other(error)),
        })
    };
    let rows = tables.allocation_order();
    let groups = rows.order.len().div_ceil(GROUP_ROWS);
    table(ALLOCATIONS, schema::ALLOCATIONS, groups, &mut |group| {
        let end = rows.order.len().min((group + 1) * GROUP_ROWS);
        tables.allocations(&rows, &rows.order[group * GROUP_ROWS..end])
    })?;
    table("names", schema::NAMES, 1, &mut |_| tables.names())?;
    table("scopes", schema::SCOPES, 1, &mut |_| tables.scopes())?;
    table("stacks", schema::STACKS, 1, &mut |_| tables.stacks())?;
    table("processes", schema::PROCESSES, 1, &mut |_| tables.processes())?;
    table("devices", schema::DEVICES, 1, &mut |_| tables.devices(&manifest.report))?;
    table("markers", schema::MARKERS, 1, &mut |_| tables.markers())?;
    table("steps", schema::STEPS, 1, &mut |_| tables.steps())?;
    table("telemetry", schema::TELEMETRY, 1, &mut |_| tables.telemetry())?;
    table("device_rows", schema::DEVICE_ROWS, 1, &mut |_| tables.device_rows())?;
    table("series", schema::SERIES, 1, &mut |_| tables.series())?;
    // All but the device, which these do not have.
    table("host_steps", &schema::STEPS[1..], 1, &mut |_| tables.host_steps())?;
    table("host_series", &schema::SERIES[1..], 1, &mut |_| tables.host_series())?;
    table("findings", schema::FINDINGS, 1, &mut |_| findings(&manifest.report))?;
    out.finish()?;
    let host = HostReport { steps: host_steps, ..manifest.report.host };
    Ok(Report { steps, host, ..manifest.report })
}

/// Allocations in the order of births.
struct AllocationOrder {
    order: Vec<u32>,
    /// Row by allocation; empty when row and number are the same.
    rows: Vec<u32>,
}

impl AllocationOrder {
    fn row(&self, id: AllocationId) -> u32 {
        self.rows.get(id.0 as usize).copied().unwrap_or(id.0)
    }
}

struct Tables<'m> {
    model: &'m Model,
    settled: &'m Settled,
}

impl Tables<'_> {
    fn allocation_order(&self) -> AllocationOrder {
        let lifetimes = &self.settled.lifetimes;
        let mut order: Vec<u32> = (0..lifetimes.len() as u32).collect();
        if lifetimes.is_sorted_by_key(|lifetime| lifetime.birth) {
            return AllocationOrder { order, rows: Vec::new() };
        }
        order.sort_unstable_by_key(|id| lifetimes[*id as usize].birth);
        let mut rows = vec![0; order.len()];
        for (row, id) in order.iter().enumerate() {
            rows[*id as usize] = row as u32;
        }
        AllocationOrder { order, rows }
    }

    fn time(&self, process: u32, ticks: u64) -> Nanoseconds {
        self.model.processes[process as usize].time(ticks, self.model.session.start_monotonic_ns)
    }

    fn death(&self, allocation: &Allocation) -> Option<u64> {
        let exit = self.settled.exits[allocation.process as usize].filter(|_| allocation.is(flag::AT_EXIT));
        let death = || exit.unwrap_or_else(|| self.time(allocation.process, allocation.death_ticks)).0;
        allocation.is(flag::DEAD).then(death)
    }

    /// A group of allocations, in the order of [`schema::ALLOCATIONS`].
    fn allocations(&self, rows: &AllocationOrder, ids: &[u32]) -> Vec<Column> {
        let all = &self.model.allocations;
        let each = || ids.iter().map(|id| &all[*id as usize]);
        let lifetimes = || ids.iter().map(|id| self.settled.lifetimes[*id as usize]);
        let device = |allocation: &Allocation| {
            (allocation.device != Allocation::NO_DEVICE).then(|| u32::from(self.model.resolve(allocation.device)))
        };
        let step = |allocation: &Allocation| allocation.step.checked_sub(1).map(|step| self.model.steps.value(step));
        vec![
            Column::narrow(lifetimes().map(|lifetime| lifetime.birth)),
            Column::optional_narrow(lifetimes().map(|lifetime| Some(lifetime.death).filter(|death| *death != ALIVE))),
            Column::wide(each().map(|allocation| self.time(allocation.process, allocation.birth_ticks).0)),
            Column::optional_wide(each().map(|allocation| self.death(allocation))),
            Column::wide(each().map(|allocation| allocation.address)),
            Column::wide(each().map(|allocation| allocation.bytes)),
            Column::wide(each().map(|allocation| allocation.requested)),
            Column::narrow(each().map(|allocation| allocation.category as u32)),
            Column::narrow(each().map(|allocation| allocation.origin as u32)),
            Column::narrow(each().map(|allocation| allocation.memory as u32)),
            Column::narrow(each().map(|allocation| allocation.process)),
            Column::optional_narrow(each().map(device)),
            Column::wide(each().map(|allocation| self.model.streams.value(allocation.stream))),
            Column::optional_narrow(each().map(|allocation| allocation.container().map(|id| rows.row(id)))),
            Column::optional_wide(each().map(step)),
            Column::narrow(each().map(|allocation| allocation.phase)),
            Column::narrow(each().map(|allocation| allocation.scope)),
            Column::narrow(each().map(|allocation| allocation.name)),
            Column::narrow(each().map(|allocation| allocation.function)),
            Column::narrow(each().map(|allocation| allocation.thread)),
            Column::narrow(each().map(|allocation| u32::from(allocation.flags))),
            Column::narrow(each().map(|allocation| allocation.stack)),
        ]
    }

    fn names(&self) -> Vec<Column> {
        let ids = 0..self.model.names.len() as u32;
        vec![Column::narrow(ids.clone()), Column::text(ids.map(|id| self.model.names.text(id)))]
    }

    fn scopes(&self) -> Vec<Column> {
        let (scopes, names) = (&self.model.scopes, &self.model.names);
        let ids = 0..scopes.len() as u32;
        vec![
            Column::narrow(ids.clone()),
            Column::narrow(ids.clone().map(|id| scopes.parent(id))),
            Column::narrow(ids.clone().map(|id| scopes.name(id))),
            Column::text(ids.map(|id| scopes.path(id, names))),
        ]
    }

    fn stacks(&self) -> Vec<Column> {
        let ids = 0..self.model.stacks.len() as u32;
        let each = || ids.clone().map(|id| self.model.stacks.node(id));
        let text = |name: u32| self.model.names.text(name);
        vec![
            Column::narrow(ids.clone()),
            Column::narrow(each().map(|node| node.parent)),
            Column::text(each().map(|node| text(node.file))),
            Column::narrow(each().map(|node| node.line)),
            Column::text(each().map(|node| text(node.function))),
        ]
    }

    fn processes(&self) -> Vec<Column> {
        let each = || self.model.processes.iter().map(|process| &process.info);
        let start = self.model.session.start_monotonic_ns;
        let last = |process: &Process| process.ticks.map(|ticks| process.time(ticks, start).0);
        let closed = self.model.processes.iter().map(|process| process.counters.closed_ns);
        vec![
            Column::narrow(0..self.model.processes.len() as u32),
            Column::narrow(each().map(|info| info.pid)),
            Column::narrow(each().map(|info| info.parent_pid)),
            Column::wide(each().map(|info| info.start_time)),
            Column::narrow(each().map(|info| info.exec_count)),
            Column::optional_narrow(each().map(|info| info.rank)),
            Column::text(each().map(|info| info.executable.clone())),
            Column::text(each().map(|info| json(&info.command))),
            Column::text(self.model.processes.iter().map(|process| json(&self.devices_of(process)))),
            Column::optional_wide(self.model.processes.iter().map(last)),
            Column::optional_wide(self.settled.exits.iter().map(|exit| exit.map(|exit| exit.0))),
            Column::optional_narrow(each().map(|info| info.world_size)),
            Column::optional_narrow(each().map(|info| info.local_rank)),
            Column::optional_text(each().map(|info| info.name.clone())),
            Column::optional_wide(each().map(|info| info.began_ns.map(|began| began.saturating_sub(start)))),
            Column::optional_wide(closed.map(|closed| closed.map(|closed| closed.saturating_sub(start)))),
        ]
    }

    /// Positions of the devices that a process named, each once.
    fn devices_of(&self, process: &Process) -> BTreeSet<u16> {
        process.devices.values().map(|device| self.model.resolve(*device)).collect()
    }

    fn devices(&self, report: &Report) -> Vec<Column> {
        let each = || named_devices(self.model).zip(&report.devices);
        vec![
            Column::narrow(each().map(|(position, _)| position as u32)),
            Column::text(each().map(|(position, _)| device_text(self.model, position))),
            Column::optional_text(each().map(|(_, device)| device.name.clone())),
            Column::optional_wide(each().map(|(_, device)| device.capacity)),
            Column::narrow(each().map(|(position, _)| self.model.devices[position].ordinal)),
        ]
    }

    fn line(&self, line: u32) -> Option<String> {
        Some(self.model.names.text(line)).filter(|text| !text.is_empty())
    }

    fn markers(&self) -> Vec<Column> {
        let each = || self.settled.markers.iter().map(|moment| (moment, &self.model.markers[moment.marker as usize]));
        let failure = || each().map(|(_, marker)| marker.failure());
        let kind = |kind: &MarkerKind| match kind {
            MarkerKind::Step(_) => "step",
            MarkerKind::Phase(_) => "phase",
            MarkerKind::Failure(_) => "refused",
        };
        let step = |kind: &MarkerKind| match kind {
            MarkerKind::Step(step) => Some(self.model.steps.value(*step)),
            _ => None,
        };
        let phase = |kind: &MarkerKind| match kind {
            MarkerKind::Phase(phase) => Some(self.model.names.text(*phase)),
            _ => None,
        };
        let device = |device: u16| (device != Allocation::NO_DEVICE).then(|| u32::from(self.model.resolve(device)));
        vec![
            Column::narrow(each().map(|(moment, _)| moment.order)),
            Column::wide(each().map(|(moment, _)| moment.time.0)),
            Column::narrow(each().map(|(_, marker)| marker.process)),
            Column::text(each().map(|(_, marker)| kind(&marker.kind).to_owned())),
            Column::optional_wide(each().map(|(_, marker)| step(&marker.kind))),
            Column::optional_text(each().map(|(_, marker)| phase(&marker.kind))),
            Column::optional_text(failure().map(|failure| Some(self.model.names.text(failure?.function)))),
            Column::optional_narrow(failure().map(|failure| Some(failure?.scope))),
            Column::optional_narrow(failure().map(|failure| device(failure?.device))),
            Column::optional_narrow(failure().map(|failure| Some(failure?.memory as u32))),
            Column::optional_wide(failure().map(|failure| Some(failure?.requested))),
            Column::optional_wide(failure().map(|failure| failure.filter(|f| f.total > 0).map(|f| f.free))),
            Column::optional_wide(failure().map(|failure| failure.filter(|f| f.total > 0).map(|f| f.total))),
            Column::optional_signed(failure().map(|failure| Some(i64::from(failure?.result)))),
            Column::optional_text(failure().map(|failure| self.line(failure?.line))),
            Column::optional_narrow(failure().map(|failure| Some(u32::from(failure?.asked_again)))),
        ]
    }

    fn steps(&self) -> Vec<Column> {
        let each = || {
            let steps = |device: usize| self.settled.devices[device].steps.iter().map(move |step| (device, step));
            named_devices(self.model).flat_map(steps)
        };
        let mut columns = vec![Column::narrow(each().map(|(device, _)| device as u32))];
        columns.extend(step_columns(|| each().map(|(_, step)| step)));
        columns
    }

    fn host_steps(&self) -> Vec<Column> {
        let host = &self.settled.host;
        step_columns(|| host.steps.iter().filter(|_| host.live.is_some()))
    }

    fn telemetry(&self) -> Vec<Column> {
        let each = || {
            let answers = |sample: &'_ crate::journal::entry::TelemetrySample| {
                let (begin, time) = (sample.begin.0, sample.time.0);
                sample.devices.iter().cloned().map(move |device| (begin, time, device)).collect::<Vec<_>>()
            };
            self.model.telemetry.iter().flat_map(answers)
        };
        vec![
            Column::wide(each().map(|(begin, _, _)| begin)),
            Column::wide(each().map(|(_, time, _)| time)),
            Column::text(each().map(|(_, _, device)| device.uuid)),
            Column::optional_wide(each().map(|(_, _, device)| device.total)),
            Column::optional_wide(each().map(|(_, _, device)| device.used)),
            Column::optional_wide(each().map(|(_, _, device)| device.reserved)),
            Column::optional_narrow(each().map(|(_, _, device)| device.utilization)),
            Column::optional_narrow(each().map(|(_, _, device)| device.temperature)),
            Column::optional_narrow(each().map(|(_, _, device)| device.power)),
            Column::optional_narrow(each().map(|(_, _, device)| device.clock)),
            Column::optional_text(each().map(|(_, _, device)| device.processes.as_ref().map(json))),
            Column::optional_narrow(each().map(|(_, _, device)| device.memory_clock)),
            Column::optional_narrow(each().map(|(_, _, device)| device.power_limit)),
            Column::optional_narrow(each().map(|(_, _, device)| device.fan)),
            Column::optional_narrow(each().map(|(_, _, device)| device.pcie_generation)),
            Column::optional_narrow(each().map(|(_, _, device)| device.pcie_width)),
            Column::optional_wide(each().map(|(_, _, device)| device.pcie_receive)),
            Column::optional_wide(each().map(|(_, _, device)| device.pcie_send)),
        ]
    }

    fn device_rows(&self) -> Vec<Column> {
        let each = || {
            let samples =
                |device: usize| self.settled.devices[device].samples.iter().map(move |sample| (device, sample));
            named_devices(self.model).flat_map(samples)
        };
        let rows = || each().map(|(_, sample)| &sample.rows);
        vec![
            Column::narrow(each().map(|(device, _)| device as u32)),
            Column::wide(rows().map(|rows| rows.time.0)),
            Column::optional_wide(each().map(|(_, sample)| sample.step)),
            Column::narrow(each().map(|(_, sample)| u32::from(sample.settled))),
            Column::wide(rows().map(|rows| rows.device_used)),
            Column::optional_wide(rows().map(|rows| rows.this_process)),
            Column::optional_wide(rows().map(|rows| rows.other_processes)),
            Column::optional_wide(rows().map(|rows| rows.firmware_reserved)),
            Column::optional_signed(rows().map(|rows| rows.unowned)),
            Column::wide(rows().map(|rows| rows.reserved)),
            Column::optional_signed(rows().map(|rows| rows.unexplained)),
        ]
    }

    fn series(&self) -> Vec<Column> {
        let each = || {
            let buckets = |device: usize| buckets(&self.settled.devices[device].series).map(move |own| (device, own));
            named_devices(self.model).flat_map(buckets)
        };
        let mut columns = vec![Column::narrow(each().map(|(device, _)| device as u32))];
        columns.extend(series_columns(|| each().map(|(_, own)| own)));
        columns
    }

    fn host_series(&self) -> Vec<Column> {
        let host = &self.settled.host;
        series_columns(|| buckets(&host.series).filter(|_| host.live.is_some()))
    }
}

/// Steps without the device that they are of.
fn step_columns<'s, I: Iterator<Item = &'s StepFigures> + 's>(each: impl Fn() -> I) -> Vec<Column> {
    let mut columns = vec![
        Column::wide(each().map(|step| step.number)),
        Column::wide(each().map(|step| step.begin.0)),
        Column::optional_wide(each().map(|step| step.end.map(|state| state.time.0))),
        Column::narrow(each().map(|step| step.peak.order)),
        Column::wide(each().map(|step| step.peak.time.0)),
        Column::narrow(each().map(|step| step.peak.phase)),
        Column::wide(each().map(|step| step.peak.rows.live_bytes())),
    ];
    columns.extend(categories(|category| each().map(move |step| step.peak.rows.live[category])));
    columns.push(Column::optional_wide(each().map(|step| step.end.map(|state| state.rows.live_bytes()))));
    columns.push(Column::narrow(each().map(|step| step.turn)));
    columns
}

/// The buckets of a series, each with its begin.
fn buckets(series: &Series) -> impl Iterator<Item = (u64, &Bucket)> {
    (series.buckets.iter().enumerate()).map(|(number, bucket)| (number as u64 * series.width_ns, bucket))
}

/// Buckets without the device that they are of.
fn series_columns<'s, I: Iterator<Item = (u64, &'s Bucket)> + 's>(each: impl Fn() -> I) -> Vec<Column> {
    let mut columns = vec![Column::wide(each().map(|(begin, _)| begin))];
    columns.extend(categories(|category| each().map(move |(_, bucket)| bucket.live[category])));
    columns.push(Column::wide(each().map(|(_, bucket)| bucket.reserved)));
    columns
}

/// One column a category, in the order of the tables: weights first, unknown last.
fn categories<I: Iterator<Item = u64>>(values: impl Fn(usize) -> I) -> Vec<Column> {
    [1, 2, 3, 4, 5, 6, 0].into_iter().map(|category| Column::wide(values(category))).collect()
}

fn findings(report: &Report) -> Vec<Column> {
    let each = || report.findings.iter();
    let severity = |severity| json(&severity).trim_matches('"').to_owned();
    vec![
        Column::text(each().map(|finding| finding.detail.kind().to_owned())),
        Column::text(each().map(|finding| severity(finding.severity))),
        Column::text(each().map(|finding| finding.message.clone())),
        Column::text(each().map(|finding| finding.advice.clone())),
        Column::text(each().map(|finding| json(&finding.detail))),
    ]
}

/// JSON of plain data, which cannot fail.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
