//! A comparison as text: what a terminal of 100 columns shows.
//!
//! Owns: columns and words. Refuses: figures of its own.

use std::fmt::Write;

use memscope_core::ledger::CATEGORIES;
use memscope_core::report::ByCategory;
use memscope_core::report::units::bytes;

use super::comparison::{Claim, Comparison, Figures, Outcome, Row};
use super::why;

/// Longest line.
const COLUMNS: usize = 100;
/// Longest part of a name; longer ones go on in the next line.
const LONGEST_NAME: usize = 26;

/// The table, the categories, and a line for all that needs words.
pub fn text(comparison: &Comparison) -> String {
    let mut text = wrapped(&heading(comparison));
    text.push('\n');
    peaks(comparison, &mut text);
    text += "\n";
    categories(comparison, &mut text);
    notes(comparison, &mut text);
    text
}

/// What was run, where, and what the peaks are of.
pub fn heading(comparison: &Comparison) -> String {
    let Comparison { sample, size, steps, .. } = comparison;
    let device = comparison.device.as_deref().unwrap_or("a device");
    let device = match &comparison.simulated_device {
        Some(name) => {
            format!("a simulated {device} ({name}{})", if comparison.compute { "" } else { ", without computing" })
        }
        None => device.to_owned(),
    };
    let more = comparison.arguments.join(" ");
    let more = if more.is_empty() { more } else { format!(", {more}") };
    format!("{sample} {size}{more}: {steps} steps a run on {device}. Peak: largest live bytes of the device.")
}

fn peaks(comparison: &Comparison, text: &mut String) {
    let claims = comparison.rows.iter().any(|row| claimed_peak(row).is_some());
    let width = name_width(comparison);
    let column = |shown: bool, text: &str, width: usize| match shown {
        true => format!(" {text:>width$}"),
        false => String::new(),
    };
    let (batches, reserves, compute) = (comparison.batches_differ(), comparison.reserves(), comparison.compute);
    let claim = |text: &str| column(claims, text, 7);
    let _ = writeln!(
        text,
        "{:<width$}{} {:>10} {:>8}{} {:>9}{}{}{}",
        "technique",
        column(batches, "batch", 6),
        "peak",
        "baseline",
        claim("claimed"),
        "peak in",
        column(reserves, "reserved", 10),
        column(compute, "step time", 9),
        column(compute, "loss", 8),
    );
    for row in &comparison.rows {
        let mut parts = name_parts(&row.name);
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            let _ = writeln!(text, "{part}");
        }
        let claimed = claim(&claimed_peak(row).map_or(String::new(), |percent| format!("{percent:.0} %")));
        let _ = match &row.figures {
            Some(figures) => writeln!(
                text,
                "{last:<width$}{} {:>10} {:>8}{claimed} {:>9}{}{}{}",
                column(batches, &batch(figures), 6),
                bytes(figures.peak_bytes),
                percent(figures.percent_of_baseline),
                figures.phase.as_deref().unwrap_or("–"),
                column(reserves, &bytes(figures.reserved_bytes), 10),
                column(compute, &ratio(figures), 9),
                column(compute, &loss(figures), 8),
            ),
            None => writeln!(
                text,
                "{last:<width$}{} {:>10} {:>8}{claimed}  {}",
                column(batches, "–", 6),
                "–",
                "–",
                words(row.outcome)
            ),
        };
    }
}

fn categories(comparison: &Comparison, text: &mut String) {
    let width = name_width(comparison);
    let shown: Vec<usize> = (0..CATEGORIES).filter(|position| shows(comparison, *position)).collect();
    let _ = write!(text, "{:<width$}", "at the peak");
    for position in &shown {
        let _ = write!(text, " {:>11}", ByCategory::default().named()[*position].0);
    }
    text.push('\n');
    for row in &comparison.rows {
        let Some(figures) = &row.figures else { continue };
        let mut parts = name_parts(&row.name);
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            let _ = writeln!(text, "{part}");
        }
        let _ = write!(text, "{last:<width$}");
        for position in &shown {
            let _ = write!(text, " {:>11}", bytes(figures.by_category.named()[*position].1));
        }
        text.push('\n');
    }
}

/// `unknown` is left out where nothing is unknown.
fn shows(comparison: &Comparison, position: usize) -> bool {
    let of = |figures: &Figures| figures.by_category.named()[position];
    ByCategory::default().named()[position].0 != "unknown"
        || comparison.rows.iter().filter_map(|row| row.figures.as_ref()).any(|figures| of(figures).1 > 0)
}

/// Why there are no figures, then what there is to say about claims.
fn notes(comparison: &Comparison, text: &mut String) {
    let refused = comparison.rows.iter().filter_map(|row| Some((row, row.message.as_ref()?)));
    let told = comparison.rows.iter().filter(|row| row.figures.is_some());
    let told = told.filter_map(|row| {
        Some((
            row,
            row.why.clone().or_else(|| row.claim.as_ref().map(|claim| format!("claim: {}", claim_words(claim))))?,
        ))
    });
    let paragraphs = [
        refused.map(|(row, message)| wrapped(&format!("{}: {message}", row.name))).collect::<String>(),
        told.map(|(row, words)| wrapped(&format!("{}: {words}", row.name))).collect(),
    ];
    for paragraph in paragraphs.iter().filter(|paragraph| !paragraph.is_empty()) {
        text.push('\n');
        text.push_str(paragraph);
    }
}

/// A claim with what was measured of it here, and what is true of it in general.
pub fn claim_words(claim: &Claim) -> String {
    let measured = match claim.percent.zip(claim.of).zip(claim.measured_percent) {
        None => "Its figure is not of this run".to_owned(),
        Some(((percent, of), measured)) => {
            let met = if measured <= percent + why::MET { "met" } else { "not met" };
            format!("Claimed {percent:.1} % {} left, measured {measured:.1} %: {met} here", of.words())
        }
    };
    format!("{}. {measured}. In general the claim {}.", claim.text, predicate(claim))
}

fn predicate(claim: &Claim) -> String {
    use super::comparison::Verdict;
    match claim.verdict {
        Verdict::Holds | Verdict::Depends | Verdict::InPart => claim.verdict.words().to_owned(),
        Verdict::Recalled | Verdict::Wrong => format!("is {}", claim.verdict.words()),
    }
}

/// The claim about the peak, if there is one.
pub fn claimed_peak(row: &Row) -> Option<f64> {
    let claim = row.claim.as_ref()?;
    claim.percent.filter(|_| claim.of == Some(super::comparison::Quantity::Peak))
}

/// How a run without figures ended.
pub const fn words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Measured => "measured",
        Outcome::NotInSample => "not in this sample",
        Outcome::DoesNotCombine => "does not combine",
        Outcome::OutOfMemory => "out of memory",
        Outcome::Failed => "failed",
    }
}

/// Percent of the baseline.
pub fn percent(value: Option<f64>) -> String {
    let decimals = |percent: f64| usize::from(percent < 1000.0);
    value.map_or("–".to_owned(), |percent| format!("{percent:.*} %", decimals(percent)))
}

/// Step time beside the baseline's.
pub fn ratio(figures: &Figures) -> String {
    figures.step_time_ratio.map_or("–".to_owned(), |ratio| format!("× {ratio:.2}"))
}

/// The loss after the last step.
pub fn loss(figures: &Figures) -> String {
    figures.loss.map_or("–".to_owned(), |loss| format!("{loss:.4}"))
}

/// Sequences or images in a batch.
pub fn batch(figures: &Figures) -> String {
    figures.batch.map_or("–".to_owned(), |batch| batch.to_string())
}

fn name_width(comparison: &Comparison) -> usize {
    let parts = comparison.rows.iter().flat_map(|row| name_parts(&row.name));
    parts.map(|part| part.chars().count()).max().unwrap_or(0).max("technique".len())
}

/// A name in lines that are not too long, broken before a `+`.
fn name_parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for (position, word) in name.split('+').enumerate() {
        let word = if position == 0 { word.to_owned() } else { format!("+{word}") };
        match parts.last_mut() {
            Some(last) if last.is_empty() || last.chars().count() + word.chars().count() <= LONGEST_NAME => {
                *last += &word
            }
            _ => parts.push(format!("  {word}")),
        }
    }
    parts
}

/// A paragraph in lines of at most [`COLUMNS`].
fn wrapped(paragraph: &str) -> String {
    let mut text = String::new();
    let mut used = 0;
    // A number and its unit stay together.
    let mut words: Vec<String> = Vec::new();
    for word in paragraph.split_whitespace() {
        match words.last_mut().filter(|_| word.starts_with('%')) {
            Some(last) => *last += &format!(" {word}"),
            None => words.push(word.to_owned()),
        }
    }
    for word in words {
        let long = word.chars().count();
        if used > 0 && used + 1 + long > COLUMNS {
            text += "\n  ";
            used = 2;
        } else if used > 0 {
            text.push(' ');
            used += 1;
        }
        text += &word;
        used += long;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paragraphs_are_broken() {
        assert_eq!(name_parts("adamw8bit"), ["adamw8bit"]);
        assert_eq!(name_parts("amp-fp16+checkpoint+chunked-loss"), ["amp-fp16+checkpoint", "  +chunked-loss"]);
        let long = wrapped(&"word ".repeat(60));
        assert!(long.lines().all(|line| line.len() <= COLUMNS), "{long}");
        assert_eq!(long.split_whitespace().count(), 60);
        assert_eq!(
            wrapped(&format!("{} 35 % of it", "x".repeat(COLUMNS - 4))),
            format!("{}\n  35 % of it\n", "x".repeat(96))
        );
    }
}
