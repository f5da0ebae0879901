//! `top`: every GPU and every process on it, in the manner of nvtop.
//!
//! Owns: [`TopApp`], which turns views and events into what [`draw`] shows and into what is to be done. Refuses: NVML and /proc
//! (memscope-core's monitor), and to send signals: it says which process is to get one, and whoever runs it does so.

mod devices;
mod handle;
mod help;
mod history;
mod keys;
mod kill;
mod layout;
mod processes;
mod rows;
mod runner;
mod screen;

use std::sync::Arc;

use memscope_core::monitor::{MonitorProcess, MonitorView};
use ratatui::layout::Rect;

use crate::glyphs::Glyphs;
use crate::palette::Palette;

pub use history::History;
pub use keys::markdown;
pub use kill::{Request, Signal};
pub use layout::{Layout, Panel};
pub use rows::{Arrangement, Column, Identity};
pub use runner::{Ended, show};
pub use screen::draw;

use kill::Question;

/// The state of the screen.
pub struct TopApp {
    view: Arc<MonitorView>,
    history: History,
    arrangement: Arrangement,
    /// Positions of the view's processes that are shown, in their order.
    order: Vec<usize>,
    selected: Option<Identity>,
    /// Position of the selected process in the order.
    row: usize,
    /// First shown position.
    first: usize,
    /// First shown line of the devices, where they do not all fit.
    first_device: usize,
    panel: Panel,
    mode: Mode,
    paused: bool,
    /// What came of the last signal; an error when the second is true.
    message: Option<(String, bool)>,
    palette: Palette,
    glyphs: &'static Glyphs,
    area: Rect,
}

/// Who gets the keys.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Mode {
    /// The screen.
    Screen,
    /// The filter, which is being typed.
    Filter,
    /// The question which signal to send.
    Kill(Question),
    /// The help, scrolled by so many lines.
    Help(u16),
}

/// What is to be done about an event outside of the screen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// It is left.
    Leave,
    /// memscope is suspended.
    Suspend,
    /// A process gets a signal; [`TopApp::told`] wants to know what came of it.
    Signal(Request),
}

impl TopApp {
    /// A screen of this size that knows nothing yet.
    pub fn new(palette: Palette, glyphs: &'static Glyphs, area: Rect) -> TopApp {
        TopApp {
            view: Arc::default(),
            history: History::default(),
            arrangement: Arrangement::default(),
            order: Vec::new(),
            selected: None,
            row: 0,
            first: 0,
            first_device: 0,
            panel: Panel::default(),
            mode: Mode::Screen,
            paused: false,
            message: None,
            palette,
            glyphs,
            area,
        }
    }

    /// Takes in a new view. False when it changes nothing on the screen, because the view is paused.
    pub fn receive(&mut self, view: Arc<MonitorView>) -> bool {
        if self.paused || view.round == self.view.round {
            return false;
        }
        self.history.add(&view);
        self.view = view;
        self.arrange();
        true
    }

    /// What came of a signal: a sentence, or why it was not sent.
    pub fn told(&mut self, result: Result<String, String>) {
        self.message = Some(match result {
            Ok(text) => (text, false),
            Err(text) => (text, true),
        });
    }

    /// Orders the processes anew; the selected one stays selected as long as it is there, then its row.
    fn arrange(&mut self) {
        self.arrangement.order(&self.view, &mut self.order);
        let is_selected = |index: &usize| Some(Identity::of(&self.view.processes[*index])) == self.selected;
        if let Some(row) = self.order.iter().position(is_selected) {
            self.row = row;
        }
        self.select(self.row);
    }

    /// Selects a row, or the last one, and keeps it in sight.
    fn select(&mut self, row: usize) {
        self.row = row.min(self.order.len().saturating_sub(1));
        self.selected = self.process(self.row).map(Identity::of);
        self.keep_in_sight();
    }

    fn keep_in_sight(&mut self) {
        let height = usize::from(self.layout().rows.height).max(1);
        self.first = self.first.clamp((self.row + 1).saturating_sub(height), self.row);
        self.first = self.first.min(self.order.len().saturating_sub(height));
    }

    /// The process of a row.
    fn process(&self, row: usize) -> Option<&MonitorProcess> {
        self.view.processes.get(*self.order.get(row)?)
    }

    /// True when a process is under memscope.
    fn has_ledgers(&self) -> bool {
        self.view.processes.iter().any(|process| process.ledger.is_some())
    }

    fn layout(&self) -> Layout {
        Layout::of(self)
    }
}
