//! The ranks of a distributed job, from the profiles that its nodes or ranks have left: `memscope report run/*.mscope`.
//!
//! Owns: the shape (schema version 1, docs/ranks.schema.json), and which rank holds more than which. Refuses: to change the meaning
//! of a key within a schema version (keys may be added), to open files, and to put sessions on one axis of time: each machine has
//! its own clock.

mod make;
mod text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::journal::entry::SessionInfo;
use crate::report::{ByCategory, Report};

pub use text::text;

/// The version of the shape.
pub const SCHEMA_VERSION: u32 = 1;

/// What is known of one session.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its file, as the user named it.
    pub file: String,
    /// What it is.
    pub session: SessionInfo,
    /// Its report.
    pub report: Report,
}

/// All ranks of a job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ranks {
    /// 1.
    pub schema_version: u32,
    /// The program and its arguments, of the first file.
    pub command: Vec<String>,
    /// How many ranks the job has, as its launcher said; `null` when no launcher did.
    pub world_size: Option<u32>,
    /// Machines, in the order of their names.
    pub nodes: Vec<String>,
    /// Processes that took memory, by rank, then by file; those without a rank last.
    pub ranks: Vec<RankReport>,
    /// Ranks of the job that are in none of the files.
    pub missing: Vec<u32>,
    /// What differs between ranks, the largest difference first; none where there are fewer than two.
    pub differences: Vec<Difference>,
    /// The ranks that ran out of memory, in the order of their machines' clocks.
    pub out_of_memory: Vec<RankOutOfMemory>,
    /// What does not fit together: files of other jobs, ranks that come twice.
    pub notices: Vec<String>,
}

/// One process of the job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RankReport {
    /// The file that it is from.
    pub file: String,
    /// Name of its machine.
    pub node: Option<String>,
    /// Its rank; `null` when no launcher named one.
    pub rank: Option<u32>,
    /// Rank on its node.
    pub local_rank: Option<u32>,
    /// What it calls itself.
    pub name: Option<String>,
    /// Process id on its machine.
    pub pid: u32,
    /// UUIDs of the devices that it named.
    pub devices: Vec<String>,
    /// Largest live bytes, of all its devices together; `null` in files of earlier versions.
    pub peak_live: Option<u64>,
    /// Live bytes by category at that moment.
    pub by_category: Option<ByCategory>,
    /// Largest reserved bytes.
    pub peak_reserved: Option<u64>,
    /// Exit status of its session.
    pub exit_status: Option<i32>,
    /// Events that could not be written; figures are too low when this is not 0.
    pub dropped_events: u64,
}

/// Something of which one rank has more than another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// `peak_live`, `peak_reserved`, or a category: live bytes of it at each rank's own peak of live bytes.
    pub of: String,
    /// The rank that has most, the first of equals.
    pub most_rank: u32,
    /// How much.
    pub most: u64,
    /// The rank that has least, the first of equals.
    pub least_rank: u32,
    /// How much.
    pub least: u64,
}

impl Difference {
    /// In bytes.
    pub fn bytes(&self) -> u64 {
        self.most - self.least
    }
}

/// A process that ran out of memory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RankOutOfMemory {
    /// Position among `ranks`.
    pub position: usize,
    /// CLOCK_REALTIME of its machine, nanoseconds since 1970.
    pub realtime_ns: u64,
    /// Seconds since its own session began.
    pub time_s: f64,
    /// In which step.
    pub step: Option<u64>,
    /// In which phase.
    pub phase: Option<String>,
    /// In which scope.
    pub scope: Option<String>,
    /// Asked for.
    pub requested: u64,
    /// Live at that moment.
    pub live: u64,
}

/// The JSON schema of [`Ranks`], as docs/ranks.schema.json holds it.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Ranks);
    format!("{}\n", serde_json::to_string_pretty(&schema).unwrap_or_default())
}
