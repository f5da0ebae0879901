//! Tests of the capture half, from a log's bytes to the journal's entries.
//!
//! | file | what belongs there |
//! | --- | --- |
//! | writer.rs | a writer of logs, after the protocol in `memscope_wire::log` and independent of the interposer |
//! | journal.rs | round trip, torn ends, damage |
//! | logs.rs | reading logs: order, slots never committed, bad headers, memory |
//! | growth.rs | space ahead of the writer of a log |
//! | record.rs | the recorder, and sessions as they are read |
//! | kill.rs | SIGKILL of program and recorder at random moments |
//! | nvml.rs | telemetry over a small NVML in C |

mod growth;
mod journal;
mod kill;
mod logs;
mod nvml;
mod record;
mod writer;
