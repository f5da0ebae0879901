//! The bytes that the profiled process and memscope agree on: event records, the log that carries them, names of
//! environment variables, and the catalogue of simulated devices.
//!
//! Owns: layouts, their encoding, and the steps by which a log is written. Refuses: input and output, allocation, any dependency. It is `no_std`, because it is
//! linked into the interposer, which runs inside other people's programs.
//!
//! docs/wire-format.md describes the same layouts for a reader in another language.

#![no_std]

pub mod device;
pub mod env;
pub mod event;
pub mod log;
pub mod module;
pub mod owner;
pub mod protocol;
pub mod text;

pub use event::{Category, Event, Measure, MemoryKind, Object, Origin};
pub use log::{LogHeader, Record, Slot};
pub use text::TextId;
