//! What is worth knowing about a session, each with its numbers, a sentence, and what to do.
//!
//! Owns: the kinds, their fields, and the grammar of their sentences. Refuses: advice that its numbers do not bear out.
//!
//! Grammar: a message is one sentence that begins with the fact and names the device, process or function; sizes are in
//! binary units. Advice begins with a verb. The exact numbers are fields of the finding, in bytes.

mod detect;
mod evidence;
mod graphs;
mod growth;
mod holder;
mod holes;
mod inputs;
mod kept;
mod lost;
mod nothing;
mod refusals;
mod simulation;
mod thresholds;
mod untold;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::{ByCategory, Group, units};

pub(crate) use detect::detect;
pub(crate) use evidence::Evidence;
pub(crate) use holder::{ByHolder, held_by_all};
pub use holder::{Holder, Largest, held_by};
pub(crate) use refusals::{GIVEN_UP, OUT_OF_MEMORY, reached_after, reaches};
pub(crate) use simulation::{ELSEWHERE, reads_of};
pub(crate) use thresholds::passed_after;

/// How grave a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The program or the recording failed.
    Error,
    /// Figures are incomplete, or memory is probably wasted.
    Warning,
    /// Good to know.
    Note,
}

/// One finding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// How grave it is.
    pub severity: Severity,
    /// The fact, as a sentence.
    pub message: String,
    /// What to do.
    pub advice: String,
    /// Kind and numbers.
    #[serde(flatten)]
    pub detail: Detail,
}

/// Kinds of findings with their numbers. Sizes are in bytes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Detail {
    /// `out of memory on DEVICE: FUNCTION asked for SIZE, SIZE of SIZE were free`. One a process and device: the refusal
    /// that met the most live memory.
    Oom(Box<Oom>),
    /// `THRESHOLD of DEVICE passed: SIZE of SIZE were used`. One a device and threshold: the first time.
    ThresholdPassed(Box<ThresholdPassed>),
    /// `the driver refused PyTorch memory on DEVICE N times, and PyTorch went on`.
    CacheGivenBack {
        /// UUID of the device.
        device: String,
        /// Process id.
        pid: u32,
        /// How often.
        refusals: u64,
        /// When, the last time; `null` in files of earlier versions.
        #[serde(default)]
        time_s: Option<f64>,
    },
    /// `allocations that the driver refused, not for want of memory: N by FUNCTION, with result R`.
    AllocationRefused {
        /// The driver's function.
        function: String,
        /// CUDA's result code.
        result: i32,
        /// How often.
        times: u64,
        /// Asked for, the last time.
        requested: u64,
        /// When, the last time; `null` in files of earlier versions.
        #[serde(default)]
        time_s: Option<f64>,
    },
    /// `events that were not recorded: N; figures may be wrong`, or `memscope was gone, and from TIME on events were not recorded:
    /// N; figures of later moments are wrong`.
    DroppedEvents {
        /// How many.
        events: u64,
        /// When the first was lost because memscope was gone; `null` when none was.
        #[serde(default)]
        gone_s: Option<f64>,
        /// Processes that were not recorded because memscope was gone when they began.
        #[serde(default)]
        processes: u32,
    },
    /// `records begun and never finished: N; never read: N`: threads that were killed, or a process that was.
    UncommittedSlots {
        /// How many.
        slots: u64,
        /// Records that the journal does not hold at all.
        missing: u64,
    },
    /// `faults of the recorder in the program: N`.
    Faults {
        /// How many.
        faults: u64,
    },
    /// `nothing was captured: REASON`.
    NothingCaptured {
        /// Why, as far as is known.
        reason: String,
    },
    /// `P % of the live bytes at the peak have no category`.
    UnknownShare {
        /// Bytes without category at the peak.
        bytes: u64,
        /// All live bytes at the peak.
        live: u64,
        /// Percent.
        share: f64,
    },
    /// `frees of addresses that memscope did not see allocated: N`.
    FreeOfUnknown {
        /// Frees of the driver's allocations.
        frees: u64,
        /// Frees of blocks.
        block_frees: u64,
    },
    /// `frees that the driver refused: N`: the program freed what it did not own.
    FreeRefused {
        /// How many.
        frees: u64,
    },
    /// `tags of addresses that were not live: N`.
    TagOfUnknown {
        /// How many.
        tags: u64,
    },
    /// `mappings of memory that memscope did not see created: N`.
    MapOfUnknown {
        /// How many.
        mappings: u64,
    },
    /// `allocations whose address was given again while they were live, so that their free was not seen: N`.
    MissedFree {
        /// How many.
        allocations: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// `blocks in no known allocation, and so in no ledger: N`.
    OutsideBlocks {
        /// How many.
        blocks: u64,
    },
    /// `live memory on DEVICE grows by SIZE a step, over N steps`.
    StepGrowth(Box<Growth>),
    /// `the inputs of step N on DEVICE are F times the largest before, and memory ran out in it`: or it needs most.
    InputsGrew(Box<InputsGrew>),
    /// `the devices were simulated`.
    Simulated {
        /// As given.
        device: String,
        /// False when kernels and copies were skipped.
        compute: bool,
        /// True when the CUDA libraries above the driver were simulated too: then nothing was computed.
        #[serde(default)]
        libraries: bool,
        /// True when figures of simulated runs were compared with a GPU on the same versions.
        #[serde(default)]
        calibrated: bool,
        /// What the simulation of libraries leaves out.
        #[serde(default)]
        left_out: Vec<String>,
    },
    /// `not simulated, so that the program got errors: FUNCTION of LIBRARY (N calls)`.
    NotSimulated {
        /// Those that were called most.
        functions: Vec<MissedFunction>,
        /// How many more there were.
        more_functions: u64,
    },
    /// `the program read the device N times, and N of these reads got zeros for what a GPU would have computed`; and, where the
    /// program failed, `the program ended with status STATUS, and the last such read was at LINE`.
    DeviceReads {
        /// All copies from a simulated device to the host.
        reads: u64,
        /// Their bytes.
        bytes: u64,
        /// Those that got zeros for what a GPU would have computed.
        uncomputed: u64,
        /// Their bytes.
        uncomputed_bytes: u64,
        /// The program's lines that read such bytes, the ones that read most often.
        lines: Vec<ReadLine>,
        /// How many more there were.
        more_lines: u64,
        /// The line that was the last to read such bytes, if the program ended with an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<String>,
    },
    /// `the journal breaks off: REASON`.
    JournalTruncated {
        /// Why, as far as is known.
        reason: String,
    },
    /// `activations were kept for a backward pass that never came: by N forward passes of SCOPE, up to SIZE in each; called at LINE`.
    UnusedGraphs {
        /// Process id.
        pid: u32,
        /// How many such passes.
        passes: u64,
        /// What the one kept that kept most.
        bytes: u64,
        /// The scope in which all of that was made; `null` outside all scopes.
        scope: Option<String>,
        /// The program's line from which it was called, where that was recorded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<String>,
    },
    /// What a hook of a framework could not do: what is therefore missing.
    NotFollowed {
        /// What.
        what: String,
    },
    /// `allocations of whose stack only the outer part is known: N; there was no room for more`.
    StacksInPart {
        /// How many.
        allocations: u64,
    },
    /// `arrays whose bytes are computed from their descriptions: N`: the driver does not tell them.
    UntoldSizes {
        /// How many were computed.
        computed: u64,
        /// How many have a format whose size is not known, and count with 0 bytes.
        unknown: u64,
    },
    /// `none of steps:A..B was there to be kept: the steps that were marked are N to N`: of `memscope run --keep steps:A..B`.
    StepsNotMarked {
        /// As asked for by `--keep`.
        asked: String,
        /// The lowest step that was marked; `null` when none was.
        first: Option<u64>,
        /// The highest one.
        last: Option<u64>,
    },
    /// `P % of what the driver granted on DEVICE was cached and unused when most was reserved`.
    LargeCached {
        /// UUID of the device.
        device: String,
        /// Bytes in containers and in no block.
        cached: u64,
        /// Bytes granted by the driver.
        reserved: u64,
        /// Percent.
        share: f64,
        /// When; `null` in files of earlier versions.
        #[serde(default)]
        time_s: Option<f64>,
    },
}

/// A function that the simulation does not have.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MissedFunction {
    /// Of which library.
    pub library: String,
    /// Its name.
    pub function: String,
    /// How often the program called it.
    pub calls: u64,
}

/// A line of the program that read zeros for what a GPU would have computed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReadLine {
    /// `FILE:LINE` of Python, outside PyTorch itself; `outside Python` where there is none.
    pub line: String,
    /// How often.
    pub reads: u64,
    /// How many bytes in all.
    pub bytes: u64,
}

/// An allocation was refused for want of memory, and the program was told so.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Oom {
    /// UUID of the device.
    pub device: String,
    /// Process id.
    pub pid: u32,
    /// The driver's function; `c10::reportOutOfMemoryToProfiler` when PyTorch gave up.
    pub function: String,
    /// Asked for; of PyTorch the tensor's bytes.
    pub requested: u64,
    /// What PyTorch asked the driver for last before it gave up: the segment that the tensor would have been a part of, which its own
    /// message names. With segments that expand, a piece of one. `null` for whoever asks the driver itself, and where PyTorch asked
    /// for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<u64>,
    /// Free right after, as the driver said; `null` when it did not.
    pub free: Option<u64>,
    /// Total, as the driver said.
    pub total: Option<u64>,
    /// Refusals of this process on this device in all; this is the one that met the most live memory.
    pub refusals: u64,
    /// When.
    pub time_s: f64,
    /// In which step; `null` before the first.
    pub step: Option<u64>,
    /// In which phase.
    pub phase: Option<String>,
    /// In which scope.
    pub scope: Option<String>,
    /// The program's line that asked; `null` when it was not told.
    #[serde(default)]
    pub line: Option<String>,
    /// Granted by the driver at that moment.
    pub reserved: u64,
    /// Live at that moment.
    pub live: u64,
    /// Live bytes by category at that moment.
    pub by_category: ByCategory,
    /// The category that held most at that moment, and where most of it was made; `null` when nothing was live.
    #[serde(default)]
    pub largest: Option<Largest>,
    /// In containers and in no block at that moment.
    pub cached: u64,
    /// In how many pieces the cached memory of this process is.
    #[serde(default)]
    pub free_pieces: u64,
    /// The largest of them: what the cache can give at once.
    #[serde(default)]
    pub largest_free_piece: u64,
    /// Used on the device then, and not granted to the session: contexts, libraries, other processes, the driver's own part;
    /// `null` when the driver did not tell.
    #[serde(default)]
    pub outside: Option<u64>,
    /// Of that, other processes at the nearest telemetry sample; `null` when it is not known.
    #[serde(default)]
    pub other_processes: Option<u64>,
    /// The groups of alike allocations that held most.
    pub largest_groups: Vec<Group>,
}

/// More of a device was used than the user wanted to be told of (`memscope run --alert`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ThresholdPassed {
    /// UUID of the device.
    pub device: String,
    /// As the user said it: a share of the device's total, or a size.
    pub threshold: String,
    /// The same in bytes.
    pub limit: u64,
    /// Used on the device when it was passed.
    pub used: u64,
    /// Total memory of the device; `null` when it is not known.
    pub total: Option<u64>,
    /// How often it was passed; between two times the use fell by at least a twentieth of it.
    pub times: u64,
    /// When.
    pub time_s: f64,
    /// In which step; `null` before the first.
    pub step: Option<u64>,
    /// In which phase.
    pub phase: Option<String>,
    /// Granted by the driver to the session at that moment.
    pub reserved: u64,
    /// Live at that moment.
    pub live: u64,
    /// Live bytes by category at that moment.
    pub by_category: ByCategory,
    /// The category that held most at that moment, and where most of it was made; `null` when nothing was live.
    pub largest: Option<Largest>,
}

/// Live bytes at the ends of steps only ever grew.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Growth {
    /// UUID of the device.
    pub device: String,
    /// Growth a step, the mean.
    pub bytes_per_step: u64,
    /// How many steps in a row grew.
    pub steps: u64,
    /// The step at whose end the growth begins.
    pub first_step: u64,
    /// The last one that grew.
    pub last_step: u64,
    /// The category that grew most.
    pub category: String,
    /// The name (else scope) that grew most; `null` when there is none.
    pub name: Option<String>,
    /// Growth a step of that name.
    pub name_bytes_per_step: u64,
    /// The program's line that made most of that, where that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// After how many more steps the device is full, if nothing else changes.
    pub steps_to_capacity: Option<u64>,
}

/// A step was given more than those before it, and needed more memory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InputsGrew {
    /// UUID of the device; `host` for host memory.
    pub device: String,
    /// The step.
    pub step: u64,
    /// The moment at which memory ran out in it, else of the most live memory.
    pub time_s: f64,
    /// True when memory ran out.
    pub ran_out: bool,
    /// Inputs when the step began.
    pub inputs: u64,
    /// Inputs with which the step before it began that was given most.
    pub inputs_before: u64,
    /// Live at that moment.
    pub live: u64,
    /// Asked for in vain then; 0 where memory did not run out.
    pub requested: u64,
    /// Live bytes by category at that moment.
    pub by_category: ByCategory,
    /// The step before it that needed most.
    pub fitted_step: u64,
    /// Its largest live bytes.
    pub fitted_live: u64,
    /// Live bytes by category at that moment.
    pub fitted_by_category: ByCategory,
    /// The name (else scope) that grew most between these moments; `null` when there is none.
    pub name: Option<String>,
    /// By so many bytes.
    pub name_bytes: u64,
    /// The program's line that made most of that, where that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

impl Finding {
    /// True for what tells why memory is full: it is read before the figures.
    pub fn tells_why(&self) -> bool {
        let why = matches!(self.detail, Detail::StepGrowth(_) | Detail::InputsGrew(_));
        self.severity == Severity::Error || (why && self.severity == Severity::Warning)
    }

    /// What stands below the sentence, as sentences, where there is more to say than one holds. Out-of-memory has its own
    /// form ([`crate::report::circumstances`]).
    pub fn particulars(&self) -> Vec<String> {
        match &self.detail {
            Detail::ThresholdPassed(passed) => thresholds::particulars(passed),
            Detail::InputsGrew(grew) => inputs::particulars(grew),
            detail => simulation::particulars(detail),
        }
    }
}

impl Oom {
    /// The segment that PyTorch asked the driver for, where that was more than the tensor, in words too.
    pub(crate) fn larger_segment(&self) -> Option<u64> {
        let larger = |segment: u64| segment > self.requested && units::bytes(segment) != units::bytes(self.requested);
        self.segment.filter(|segment| larger(*segment))
    }

    /// What was asked for, where the tensor's bytes are not what PyTorch's own message names.
    pub fn sizes(&self) -> Option<String> {
        let segment = self.larger_segment()?;
        Some(format!(
            "{} for the tensor; PyTorch asked the driver for a segment of {}",
            units::bytes(self.requested),
            units::bytes(segment)
        ))
    }
}

impl Detail {
    /// The kind, as in the JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Detail::Oom(_) => "oom",
            Detail::ThresholdPassed(_) => "threshold_passed",
            Detail::CacheGivenBack { .. } => "cache_given_back",
            Detail::AllocationRefused { .. } => "allocation_refused",
            Detail::DroppedEvents { .. } => "dropped_events",
            Detail::UncommittedSlots { .. } => "uncommitted_slots",
            Detail::Faults { .. } => "faults",
            Detail::NothingCaptured { .. } => "nothing_captured",
            Detail::UnknownShare { .. } => "unknown_share",
            Detail::FreeOfUnknown { .. } => "free_of_unknown",
            Detail::FreeRefused { .. } => "free_refused",
            Detail::TagOfUnknown { .. } => "tag_of_unknown",
            Detail::MapOfUnknown { .. } => "map_of_unknown",
            Detail::MissedFree { .. } => "missed_free",
            Detail::OutsideBlocks { .. } => "outside_blocks",
            Detail::StepGrowth(_) => "step_growth",
            Detail::InputsGrew(_) => "inputs_grew",
            Detail::Simulated { .. } => "simulated",
            Detail::NotSimulated { .. } => "not_simulated",
            Detail::DeviceReads { .. } => "device_reads",
            Detail::JournalTruncated { .. } => "journal_truncated",
            Detail::UnusedGraphs { .. } => "unused_graphs",
            Detail::NotFollowed { .. } => "not_followed",
            Detail::StacksInPart { .. } => "stacks_in_part",
            Detail::UntoldSizes { .. } => "untold_sizes",
            Detail::StepsNotMarked { .. } => "steps_not_marked",
            Detail::LargeCached { .. } => "large_cached",
        }
    }
}
