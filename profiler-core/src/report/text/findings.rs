//! Findings for people, out-of-memory in full.
//!
//! Owns: their layout. Refuses: their sentences, which come with them.

use std::fmt::Write as _;

use crate::findings::{Detail, Finding, Oom, Severity};
use crate::report::units::{bytes, count, exact, grouped, time};

use super::Page;

impl Page {
    pub(super) fn findings(&mut self, findings: &[&Finding]) {
        if findings.is_empty() {
            return;
        }
        self.title("Findings");
        for finding in findings {
            self.finding(finding);
        }
    }

    /// One finding.
    pub(super) fn finding(&mut self, finding: &Finding) {
        let (label, colour) = match finding.severity {
            Severity::Error => ("error", "1;31"),
            Severity::Warning => ("warning", "1;33"),
            Severity::Note => ("note", "1;34"),
        };
        let label = self.paint(colour, label);
        self.line(format!("  {label} [{}]", finding.detail.kind()));
        self.wrap("    ", &format!("{}.", finding.message));
        if let Detail::Oom(oom) = &finding.detail {
            self.oom(oom);
        }
        for sentence in finding.particulars() {
            self.wrap("    ", &sentence);
        }
        self.wrap("    ", &format!("To do: {}.", finding.advice));
    }

    fn oom(&mut self, oom: &Oom) {
        if let Some(line) = &oom.line {
            self.wrap("    ", &format!("Asked for by the line {line}."));
        }
        let mut place = vec![format!("at {}", time(oom.time_s))];
        place.push(oom.step.map_or("before the first step".to_owned(), |step| format!("step {step}")));
        place.extend(oom.phase.as_ref().map(|phase| format!("phase {phase}")));
        place.extend(oom.scope.as_ref().map(|scope| format!("scope {scope}")));
        if oom.refusals > 1 {
            place.push(format!("the fullest moment of {} refusals", grouped(oom.refusals)));
        }
        self.wrap("    ", &format!("It happened {}.", place.join(", ")));
        let mut line = String::new();
        let _ = write!(line, "asked for {}", exact(oom.requested));
        if let Some(free) = oom.free {
            let _ = write!(line, ", free {}", exact(free));
        }
        self.wrap("    ", &format!("Exactly: {line}, cached {}.", exact(oom.cached)));
        for sentence in circumstances(oom) {
            self.wrap("    ", &sentence);
        }
        self.line(format!("    Live then, {}:", exact(oom.live)));
        self.categories("      ", &oom.by_category, oom.live);
        if let Some(largest) = &oom.largest {
            self.wrap("    ", &largest.sentence());
        }
        if !oom.largest_groups.is_empty() {
            self.line("    Held most by:");
        }
        for group in oom.largest_groups.iter().take(5) {
            self.held("      ", (group.bytes, group.allocations), &group.category, &group.name);
        }
    }
}

/// What else was on the device when an allocation was refused, as sentences.
pub fn circumstances(oom: &Oom) -> Vec<String> {
    let sizes = oom.sizes().map(|sizes| format!("It was {sizes}."));
    sizes.into_iter().chain(cache(oom)).chain(outside(oom)).collect()
}

/// How much of what the driver granted was in no block, and whether a piece of it would have done.
fn cache(oom: &Oom) -> Option<String> {
    if oom.free_pieces == 0 {
        return None;
    }
    let pieces = count(oom.free_pieces, "free piece", "free pieces");
    let (cached, largest) = (bytes(oom.cached), bytes(oom.largest_free_piece));
    let verdict = match (oom.cached >= oom.requested, oom.largest_free_piece >= oom.requested) {
        (true, false) => ": enough in all, but no piece is large enough (fragmentation)",
        (true, true) => ": large enough, but not used",
        (false, _) => ": less than was asked for",
    };
    Some(format!("In the allocator's cache: {cached} in {pieces}, the largest {largest}{verdict}."))
}

/// What of the device was not granted to the program.
fn outside(oom: &Oom) -> Option<String> {
    let outside = oom.outside.filter(|outside| *outside > 0)?;
    let others = match oom.other_processes {
        Some(others) => format!(", of which other processes had {}", bytes(others)),
        None => String::new(),
    };
    Some(format!("Outside of what this program was granted (contexts, libraries, driver): {}{others}.", bytes(outside)))
}
