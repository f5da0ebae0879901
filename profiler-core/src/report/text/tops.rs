//! What holds most, for people: groups, scopes, allocations.
//!
//! Owns: their lists. Refuses: ten lines that say the same.

use crate::report::Snapshot;
use crate::report::group::pattern;
use crate::report::units::{bytes, count};

use super::{Page, WIDTH, fit};

/// Groups and scopes shown.
const ROWS: usize = 10;
/// Allocations shown.
const LARGEST: usize = 5;

impl Page {
    pub(super) fn tops(&mut self, at: &Snapshot) {
        if !at.top_groups.is_empty() {
            self.title("Held most by");
        }
        for group in at.top_groups.iter().take(ROWS) {
            self.held("  ", (group.bytes, group.allocations), &group.category, &group.name);
            if let Some(line) = &group.line {
                let indent = " ".repeat(15);
                self.line(format!("{indent}made at {}", fit(line, WIDTH - indent.len() - 8)));
            }
        }
        if at.top_scope_groups.iter().any(|group| !group.scope.is_empty()) {
            self.title("Scopes that hold most");
            for group in at.top_scope_groups.iter().take(ROWS) {
                let scope = if group.scope.is_empty() { "(outside all scopes)" } else { &group.scope };
                let most = group.by_category.named().into_iter().max_by_key(|(_, bytes)| *bytes);
                self.held("  ", (group.bytes, group.allocations), most.map_or("", |(name, _)| name), scope);
            }
        }
        self.largest(at);
    }

    /// A line of a list: bytes, category, how many, whose.
    pub(super) fn held(&mut self, indent: &str, (held, allocations): (u64, u64), category: &str, name: &str) {
        let number = count(allocations, "allocation", "allocations");
        let line = format!("{indent}{:>11}  {category:<12} {number:<18} ", bytes(held));
        let rest = WIDTH - line.chars().count();
        self.line(format!("{line}{}", fit(name, rest)));
    }

    /// The largest allocations; of those that differ only in numbers, the largest.
    fn largest(&mut self, at: &Snapshot) {
        let mut shown = Vec::new();
        for allocation in &at.top_allocations {
            let name = allocation.name.as_deref().or(allocation.function.as_deref()).unwrap_or("(no name)");
            // Of what has no name, the size is all that tells it apart.
            let size = allocation.name.is_none().then_some(allocation.bytes);
            let kind = (pattern(name), pattern(&allocation.scope), &allocation.category, size);
            if shown.contains(&kind) {
                continue;
            }
            if shown.is_empty() {
                self.title("Largest allocations, one of each kind");
            }
            shown.push(kind);
            let step = allocation.step.map_or("before steps".to_owned(), |step| format!("step {step}"));
            self.line(format!(
                "  {:>11}  {:<12} {:<34} {:<12} {}",
                bytes(allocation.bytes),
                allocation.category,
                fit(name, 34),
                fit(&step, 12),
                fit(&allocation.scope, 23)
            ));
            if shown.len() == LARGEST {
                break;
            }
        }
    }
}
