//! What a view asks for.
//!
//! Owns: the moment, the part of the session, and which lists are wanted, with their order and window. Refuses: screens and
//! keys.

use std::ops::Range;

use crate::journal::entry::Nanoseconds;
use crate::report::Instant;

use super::flame::FlameQuery;

/// Everything that a view wants to know at once. The cheap parts of an [`super::Answer`] are always there; a list is made
/// only when it is asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct Query {
    /// The part of the session.
    pub target: Target,
    /// The moment.
    pub at: At,
    /// Which steps, counted from the first one that is kept.
    pub steps: Range<usize>,
    /// The live allocations, if they are wanted.
    pub rows: Option<RowsQuery>,
    /// Whether it is wanted what holds most, and who needs that.
    pub largest: bool,
    /// Whether the tree of scopes is wanted.
    pub scopes: bool,
    /// What holds memory as a tree that can be drawn, if it is wanted.
    pub flame: Option<FlameQuery>,
    /// The containers, if they are wanted.
    pub segments: Option<SegmentsQuery>,
    /// Fragmentation over a span of time, at so many moments, if it is wanted.
    pub fragmentation: Option<WindowQuery>,
    /// A span of time, drawn as finely as wanted.
    pub window: Option<WindowQuery>,
    /// What lies beside memory in a span of time.
    pub tracks: Option<TracksQuery>,
    /// Allocations as bands over time, if they are wanted.
    pub bands: Option<BandsQuery>,
    /// A moment of which everything is wanted that a difference is made of.
    pub side: Option<SideAt>,
    /// Allocations of which everything is wanted, whenever they lived.
    pub picks: Vec<Pick>,
}

impl Default for Query {
    fn default() -> Query {
        Query {
            target: Target::All,
            at: At::Live,
            steps: 0..0,
            rows: None,
            largest: false,
            scopes: false,
            flame: None,
            segments: None,
            fragmentation: None,
            window: None,
            tracks: None,
            bands: None,
            side: None,
            picks: Vec::new(),
        }
    }
}

/// A part of the session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Target {
    /// All devices and processes.
    #[default]
    All,
    /// One device: its position among [`super::Answer::devices`].
    Device(u16),
    /// One process: its position among [`super::Answer::processes`].
    Process(u32),
    /// Host memory of all processes: CPU tensors of a framework, and pinned memory. Where a session has no device memory, that is
    /// what [`Target::All`] shows.
    Host,
}

/// A moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum At {
    /// The last moment that is known; of a session that ended, the last one before memory was only given back.
    #[default]
    Live,
    /// Where the target's live bytes were largest.
    Peak,
    /// Right after the last change at or before this time.
    Time(Nanoseconds),
    /// Where live bytes were largest within this step of the target; of one whose number came several times, in all of them.
    Step(u64),
    /// The same of the step that began then.
    StepFrom(Nanoseconds),
    /// Right after the last allocation that was refused at this time; without one, as [`At::Time`]. A program that ends because
    /// of it may give its memory back at that very time: what filled memory is seen here.
    Refused(Nanoseconds),
}

/// The moment of one side of a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SideAt {
    /// The one that is told.
    At(At),
    /// Where memory ran out for the target, of several times where most was live; where it did not, the peak.
    Fullest,
}

impl At {
    /// The time that was asked for; `None` where something else says which moment it is.
    pub const fn time(self) -> Option<Nanoseconds> {
        match self {
            At::Time(time) | At::Refused(time) => Some(time),
            At::Live | At::Peak | At::Step(_) | At::StepFrom(_) => None,
        }
    }
}

impl From<Instant> for At {
    fn from(instant: Instant) -> At {
        match instant {
            Instant::Peak => At::Peak,
            Instant::End => At::Live,
            Instant::Step(number) => At::Step(number),
            Instant::Time(time) => At::Time(time),
        }
    }
}

impl From<At> for Instant {
    fn from(at: At) -> Instant {
        match at {
            At::Live => Instant::End,
            At::Peak => Instant::Peak,
            At::Step(number) => Instant::Step(number),
            At::Time(time) | At::Refused(time) | At::StepFrom(time) => Instant::Time(time),
        }
    }
}

/// The live allocations: which, in what order, and how many of them as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowsQuery {
    /// The column by which they are sorted.
    pub sort: Column,
    /// Largest (newest, last in the alphabet) first.
    pub descending: bool,
    /// Terms, separated by blanks, that must all hold: see [`super::filter`].
    pub filter: String,
    /// Rows that are alike in this as one.
    pub group: Option<Grouping>,
    /// Which rows, counted after filter and order.
    pub window: Range<usize>,
    /// An allocation whose place among the rows is wanted.
    pub find: Option<Pick>,
}

impl Default for RowsQuery {
    fn default() -> RowsQuery {
        let filter = String::new();
        RowsQuery { sort: Column::Size, descending: true, filter, group: None, window: 0..0, find: None }
    }
}

/// A column of the list of allocations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    /// Bytes asked for.
    Size,
    /// What it is for.
    Category,
    /// How the category is known.
    Origin,
    /// Name from its tag, else the driver's function.
    Name,
    /// Scope at its birth.
    Scope,
    /// Time since its birth.
    Age,
    /// Step at its birth.
    Step,
    /// CUDA stream.
    Stream,
    /// Bytes granted.
    Granted,
    /// The line of the program that made it.
    Line,
    /// Address in its process.
    Address,
    /// Device, by its number; host memory first.
    Device,
    /// Process id.
    Process,
    /// How many allocations are one row: of groups alone; of single ones it is their size.
    Count,
}

impl Column {
    /// True for what is read from A to Z; else the largest comes first where nothing else is wished for.
    pub const fn is_words(self) -> bool {
        matches!(self, Column::Category | Column::Origin | Column::Name | Column::Scope | Column::Line)
    }
}

/// What rows of one group have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grouping {
    /// Their name, else their scope, else the driver's function and their size, names that differ only in numbers as one; and
    /// their category. The groups of the report.
    Name,
    /// Their scope.
    Scope,
    /// The line of the program that made them: the innermost one that is its own, else the innermost.
    Line,
    /// Their exact size.
    Size,
    /// Their category.
    Category,
}

/// The containers: how finely each is drawn, and which.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SegmentsQuery {
    /// Slices a container is divided into, at least 1.
    pub slices: usize,
    /// Which containers, in their order.
    pub window: Range<usize>,
    /// In which order they are.
    pub order: SegmentOrder,
    /// Most blocks of each of them that are told one by one, the largest; none with 0.
    pub blocks: usize,
    /// One container of which only a part is looked at, and which: bytes from its beginning. Its slices and blocks are of that
    /// part.
    pub part: Option<(Pick, Range<u64>)>,
    /// How many mostly empty containers are told with what keeps them.
    pub pinned: usize,
    /// A block or container whose place in the order is wanted.
    pub find: Option<Pick>,
}

/// The order of containers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SegmentOrder {
    /// The largest first.
    #[default]
    Size,
    /// By process and address.
    Address,
}

/// A span of time, and how finely it is drawn.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WindowQuery {
    /// From, and until before.
    pub range: Range<Nanoseconds>,
    /// Equal parts, at least 1; of a span of fewer nanoseconds, one each.
    pub buckets: usize,
}

/// Telemetry in a span of time, and live bytes of each device and process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TracksQuery {
    /// From, and until before.
    pub range: Range<Nanoseconds>,
    /// At most so many samples of each device, from equal parts of the span; at most 4096.
    pub parts: usize,
}

/// Allocations as bands over time: which, how many, and how they lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BandsQuery {
    /// From, and until before.
    pub range: Range<Nanoseconds>,
    /// How they lie.
    pub order: BandOrder,
    /// At most so many: those of the largest area, bytes times the time that they live within the range. All others are summed
    /// up. At most [`BandsQuery::MOST`].
    pub limit: usize,
    /// None that is smaller.
    pub least_bytes: u64,
    /// Only those for which these terms hold: see [`super::filter`].
    pub filter: String,
    /// How finely time is drawn: parts of the range within which only one offset of a band, and one sum of the others, is told.
    pub columns: usize,
}

impl BandsQuery {
    /// More bands than this are never told.
    pub const MOST: usize = 8192;
}

impl Default for BandsQuery {
    fn default() -> BandsQuery {
        let range = Nanoseconds(0)..Nanoseconds(0);
        let order = BandOrder::Stacked;
        BandsQuery { range, order, limit: 2000, least_bytes: 0, filter: String::new(), columns: 2048 }
    }
}

/// How bands lie one above another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum BandOrder {
    /// On those that were made before and still live: a band sinks when one below it ends.
    #[default]
    Stacked,
    /// Where their addresses are.
    Address,
}

/// One allocation of the session: what [`super::AllocationRow`] and [`super::Band`] say of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Pick {
    /// Its number.
    pub id: u64,
    /// When it was made.
    pub birth: Nanoseconds,
}
