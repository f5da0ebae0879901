//! Tests of the whole window, from journal entries to what is seen and heard.
//!
//! | file | what belongs there |
//! | --- | --- |
//! | window | a window with an explorer behind it, and its pictures |
//! | allocations | the tables of allocations and of steps |
//! | golden | a profile with an out-of-memory error: its reason is read without a click |
//! | bands | allocations as bands: figures, names, selection, filter, what is merged |
//! | diff | two documents against each other |
//! | flame | the tree of what holds memory: by scope, by line, lit by the selection, walked through with keys |
//! | figures | what is shown equals the JSON report of the same moment |
//! | findings | what each finding says, and where "Show me" leads |
//! | opening | files and sessions as they are opened, whole, broken, missing, running |
//! | export | views as SVG, PNG and text |
//! | looks | nothing lies over anything else, and nothing is too small |
//! | kept | sessions of which not everything is kept
//! | keys | what keys, menu and pointer do |
//! | typing | keys while something lies over the window, or text is typed |
//! | panes | views below the timeline: which is shown, what it is asked for, comparing with another document |
//! | pictures | snapshots of fixed states |
//! | segments | the map of segments, and what pins them |
//!
//! The sessions are those of the dashboard's tests: both views are shown the same.

mod allocations;
mod bands;
mod diff;
mod export;
mod figures;
mod findings;
mod flame;
mod golden;
mod kept;
mod keys;
mod looks;
mod opening;
mod panes;
mod pictures;
mod segments;
#[path = "../../../tui/tests/dashboard/sessions.rs"]
#[allow(dead_code, reason = "the dashboard's tests use all of them")]
mod sessions;
#[path = "../../../tui/tests/dashboard/trace.rs"]
#[allow(dead_code, reason = "as above")]
mod trace;
mod typing;
mod window;
