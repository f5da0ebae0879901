//! The terminal views: the dashboard of one session, and `top`, the monitor of the whole machine.
//!
//! Owns: drawing memscope-core's answers in a terminal, and turning keys and the mouse into questions. Refuses: analysis: what is
//! drawn was computed in memscope-core; and to start, end or profile programs: the command line does that when asked.
//!
//! Data flows in a circle: an event changes the [`app::App`]; the app says what has to be asked ([`app::App::query`]); the
//! answer comes from memscope-core ([`app::App::receive`]); [`screens::draw`] draws both.

pub mod app;
mod bar;
mod canvas;
mod chart;
pub mod dashboard;
mod dialog;
mod fill;
pub mod glyphs;
mod icicle;
pub mod keys;
pub mod output;
pub mod palette;
pub mod program;
mod refusal;
pub mod screens;
mod table;
mod terminal;
pub mod top;
mod words;
