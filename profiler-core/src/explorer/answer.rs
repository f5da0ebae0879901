//! What a view gets: plain data, made in one place, so that all views agree.
//!
//! Owns: the shapes. Refuses: colours, widths, and text that depends on them. Bytes are bytes, times are nanoseconds since the
//! session began. What is not known is `None`, never 0.

use std::sync::Arc;

use memscope_wire::{Category, MemoryKind, Origin};

use crate::diff::Side;
use crate::findings::{Finding, Largest, held_by};
use crate::journal::entry::{DeviceSample, Nanoseconds, SessionInfo};
use crate::ledger::{CATEGORIES, DeviceRows, EventRows};
use crate::report::{ScopeGroup, called, units};
use crate::timeline::{SampleRows, Series, State};

use super::bands::BandsView;
use super::detail::AllocationDetail;
use super::flame::{FlameView, Frame};
use super::gravest::Gravest;
use super::listed::{Listed, Partial};
use super::query::{At, Pick, Target};
use super::segments::{FragmentationView, SegmentsView};
use super::steps;
use super::tracks::TracksView;
use super::window::WindowView;

/// Order in which categories are stacked and listed: what stays longest at the bottom, what is not known last.
pub const STACKED: [Category; CATEGORIES] = [
    Category::Weights,
    Category::Optimizer,
    Category::Gradients,
    Category::Activations,
    Category::Inputs,
    Category::Workspace,
    Category::Unknown,
];

/// An answer to a [`super::Query`].
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The session as a whole.
    pub session: SessionView,
    /// Its devices.
    pub devices: Vec<DeviceView>,
    /// Its processes.
    pub processes: Vec<ProcessView>,
    /// The part that all below is about.
    pub target: Target,
    /// True when that is host memory: asked for, or all that the session has.
    pub of_host: bool,
    /// True when host memory was recorded: CPU tensors of a framework, or pinned memory.
    pub has_host: bool,
    /// The moment that was asked for.
    pub at: At,
    /// That moment.
    pub now: MomentView,
    /// Where the target's live bytes were largest; `None` when nothing was ever live.
    pub peak: Option<MomentView>,
    /// Live bytes by category at the end of the step before the one of `now`; `None` in the first.
    pub step_before: Option<[u64; CATEGORIES]>,
    /// Live bytes of the target over time.
    pub series: Arc<Series>,
    /// When steps began, thinned out to what can be drawn, the first and the last among them: (time, number).
    pub step_marks: Arc<Vec<(Nanoseconds, u64)>>,
    /// True when numbers of steps came again: then only its begin tells one from another.
    pub steps_repeat: bool,
    /// When the driver refused an allocation.
    pub refusals: Arc<Vec<Nanoseconds>>,
    /// How many steps are kept.
    pub steps_total: usize,
    /// The steps that were asked for.
    pub steps: Vec<StepView>,
    /// Position of the first of them.
    pub steps_first: usize,
    /// Position of the step of `now` among those that are kept.
    pub steps_now: Option<usize>,
    /// What is worth knowing, gravest first.
    pub findings: Arc<Vec<Finding>>,
    /// The out-of-memory that met the most live memory, and what held most of it; `None` when there was none.
    pub gravest: Option<Gravest>,
    /// The category that holds most of the target at that moment, where most of it was made, and its holder; `None` unless it was
    /// asked for, and where nothing lives.
    pub largest: Option<Largest>,
    /// The scopes whose allocations hold most, those inside them not counted, largest first; at most 20. Scopes whose names
    /// differ only in numbers, such as the layers of a model, are one, with `*` for the numbers.
    pub top_scopes: Arc<Vec<ScopeTotal>>,
    /// Bytes of all scopes together, of what is outside of all, and of what is in no list, when those were summed up.
    pub top_scopes_bytes: u64,
    /// How much of that the scopes cover, where it is not all.
    pub top_scopes_partial: Option<Partial>,
    /// When that was, if something has changed since; `None` while they are as new as all else.
    pub top_scopes_as_of: Option<Nanoseconds>,
    /// The live allocations.
    pub rows: Option<Arc<RowsView>>,
    /// The tree of scopes.
    pub scopes: Option<Arc<Vec<ScopeNode>>>,
    /// What holds memory as a tree that can be drawn.
    pub flame: Option<Arc<FlameView>>,
    /// The containers.
    pub segments: Option<Arc<SegmentsView>>,
    /// How fragmented they are over time.
    pub fragmentation: Option<Arc<FragmentationView>>,
    /// The span of time that was asked for.
    pub window: Option<Arc<WindowView>>,
    /// What lies beside memory in the span that was asked for.
    pub tracks: Option<Arc<TracksView>>,
    /// Allocations as bands.
    pub bands: Option<Arc<BandsView>>,
    /// What a difference is made of.
    pub side: Option<Arc<Side>>,
    /// Those of the picked allocations that were found, in the order in which they were asked for.
    pub picks: Vec<AllocationDetail>,
}

impl Answer {
    /// What a list says that is not whole, so that nobody takes it for whole: how much it covers, why, and where lists are whole.
    pub fn covers(&self, partial: &Partial) -> String {
        let rest = self.session.listed.as_ref().map_or_else(String::new, |listed| format!("; {}", listed.rest()));
        format!("{} live{rest}", partial.covers())
    }

    /// The moment nearest to the one that is shown whose lists are whole, where its own are not.
    pub fn nearest_listed(&self) -> Option<Nanoseconds> {
        self.now.partial?;
        self.session.listed.as_ref()?.nearest(self.now.state.time)
    }

    /// The moment of a step: that of its number, as long as none came again, else of the one that began then.
    pub fn step(&self, number: u64, begin: Nanoseconds) -> At {
        if self.steps_repeat { At::StepFrom(begin) } else { At::Step(number) }
    }

    /// The moment of the step after the one that is shown, or before it; `None` where there is none. `at` is the moment that a view
    /// asks for: it may be ahead of this answer.
    pub fn step_beside(&self, at: At, forward: bool) -> Option<At> {
        if self.steps_repeat {
            let now = match at {
                At::StepFrom(begin) => begin,
                _ => self.now.state.time,
            };
            return steps::beside_time(&self.step_marks, now, forward).map(At::StepFrom);
        }
        let now = match at {
            At::Step(number) => Some(number),
            _ => self.now.state.step,
        };
        steps::beside(&self.step_marks, self.steps_total, now, forward).map(At::Step)
    }

    /// True for the step that is shown: whose moment is asked for, or in which the shown moment lies.
    pub fn is_step_now(&self, at: At, number: u64, begin: Nanoseconds, end: Option<Nanoseconds>) -> bool {
        match at {
            At::Step(asked) if !self.steps_repeat => asked == number,
            At::StepFrom(asked) => asked == begin,
            _ => {
                let within = begin <= self.now.state.time && end.is_none_or(|end| self.now.state.time <= end);
                self.now.state.step == Some(number) && (within || !self.steps_repeat)
            }
        }
    }
}

/// What is known of the session.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SessionView {
    /// Its facts.
    pub info: SessionInfo,
    /// What it is doing.
    pub state: Running,
    /// True while what was recorded before is still being read: the last moment known is not the present one.
    pub reading: bool,
    /// Status once the program has ended.
    pub exit_status: Option<i32>,
    /// The last moment that is known.
    pub last_time: Nanoseconds,
    /// Allocations and blocks so far.
    pub allocations: u64,
    /// Events that could not be written: figures are too low when this is not 0.
    pub dropped_events: u64,
    /// The moments whose lists are whole; `None` while those of all are.
    pub listed: Option<Listed>,
    /// While `reading` a profile: how many allocations lie in the file, those that are only summed left out.
    pub to_read: u64,
    /// True when lines of the program were recorded.
    pub stacks: bool,
    /// What is wrong with the journal, as sentences.
    pub notices: Vec<String>,
}

/// What a session is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Running {
    /// Its program runs.
    #[default]
    Live,
    /// It has ended, or is a profile.
    Ended,
    /// Its memscope died before it ended.
    Broken,
}

/// One device.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DeviceView {
    /// UUID, with `GPU-`; `unknown-N` when only ordinal N is known.
    pub uuid: String,
    /// Product name, from NVML.
    pub name: Option<String>,
    /// CUDA ordinal in the first process that named it.
    pub ordinal: u32,
    /// Total memory.
    pub capacity: Option<u64>,
    /// The ledger of device memory at the moment of the answer.
    pub rows: EventRows,
    /// Largest live bytes.
    pub peak_live: u64,
    /// What NVML said last before the moment of the answer.
    pub sample: Option<DeviceSample>,
    /// The device rows of this moment: exact ones, of the nearest sample that met as much reserved memory.
    pub exact: Option<SampleRows>,
}

/// One process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProcessView {
    /// Process id.
    pub pid: u32,
    /// Rank in a distributed job.
    pub rank: Option<u32>,
    /// How many ranks that job has.
    pub world_size: Option<u32>,
    /// What it calls itself.
    pub name: Option<String>,
    /// Path of its program.
    pub executable: String,
    /// True once it is gone.
    pub ended: bool,
    /// Live bytes at the moment of the answer.
    pub live: u64,
}

impl ProcessView {
    /// Its rank, on this machine, and its name; `None` when it has neither.
    pub fn called(&self, node: Option<&str>) -> Option<String> {
        called(self.rank, self.world_size, node, self.name.as_deref())
    }

    /// In few words: its rank, else its name, else its pid.
    pub fn short(&self) -> String {
        let name = self.name.as_deref().filter(|_| self.rank.is_none());
        called(self.rank, None, None, name).unwrap_or_else(|| format!("pid {}", self.pid))
    }
}

/// A moment of the target.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MomentView {
    /// When, in which step, and the ledger of the target's device memory, or of host memory where that is the target. Of several
    /// devices the rows are sums.
    pub state: State,
    /// Phase; empty when there is none.
    pub phase: String,
    /// Host memory beside device memory: pinned, and CPU tensors of a framework. Only for all processes together; it is in no
    /// other row.
    pub host: EventRows,
    /// Total memory of the target's devices; `None` when one is not known, or for a process.
    pub capacity: Option<u64>,
    /// The device rows that speak best for this moment; only for a target with one device.
    pub device: Option<SampleRows>,
    /// How much of the live bytes is in lists of this moment, where that is not all of it.
    pub partial: Option<Partial>,
}

impl MomentView {
    /// The device rows of this moment: a sample that met other reserved memory is one of another moment.
    pub fn device_rows(&self) -> Option<&DeviceRows> {
        let rows = &self.device.as_ref()?.rows;
        (rows.reserved == self.state.rows.reserved).then_some(rows)
    }

    /// What shares are of, in a list of this moment that has so many bytes: those, and what is in no list.
    pub fn whole(&self, listed: u64) -> u64 {
        listed.saturating_add(self.partial.map_or(0, |partial| partial.missing()))
    }
}

/// One step of the target.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StepView {
    /// Its number.
    pub number: u64,
    /// Which time it is that the number comes, from 1.
    pub turn: u32,
    /// When it began.
    pub begin: Nanoseconds,
    /// When it ended; `None` while it runs, or when the session ended in it.
    pub end: Option<Nanoseconds>,
    /// Largest live bytes within it.
    pub peak: u64,
    /// Live bytes by category at that moment.
    pub at_peak: [u64; CATEGORIES],
    /// Allocations and blocks that began in it.
    pub allocations: u64,
    /// Live bytes at its end; `None` for one that did not end.
    pub at_end: Option<u64>,
    /// Live bytes at its end less those at the end of the step before; `None` for the first and for one that did not end.
    pub growth: Option<i64>,
    /// Largest live bytes in equal parts of its duration, from its begin; few.
    pub shape: Vec<u64>,
    /// True when a finding says that memory grows from step to step, and this step is one of them.
    pub leaks: bool,
}

impl StepView {
    /// What it is called: its number, and which time it came, from the second on.
    pub fn name(&self) -> String {
        units::step(self.number, self.turn)
    }
}

/// Live bytes of one scope, or of several that are alike.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ScopeTotal {
    /// Names from the outermost scope on, joined by `/`; empty outside all scopes. `*` where only numbers differ.
    pub path: String,
    /// Live bytes by category.
    pub live: [u64; CATEGORIES],
    /// How many allocations.
    pub allocations: u64,
}

impl From<&ScopeGroup> for ScopeTotal {
    fn from(group: &ScopeGroup) -> ScopeTotal {
        ScopeTotal { path: group.scope.clone(), live: group.by_category.numbers(), allocations: group.allocations }
    }
}

/// A node of the tree of scopes. Nodes come parents first, siblings by what they hold now, largest first, then by name. The
/// first one is the root: the whole target.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ScopeNode {
    /// Number of the node in the session; stays the same from answer to answer.
    pub id: u32,
    /// Distance from the root.
    pub depth: u32,
    /// How many nodes after this one lie inside it.
    pub inside: usize,
    /// Its own name; empty for the root.
    pub name: String,
    /// Live bytes now by category, of this scope and all inside it.
    pub now: [u64; CATEGORIES],
    /// The same at the target's peak.
    pub peak: [u64; CATEGORIES],
    /// Live bytes now of this scope alone.
    pub own: u64,
    /// Live allocations now, of this scope and all inside it.
    pub allocations: u64,
}

/// The live allocations at the moment of the answer: device memory, managed memory and pinned host memory; containers are not
/// among them, their blocks are.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RowsView {
    /// The moment for which the list was made; a large list of a running session is made anew less often than the rest.
    pub as_of: Nanoseconds,
    /// How many allocations are live.
    pub total: usize,
    /// Bytes of those.
    pub total_bytes: u64,
    /// How many rows (groups, where grouping was asked for) the filter lets through.
    pub matching: usize,
    /// How many allocations those are.
    pub matching_allocations: usize,
    /// Bytes of those.
    pub matching_bytes: u64,
    /// What shares of groups are of: those bytes, and without a filter what is in no list.
    pub shares_of: u64,
    /// What is wrong with the filter, as a sentence; it then lets everything through.
    pub filter_error: Option<String>,
    /// The allocation that was looked for, and its position among the matching; `None` where it is not among them, and for groups.
    pub found: Option<(Pick, Option<usize>)>,
    /// Position of the first of `rows` among the matching.
    pub first: usize,
    /// The rows that were asked for.
    pub rows: Vec<Row>,
}

/// One live allocation, or a group of them.
#[derive(Clone, PartialEq, Debug)]
pub enum Row {
    /// One.
    Allocation(AllocationRow),
    /// Several that are alike.
    Group(GroupRow),
}

/// One live allocation.
#[derive(Clone, PartialEq, Debug)]
pub struct AllocationRow {
    /// Number that tells it from all others of the session, as long as the session is looked at.
    pub id: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Bytes granted.
    pub granted: u64,
    /// What it is for.
    pub category: Category,
    /// How that is known.
    pub origin: Origin,
    /// Name from its tag; empty when there is none.
    pub name: String,
    /// The driver's function, and the file whose code asked for it: `cuMemAlloc_v2 from train`; empty for a block.
    pub function: String,
    /// Path of its scope; empty outside all scopes.
    pub scope: String,
    /// The line of the program that made it, as text: the innermost one that is its own, else the innermost; empty when lines were
    /// not recorded.
    pub site: String,
    /// The lines that led to it, the innermost first: at most 64, and where none of these is the program's own, the innermost that
    /// is. [`AllocationRow::told`] has them in the order for people.
    pub stack: Vec<StackLine>,
    /// When it was made.
    pub birth: Nanoseconds,
    /// In which step.
    pub step: Option<u64>,
    /// CUDA stream: 0 is the default stream.
    pub stream: u64,
    /// Where it lives.
    pub memory: MemoryKind,
    /// Process id.
    pub pid: u32,
    /// Position of its device among the answer's; `None` for host memory.
    pub device: Option<u16>,
    /// Address in its process.
    pub address: u64,
    /// How many steps have begun and ended while it lived, by the moment of the list, or by its end.
    pub outlived: u64,
}

impl AllocationRow {
    /// Who needs it, in words.
    pub fn held_by(&self) -> String {
        held_by(self.category, self.origin, self.outlived)
    }
}

/// One line of a stack.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StackLine {
    /// In short: `models/net.py:12 in Net.forward`; a remark such as `<backward>` as it is.
    pub text: String,
    /// File as Python names it; empty for a remark.
    pub file: String,
    /// Line in it, 0 where there is none.
    pub line: u32,
    /// Qualified name of the function.
    pub function: String,
    /// True for the program's own code, false for what is installed.
    pub own: bool,
    /// Tells the node of a tree by stack: [`super::FlameNode::frame`].
    pub frame: Frame,
}

/// Allocations that are alike.
#[derive(Clone, PartialEq, Debug)]
pub struct GroupRow {
    /// What they have in common: a path, a size in binary units, a category's name; or a name, with `*` where only numbers
    /// differ.
    pub label: String,
    /// The one name that all of them have; `None` where names differ, and where names were not asked for.
    pub name: Option<String>,
    /// How many.
    pub allocations: u64,
    /// Live bytes by category.
    pub live: [u64; CATEGORIES],
}
