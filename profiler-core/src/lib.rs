//! memscope's model: logs → journal → allocations → ledger, timeline, findings → profile and reports.
//!
//! Owns: everything that both views show, so that they agree. Refuses: terminals, windows, and to touch the profiled
//! process.

pub mod allocation;
pub mod clock;
pub mod colours;
pub mod diff;
pub mod error;
pub mod explorer;
pub mod export;
pub mod findings;
pub mod journal;
pub mod keep;
pub mod ledger;
pub mod monitor;
pub mod profile;
pub mod ranks;
pub mod recorder;
pub mod recover;
pub mod report;
pub mod session;
pub mod source;
pub mod symbols;
pub mod telemetry;
pub mod timeline;

pub use error::{Error, Result};
// The words of the records that views show too, so that they depend on this room alone.
pub use memscope_wire::{Category, MemoryKind, Origin};
