//! Long runs stay bounded: what is not kept of a session allocation by allocation is summed.
//!
//! Owns: what the user asked to be kept ([`Keep`]), what a shortened session knows of its beginning ([`Kept`]), and the thread that
//! puts sums in the place of segments of the journal while the program runs. Refuses: the files' bytes (`journal`), and to drop
//! anything that lives.
//!
//! A session that keeps all is never touched by this. docs/adr/0015 says how it works, and what is not exact.

mod asked;
mod carried;
mod keeper;
pub(crate) mod packed;
mod parts;
mod plan;

pub use asked::{Keep, Span};
pub use carried::{Kept, KeptSpan};
#[doc(hidden)]
pub use keeper::write_in_segments;

pub(crate) use carried::{Carried, CarriedPeak, CheckpointBody};
pub(crate) use parts::Parts;
pub(crate) use plan::Plan;
