//! A difference as text, for a terminal or a clipboard.
//!
//! Owns: columns, and how many rows are named. Refuses: to lose bytes: what is not named is summed up in one row.

use std::fmt::Write as _;

use crate::report::units;

use super::{Change, Diff, SideReport, StepChange};

/// So many rows of a list are named.
const ROWS: usize = 20;
/// Width of a column of bytes.
const WIDTH: usize = 12;

/// The whole, in lines.
pub fn text(diff: &Diff) -> String {
    let mut text = String::new();
    for (which, side) in [("before", &diff.before), ("after", &diff.after)] {
        let _ = writeln!(text, "{which:<7} {}", side_text(side));
    }
    for remark in diff.moments().map(str::to_owned).into_iter().chain(diff.memories()) {
        let _ = writeln!(text, "{remark}");
    }
    let _ = writeln!(text, "\n{:>WIDTH$} {:>WIDTH$} {:>WIDTH$}", "before", "after", "difference");
    row(&mut text, &diff.live, "live");
    for change in &diff.by_category {
        row(&mut text, change, &format!("  {}", change.name));
    }
    for change in &diff.ledger {
        row(&mut text, change, &change.name);
    }
    match diff.without_lists() {
        Some(remark) => {
            let _ = writeln!(text, "\n{remark}");
        }
        None => lists(&mut text, diff),
    }
    steps(&mut text, diff);
    text
}

fn lists(text: &mut String, diff: &Diff) {
    list(text, "By scope (of those scopes alone):", "outside all scopes", &diff.by_scope);
    match &diff.by_line {
        Some(lines) => list(text, "By line of the program:", "no line recorded", lines),
        None => text.push_str("\nNo lines of the program were recorded (memscope run --stacks python, native).\n"),
    }
    if let Some(side) =
        [&diff.before, &diff.after].into_iter().find(|side| !side.lines).filter(|_| diff.by_line.is_some())
    {
        let _ = writeln!(text, "{} has no recorded lines (memscope run --stacks python, native).", side.name);
    }
}

/// A side in a line: its name, and its moment.
pub(super) fn side_text(side: &SideReport) -> String {
    if !side.exists {
        return format!("{}, which has no {}", side.name, side.moment());
    }
    format!("{}, {}, {}", side.name, side.moment(), side.place())
}

impl SideReport {
    /// Which moment it is.
    pub fn moment(&self) -> String {
        match self.asked.split_once(':') {
            _ if self.ran_out => "where memory ran out".to_owned(),
            Some(("step", number)) => format!("step {number}"),
            Some(_) => "moment".to_owned(),
            None => self.asked.clone(),
        }
    }

    /// When, and in which step and phase.
    pub fn place(&self) -> String {
        let step = self.step.map_or_else(String::new, |step| format!(", step {step}"));
        let phase = self.phase.as_ref().map_or_else(String::new, |phase| format!(", {phase}"));
        format!("at {}{step}{phase}", units::time(self.time_s))
    }
}

impl Diff {
    /// By which rule the moments were chosen, where that is not the same for both.
    pub fn moments(&self) -> Option<&'static str> {
        (self.before.ran_out != self.after.ran_out)
            .then_some("A side that ran out of memory is compared at that moment, the other one at its own.")
    }

    /// Why there are no lists, where a side is known in figures alone.
    pub fn without_lists(&self) -> Option<String> {
        let summed = [&self.before, &self.after].into_iter().filter(|side| side.summed);
        let names: Vec<&str> = summed.map(|side| side.name.as_str()).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        (!names.is_empty()).then(|| {
            format!(
                "{} {verb} summed only at that moment (--keep): figures are compared, scopes and lines cannot be.",
                names.join(" and ")
            )
        })
    }

    /// Which memory is compared, where that is not device memory on both sides.
    pub fn memories(&self) -> Option<String> {
        let of = |host: bool| if host { "host memory" } else { "device memory" };
        match (self.before.host, self.after.host) {
            (false, false) => None,
            (true, true) => Some("Host memory (CPU tensors, pinned memory): neither has device memory.".to_owned()),
            (before, after) => Some(format!("Different memories: before is {}, after is {}.", of(before), of(after))),
        }
    }

    /// How many steps both have, and how many only one has.
    pub fn steps_text(&self) -> String {
        let mut text = format!("{} in both", units::count(self.steps_in_both, "step", "steps"));
        for (count, which) in [(self.steps_only_before, "before"), (self.steps_only_after, "after")] {
            if count > 0 {
                let _ = write!(text, ", {} only {which}", units::grouped(count));
            }
        }
        text
    }
}

/// Bytes with a sign; nothing where they are the same.
pub fn difference(bytes: i64) -> String {
    match bytes {
        0 => "0".to_owned(),
        1.. => format!("+{}", units::bytes(bytes.unsigned_abs())),
        _ => units::signed_bytes(bytes),
    }
}

fn row(text: &mut String, change: &Change, name: &str) {
    let bytes = |side: Option<u64>| side.map_or_else(|| "-".to_owned(), units::bytes);
    let (before, after) = (bytes(change.before), bytes(change.after));
    let only = match (change.before, change.after) {
        (Some(_), None) => " (only before)",
        (None, Some(_)) => " (only after)",
        _ => "",
    };
    let change = difference(change.difference);
    let _ = writeln!(text, "{before:>WIDTH$} {after:>WIDTH$} {change:>WIDTH$}  {name}{only}");
}

fn list(text: &mut String, title: &str, unnamed: &str, rows: &[Change]) {
    let _ = writeln!(text, "\n{title}");
    let named = |change: &Change| if change.name.is_empty() { unnamed.to_owned() } else { change.name.clone() };
    for change in rows.iter().take(ROWS) {
        row(text, change, &named(change));
    }
    let Some(others) = rows.get(ROWS..).filter(|others| !others.is_empty()) else { return };
    let sum = |of: fn(&Change) -> Option<u64>| others.iter().filter_map(of).fold(0u64, u64::wrapping_add);
    let rest = Change {
        before: Some(sum(|change| change.before)),
        after: Some(sum(|change| change.after)),
        difference: others.iter().fold(0, |sum, change| change.difference.wrapping_add(sum)),
        ..Change::default()
    };
    row(text, &rest, &units::count(others.len() as u64, "other", "others"));
}

fn steps(text: &mut String, diff: &Diff) {
    if diff.steps.is_empty() {
        return;
    }
    let _ = writeln!(text, "\nPeaks of steps: {}", diff.steps_text());
    let mut order: Vec<&StepChange> = diff.steps.iter().filter(|step| step.difference.is_some()).collect();
    order.sort_by_key(|step| (std::cmp::Reverse(step.difference.map(i64::unsigned_abs)), step.step));
    order.truncate(ROWS / 2);
    order.sort_by_key(|step| step.step);
    for step in order {
        let change = Change {
            before: step.before,
            after: step.after,
            difference: step.difference.unwrap_or(0),
            ..Change::default()
        };
        row(text, &change, &format!("step {}", step.step));
    }
}
