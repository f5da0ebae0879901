//! What a report says, as data: the JSON report is this, serialised, and the text report is made from it.
//!
//! Owns: the shape (schema version 1, docs/report.schema.json) and its making. Refuses: to change the meaning of a key within
//! a schema version; keys may be added.
//!
//! Sizes are integers in bytes, times are seconds since the session began. What is not known is `null`, never 0.

mod build;
mod called;
mod group;
mod instant;
mod kept;
mod snapshot;
mod text;
pub mod units;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::allocation::{Allocation, flag};
use crate::findings::Finding;
use crate::journal::entry::{Nanoseconds, Survivor};
use crate::ledger::{CATEGORIES, DeviceRows, EventRows};

pub use called::called;
pub use group::{Group, lies_in};
pub use instant::{Instant, InstantError};
pub use kept::{KeptReport, KeptTime};
pub use text::{Style, circumstances, finding, text};

pub(crate) use build::{
    HOST, Place, build, device_text, kept_sentence, live_at, live_in, lived_in, named_devices, snapshot,
};
pub(crate) use group::{Groups, Together, pattern, together};
pub(crate) use snapshot::{Held, Moment, Tops, Words};
pub(crate) use text::fit;

/// The version of the report's shape.
pub const SCHEMA_VERSION: u32 = 1;

/// A whole report.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// 1.
    pub schema_version: u32,
    /// The memscope that recorded the session.
    pub memscope_version: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// As memscope returned it: 128+N for a signal; `null` while the program runs, or when that is not known.
    pub exit_status: Option<i32>,
    /// Processes of the program that still ran when the recording ended: what they did from then on is not in here.
    #[serde(default)]
    pub outlived: Vec<Survivor>,
    /// From the session's start to its end, or to the last moment that is known.
    pub duration_s: f64,
    /// True when the devices were simulated.
    pub simulated: bool,
    /// What was simulated, as given with `--device`.
    pub simulated_device: Option<String>,
    /// False when kernels and copies were skipped (`--no-compute`, or because the CUDA libraries were simulated too).
    pub compute: bool,
    /// Name of the machine on which it was recorded; `null` when that is not known.
    #[serde(default)]
    pub node: Option<String>,
    /// The devices that the program named to itself.
    pub devices: Vec<DeviceReport>,
    /// The processes that were recorded.
    pub processes: Vec<ProcessReport>,
    /// The moment of the largest live bytes, on the device where they were largest; `null` when nothing was allocated.
    pub peak: Option<Snapshot>,
    /// Each category's own maximum; these need not be at the same moment.
    pub category_peaks: CategoryPeaks,
    /// The last moment before memory was only given back, on the device of the peak: by processes that ended with memory, or,
    /// where the program left nothing to that, by its last frees.
    pub end: Option<Snapshot>,
    /// Which moment was asked for, when it was not the peak: `end`, `step:N` or `time:S`.
    #[serde(default)]
    pub asked: Option<String>,
    /// The moment that was asked for, when it was not the peak; `null` when there was no device memory then.
    pub at: Option<Snapshot>,
    /// Steps, by device and in the order in which they began.
    pub steps: Vec<StepReport>,
    /// Host memory: pinned, and CPU tensors of a framework.
    pub host: HostReport,
    /// Counts.
    pub totals: Totals,
    /// What is kept allocation by allocation; absent when everything was to be. Totals, steps and largest values are those of the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptReport>,
    /// Events that could not be written; figures are too low when this is not 0.
    pub dropped_events: u64,
    /// What is worth knowing, gravest first.
    pub findings: Vec<Finding>,
}

/// Bytes by category.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ByCategory {
    /// Parameters (and buffers) of the model.
    pub weights: u64,
    /// Gradients of parameters.
    pub gradients: u64,
    /// Kept from forward for backward.
    pub activations: u64,
    /// State of the optimizer.
    pub optimizer: u64,
    /// Batches.
    pub inputs: u64,
    /// Temporaries.
    pub workspace: u64,
    /// Not known to memscope.
    pub unknown: u64,
}

impl ByCategory {
    /// From values by category number.
    pub fn from_numbers(live: [u64; CATEGORIES]) -> ByCategory {
        let [unknown, weights, gradients, activations, optimizer, inputs, workspace] = live;
        ByCategory { weights, gradients, activations, optimizer, inputs, workspace, unknown }
    }

    /// Values by category number.
    pub fn numbers(&self) -> [u64; CATEGORIES] {
        [self.unknown, self.weights, self.gradients, self.activations, self.optimizer, self.inputs, self.workspace]
    }

    /// Names and values, `unknown` last.
    pub fn named(&self) -> [(&'static str, u64); CATEGORIES] {
        [
            ("weights", self.weights),
            ("gradients", self.gradients),
            ("activations", self.activations),
            ("optimizer", self.optimizer),
            ("inputs", self.inputs),
            ("workspace", self.workspace),
            ("unknown", self.unknown),
        ]
    }
}

/// A largest value.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Extreme {
    /// How much.
    pub bytes: u64,
    /// When it was first reached.
    pub time_s: f64,
    /// In which step; `null` before the first.
    pub step: Option<u64>,
}

impl From<crate::timeline::Extreme> for Extreme {
    fn from(extreme: crate::timeline::Extreme) -> Extreme {
        Extreme { bytes: extreme.bytes, time_s: seconds(extreme.time), step: extreme.step }
    }
}

/// Each category's own maximum over all devices.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the categories are explained at ByCategory")]
pub struct CategoryPeaks {
    pub weights: Extreme,
    pub gradients: Extreme,
    pub activations: Extreme,
    pub optimizer: Extreme,
    pub inputs: Extreme,
    pub workspace: Extreme,
    pub unknown: Extreme,
}

/// One device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeviceReport {
    /// UUID as nvidia-smi spells it; `unknown-N` when the program named only ordinal N.
    pub uuid: String,
    /// Product name, from NVML.
    pub name: Option<String>,
    /// Total memory.
    pub capacity: Option<u64>,
    /// Largest values, each by itself.
    pub peak: DevicePeaks,
    /// The ledger where live bytes were largest.
    pub ledger_at_peak: Option<Ledger>,
    /// The ledger at the last moment before memory was only given back; see `end` of the report.
    pub ledger_at_end: Ledger,
    /// What NVML said over the session.
    pub telemetry: Option<TelemetryReport>,
}

/// Largest values of a device.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DevicePeaks {
    /// Bytes asked for by what is live.
    pub live: Extreme,
    /// Bytes granted by the driver.
    pub reserved: Extreme,
    /// All use of the device, as NVML's samples saw it: the total less what is free.
    pub device_used: Option<Extreme>,
    /// False when that sample was taken while memory was changing.
    #[serde(default)]
    pub device_used_exact: Option<bool>,
}

/// Rows that add up at every event: reserved = live + rounding + cached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Rows {
    /// Granted by the driver.
    pub reserved: u64,
    /// Asked for by what is live; the sum of `by_category`.
    pub live: u64,
    /// Live bytes by category.
    pub by_category: ByCategory,
    /// Granted to what is live beyond what was asked for.
    pub rounding: u64,
    /// In containers and in no block.
    pub cached: u64,
    /// Of `cached`: what the driver's pools keep beyond what is allocated from them.
    #[serde(default)]
    pub pools: u64,
}

impl From<&EventRows> for Rows {
    fn from(rows: &EventRows) -> Rows {
        Rows {
            reserved: rows.reserved,
            live: rows.live_bytes(),
            by_category: ByCategory::from_numbers(rows.live),
            rounding: rows.rounding,
            cached: rows.cached,
            pools: rows.pools,
        }
    }
}

/// A device's ledger at one moment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// The moment.
    pub time_s: f64,
    /// Device memory.
    #[serde(flatten)]
    pub rows: Rows,
    /// Managed memory, which may live on the host and exceed the device.
    pub managed: Rows,
    /// The device as a whole, at the exact sample that met the same reserved memory, else at the one nearest in time; `null`
    /// when there is none.
    pub device: Option<DeviceLedger>,
}

/// Rows that hold at a telemetry sample: device_used = this_process + other_processes + firmware_reserved + unowned, and
/// this_process = reserved + unexplained.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeviceLedger {
    /// When the sample was taken.
    pub sample_time_s: f64,
    /// All that is in use on the device: the total less what is free.
    pub device_used: u64,
    /// Used by the recorded processes.
    pub this_process: Option<u64>,
    /// Used by other processes.
    pub other_processes: Option<u64>,
    /// Reserved by firmware and driver.
    pub firmware_reserved: Option<u64>,
    /// Used, and of no process that NVML lists.
    pub unowned: Option<i64>,
    /// Granted by the driver at this moment.
    pub reserved: u64,
    /// Contexts, modules, libraries.
    pub unexplained: Option<i64>,
}

impl From<&DeviceRows> for DeviceLedger {
    fn from(rows: &DeviceRows) -> DeviceLedger {
        DeviceLedger {
            sample_time_s: seconds(rows.time),
            device_used: rows.device_used,
            this_process: rows.this_process,
            other_processes: rows.other_processes,
            firmware_reserved: rows.firmware_reserved,
            unowned: rows.unowned,
            reserved: rows.reserved,
            unexplained: rows.unexplained,
        }
    }
}

/// What NVML said of a device over the session.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TelemetryReport {
    /// Samples taken.
    pub samples: u64,
    /// Samples without a driver event in their window, at which the device rows are exact.
    pub exact_samples: u64,
    /// Percent of time with a kernel running.
    pub utilization_percent: Option<Spread>,
    /// Degrees Celsius.
    pub temperature_celsius: Option<Spread>,
    /// Milliwatts.
    pub power_milliwatts: Option<Spread>,
    /// Graphics clock.
    pub clock_megahertz: Option<Spread>,
}

/// Smallest, mean and largest value.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Spread {
    pub min: u32,
    pub mean: f64,
    pub max: u32,
}

/// One process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProcessReport {
    /// Process id.
    pub pid: u32,
    /// Parent's process id.
    pub parent_pid: u32,
    /// Start time in clock ticks since boot.
    pub start_time: u64,
    /// Which program of this process: exec replaces it.
    pub exec_count: u32,
    /// Rank in a distributed job.
    pub rank: Option<u32>,
    /// How many ranks that job has.
    #[serde(default)]
    pub world_size: Option<u32>,
    /// Rank on its node.
    #[serde(default)]
    pub local_rank: Option<u32>,
    /// What it calls itself, such as `SpawnProcess-1`, where that is not its program's name.
    #[serde(default)]
    pub name: Option<String>,
    /// UUIDs of the devices that it named.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Largest live bytes of its own, of all its devices together; `null` in files of earlier versions.
    #[serde(default)]
    pub peak_live: Option<u64>,
    /// Live bytes by category at that moment.
    #[serde(default)]
    pub peak_by_category: Option<ByCategory>,
    /// Largest reserved bytes.
    #[serde(default)]
    pub peak_reserved: Option<u64>,
    /// Path of the executable.
    pub executable: String,
    /// Its arguments.
    pub command: Vec<String>,
    /// Allocations of the driver and blocks.
    pub allocations: u64,
    /// Events that could not be written.
    pub dropped_events: u64,
    /// True once it is gone.
    pub ended: bool,
    /// What the driver made for it without telling its bytes; they are in `unexplained`.
    #[serde(default)]
    pub objects: Vec<ObjectReport>,
}

/// One kind of what the driver makes without telling its bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ObjectReport {
    /// `context`, `module`, `library`, `pool`, `graph` (that can be launched), `external` (imported memory of another interface),
    /// `multicast`, or `other`.
    pub object: String,
    /// How many were made.
    pub made: u64,
    /// Most at one time.
    pub most: u64,
}

/// One moment on one device, or of host memory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// UUID of the device; `host` for host memory.
    pub device: String,
    /// `live`: what `bytes` counts.
    pub of: String,
    /// Live bytes.
    pub bytes: u64,
    /// When.
    pub time_s: f64,
    /// In which step; `null` before the first.
    pub step: Option<u64>,
    /// In which phase.
    pub phase: Option<String>,
    /// Scope of the allocation that was made at this moment, if one was.
    pub scope: Option<String>,
    /// Live bytes by category.
    pub by_category: ByCategory,
    /// The ledger of the device, or of host memory, at this moment.
    pub ledger: Ledger,
    /// The groups of alike allocations that hold most.
    #[serde(default)]
    pub top_groups: Vec<Group>,
    /// As `top_scopes`, with scopes counted together whose names differ only in numbers, which are `*`.
    #[serde(default)]
    pub top_scope_groups: Vec<ScopeGroup>,
    /// The scopes that hold most, by live bytes of allocations made in them (not in scopes inside them).
    pub top_scopes: Vec<ScopeGroup>,
    /// The largest allocations.
    pub top_allocations: Vec<LargeAllocation>,
}

/// Live bytes made in one scope.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScopeGroup {
    /// Names from the outermost scope on, joined by `/`; empty outside all scopes.
    pub scope: String,
    /// Live bytes.
    pub bytes: u64,
    /// How many allocations.
    pub allocations: u64,
    /// Live bytes by category.
    pub by_category: ByCategory,
}

/// One live allocation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LargeAllocation {
    /// Name from its tag.
    pub name: Option<String>,
    /// What it is for.
    pub category: String,
    /// How that is known: tagged, hooked, inferred or none.
    pub origin: String,
    /// Bytes asked for.
    pub bytes: u64,
    /// Scope at its birth.
    pub scope: String,
    /// Step at its birth.
    pub step: Option<u64>,
    /// When it was made.
    pub time_s: f64,
    /// The driver's function, and the file whose code asked for it: `cuMemAlloc_v2 from train`; `null` for a block.
    pub function: Option<String>,
    /// The program's line that made it, where that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// Process id.
    pub pid: u32,
    /// Address in the process.
    pub address: u64,
}

/// One step on one device, or of host memory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StepReport {
    /// UUID of the device; `host` for host memory.
    pub device: String,
    /// Its number.
    pub step: u64,
    /// Which time it is that this number came, from 1: a program may count anew, as each epoch does, and so does the next program.
    #[serde(default = "first_turn")]
    pub turn: u32,
    /// When it began.
    pub begin_s: f64,
    /// When it ended: at the next step, or with its process; `null` when the session ended in it with another status than 0.
    pub end_s: Option<f64>,
    /// Largest live bytes within it.
    pub peak: Extreme,
    /// Live bytes by category at that moment.
    pub by_category: ByCategory,
    /// Live bytes when it ended; of one that ended with its process, before the last memory was given back.
    pub live_at_end: Option<u64>,
}

/// Files from before turns were told have each number once.
fn first_turn() -> u32 {
    1
}

impl StepReport {
    /// What it is called: its number, and which time it came, from the second on.
    pub fn name(&self) -> String {
        units::step(self.step, self.turn)
    }
}

impl Report {
    /// True for a session without device memory that has host memory: then that is what it is about.
    pub(crate) fn is_of_host(&self) -> bool {
        self.peak.is_none() && self.host.peak.bytes > 0
    }
}

/// Host memory of all processes: pinned, and CPU tensors of a framework. It is no part of any device's memory, and in no sum of
/// one.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostReport {
    /// Largest live bytes.
    pub peak: Extreme,
    /// The rows at that moment.
    pub at_peak: Rows,
    /// The rows at the end.
    pub at_end: Rows,
    /// The moment of the peak in detail; `null` when nothing was allocated.
    #[serde(default)]
    pub moment: Option<Snapshot>,
    /// The last moment before memory was only given back, as a device's.
    #[serde(default)]
    pub end: Option<Snapshot>,
    /// The moment that was asked for, when it was not the peak.
    #[serde(default)]
    pub at: Option<Snapshot>,
    /// Steps, in the order in which they began.
    #[serde(default)]
    pub steps: Vec<StepReport>,
}

/// Counts over the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Allocations that the driver granted, host memory included.
    pub allocations: u64,
    /// Those that the program freed; not those that ended with their process.
    pub frees: u64,
    /// Bytes that the driver granted, all together.
    pub bytes: u64,
    /// Blocks inside allocations.
    pub blocks: u64,
    /// Those that were freed.
    pub block_frees: u64,
    /// Bytes of blocks, all together.
    pub block_bytes: u64,
    /// Allocations that the driver refused.
    pub refused: u64,
}

impl Totals {
    /// One more allocation or block.
    pub(crate) fn count(&mut self, allocation: &Allocation) {
        if allocation.is(flag::POOL_RESERVE) {
            return;
        }
        let freed = allocation.is(flag::DEAD)
            && allocation.flags & (flag::AT_EXIT | flag::MISSED_FREE | flag::WITH_CONTAINER | flag::WITH_CONTEXT) == 0;
        let (count, frees, bytes) = if allocation.is(flag::BLOCK) {
            (&mut self.blocks, &mut self.block_frees, &mut self.block_bytes)
        } else {
            (&mut self.allocations, &mut self.frees, &mut self.bytes)
        };
        *count += 1;
        *frees += u64::from(freed);
        *bytes = bytes.wrapping_add(allocation.bytes);
    }
}

/// Seconds, from nanoseconds.
pub(crate) fn seconds(time: Nanoseconds) -> f64 {
    time.0 as f64 / 1e9
}

/// The moment that a report writes in seconds since the session began: to the nanosecond in the first two weeks.
pub fn nanoseconds(seconds: f64) -> Nanoseconds {
    Nanoseconds((seconds * 1e9).round() as u64)
}

/// The JSON schema of [`Report`], as docs/report.schema.json holds it.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Report);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
