//! Searching in rows of text.
//!
//! Owns: what counts as a hit, and in which column it stands. Refuses: regular expressions.

use unicode_width::UnicodeWidthChar;

/// A place where the pattern stands: row counted from the first that ever was, column in cells. Ordered as one reads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Hit {
    pub row: u64,
    pub column: u16,
}

/// Which hit comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    /// Towards older rows.
    Up,
    /// Towards newer rows.
    Down,
}

/// What is searched for.
#[derive(Clone)]
pub(super) struct Pattern {
    characters: Vec<char>,
    /// Whether upper and lower case are told apart.
    exact: bool,
    /// In cells.
    width: u16,
}

impl Pattern {
    /// `None` for an empty text.
    pub fn new(text: &str) -> Option<Pattern> {
        let exact = text.chars().any(char::is_uppercase);
        let characters: Vec<char> = text.chars().map(|c| fold(c, exact)).collect();
        let width = characters.iter().map(|c| cells(*c)).sum();
        (!characters.is_empty()).then_some(Pattern { characters, exact, width })
    }

    /// Cells that a hit takes.
    pub fn width(&self) -> u16 {
        self.width
    }

    /// The columns where the pattern stands in a row; hits do not overlap.
    pub fn columns(&self, row: &str) -> impl Iterator<Item = u16> {
        let characters: Vec<char> = row.chars().map(|c| fold(c, self.exact)).collect();
        let length = self.characters.len();
        let mut found = Vec::new();
        let (mut index, mut column) = (0, 0_u16);
        while index + length <= characters.len() {
            let here = characters[index..index + length] == self.characters[..];
            if here {
                found.push(column);
            }
            let step = if here { length } else { 1 };
            column += characters[index..index + step].iter().map(|c| cells(*c)).sum::<u16>();
            index += step;
        }
        found.into_iter()
    }
}

/// One character for one, so that columns stay true.
fn fold(c: char, exact: bool) -> char {
    let mut lower = c.to_lowercase();
    match (exact, lower.next(), lower.next()) {
        (false, Some(single), None) => single,
        _ => c,
    }
}

fn cells(c: char) -> u16 {
    c.width().unwrap_or(0) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(pattern: &str, row: &str) -> Vec<u16> {
        Pattern::new(pattern).map(|pattern| pattern.columns(row).collect()).unwrap_or_default()
    }

    #[test]
    fn hits_stand_in_cells() {
        assert_eq!(columns("loss", "step 3 loss 2.5 LOSS"), [7, 16]);
        assert_eq!(columns("Loss", "loss Loss"), [5]);
        assert_eq!(columns("aa", "aaaaa"), [0, 2]);
        assert_eq!(columns("b", "漢字b"), [4]);
        assert_eq!(columns("字", "漢字b"), [2]);
        assert_eq!(columns("é", "ÉÉ"), [0, 1]);
        assert!(columns("", "abc").is_empty());
        assert!(columns("abcd", "abc").is_empty());
    }
}
