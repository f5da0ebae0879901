//! memscope's model: logs → journal → allocations → ledger, timeline, findings → profile and reports.
//!
//! Owns: everything that both views show, so that they agree. Refuses: terminals, windows, and to touch the profiled
//! process.

pub mod error;
pub mod journal;

pub use error::{Error, Result};
