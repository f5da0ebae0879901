//! The program's terminal under `--tui`: a pseudo-terminal in the place of memscope's own.
//!
//! | file | what it owns |
//! | --- | --- |
//! | `own.rs` | memscope's own terminal: finding it, its settings, raw mode |
//! | `pair.rs` | the pseudo-terminal, and how the program gets it |
//! | `mover.rs` | the thread that moves bytes: program → transcript → screen, keys → program |
//! | `custody.rs` | waiting for the program, its state, signals to it |
//! | `relay.rs` | the program in plain form, after the dashboard was left |
//!
//! Owns: everything between the program and the terminal that it is shown in. Refuses: the plain form of a run, where the
//! program has memscope's own terminal and nothing of this is used; to lose a byte of what the program writes.

mod custody;
mod mover;
mod own;
mod pair;
mod relay;

pub use custody::{Custody, Stage};
pub use mover::Mover;
pub use own::OwnTerminal;
pub use pair::{Pair, Wiring};
pub use relay::relay;

/// Rows and columns.
pub type Size = (u16, u16);
