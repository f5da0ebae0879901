//! Terms that views make of what is clicked.
//!
//! Owns: their spelling. Refuses: to read it (`read.rs`).

use super::super::answer::{GroupRow, STACKED};
use super::super::query::Grouping;

/// The terms that let through what a group holds; `None` for what no term can say.
pub fn group_term(grouping: Grouping, group: &GroupRow) -> Option<String> {
    match grouping {
        Grouping::Name => {
            let name = exact_term("name", group.name.as_ref()?);
            let category = STACKED.into_iter().find(|category| group.live[*category as usize] > 0)?;
            Some(format!("{name} {}", exact_term("category", category.name())))
        }
        Grouping::Category => Some(exact_term("category", &group.label)),
        Grouping::Scope => Some(exact_term("scope", &group.label)),
        Grouping::Line => Some(exact_term("line", &group.label)),
        Grouping::Size => {
            let size = group.live.iter().sum::<u64>().checked_div(group.allocations)?;
            Some(format!(">{}B <{}B", size.checked_sub(1)?, size.checked_add(1)?))
        }
    }
}

/// A filter that lets through only that for which these terms hold, too.
pub fn and_terms(filter: &str, terms: &str) -> String {
    // What the same terms have let through needs no more of them.
    if format!(" {filter} ").contains(&format!(" {terms} ")) {
        return filter.to_owned();
    }
    format!("{} {terms}", filter.trim()).trim_start().to_owned()
}

/// The term that lets through what has exactly this text in a column: `scope`, `inside`, `name`, `line` or `category`.
pub fn exact_term(column: &str, text: &str) -> String {
    format!("{column}={}", quoted(text))
}

/// A text as it stands behind `=`.
fn quoted(text: &str) -> String {
    if !text.is_empty() && !text.starts_with('"') && !text.contains(char::is_whitespace) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
