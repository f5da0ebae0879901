//! What is beside the views: the session's facts, the moment under the cursor, and what was found out.
//!
//! Owns: their order. Refuses: to be hidden behind a click: the reason of an out-of-memory error is read here.

pub mod findings;
pub mod header;
pub mod moment;
pub mod selected;

use memscope_core::Category;
use memscope_core::explorer::Answer;
use memscope_core::ledger::CATEGORIES;
use memscope_core::report::units;

/// Seconds since the session began, with digits down to the microsecond.
pub fn time(nanoseconds: u64) -> String {
    format!("{}.{:06} s", units::grouped(nanoseconds / 1_000_000_000), nanoseconds % 1_000_000_000 / 1000)
}

/// The category that holds most; `None` where nothing is live.
pub fn largest(live: &[u64; CATEGORIES]) -> Option<(Category, u64)> {
    let named = Category::ALL.iter().map(|category| (*category, live[*category as usize]));
    named.filter(|(_, bytes)| *bytes > 0).max_by_key(|(_, bytes)| *bytes)
}

/// The scope, or scopes that are alike, with most of a category: its path and bytes. `None` where no scope holds any.
pub fn module_of(answer: &Answer, category: Category) -> Option<(String, u64)> {
    let held = answer.top_scopes.iter().map(|scope| (scope.path.as_str(), scope.live[category as usize]));
    let (path, bytes) = held.filter(|(_, bytes)| *bytes > 0).max_by_key(|(_, bytes)| *bytes)?;
    Some((if path.is_empty() { "outside all scopes".to_owned() } else { path.to_owned() }, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_to_the_microsecond() {
        assert_eq!(time(0), "0.000000 s");
        assert_eq!(time(1_234_567_890), "1.234567 s");
        assert_eq!(time(3_600_000_000_000), "3,600.000000 s");
    }
}
