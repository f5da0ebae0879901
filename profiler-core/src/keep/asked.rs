//! What the user asked to be kept.
//!
//! Owns: its words. Refuses: to read them (the command line does).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::journal::entry::Nanoseconds;

/// What of a session is kept allocation by allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// The end of it.
    Last(Span),
    /// These steps, both included; an absent one is the first, or the last.
    Steps(Option<u64>, Option<u64>),
    /// The last step, and the step of each device's largest live bytes.
    Peaks,
}

/// How much of the end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// So long.
    Time(Nanoseconds),
    /// So many allocations and blocks.
    Allocations(u64),
}

impl Keep {
    /// True for steps that are wanted.
    pub(crate) fn wants(self, step: u64) -> bool {
        match self {
            Keep::Steps(from, to) => from.is_none_or(|from| from <= step) && to.is_none_or(|to| step <= to),
            Keep::Last(_) | Keep::Peaks => false,
        }
    }
}

/// As the command line reads it.
impl fmt::Display for Keep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
        match *self {
            Keep::Last(Span::Allocations(count)) => write!(formatter, "last:{count}"),
            Keep::Last(Span::Time(Nanoseconds(time))) => {
                let units = [(3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms")];
                let whole = units.into_iter().find(|(unit, _)| time.is_multiple_of(*unit)).unwrap_or((1, "ns"));
                write!(formatter, "last:{}{}", time / whole.0, whole.1)
            }
            Keep::Steps(from, to) => write!(formatter, "steps:{}..{}", number(from), number(to)),
            Keep::Peaks => formatter.write_str("peaks"),
        }
    }
}
