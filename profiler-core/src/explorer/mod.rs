//! What both views show: the answers to questions about a session, running or finished, at any moment of it.
//!
//! Owns: [`Explorer`], which holds a model and answers a [`Query`] with plain data, and [`Follower`], which does so on a thread
//! of its own while a session runs. Refuses: terminals, windows, colours and keys; and to write anything.

mod alert;
mod answer;
mod answering;
mod bands;
mod bound;
mod called;
mod detail;
#[expect(clippy::module_inception, reason = "the room's name, and its one type")]
mod explorer;
pub mod filter;
mod find;
mod flame;
mod follower;
mod gravest;
mod history;
mod holding;
mod limits;
mod listed;
mod live;
mod moment;
mod overview;
mod pace;
mod part;
mod query;
mod rows;
mod scopes;
mod segments;
mod session;
mod side;
mod spans;
mod stacks;
mod steps;
mod summing;
mod tracks;
mod turns;
mod window;

pub use alert::Alertness;
pub use answer::{
    AllocationRow, Answer, DeviceView, GroupRow, MomentView, ProcessView, Row, RowsView, Running, STACKED, ScopeNode,
    ScopeTotal, SessionView, StackLine, StepView,
};
pub use bands::{AddressSpan, Band, BandScope, BandsView, Hit, Rest, SegmentBand};
pub use detail::AllocationDetail;
pub use explorer::Explorer;
pub use filter::{and_terms, exact_term, group_term};
pub use find::{ended_as, find_session};
pub use flame::{FlameBy, FlameNode, FlameQuery, FlameView, FlameWeight, Frame};
pub use follower::Follower;
pub use gravest::Gravest;
pub use holding::Holding;
pub use limits::Limits;
pub use listed::{Listed, ListedTime, Partial};
pub use overview::overview_of;
pub use query::{
    At, BandOrder, BandsQuery, Column, Grouping, Pick, Query, RowsQuery, SegmentOrder, SegmentsQuery, SideAt, Target,
    TracksQuery, WindowQuery,
};
pub use segments::{FragmentationPoint, FragmentationView, Pinned, Segment, SegmentBlock, SegmentsView, Survivor};
pub use stacks::Told;
pub(crate) use summing::Summing;
pub use tracks::{DeviceTelemetry, Lane, TelemetryPoint, TracksView};

pub use window::{PhaseSpan, RefusalMark, StepSpan, WindowBucket, WindowView};
