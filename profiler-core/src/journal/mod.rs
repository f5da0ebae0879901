//! The journal: the truth of a session on disk.

pub mod entry;
