//! Findings for people, out-of-memory in full.
//!
//! Owns: their layout. Refuses: their sentences, which come with them.

use std::fmt::Write as _;

use crate::findings::{Detail, Finding, Oom, Severity};
use crate::report::units::{bytes, exact, grouped, share, time};

use super::Page;

impl Page {
    pub(super) fn findings(&mut self, findings: &[&Finding]) {
        if findings.is_empty() {
            return;
        }
        self.title("Findings");
        for finding in findings {
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
            self.wrap("    ", &format!("To do: {}.", finding.advice));
        }
    }

    fn oom(&mut self, oom: &Oom) {
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
        self.line(format!("    Live then, {}:", exact(oom.live)));
        for (name, value) in oom.by_category.named() {
            if value > 0 {
                self.line(format!("      {name:<12} {:>11} {:>5.1} %", bytes(value), share(value, oom.live)));
            }
        }
        if !oom.largest_groups.is_empty() {
            self.line("    Held most by:");
        }
        for group in oom.largest_groups.iter().take(5) {
            self.held("      ", (group.bytes, group.allocations), &group.category, &group.name);
        }
    }
}
