//! A long list of which a few rows are seen.
//!
//! Owns: which row is selected and which is the first one seen. Refuses: the rows.

use std::ops::Range;

/// Position in a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct List {
    /// The selected row.
    pub selected: usize,
    /// The first row that is seen.
    pub first: usize,
}

impl List {
    /// Moves the selection by so many rows, within `total`, and keeps it among the `height` rows that are seen.
    pub fn step(&mut self, by: isize, total: usize, height: usize) {
        self.select(self.selected.saturating_add_signed(by), total, height);
    }

    /// Selects a row, or the last one there is.
    pub fn select(&mut self, row: usize, total: usize, height: usize) {
        self.selected = row.min(total.saturating_sub(1));
        let height = height.max(1);
        self.first = self.first.clamp((self.selected + 1).saturating_sub(height), self.selected);
        self.settle(total, height);
    }

    /// Moves what is seen, and the selection only as far as it must.
    pub fn scroll(&mut self, by: isize, total: usize, height: usize) {
        let height = height.max(1);
        self.first = self.first.saturating_add_signed(by).min(total.saturating_sub(height));
        self.selected = self.selected.clamp(self.first, self.first + height - 1).min(total.saturating_sub(1));
    }

    /// Fits into a list that has shrunk.
    pub fn settle(&mut self, total: usize, height: usize) {
        self.selected = self.selected.min(total.saturating_sub(1));
        self.first = self.first.min(total.saturating_sub(height.max(1)));
    }

    /// The rows to ask for: those that are seen, and a screen before and after them, so that scrolling does not wait.
    pub fn window(&self, height: usize) -> Range<usize> {
        self.first.saturating_sub(height)..self.first + 2 * height.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_is_always_seen() {
        let mut list = List::default();
        list.step(7, 100, 5);
        assert_eq!(list, List { selected: 7, first: 3 });
        list.step(-1, 100, 5);
        assert_eq!(list.first, 3, "it moves only as far as it must");
        list.select(usize::MAX, 100, 5);
        assert_eq!(list, List { selected: 99, first: 95 });
        list.settle(10, 5);
        assert_eq!(list, List { selected: 9, first: 5 });
        list.scroll(-3, 10, 5);
        assert_eq!(list, List { selected: 6, first: 2 });
        list.settle(0, 5);
        assert_eq!(list, List::default());
        list.step(1, 0, 0);
        assert_eq!(list, List::default());
    }

    #[test]
    fn more_is_asked_for_than_is_seen() {
        assert_eq!(List { selected: 0, first: 0 }.window(10), 0..20);
        assert_eq!(List { selected: 55, first: 50 }.window(10), 40..70);
    }
}
