//! Keys and mouse, turned into state and actions by way of the table in `keys`.
//!
//! Owns: what each command does. Refuses: which key it has.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::keys::{Command, Place, find};
use super::kill::{self, Question, Signal};
use super::layout::lines;
use super::{Action, Mode, TopApp, help, processes, screen};

/// Rows that one notch of the wheel moves.
const NOTCH: isize = 3;

impl TopApp {
    /// Takes in what the user did. Returns what is to be done about it outside of the screen.
    pub fn handle(&mut self, event: &Event) -> Option<Action> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
            Event::Mouse(mouse) => self.mouse(mouse),
            Event::Paste(text) if self.mode == Mode::Filter => {
                let plain: String = text.chars().filter(|char| !char.is_control()).collect();
                self.edit_filter(|filter| filter.push_str(&plain));
                None
            }
            Event::Resize(width, height) => {
                self.area = Rect::new(0, 0, *width, *height);
                self.keep_in_sight();
                None
            }
            _ => None,
        }
    }

    /// Where keys are looked for.
    pub(super) fn place(&self) -> Place {
        match self.mode {
            Mode::Screen => Place::Screen,
            Mode::Filter => Place::Filter,
            Mode::Kill(_) => Place::Kill,
            Mode::Help(_) => Place::Help,
        }
    }

    fn key(&mut self, key: &KeyEvent) -> Option<Action> {
        // Whatever was told has been read.
        self.message = None;
        if let Some(command) = find(key, self.place()) {
            return self.perform(command);
        }
        let plain = key.modifiers - KeyModifiers::SHIFT == KeyModifiers::NONE;
        if let (Mode::Filter, KeyCode::Char(char), true) = (&self.mode, key.code, plain) {
            self.edit_filter(|filter| filter.push(char));
        }
        None
    }

    fn perform(&mut self, command: Command) -> Option<Action> {
        match &mut self.mode {
            Mode::Kill(question) => match command {
                Command::Up => question.step(-1),
                Command::Down => question.step(1),
                Command::Send => return self.send(None),
                Command::Term => return self.send(Some(Signal::Terminate)),
                Command::Int => return self.send(Some(Signal::Interrupt)),
                Command::Sigkill => return self.send(Some(Signal::Kill)),
                _ => self.mode = Mode::Screen,
            },
            Mode::Help(scrolled) => match command {
                Command::Up => *scrolled = scrolled.saturating_sub(1),
                Command::Down => *scrolled = (*scrolled + 1).min(help::most_scrolled(self.area)),
                _ => self.mode = Mode::Screen,
            },
            Mode::Filter => match command {
                Command::Keep => self.mode = Mode::Screen,
                Command::Erase => self.edit_filter(|filter| {
                    filter.truncate(filter.len() - filter.chars().last().map_or(0, char::len_utf8))
                }),
                Command::EraseAll => self.edit_filter(String::clear),
                _ => {
                    self.mode = Mode::Screen;
                    self.edit_filter(String::clear);
                }
            },
            Mode::Screen => return self.on_screen(command),
        }
        None
    }

    fn on_screen(&mut self, command: Command) -> Option<Action> {
        let page = isize::try_from(self.layout().rows.height).unwrap_or(1).max(1);
        match command {
            Command::Leave => return Some(Action::Leave),
            Command::Suspend => return Some(Action::Suspend),
            Command::Help => self.mode = Mode::Help(0),
            Command::Filter => self.mode = Mode::Filter,
            Command::ClearFilter => self.edit_filter(String::clear),
            Command::SortLeft => self.rearrange(|arrangement| arrangement.shift(-1)),
            Command::SortRight => self.rearrange(|arrangement| arrangement.shift(1)),
            Command::Reverse => self.rearrange(|arrangement| arrangement.descending = !arrangement.descending),
            Command::Kill => self.ask(),
            Command::Panel => {
                self.panel = self.panel.next();
                self.keep_in_sight();
            }
            Command::Pause => self.paused = !self.paused,
            Command::Palette => self.palette = self.palette.next(),
            Command::Up => self.select(self.row.saturating_sub(1)),
            Command::Down => self.select(self.row + 1),
            Command::PageUp => self.select(self.row.saturating_add_signed(-page)),
            Command::PageDown => self.select(self.row.saturating_add_signed(page)),
            Command::Home => self.select(0),
            Command::End => self.select(usize::MAX),
            Command::DevicesUp => self.scroll_devices(-1),
            Command::DevicesDown => self.scroll_devices(1),
            _ => {}
        }
        None
    }

    fn scroll_devices(&mut self, by: isize) {
        let layout = self.layout();
        let hidden = lines(self, layout.two_lines).saturating_sub(usize::from(layout.devices.height));
        self.first_device = self.first_device.saturating_add_signed(by).min(hidden);
    }

    fn edit_filter(&mut self, edit: impl FnOnce(&mut String)) {
        self.rearrange(|arrangement| edit(&mut arrangement.filter));
    }

    fn rearrange(&mut self, change: impl FnOnce(&mut super::Arrangement)) {
        change(&mut self.arrangement);
        // Whoever asks for another order wants to see its begin.
        (self.selected, self.row, self.first) = (None, 0, 0);
        self.arrange();
    }

    fn ask(&mut self) {
        match self.process(self.row).map(Question::about) {
            None => self.told(Err("there is no process to send a signal to".to_owned())),
            Some(Err(reason)) => self.told(Err(reason)),
            Some(Ok(question)) => self.mode = Mode::Kill(question),
        }
    }

    fn send(&mut self, signal: Option<Signal>) -> Option<Action> {
        let Mode::Kill(question) = std::mem::replace(&mut self.mode, Mode::Screen) else { return None };
        Some(Action::Signal(question.request(signal.unwrap_or(Signal::ALL[question.chosen]))))
    }

    fn mouse(&mut self, event: &MouseEvent) -> Option<Action> {
        match event.kind {
            MouseEventKind::ScrollUp => self.wheel(-NOTCH),
            MouseEventKind::ScrollDown => self.wheel(NOTCH),
            MouseEventKind::Down(MouseButton::Left) => return self.click(Position::new(event.column, event.row)),
            _ => {}
        }
        None
    }

    fn wheel(&mut self, by: isize) {
        match &mut self.mode {
            Mode::Help(scrolled) => {
                *scrolled = scrolled.saturating_add_signed(by as i16).min(help::most_scrolled(self.area));
            }
            Mode::Kill(question) => question.step(by.signum()),
            Mode::Screen | Mode::Filter => self.select(self.row.saturating_add_signed(by)),
        }
    }

    fn click(&mut self, at: Position) -> Option<Action> {
        self.message = None;
        let (dialog, signal) = (kill::area(self), kill::signal_at(self, at.y));
        match &mut self.mode {
            Mode::Kill(question) if dialog.contains(at) => question.chosen = signal.unwrap_or(question.chosen),
            Mode::Help(_) | Mode::Kill(_) => self.mode = Mode::Screen,
            Mode::Screen | Mode::Filter => {
                let layout = self.layout();
                if layout.footer.contains(at) {
                    return screen::command_at(self, at.x).and_then(|command| self.perform(command));
                }
                if layout.titles.contains(at)
                    && let Some(column) = processes::column_at(self, at.x)
                {
                    self.rearrange(|arrangement| arrangement.by(column));
                } else if layout.rows.contains(at) {
                    let row = self.first + usize::from(at.y - layout.rows.y);
                    if row < self.order.len() {
                        self.select(row);
                    }
                }
            }
        }
        None
    }
}
