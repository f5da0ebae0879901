//! How much of a session is kept, as the command line and the configuration say it: `last:10m`, `last:500000`, `steps:100..200`,
//! `peaks`, `all`.
//!
//! Owns: reading it, and saying what is wrong with it. Refuses: to act on it (`memscope_core::keep`).

use std::fmt;
use std::str::FromStr;

use memscope_core::journal::entry::Nanoseconds;
use memscope_core::keep::{Keep, Span};

/// What may be written.
const CHOICE: &str = "write last:10m, last:500000, steps:100..200, peaks or all";
const UNITS: [(&str, u64); 5] = [
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// What is kept; `None` for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keeping(pub Option<Keep>);

impl FromStr for Keeping {
    type Err = String;

    fn from_str(text: &str) -> Result<Keeping, String> {
        match text {
            "all" => Ok(Keeping(None)),
            _ => parse_keep(text).map(|keep| Keeping(Some(keep))),
        }
    }
}

/// As the flag and the configuration file spell it.
impl fmt::Display for Keeping {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => formatter.write_str("all"),
            Some(keep) => keep.fmt(formatter),
        }
    }
}

fn parse_keep(value: &str) -> Result<Keep, String> {
    match value.split_once(':') {
        None if value == "peaks" => Ok(Keep::Peaks),
        Some(("last", span)) => parse_span(span).map(Keep::Last),
        Some(("steps", steps)) => parse_steps(steps),
        _ => Err(format!("`{value}` says nothing that can be kept: {CHOICE}")),
    }
}

/// A time with its unit, or a number of allocations.
fn parse_span(span: &str) -> Result<Span, String> {
    let split = span.find(|char: char| !char.is_ascii_digit()).unwrap_or(span.len());
    let (number, unit) = span.split_at(split);
    let what = "a time (90s, 10m, 2h, 1d) or a number of allocations (500000)";
    let number: u64 = match number.parse() {
        Ok(0) => return Err(format!("`last:{span}` keeps nothing: write {what}")),
        Ok(number) => number,
        Err(_) => return Err(format!("`{span}` is neither a time nor a number of allocations: write {what}")),
    };
    if unit.is_empty() {
        return Ok(Span::Allocations(number));
    }
    let Some((_, scale)) = UNITS.into_iter().find(|(name, _)| *name == unit) else {
        return Err(format!("`{unit}` is no unit of time: write {what}"));
    };
    let time = number.checked_mul(scale).ok_or_else(|| format!("`{span}` is longer than 500 years: write {what}"))?;
    Ok(Span::Time(Nanoseconds(time)))
}

/// Two numbers, of which either may be left away.
fn parse_steps(steps: &str) -> Result<Keep, String> {
    let Some((from, to)) = steps.split_once("..") else {
        return Err(format!("`steps:{steps}` needs two ends: write steps:100..200, steps:100.. or steps:..200"));
    };
    let number = |text: &str| match text {
        "" => Ok(None),
        text => text.parse::<u64>().map(Some).map_err(|_| format!("`{text}` is no number of a step")),
    };
    match (number(from)?, number(to)?) {
        (None, None) => Err("`steps:..` is every step: write all to keep all".to_owned()),
        (Some(from), Some(to)) if to < from => {
            Err(format!("`steps:{from}..{to}` ends before it begins: write steps:{to}..{from}"))
        }
        (from, to) => Ok(Keep::Steps(from, to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_and_written() {
        let time = |seconds: u64| Keep::Last(Span::Time(Nanoseconds(seconds * 1_000_000_000)));
        for (text, keep, written) in [
            ("last:90s", time(90), "last:90s"),
            ("last:10m", time(600), "last:10m"),
            ("last:120m", time(7200), "last:2h"),
            ("last:1d", time(86_400), "last:24h"),
            ("last:500000", Keep::Last(Span::Allocations(500_000)), "last:500000"),
            ("steps:3..3", Keep::Steps(Some(3), Some(3)), "steps:3..3"),
            ("steps:100..", Keep::Steps(Some(100), None), "steps:100.."),
            ("steps:..7", Keep::Steps(None, Some(7)), "steps:..7"),
            ("peaks", Keep::Peaks, "peaks"),
        ] {
            let keep = Keeping(Some(keep));
            assert_eq!(text.parse(), Ok(keep), "{text}");
            assert_eq!(keep.to_string(), written);
            assert_eq!(written.parse(), Ok(keep));
        }
        assert_eq!("all".parse(), Ok(Keeping(None)));
        assert_eq!(Keeping(None).to_string(), "all");
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_write() {
        for (text, wrong) in [
            ("", "says nothing that can be kept"),
            ("everything", "says nothing that can be kept"),
            ("all:3", "says nothing that can be kept"),
            ("Peaks", "says nothing that can be kept"),
            ("peaks:3", "says nothing that can be kept"),
            ("last", "says nothing that can be kept"),
            ("last:", "neither a time nor a number"),
            ("last:m", "neither a time nor a number"),
            ("last:-5s", "neither a time nor a number"),
            ("last:0", "keeps nothing"),
            ("last:0m", "keeps nothing"),
            ("last:10parsecs", "no unit of time"),
            ("last:1.5h", "no unit of time"),
            ("last:99999999999999999999", "neither a time nor a number"),
            ("last:9999999999999d", "longer than 500 years"),
            ("steps:5", "needs two ends"),
            ("steps:", "needs two ends"),
            ("steps:..", "write all to keep all"),
            ("steps:a..b", "no number of a step"),
            ("steps:5..-1", "no number of a step"),
            ("steps:9..5", "ends before it begins: write steps:5..9"),
        ] {
            let error = text.parse::<Keeping>().expect_err(text);
            assert!(error.contains(wrong), "{text}: {error}");
        }
    }
}
