//! The profile: one file for a whole session, `memscope-<program>-<pid>.mscope`.
//!
//! Owns: writing it at once and completely, opening it fast, and answering for any moment from it. Refuses: what it cannot
//! read, with the file's name and the reason; it never trusts a length.
//!
//! A stored zip of Parquet tables and a manifest: docs/profile-format.md is the contract. The figures that are asked for most
//! lie ready in the manifest; other moments are computed from the rows.

mod archive;
mod decoder;
mod marks;
mod order;
mod output;
mod read;
mod reading;
mod rebuild;
mod rows;
mod scan;
mod schema;
mod summary;
mod summed;
mod table;
mod verify;
mod write;

pub use read::Profile;
pub use reading::Reading;
pub use verify::Verification;
pub use write::write;

pub(crate) use archive::Pending;

/// Version of the profile's format.
pub const FORMAT_VERSION: u32 = 1;

/// Ending of a profile's file name.
pub const FILE_SUFFIX: &str = ".mscope";

/// Names of the tables; each is a member `<name>.parquet`.
pub const TABLES: [&str; 14] = [
    "allocations",
    "names",
    "scopes",
    "stacks",
    "processes",
    "devices",
    "markers",
    "steps",
    "telemetry",
    "device_rows",
    "series",
    "host_steps",
    "host_series",
    "findings",
];

/// Tables that profiles of 0.1.0 do not have.
const ADDED_TABLES: [&str; 3] = ["stacks", "host_steps", "host_series"];

const MANIFEST: &str = "manifest.json";

fn member(table: &str) -> String {
    format!("{table}.parquet")
}
