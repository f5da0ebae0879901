//! What the session says, taken in.
//!
//! Owns: fitting positions in lists to what has changed. Refuses: to keep more than the last answer.

use std::sync::Arc;

use memscope_core::explorer::{Answer, Running};

use super::{Action, App, Dialog, Left, List, Screen, Typing};
use crate::output::Output;

impl App {
    /// Takes in an answer.
    pub fn receive(&mut self, answer: Arc<Answer>) {
        let answer = self.as_held(answer);
        let scopes = match (&self.answer.scopes, &answer.scopes) {
            (Some(before), Some(now)) => !Arc::ptr_eq(before, now),
            (before, now) => before.is_some() != now.is_some(),
        };
        self.answer = answer;
        if scopes {
            let nodes = self.answer.scopes.clone();
            self.scopes.unfold(nodes.as_deref().map_or(&[], |nodes| nodes));
        }
        let (total, height) = (self.list_total(), self.list_height());
        match self.screen {
            Screen::Overview | Screen::Output => {}
            Screen::Allocations if self.answer.rows.is_some() => self.allocations.list.settle(total, height),
            Screen::Scopes if self.answer.scopes.is_some() => self.scopes.list.settle(total, height),
            Screen::Segments if self.answer.segments.is_some() => self.segments.settle(total, height),
            Screen::Steps if self.follows_steps && self.answer.session.state == Running::Live => {
                self.steps.select(usize::MAX, total, height);
            }
            Screen::Steps => self.steps.settle(total, height),
            Screen::Allocations | Screen::Scopes | Screen::Segments => {}
        }
    }

    /// True when the answer is about the moment, the part and the rows that are shown.
    pub fn is_answered(&self) -> bool {
        let answer = &self.answer;
        let height = self.list_height();
        let seen = |list: &List, first: usize, count: usize, total: usize| {
            first <= list.first && first + count >= (list.first + height).min(total)
        };
        let listed = match self.screen {
            Screen::Overview | Screen::Output => true,
            Screen::Allocations => answer
                .rows
                .as_ref()
                .is_some_and(|rows| seen(&self.allocations.list, rows.first, rows.rows.len(), rows.matching)),
            Screen::Scopes => answer.scopes.is_some(),
            Screen::Segments => answer
                .segments
                .as_ref()
                .is_some_and(|view| seen(&self.segments, view.first, view.segments.len(), view.total)),
            Screen::Steps => seen(&self.steps, answer.steps_first, answer.steps.len(), answer.steps_total),
        };
        listed && answer.target == self.target && answer.at == self.moment()
    }

    /// Takes in whether the program has ended: whether that is news, and what follows when the user waited for it.
    pub fn program_status(&mut self, status: Option<i32>) -> (bool, Option<Action>) {
        match &mut self.program {
            Some(known) if *known != status => *known = status,
            _ => return (false, None),
        }
        if status.is_none() {
            return (true, None);
        }
        self.typing = Typing::Off;
        let waited = match self.dialog {
            Some(Dialog::Leaving(sent)) => {
                self.dialog = None;
                sent.is_some()
            }
            _ => false,
        };
        (true, waited.then_some(Action::Leave(Left::Ended)))
    }

    /// Takes in whether the program is stopped; whether that is news.
    pub fn program_stopped(&mut self, stopped: bool) -> bool {
        std::mem::replace(&mut self.stopped, stopped) != stopped
    }

    /// Changes when the program has written something.
    pub(crate) fn output_version(&self) -> Option<u64> {
        self.shown_output().map(Output::version)
    }

    /// Gives the program's screen a size, in cells.
    pub(crate) fn resize_output(&mut self, rows: u16, columns: u16) {
        if let Some(output) = &self.output
            && output.size() != (rows, columns)
        {
            output.resize(rows, columns);
        }
        // What is held is shown in the same place.
        if let Some(output) = self.shown_output()
            && output.size() != (rows, columns)
        {
            output.resize(rows, columns);
        }
    }
}
