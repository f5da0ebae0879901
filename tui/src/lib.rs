//! The terminal views: the dashboard of one session, and `top`, the monitor of the whole machine.
//!
//! Owns: drawing memscope-core's answers in a terminal, and turning keys and the mouse into questions. Refuses: analysis: what is
//! drawn was computed in memscope-core; and to start, end or profile programs: the command line does that when asked.

pub mod output;
pub mod program;
