//! What both views show: the answers to questions about a session, running or finished, at any moment of it.
//!
//! Owns: [`Explorer`], which holds a model and answers a [`Query`] with plain data, and [`Follower`], which does so on a thread
//! of its own while a session runs. Refuses: terminals, windows, colours and keys; and to write anything.

mod alert;
mod answer;
mod answering;
mod bound;
#[expect(clippy::module_inception, reason = "the room's name, and its one type")]
mod explorer;
pub mod filter;
mod find;
mod follower;
mod holding;
mod limits;
mod live;
mod moment;
mod pace;
mod part;
mod query;
mod rows;
mod scopes;
mod segments;
mod session;
mod steps;

pub use alert::Alertness;
pub use answer::{
    AllocationRow, Answer, DeviceView, GroupRow, MomentView, ProcessView, Row, RowsView, Running, STACKED, ScopeNode,
    ScopeTotal, Segment, SegmentsView, SessionView, StepView,
};
pub use explorer::Explorer;
pub use filter::exact_term;
pub use find::find_session;
pub use follower::Follower;
pub use holding::Holding;
pub use limits::Limits;
pub use query::{At, Column, Grouping, Query, RowsQuery, SegmentsQuery, Target};
