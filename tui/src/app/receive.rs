//! What the session says, taken in.
//!
//! Owns: fitting positions in lists to what has changed. Refuses: to keep more than the last answer.

use std::sync::Arc;

use memscope_core::explorer::{Answer, Running};

use super::{Action, App, Dialog, Left, Screen, Typing};
use crate::output::Output;

impl App {
    /// Takes in an answer.
    pub fn receive(&mut self, answer: Arc<Answer>) {
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
        self.output.as_ref().map(Output::version)
    }

    /// Gives the program's screen a size, in cells.
    pub(crate) fn resize_output(&mut self, rows: u16, columns: u16) {
        if let Some(output) = &self.output
            && output.size() != (rows, columns)
        {
            output.resize(rows, columns);
        }
    }
}
