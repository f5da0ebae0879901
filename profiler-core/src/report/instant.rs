//! Which moment a report is about: `peak`, `end`, `step:N` or `time:S`.
//!
//! Owns: its spelling. Refuses: to find it.

use std::fmt;
use std::str::FromStr;

use crate::journal::entry::Nanoseconds;

use super::{Report, Snapshot};

/// A moment of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Instant {
    /// Where live bytes were largest.
    #[default]
    Peak,
    /// The last moment before memory was only given back, by processes that ended or by the program's last frees.
    End,
    /// Where live bytes were largest within this step; of one whose number came several times, in all of them.
    Step(u64),
    /// Right after the last event at or before this time.
    Time(Nanoseconds),
}

/// What is wrong with a moment.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InstantError {
    /// It could not be read.
    #[error("`{0}` is not a moment: use peak, end, step:N or time:S (seconds since the start, such as time:1.5)")]
    Spelling(String),
    /// The moment is not kept allocation by allocation.
    #[error(
        "{asked} is summed only, and its allocations are not kept; {kept}. `--at peak`, `--at end` and kept moments work"
    )]
    Summed {
        /// The moment.
        asked: String,
        /// What is kept.
        kept: String,
    },
    /// The session has no such step.
    #[error("the session has no step {number}: {there}")]
    NoStep {
        /// The step.
        number: u64,
        /// Which steps there are.
        there: String,
    },
    /// Nothing is known of so late a time.
    #[error("{asked} is past the end of the session, which is at {end}; `--at end` shows its last moment")]
    PastEnd {
        /// The moment.
        asked: String,
        /// The end.
        end: String,
    },
}

impl InstantError {
    /// A session with these steps has not that one.
    pub(crate) fn no_step(number: u64, steps: impl Iterator<Item = u64>) -> InstantError {
        let ends = steps.fold(None, |ends, step| {
            let (first, last) = ends.unwrap_or((step, step));
            Some((step.min(first), step.max(last)))
        });
        let there = match ends {
            Some((first, last)) if first == last => format!("it has step {first} alone"),
            Some((first, last)) => format!("it has those from {first} to {last}"),
            None => "it has none".to_owned(),
        };
        InstantError::NoStep { number, there }
    }
}

impl Instant {
    /// Refuses a time past the end of the session that a report of this moment is of, unless something outlived it and was live then.
    ///
    /// # Errors
    /// [`InstantError::PastEnd`].
    pub fn check_end(self, report: &Report) -> Result<(), InstantError> {
        let holds = |snapshot: &Snapshot| snapshot.bytes > 0 || snapshot.ledger.rows.reserved > 0;
        match self {
            Instant::Time(time)
                if super::seconds(time) > report.duration_s && !report.at.iter().chain(&report.host.at).any(holds) =>
            {
                let end = format!("time:{}", report.duration_s);
                Err(InstantError::PastEnd { asked: self.to_string(), end })
            }
            _ => Ok(()),
        }
    }

    /// For [`super::Report::asked`].
    pub(crate) fn asked(self) -> Option<String> {
        (self != Instant::Peak).then(|| self.to_string())
    }
}

impl FromStr for Instant {
    type Err = InstantError;

    fn from_str(text: &str) -> Result<Instant, InstantError> {
        let wrong = || InstantError::Spelling(text.to_owned());
        match text.split_once(':') {
            None if text == "peak" => Ok(Instant::Peak),
            None if text == "end" => Ok(Instant::End),
            Some(("step", number)) => number.parse().map(Instant::Step).map_err(|_| wrong()),
            Some(("time", seconds)) => {
                let seconds: f64 = seconds.strip_suffix('s').unwrap_or(seconds).parse().map_err(|_| wrong())?;
                let nanoseconds = (seconds * 1e9).round();
                // 2^63 nanoseconds are 292 years; a NaN fails this too.
                if !(0.0..9.2e18).contains(&nanoseconds) {
                    return Err(wrong());
                }
                Ok(Instant::Time(Nanoseconds(nanoseconds as u64)))
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Instant::Peak => f.write_str("peak"),
            Instant::End => f.write_str("end"),
            Instant::Step(number) => write!(f, "step:{number}"),
            Instant::Time(time) => write!(f, "time:{}", super::seconds(*time)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_and_written() {
        for (text, instant) in [
            ("peak", Instant::Peak),
            ("end", Instant::End),
            ("step:0", Instant::Step(0)),
            ("step:18446744073709551615", Instant::Step(u64::MAX)),
            ("time:1.5", Instant::Time(Nanoseconds(1_500_000_000))),
        ] {
            assert_eq!(text.parse(), Ok(instant));
            assert_eq!(instant.to_string(), text);
        }
        assert_eq!("time:2s".parse(), Ok(Instant::Time(Nanoseconds(2_000_000_000))));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in
            ["", "Peak", "step", "step:", "step:-1", "step:1.5", "time:", "time:nan", "time:-1", "time:1e300", "x:1"]
        {
            assert_eq!(text.parse::<Instant>(), Err(InstantError::Spelling(text.to_owned())), "{text}");
        }
    }
}
