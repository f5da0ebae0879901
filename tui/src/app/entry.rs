//! The line that is being typed: a filter or a search.
//!
//! Owns: its editing; what is typed holds at once. Refuses: to say what a filter means.

use super::{App, List, Screen};

impl App {
    /// The text that `/` edits on the shown screen.
    pub(crate) fn entry_text(&self) -> &str {
        match self.screen {
            Screen::Allocations => &self.allocations.filter,
            Screen::Scopes => &self.scopes.search,
            Screen::Output => &self.output_search,
            Screen::Overview | Screen::Segments | Screen::Steps => "",
        }
    }

    /// Adds what was typed or pasted.
    pub(super) fn entry_insert(&mut self, text: &str) {
        self.entry_edit(|entry| entry.extend(text.chars().filter(|char| !char.is_control())));
    }

    /// Erases the last character.
    pub(super) fn entry_erase(&mut self) {
        self.entry_edit(|entry| {
            entry.pop();
        });
    }

    /// Erases the last word, or everything.
    pub(super) fn entry_erase_back(&mut self, all: bool) {
        self.entry_edit(|entry| {
            let kept = if all { 0 } else { entry.trim_end().rfind(' ').map_or(0, |blank| blank + 1) };
            entry.truncate(kept);
        });
    }

    /// Empties the text.
    pub(super) fn entry_clear(&mut self) {
        if !self.entry_text().is_empty() {
            self.entry_edit(String::clear);
        }
    }

    fn entry_edit(&mut self, edit: impl FnOnce(&mut String)) {
        let height = self.list_height();
        match self.screen {
            Screen::Allocations => {
                edit(&mut self.allocations.filter);
                self.allocations.list = List::default();
            }
            Screen::Scopes => {
                edit(&mut self.scopes.search);
                let nodes = self.answer.scopes.clone();
                self.scopes.find(nodes.as_deref().map_or(&[], |nodes| nodes), true, true, height);
            }
            Screen::Output => {
                edit(&mut self.output_search);
                if let Some(output) = self.shown_output() {
                    output.search(&self.output_search);
                }
            }
            Screen::Overview | Screen::Segments | Screen::Steps => {}
        }
    }
}
