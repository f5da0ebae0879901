//! The mouse, turned into what a key would have done.
//!
//! Owns: what lies under it. Refuses: what only the mouse could do.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::{App, Screen, Typing};
use crate::keys::Command;
use crate::screens;

/// Rows that one notch of the wheel moves.
const NOTCH: isize = 3;

impl App {
    pub(super) fn mouse(&mut self, event: &MouseEvent) {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp => self.wheel(at, -1),
            MouseEventKind::ScrollDown => self.wheel(at, 1),
            // What lies over the screen has no use for it, but for the wheel.
            _ if self.dialog.is_some() => {}
            MouseEventKind::Down(MouseButton::Left) => self.click(at),
            MouseEventKind::Drag(MouseButton::Left) => {
                self.chart_click(at);
            }
            _ => {}
        }
    }

    fn wheel(&mut self, at: Position, notches: isize) {
        if self.dialog.is_none() && screens::plot(self).contains(at) {
            return self.zoom(notches < 0);
        }
        if self.dialog.is_some() || self.screen == Screen::Output {
            return self.scroll(notches * NOTCH);
        }
        let (total, height) = (self.list_total(), self.list_height());
        let by = notches * NOTCH;
        match self.screen {
            Screen::Overview | Screen::Output => {}
            Screen::Allocations => self.allocations.list.scroll(by, total, height),
            Screen::Scopes => {
                self.scopes.list.scroll(by, total, height);
                self.remember_scope();
            }
            Screen::Segments => self.segments.scroll(by, total, height),
            Screen::Steps => {
                self.steps.scroll(by, total, height);
                self.follows_steps = self.steps.selected + 1 >= total;
            }
        }
    }

    fn click(&mut self, at: Position) {
        if let Some(screen) = screens::tab_at(self, at) {
            self.screen = screen;
            self.typing = Typing::Off;
            self.entry = false;
            return;
        }
        if self.chart_click(at) {
            return;
        }
        if self.screen == Screen::Allocations
            && let Some(column) = screens::allocations::title_at(self, at)
        {
            if self.allocations.sort == column {
                self.allocations.descending = !self.allocations.descending;
            } else {
                self.sort_by(column);
            }
            return;
        }
        if self.screen == Screen::Scopes && self.scopes.icicle {
            if let Some(node) = screens::scopes::node_at(self, at) {
                let (nodes, height) = (self.answer.scopes.clone(), self.list_height());
                self.scopes.select(node, nodes.as_deref().map_or(&[], |nodes| nodes), height);
            }
            return;
        }
        self.row_click(at);
    }

    fn row_click(&mut self, at: Position) {
        let area: Rect = screens::list_area(self);
        if !area.contains(at) {
            return;
        }
        let (total, height) = (self.list_total(), self.list_height());
        let line = usize::from(at.y - area.y);
        let (list, again) = match self.screen {
            Screen::Overview | Screen::Output => return,
            Screen::Allocations => (&mut self.allocations.list, Some(Command::Open)),
            Screen::Scopes => (&mut self.scopes.list, Some(Command::Open)),
            Screen::Segments => (&mut self.segments, None),
            Screen::Steps => (&mut self.steps, Some(Command::GoToStep)),
        };
        let row = list.first + line;
        if row >= total {
            return;
        }
        if list.selected == row {
            if let Some(command) = again {
                self.open(command);
            }
            return;
        }
        list.select(row, total, height);
        match self.screen {
            Screen::Scopes => self.remember_scope(),
            Screen::Steps => self.follows_steps = row + 1 >= total,
            _ => {}
        }
    }

    /// True when the click was on the chart.
    fn chart_click(&mut self, at: Position) -> bool {
        let plot = screens::plot(self);
        if plot.contains(at) {
            self.cursor_to_column(at.x - plot.x);
        }
        plot.contains(at)
    }
}
