//! The live model of a session: feed it entries, ask it at any time.
//!
//! Owns: all that is known of the session, and the running ledgers. Refuses: figures over the whole session (`timeline`).

use std::collections::HashMap;
use std::ops::Range;

use memscope_wire::{Category, MemoryKind, Origin};

use serde::{Deserialize, Serialize};

use crate::journal::entry::{Nanoseconds, ProcessIndex, SessionEnd, SessionInfo, TelemetrySample};
use crate::keep::Carried;
use crate::ledger::{CATEGORIES, EventRows, Sum};
use crate::report::{Report, Totals};
use crate::symbols::Symbols;

use super::device::Device;
use super::doubts::Doubts;
use super::names::{Names, Scopes};
use super::owner::Owners;
use super::process::Process;
use super::row::{Allocation, AllocationId};
use super::simulation::Simulation;
use super::stacks::Stacks;

/// A session as far as its entries have been applied.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Model {
    pub(crate) session: SessionInfo,
    pub(crate) end: Option<SessionEnd>,
    pub(crate) truncated: Option<String>,
    /// Why processes have no logs, and how many each, in a session without an end: names as in the wire format.
    #[serde(default)]
    pub(crate) refusals: Vec<(String, u32)>,
    /// Why nothing was captured and what to do about it, where a profile says so.
    #[serde(skip)]
    pub(crate) nothing: Option<(String, String)>,
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) names: Names,
    pub(super) owners: Owners,
    pub(crate) scopes: Scopes,
    pub(crate) stacks: Stacks,
    /// What finds the lines behind addresses, where they are wanted.
    #[serde(skip)]
    pub(crate) symbols: Option<Symbols>,
    /// By the name of a module's path: its scope.
    pub(crate) paths: HashMap<u32, u32>,
    /// What hooks could not do, as sentences.
    pub(crate) notices: Vec<String>,
    pub(crate) simulation: Simulation,
    pub(crate) steps: Numbers,
    pub(crate) streams: Numbers,
    pub(crate) devices: Vec<Device>,
    pub(crate) device_by_uuid: HashMap<String, u16>,
    pub(crate) host: EventRows,
    pub(crate) processes: Vec<Process>,
    pub(crate) process_by_index: HashMap<ProcessIndex, usize>,
    pub(crate) markers: Vec<Marker>,
    pub(crate) telemetry: Vec<TelemetrySample>,
    pub(crate) doubts: Doubts,
    /// Allocations and blocks that are not there any more, and refusals.
    pub(crate) forgotten: Totals,
    /// The same, with what pools have kept.
    pub(crate) forgotten_rows: u64,
    /// What was before, where the model does not begin with its session.
    #[serde(skip)]
    pub(crate) carried: Option<Box<Carried>>,
    /// By scope: live device memory now.
    pub(crate) scope_sums: Vec<Sum>,
    peak_live: u64,
}

/// Numbers that repeat (steps, streams), each stored once.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Numbers {
    values: Vec<u64>,
    positions: HashMap<u64, u32>,
}

impl Numbers {
    /// Position of this value, new if need be.
    pub fn position(&mut self, value: u64) -> u32 {
        let next = self.values.len() as u32;
        let position = *self.positions.entry(value).or_insert(next);
        if position == next {
            self.values.push(value);
        }
        position
    }

    /// The value at a position.
    pub fn value(&self, position: u32) -> u64 {
        self.values.get(position as usize).copied().unwrap_or_default()
    }

    /// All of them, by position.
    pub fn values(&self) -> &[u64] {
        &self.values
    }
}

/// A moment that is not an allocation's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Marker {
    /// Position of the process.
    pub process: u32,
    /// Clock of the process.
    pub ticks: u64,
    pub kind: MarkerKind,
}

impl Marker {
    /// The phase that begins here, if this marks one.
    pub fn phase(&self) -> Option<u32> {
        match self.kind {
            MarkerKind::Phase(phase) => Some(phase),
            _ => None,
        }
    }

    /// What was refused, if this marks a refused allocation.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.kind {
            MarkerKind::Failure(failure) => Some(failure),
            _ => None,
        }
    }
}

/// A step's begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepMark {
    /// Position of its process in the session, as [`Allocation::process`].
    pub process: u32,
    /// Clock of its process, as [`Allocation::birth_ticks`].
    pub ticks: u64,
    /// Its number.
    pub number: u64,
}

/// What a marker marks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum MarkerKind {
    /// A step begins: position in the table of steps.
    Step(u32),
    /// A phase begins: a name.
    Phase(u32),
    /// The driver refused an allocation.
    Failure(Failure),
}

/// An allocation that the driver refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub requested: u64,
    pub free: u64,
    pub total: u64,
    pub device: u16,
    pub result: i32,
    pub function: u32,
    #[serde(with = "super::written::memory")]
    pub memory: MemoryKind,
    pub scope: u32,
    pub phase: u32,
    pub step: u32,
    /// The line of the program that asked, a name; 0 when it was not told.
    pub line: u32,
    /// Whoever asked did so again at once: the program has not met this refusal.
    pub asked_again: bool,
}

/// What one entry changed, for views that keep what they drew.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    /// Allocations that are new.
    pub born: Range<u32>,
    /// Allocations that ended.
    pub ended: Vec<AllocationId>,
    /// Allocations whose end was taken back: the driver refused the free.
    pub revived: Vec<AllocationId>,
    /// Allocations whose category or name changed, for their whole life.
    pub retagged: Vec<Retag>,
    /// Allocations that turned out to be containers.
    pub containers: Vec<AllocationId>,
    /// True when a step or phase began, an allocation was refused, or the session's own facts changed.
    pub marks: bool,
}

/// A category or name learned later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retag {
    /// Whose.
    pub allocation: AllocationId,
    /// The category until now.
    pub was: Category,
    /// The category from now on.
    pub is: Category,
    /// How it is known.
    pub origin: Origin,
}

/// What fits on one line while the session runs. Sums over all devices, in bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Device memory in use by what is live.
    pub live_bytes: u64,
    /// Largest [`Progress::live_bytes`] so far.
    pub peak_live_bytes: u64,
    /// The same by [`Category`] number.
    pub live_by_category: [u64; CATEGORIES],
    /// Device memory granted by the driver.
    pub reserved_bytes: u64,
    /// Allocations and blocks so far.
    pub allocations: u64,
    /// The step begun last, in whatever process.
    pub step: Option<u64>,
    /// Processes seen so far.
    pub processes: u64,
    /// Events that could not be written.
    pub dropped_events: u64,
    /// One a device.
    pub devices: Vec<DeviceProgress>,
}

/// One device of [`Progress`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceProgress {
    /// UUID, without `GPU-`; `None` when only its ordinal is known.
    pub uuid: Option<String>,
    /// Total memory, if known.
    pub capacity: Option<u64>,
    /// Live bytes.
    pub live_bytes: u64,
    /// Largest live bytes so far.
    pub peak_live_bytes: u64,
    /// Bytes granted by the driver.
    pub reserved_bytes: u64,
}

impl Model {
    /// A session of which nothing is known yet.
    pub fn new() -> Model {
        Model { names: Names::new(), ..Model::default() }
    }

    /// The same, which finds the lines behind places in machine code: it reads the files of the profiled program.
    pub fn with_symbols() -> Model {
        Model { symbols: Some(Symbols::default()), ..Model::new() }
    }

    /// Says that the journal broke off, and why; reports carry it as a finding. More than one reason may be given.
    pub fn journal_truncated(&mut self, why: impl Into<String>) {
        let why = why.into();
        self.truncated = Some(match self.truncated.take() {
            Some(known) => format!("{known}; {why}"),
            None => why,
        });
    }

    /// Says why processes of a session without an end have no logs, and how many each: names as in the wire format.
    pub fn refusals(&mut self, refusals: Vec<(String, u32)>) {
        self.refusals = refusals;
    }

    /// Births, deaths and markers, in all.
    pub fn changes(&self) -> u64 {
        self.processes.iter().map(|process| process.changes() as u64).sum()
    }

    /// Says that no more entries come. A session whose end was never recorded is marked as cut short.
    pub fn finish(&mut self) -> Report {
        if self.end.is_none() && self.truncated.is_none() {
            self.journal_truncated("it has no end, so memscope did not end in an orderly way");
        }
        crate::report::build(self, &crate::timeline::Settled::of(self))
    }

    /// The session's facts.
    pub fn session(&self) -> &SessionInfo {
        &self.session
    }

    /// All allocations and blocks, by [`AllocationId`].
    pub fn allocations(&self) -> &[Allocation] {
        &self.allocations
    }

    /// Where steps begin, in the order of each process.
    pub fn steps(&self) -> impl Iterator<Item = StepMark> {
        self.markers.iter().filter_map(|marker| self.step_mark(marker))
    }

    /// The step that begins at a marker, if it marks one.
    pub(crate) fn step_mark(&self, marker: &Marker) -> Option<StepMark> {
        match marker.kind {
            MarkerKind::Step(position) => {
                let number = self.steps.value(position);
                Some(StepMark { process: marker.process, ticks: marker.ticks, number })
            }
            _ => None,
        }
    }

    /// The names that allocations refer to.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The scopes that allocations refer to.
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// The places in the program that allocations refer to.
    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// The devices, without those that turned out to be another one.
    pub fn devices(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(|device| device.alias.is_none())
    }

    /// What [`Allocation::device`] is of allocations on the device with this UUID.
    pub fn device_of(&self, uuid: &str) -> Option<u16> {
        self.device_by_uuid.get(&super::canonical(uuid)).copied()
    }

    /// The ledger of pinned host memory now.
    pub fn host(&self) -> &EventRows {
        &self.host
    }

    /// Where the session stands.
    pub fn progress(&self) -> Progress {
        let mut progress = Progress {
            peak_live_bytes: self.peak_live,
            allocations: self.seen(),
            step: self.last_step(),
            processes: self.processes.len() as u64,
            dropped_events: self.processes.iter().map(|process| process.counters.dropped).sum(),
            ..Progress::default()
        };
        for device in self.devices() {
            let live = device.rows.live_bytes();
            progress.live_bytes = progress.live_bytes.wrapping_add(live);
            progress.reserved_bytes = progress.reserved_bytes.wrapping_add(device.rows.reserved);
            for (sum, bytes) in progress.live_by_category.iter_mut().zip(device.rows.live) {
                *sum = sum.wrapping_add(bytes);
            }
            progress.devices.push(DeviceProgress {
                uuid: device.uuid.clone(),
                capacity: device.capacity,
                live_bytes: live,
                peak_live_bytes: device.peak_live,
                reserved_bytes: device.rows.reserved,
            });
        }
        progress
    }

    fn last_step(&self) -> Option<u64> {
        self.markers.iter().rev().find_map(|marker| match marker.kind {
            MarkerKind::Step(position) => Some(self.steps.value(position)),
            _ => None,
        })
    }

    /// False when nothing was computed: the user wanted that, or the program's CUDA libraries were simulated.
    pub(crate) fn computes(&self) -> bool {
        self.session.compute && !self.simulation.not_computed
    }

    /// The last moment of which anything is known.
    pub(crate) fn last_time(&self) -> Nanoseconds {
        let records = self
            .processes
            .iter()
            .filter_map(|process| Some(process.time(process.ticks?, self.session.start_monotonic_ns)));
        let samples = self.telemetry.last().map(|sample| sample.time);
        records.chain(samples).chain(self.end.as_ref().map(|end| end.time)).max().unwrap_or_default()
    }

    /// The device that a position means now.
    pub(crate) fn resolve(&self, mut position: u16) -> u16 {
        while let Some(alias) = self.devices.get(position as usize).and_then(|device| device.alias) {
            position = alias;
        }
        position
    }

    /// An allocation is live from now on, with its present category and kind.
    pub(crate) fn enter(&mut self, allocation: &Allocation) {
        self.ledgers(allocation, EventRows::enter);
        self.scope_sum(allocation, Sum::enter);
    }

    /// An allocation is live no more; it must have entered with the same category and kind.
    pub(crate) fn leave(&mut self, allocation: &Allocation) {
        self.ledgers(allocation, EventRows::leave);
        self.scope_sum(allocation, Sum::leave);
    }

    fn scope_sum(&mut self, allocation: &Allocation, act: impl Fn(&mut Sum, &Allocation)) {
        if !allocation.is_leaf() || !allocation.on_device() {
            return;
        }
        if self.scope_sums.len() < self.scopes.len() {
            self.scope_sums.resize(self.scopes.len(), Sum::default());
        }
        if let Some(sum) = self.scope_sums.get_mut(allocation.scope as usize) {
            act(sum, allocation);
        }
    }

    /// The ledgers in which an allocation counts.
    fn ledgers(&mut self, allocation: &Allocation, act: impl Fn(&mut EventRows, &Allocation)) {
        let Allocation { memory, device, .. } = *allocation;
        if memory.on_host() {
            return act(&mut self.host, allocation);
        }
        let position = self.resolve(device) as usize;
        match (self.devices.get_mut(position), memory) {
            (None, _) => act(&mut self.host, allocation),
            (Some(device), MemoryKind::Managed) => act(&mut device.managed, allocation),
            (Some(of), _) => {
                act(&mut of.rows, allocation);
                if let Some(process) = self.processes.get_mut(allocation.process as usize) {
                    act(process.held_mut(device), allocation);
                }
            }
        }
    }

    /// Takes note of a new maximum, after something entered.
    pub(crate) fn note_peak(&mut self, device: u16) {
        let device = self.resolve(device) as usize;
        if let Some(device) = self.devices.get_mut(device) {
            device.peak_live = device.peak_live.max(device.rows.live_bytes());
        }
        let live = self.devices().fold(0u64, |sum, device| sum.wrapping_add(device.rows.live_bytes()));
        self.peak_live = self.peak_live.max(live);
    }
}
