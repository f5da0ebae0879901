//! Opens a profile and answers from it.
//!
//! Owns: the checks of opening, and the report of any moment. Refuses: a file of another version, and a damaged one.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;

use crate::error::{Error, Result};
use crate::journal::entry::{Nanoseconds, SessionInfo};
use crate::ledger::DeviceRows;
use crate::report::{ByCategory, Extreme};
use crate::report::{HOST, Instant, InstantError, KeptReport, Report, StepReport, seconds};
use crate::timeline::{SampleRows, State};

use super::archive::{Archive, Slice};
use super::decoder::survive;
use super::table::Table;
use super::write::{FORMAT, Manifest, ManifestHead};
use super::{ADDED_TABLES, FORMAT_VERSION, MANIFEST, TABLES, member};

/// A profile that is open.
pub struct Profile {
    archive: RefCell<Archive>,
    pub(super) manifest: Manifest,
    pub(super) steps: Vec<StepRow>,
    /// Of host memory.
    pub(super) host_steps: Vec<StepRow>,
}

/// A row of the table of steps; of host memory the device says nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepRow {
    pub device: u32,
    pub number: u64,
    pub turn: u32,
    pub begin: Nanoseconds,
    pub end: Option<Nanoseconds>,
    pub peak_order: u32,
    pub peak_time: Nanoseconds,
    pub peak_phase: u32,
    pub peak_bytes: u64,
    pub by_category: ByCategory,
    pub live_at_end: Option<u64>,
}

/// A row of the table of devices.
#[derive(Clone, Debug)]
pub(super) struct DeviceRow {
    pub id: u32,
    pub uuid: String,
}

impl Profile {
    /// Opens a profile: reads its manifest and its steps, nothing that grows with the number of allocations.
    ///
    /// # Errors
    /// When the file cannot be read, is no profile, is damaged or cut short, or was written by a newer memscope.
    pub fn open(path: impl AsRef<Path>) -> Result<Profile> {
        let path = path.as_ref();
        let mut archive = Archive::open(path)?;
        let text = archive.read(MANIFEST)?;
        let head: ManifestHead = serde_json::from_slice(&text).map_err(|error| archive.damaged(MANIFEST, error))?;
        if head.format != FORMAT {
            return Err(Error::format(path, "this is a zip file, but not a memscope profile"));
        }
        if head.format_version != FORMAT_VERSION {
            let (found, supported) = (head.format_version, FORMAT_VERSION);
            return Err(Error::Version { path: path.to_path_buf(), found, supported });
        }
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|error| archive.damaged(MANIFEST, error))?;
        let mut profile =
            Profile { archive: RefCell::new(archive), manifest, steps: Vec::new(), host_steps: Vec::new() };
        profile.steps = profile.read_steps("steps")?;
        let devices = profile.devices()?;
        let uuid = |id: u32| devices.iter().find(|device| device.id == id).map(|device| device.uuid.clone());
        profile.manifest.report.steps =
            profile.steps.iter().filter_map(|step| Some(step.report(uuid(step.device)?))).collect();
        // A profile that tells of host memory has its steps, too: one without is damaged.
        if profile.manifest.report.host.moment.is_some() {
            profile.host_steps = profile.read_steps("host_steps")?;
            profile.manifest.report.host.steps =
                profile.host_steps.iter().map(|step| step.report(HOST.to_owned())).collect();
        }
        Ok(profile)
    }

    /// What the session is.
    pub fn session(&self) -> &SessionInfo {
        &self.manifest.session
    }

    /// How many allocations and blocks it holds.
    pub fn allocations(&self) -> u64 {
        self.manifest.allocations
    }

    /// The report of a moment. That of the peak and of the end lies ready; others are computed from the rows.
    ///
    /// # Errors
    /// When the session has no such moment, or the tables are damaged.
    pub fn report(&self, instant: Instant) -> Result<Report> {
        if self.says_little_of_host() {
            let host = self.model()?.report(instant)?;
            return Ok(Report { findings: self.findings(), ..host });
        }
        let mut report = self.manifest.report.clone();
        report.asked = instant.asked();
        (report.at, report.host.at) = match instant {
            Instant::Peak => (None, None),
            Instant::End => (report.end.clone(), report.host.end.clone()),
            Instant::Time(time) if self.manifest.kept.as_ref().is_some_and(|kept| !kept.has_time(time)) => {
                return Err(self.is_summed(instant));
            }
            Instant::Step(number) => {
                let here = self.steps.iter().filter(|step| step.number == number);
                let first = |step: &StepRow| std::cmp::Reverse((step.device, step.begin));
                let step = here.max_by_key(|step| (step.peak_bytes, first(step)));
                let here = self.host_steps.iter().filter(|step| step.number == number);
                let of_host = here.max_by_key(|step| (step.peak_bytes, std::cmp::Reverse(step.begin)));
                if step.is_none() && of_host.is_none() {
                    let steps = self.steps.iter().chain(&self.host_steps).map(|step| step.number);
                    return Err(InstantError::no_step(number, steps).into());
                }
                let peak = step.or(of_host).map(|step| step.peak_order);
                if self.manifest.kept.as_ref().is_some_and(|kept| peak.is_some_and(|peak| !kept.has_order(peak))) {
                    return Err(self.is_summed(instant));
                }
                self.snapshots_of_step(step, of_host)?
            }
            Instant::Time(time) => self.snapshots_at(time)?,
        };
        Ok(report)
    }

    /// What is kept allocation by allocation, where not all was to be.
    pub fn kept(&self) -> Option<&KeptReport> {
        self.manifest.report.kept.as_ref()
    }

    /// The moment is told in figures alone.
    fn is_summed(&self, instant: Instant) -> Error {
        let kept = self.kept().map(KeptReport::sentence).unwrap_or_default();
        InstantError::Summed { asked: instant.to_string(), kept }.into()
    }

    /// True for a profile of a session without device memory from before host memory had steps and moments: all of its rows have
    /// to be read.
    fn says_little_of_host(&self) -> bool {
        let report = &self.manifest.report;
        report.is_of_host() && report.host.moment.is_none()
    }

    /// Its tables: those of [`TABLES`], without what older profiles do not have.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &'static str> + '_ {
        TABLES.into_iter().filter(|table| !ADDED_TABLES.contains(table) || self.has_table(table))
    }

    pub(super) fn has_table(&self, table: &str) -> bool {
        self.archive.borrow().has(&member(table))
    }

    /// A member that only some profiles have.
    pub(super) fn member_bytes(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let mut archive = self.archive.borrow_mut();
        if archive.has(name) { archive.read(name).map(Some) } else { Ok(None) }
    }

    /// A member is damaged.
    pub(super) fn damaged(&self, name: &str, what: String) -> Error {
        self.archive.borrow().damaged(name, what)
    }

    /// The bytes of a table's Parquet file, checked.
    pub(crate) fn table_bytes(&self, table: &str) -> Result<impl std::io::Read + use<>> {
        Ok(self.slice(table)?.into_read())
    }

    pub(super) fn slice(&self, table: &str) -> Result<Slice> {
        self.archive.borrow_mut().checked_slice(&member(table))
    }

    /// A table, its checksum checked.
    pub(super) fn table(&self, name: &str) -> Result<Table<Slice>> {
        let slice = self.slice(name)?;
        self.guard(name, || Table::open(slice))
    }

    /// Runs a reader of a table. Its errors name the file; a panic of the decoder, which only a file made to deceive can
    /// provoke, becomes one.
    pub(super) fn guard<T>(&self, table: &str, read: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T> {
        let damaged = |what: String| self.archive.borrow().damaged(&member(table), what);
        match survive(read) {
            Some(result) => result.map_err(|error| damaged(error.to_string())),
            None => Err(damaged("it cannot be decoded".to_owned())),
        }
    }

    /// Steps of devices, or of host memory.
    fn read_steps(&self, name: &str) -> Result<Vec<StepRow>> {
        let table = self.table(name)?;
        self.guard(name, || {
            let column = |name: &str| table.numbers(name);
            let whole = |name: &str| Ok::<_, parquet::errors::ParquetError>(Whole(column(name)?));
            let device = if table.has("device") { whole("device")? } else { Whole(Vec::new()) };
            let (number, begin) = (whole("step")?, whole("begin_ns")?);
            let (peak_order, peak_ns, peak_phase) = (whole("peak_order")?, whole("peak_ns")?, whole("peak_phase")?);
            let (end, live_at_end, peak_bytes) = (column("end_ns")?, column("live_at_end")?, whole("peak_bytes")?);
            let (weights, gradients, activations) = (whole("weights")?, whole("gradients")?, whole("activations")?);
            let (optimizer, inputs) = (whole("optimizer")?, whole("inputs")?);
            let (workspace, unknown) = (whole("workspace")?, whole("unknown")?);
            let said = table.added_numbers("turn")?;
            // Where the table does not say it: rows of a device are in the order in which its steps began.
            let mut turns: HashMap<(u64, u64), u32> = HashMap::new();
            let mut turn = |at: usize| {
                let counted = turns.entry((device.at(at), number.at(at))).and_modify(|turn| *turn += 1).or_insert(1);
                said.get(at).copied().flatten().map_or(*counted, |turn| turn as u32)
            };
            let row = |at: usize| StepRow {
                device: device.at(at) as u32,
                number: number.at(at),
                turn: turn(at),
                begin: Nanoseconds(begin.at(at)),
                end: end.get(at).copied().flatten().map(Nanoseconds),
                peak_order: peak_order.at(at) as u32,
                peak_time: Nanoseconds(peak_ns.at(at)),
                peak_phase: peak_phase.at(at) as u32,
                peak_bytes: peak_bytes.at(at),
                by_category: ByCategory {
                    weights: weights.at(at),
                    gradients: gradients.at(at),
                    activations: activations.at(at),
                    optimizer: optimizer.at(at),
                    inputs: inputs.at(at),
                    workspace: workspace.at(at),
                    unknown: unknown.at(at),
                },
                live_at_end: live_at_end.get(at).copied().flatten(),
            };
            Ok((0..number.0.len()).map(row).collect())
        })
    }

    pub(super) fn devices(&self) -> Result<Vec<DeviceRow>> {
        let table = self.table("devices")?;
        self.guard("devices", || {
            let (ids, uuids) = (table.numbers("id")?, table.texts("uuid")?);
            let row = |(id, uuid): (Option<u64>, Option<String>)| DeviceRow {
                id: id.unwrap_or_default() as u32,
                uuid: uuid.unwrap_or_default(),
            };
            Ok(ids.into_iter().zip(uuids).map(row).collect())
        })
    }

    /// The exact device rows of one device that speak best for a moment: see [`State::distance`].
    pub(super) fn sample_near(&self, device: u32, state: &State) -> Result<Option<SampleRows>> {
        let table = self.table("device_rows")?;
        self.guard("device_rows", || {
            let (devices, times, exact) =
                (table.numbers("device")?, table.numbers("time_ns")?, table.numbers("exact")?);
            let reserved = table.numbers("reserved")?;
            let here = |row: &usize| devices[*row] == Some(u64::from(device)) && exact.get(*row) == Some(&Some(1));
            let at = |row: usize| times.get(row).copied().flatten().unwrap_or_default();
            let reserved = |row: usize| reserved.get(row).copied().flatten().unwrap_or_default();
            let best =
                (0..devices.len()).filter(here).min_by_key(|row| state.distance(Nanoseconds(at(*row)), reserved(*row)));
            let Some(row) = best else { return Ok(None) };
            let value =
                |name: &str| Ok::<_, parquet::errors::ParquetError>(table.numbers(name)?.get(row).copied().flatten());
            let rows = DeviceRows {
                time: Nanoseconds(at(row)),
                device_used: value("device_used")?.unwrap_or_default(),
                this_process: value("this_process")?,
                other_processes: value("other_processes")?,
                firmware_reserved: value("firmware_reserved")?,
                unowned: value("unowned")?.map(|bytes| bytes as i64),
                reserved: reserved(row),
                unexplained: value("unexplained")?.map(|bytes| bytes as i64),
            };
            Ok(Some(SampleRows { rows, step: value("step")?, settled: true }))
        })
    }
}

/// A column without absent values; beyond its end it reads 0.
struct Whole(Vec<Option<u64>>);

impl Whole {
    fn at(&self, row: usize) -> u64 {
        self.0.get(row).copied().flatten().unwrap_or_default()
    }
}

impl StepRow {
    pub(super) fn report(&self, device: String) -> StepReport {
        StepReport {
            device,
            step: self.number,
            turn: self.turn,
            begin_s: seconds(self.begin),
            end_s: self.end.map(seconds),
            peak: Extreme { bytes: self.peak_bytes, time_s: seconds(self.peak_time), step: Some(self.number) },
            by_category: self.by_category,
            live_at_end: self.live_at_end,
        }
    }
}
