//! What is done with the shown list: order, groups, folding, opening, hits.
//!
//! Owns: those commands. Refuses: to sort anything itself: the query says how.

use memscope_core::explorer::{Column, Grouping, Row, and_terms, group_term};

use super::{App, List, Screen};
use crate::keys::Command;
use crate::screens::allocations::SORTED;

impl App {
    pub(super) fn arrange(&mut self, command: Command) {
        let list = &mut self.allocations;
        let here = SORTED.iter().position(|column| *column == list.sort).unwrap_or(0);
        match command {
            Command::SortLeft => self.sort_by(SORTED[here.saturating_sub(1)]),
            Command::SortRight => self.sort_by(SORTED[(here + 1).min(SORTED.len() - 1)]),
            Command::Reverse => list.descending = !list.descending,
            _ => {
                list.group = match list.group {
                    None => Some(Grouping::Name),
                    Some(Grouping::Name) => Some(Grouping::Scope),
                    Some(Grouping::Scope) if self.answer.session.stacks => Some(Grouping::Line),
                    Some(Grouping::Scope | Grouping::Line) => Some(Grouping::Size),
                    Some(Grouping::Size) => Some(Grouping::Category),
                    Some(Grouping::Category) => None,
                };
                list.list = List::default();
            }
        }
    }

    /// Sorts by a column; words begin with A, figures with the largest.
    pub(super) fn sort_by(&mut self, column: Column) {
        if self.allocations.sort != column {
            self.allocations.sort = column;
            self.allocations.descending = !column.is_words();
        }
    }

    /// What Enter does with the selected row, and what is done with the whole tree.
    pub(super) fn open(&mut self, command: Command) {
        let nodes = self.answer.scopes.clone();
        let nodes = nodes.as_deref().map_or(&[][..], |nodes| nodes);
        match command {
            Command::Icicle => self.scopes.icicle = !self.scopes.icicle,
            Command::OpenAll => self.scopes.turn_all(nodes),
            Command::GoToStep => {
                let row = self.steps.selected.checked_sub(self.answer.steps_first);
                if let Some(step) = row.and_then(|row| self.answer.steps.get(row)) {
                    self.at = self.answer.step(step.number, step.begin);
                }
            }
            _ if self.screen == Screen::Scopes => self.scopes.turn(nodes),
            _ => self.open_group(),
        }
        self.keep_selection_seen();
    }

    /// A group becomes the filter that shows what it holds.
    fn open_group(&mut self) {
        let Some(rows) = &self.answer.rows else { return };
        let row = self.allocations.list.selected.checked_sub(rows.first).and_then(|row| rows.rows.get(row));
        let Some(Row::Group(group)) = row else { return };
        let term = self.allocations.group.and_then(|grouping| group_term(grouping, group));
        let Some(term) = term else {
            return self.say("No filter says exactly what this group holds: its names differ, or it has none.");
        };
        self.allocations.filter = and_terms(&self.allocations.filter, &term);
        self.allocations.group = None;
        self.allocations.list = List::default();
    }

    pub(super) fn hit(&mut self, forward: bool) {
        let height = self.list_height();
        if self.screen == Screen::Scopes {
            let nodes = self.answer.scopes.clone();
            self.scopes.find(nodes.as_deref().map_or(&[], |nodes| nodes), forward, false, height);
        } else if let Some(output) = self.shown_output() {
            if forward { output.next_hit() } else { output.previous_hit() }
        }
    }

    pub(super) fn clear(&mut self) {
        self.entry_clear();
        if let (Screen::Output, Some(output)) = (self.screen, self.shown_output()) {
            output.to_end();
        }
    }
}
