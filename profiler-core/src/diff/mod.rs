//! What one session holds less what another holds, each at a moment of its own.
//!
//! Owns: the shape (schema version 1, docs/diff.schema.json) and how the two are put together. Refuses: to change the meaning of a
//! key within a schema version; keys may be added. Refuses to find the moments: that is the explorer's ([`Side`] is its answer).
//!
//! Of each row before + difference = after, and so of each sum of rows: rows of a list add up to the live bytes of their sides.

mod make;
mod text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::explorer::At;
use crate::ledger::EventRows;
use crate::timeline::State;

pub use text::{difference, text};

/// The version of the shape.
pub const SCHEMA_VERSION: u32 = 1;

/// What a part of a session holds at a moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Side {
    /// The moment that was asked for.
    pub at: At,
    /// False when the session has no such moment: no such step, or nothing was ever live.
    pub exists: bool,
    /// True when it is of host memory: all that the session has.
    pub of_host: bool,
    /// True when the moment is told in figures alone (`--keep`): there are no scopes and no lines.
    pub summed: bool,
    /// The moment. Of several devices the rows are sums.
    pub state: State,
    /// Phase; empty when there is none.
    pub phase: String,
    /// Live bytes by scope, scopes inside apart, in no order; the empty path is outside all scopes.
    pub scopes: Vec<Held>,
    /// Live bytes by line of the program, in no order; an empty text is where none was recorded. `None` when lines were not
    /// recorded at all.
    pub sites: Option<Vec<Held>>,
    /// Number and largest live bytes of each step, in the order in which they began.
    pub steps: Vec<(u64, u64)>,
}

/// Live bytes that have something in common.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Held {
    /// What that is.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// How many allocations.
    pub allocations: u64,
}

impl Side {
    /// The ledger.
    pub fn rows(&self) -> &EventRows {
        &self.state.rows
    }
}

/// Two sides.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// 1.
    pub schema_version: u32,
    /// The memscope that compared them.
    pub memscope_version: String,
    /// What is subtracted.
    pub before: SideReport,
    /// From what it is subtracted.
    pub after: SideReport,
    /// Live bytes.
    pub live: Change,
    /// Live bytes by category; every category is there. The largest difference first.
    pub by_category: Vec<Change>,
    /// `rounding`, `cached` and `reserved`: reserved = live + rounding + cached.
    pub ledger: Vec<Change>,
    /// Live bytes by scope of those scopes alone, not of scopes inside them: names from the outermost scope on, joined by `/`; empty
    /// outside all scopes. Scopes whose names differ only in numbers, on whichever side, are one, with `*` for the numbers. The
    /// largest difference first. Empty where a side is `summed`: there is nothing to compare with.
    pub by_scope: Vec<Change>,
    /// Live bytes by line of the program; an empty name is where none was recorded. `null` when neither side recorded lines, and where
    /// a side is `summed`. The largest difference first.
    pub by_line: Option<Vec<Change>>,
    /// Largest live bytes of steps, by number.
    pub steps: Vec<StepChange>,
    /// How many steps both have.
    pub steps_in_both: u64,
    /// How many only the side before has.
    pub steps_only_before: u64,
    /// How many only the side after has.
    pub steps_only_after: u64,
}

/// One side.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SideReport {
    /// What it is called: the file's path, or the document's name.
    pub name: String,
    /// Which moment was asked for: `peak`, `end`, `step:N` or `time:S`.
    pub asked: String,
    /// True when that is where memory ran out.
    #[serde(default)]
    pub ran_out: bool,
    /// False when the session has no such moment; it then holds nothing.
    pub exists: bool,
    /// When.
    pub time_s: f64,
    /// In which step; `null` before the first.
    pub step: Option<u64>,
    /// In which phase.
    pub phase: Option<String>,
    /// True when lines of the program were recorded.
    pub lines: bool,
    /// True when all of the side is host memory (CPU tensors, pinned memory): the session has no device memory.
    #[serde(default)]
    pub host: bool,
    /// True when the moment is summed only (`--keep`): its figures are known, and not its allocations.
    #[serde(default)]
    pub summed: bool,
}

/// A row of a difference.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What it is about.
    pub name: String,
    /// Bytes on the side before; `null` where there is nothing of that name.
    pub before: Option<u64>,
    /// Bytes on the side after; `null` where there is nothing of that name.
    pub after: Option<u64>,
    /// `after` less `before`, with 0 for `null`.
    pub difference: i64,
    /// How many allocations the side before has; `null` where they are not counted or there are none.
    pub allocations_before: Option<u64>,
    /// The same of the side after.
    pub allocations_after: Option<u64>,
}

/// A step on both sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct StepChange {
    /// Its number.
    pub step: u64,
    /// Largest live bytes within it on the side before; `null` where there is no such step.
    pub before: Option<u64>,
    /// The same on the side after.
    pub after: Option<u64>,
    /// `after` less `before`; `null` where one has no such step.
    pub difference: Option<i64>,
}

/// The JSON schema of [`Diff`], as docs/diff.schema.json holds it.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Diff);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
