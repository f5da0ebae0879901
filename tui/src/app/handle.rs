//! Keys, turned into state and actions by way of the table in `keys`.
//!
//! Owns: what each command does. Refuses: which key it has.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use memscope_core::explorer::Target;
use ratatui::layout::Rect;

use super::{Action, App, Dialog, Left, Screen, Typing};
use crate::keys::{self, Command, Place};
use crate::program::End;

/// More than any list has rows.
const FAR: isize = isize::MAX / 2;

impl App {
    /// Takes in what the user did. Returns what is to be done about it outside of the dashboard.
    pub fn handle(&mut self, event: &Event) -> Option<Action> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.said = None;
                self.key(key)
            }
            Event::Mouse(mouse) => {
                self.mouse(mouse);
                None
            }
            Event::Paste(text) => self.paste(text),
            Event::Resize(width, height) => {
                self.area = Rect::new(0, 0, *width, *height);
                self.keep_selection_seen();
                None
            }
            _ => None,
        }
    }

    fn paste(&mut self, text: &str) -> Option<Action> {
        if self.typing == Typing::On {
            return self.output.as_ref().map(|output| Action::TypeIn(output.encode_paste(text)));
        }
        if self.entry {
            self.entry_insert(text);
        }
        None
    }

    /// Where keys are looked for, the most special place first.
    pub(crate) fn places(&self) -> &'static [Place] {
        match self.dialog {
            Some(Dialog::Help(_) | Dialog::Findings(_)) => return &[Place::Reading],
            Some(Dialog::Leaving(_)) => return &[Place::Leaving],
            None => {}
        }
        if self.typing == Typing::On {
            return &[Place::Typing];
        }
        if self.entry {
            return &[Place::Entry];
        }
        match self.screen {
            Screen::Overview => &[Place::Everywhere],
            Screen::Allocations => &[Place::Allocations, Place::Lists, Place::Everywhere],
            Screen::Scopes => &[Place::Scopes, Place::Lists, Place::Everywhere],
            Screen::Segments => &[Place::Lists, Place::Everywhere],
            Screen::Steps => &[Place::Steps, Place::Lists, Place::Everywhere],
            Screen::Output => &[Place::Output, Place::Lists, Place::Everywhere],
        }
    }

    fn key(&mut self, key: &KeyEvent) -> Option<Action> {
        if self.typing == Typing::Escaped {
            self.typing = Typing::Off;
            if key.code == KeyCode::Esc && self.program_runs() {
                self.typing = Typing::On;
                return self.type_in(key);
            }
        }
        if let Some(binding) = keys::find(key, self.places()) {
            return self.perform(binding.command, key);
        }
        if self.typing == Typing::On {
            return self.type_in(key);
        }
        let plain = key.modifiers - KeyModifiers::SHIFT;
        if let (true, KeyCode::Char(char), true) = (self.entry, key.code, plain.is_empty()) {
            self.entry_insert(char.encode_utf8(&mut [0; 4]));
        }
        None
    }

    fn type_in(&self, key: &KeyEvent) -> Option<Action> {
        let bytes = self.output.as_ref()?.encode(key);
        (!bytes.is_empty()).then_some(Action::TypeIn(bytes))
    }

    fn perform(&mut self, command: Command, key: &KeyEvent) -> Option<Action> {
        match command {
            Command::Leave if self.program_runs() => self.dialog = Some(Dialog::Leaving(None)),
            Command::Leave => return Some(Action::Leave(Left::Quit)),
            Command::GoOn => return Some(Action::Leave(Left::GoOn)),
            Command::EndProgram => return self.end_program(),
            Command::Suspend => return self.program.is_none().then_some(Action::Suspend),
            Command::Show(_)
            | Command::Help
            | Command::Findings
            | Command::Palette
            | Command::Back
            | Command::Close => self.show(command),
            Command::NextTarget | Command::PreviousTarget | Command::Total | Command::Device => {
                self.change_target(command, key);
            }
            Command::Earlier => self.move_cursor(-1),
            Command::Later => self.move_cursor(1),
            Command::MuchEarlier => self.move_cursor(-10),
            Command::MuchLater => self.move_cursor(10),
            Command::PreviousStep => self.move_step(false),
            Command::NextStep => self.move_step(true),
            Command::Peak => self.peak(),
            Command::Refusal => self.next_refusal(),
            Command::Live => self.live_now(),
            Command::Whole => self.nearest_whole(),
            Command::Pause => self.pause(),
            Command::ZoomIn => self.zoom(true),
            Command::ZoomOut => self.zoom(false),
            Command::Up => self.scroll(-1),
            Command::Down => self.scroll(1),
            Command::PageUp => self.turn_page(-1),
            Command::PageDown => self.turn_page(1),
            Command::Home => self.scroll(-FAR),
            Command::End => self.scroll(FAR),
            Command::SortLeft | Command::SortRight | Command::Reverse | Command::Group => self.arrange(command),
            Command::Open | Command::OpenAll | Command::Icicle | Command::GoToStep => self.open(command),
            Command::Search => self.entry = true,
            Command::NextHit => self.hit(true),
            Command::PreviousHit => self.hit(false),
            Command::Clear => self.clear(),
            Command::Keep => self.entry = false,
            Command::Discard => {
                self.entry_clear();
                self.entry = false;
            }
            Command::Erase => self.entry_erase(),
            Command::EraseWord => self.entry_erase_back(key.code == KeyCode::Char('u')),
            Command::Type if self.program_runs() && self.output.is_some() => {
                // Who types wants to see what comes of it.
                if self.paused.is_some() {
                    self.go_on();
                }
                self.show(Command::Show(Screen::Output));
                self.typing = Typing::On;
            }
            Command::Type if self.program.is_none() => {
                self.say("this view only looks: nothing can be typed into the program")
            }
            Command::Type => {}
            Command::StopTyping => {
                self.typing = if key.code == KeyCode::Esc { Typing::Escaped } else { Typing::Off };
            }
        }
        None
    }

    /// Each time harder than the time before.
    fn end_program(&mut self) -> Option<Action> {
        let Some(Dialog::Leaving(sent)) = &mut self.dialog else { return None };
        let how = match sent {
            None => End::Interrupt,
            Some(End::Interrupt) => End::Terminate,
            Some(End::Terminate | End::Kill) => End::Kill,
        };
        *sent = Some(how);
        Some(Action::End(how))
    }

    fn show(&mut self, command: Command) {
        match command {
            Command::Show(screen) => {
                self.screen = screen;
                self.keep_selection_seen();
            }
            Command::Help => self.dialog = Some(Dialog::Help(0)),
            Command::Findings => self.dialog = Some(Dialog::Findings(0)),
            Command::Palette => self.palette = self.palette.next(),
            _ => self.dialog = None,
        }
    }

    fn change_target(&mut self, command: Command, key: &KeyEvent) {
        let (devices, processes) = (self.answer.devices.len(), self.answer.processes.len());
        // One process is the total, as far as event rows go; it is a target of its own only beside others.
        // So is host memory, which has no parts.
        let alone = self.answer.of_host && self.target == Target::All;
        let processes = if processes > 1 && !alone { processes } else { 0 };
        let host = usize::from(self.answer.has_host && !alone);
        let count = 1 + devices + processes + host;
        let position = match self.target {
            Target::All => 0,
            Target::Device(device) => 1 + usize::from(device),
            Target::Process(process) => 1 + devices + process as usize,
            Target::Host => 1 + devices + processes,
        };
        let digit = match key.code {
            KeyCode::Char(char) => char.to_digit(10).unwrap_or(0) as usize,
            _ => 0,
        };
        let to = match command {
            Command::NextTarget => (position + 1) % count,
            Command::PreviousTarget => (position + count - 1) % count,
            Command::Device if digit <= devices => digit,
            Command::Total => 0,
            _ => {
                self.say(match devices {
                    0 => "The program uses no GPU so far.".to_owned(),
                    1 => format!("There is no GPU [{digit}]: the one in use has the key 1."),
                    _ => format!("There is no GPU [{digit}]: those in use have the keys 1 to {}.", devices.min(9)),
                });
                position
            }
        };
        self.target = match to {
            0 => Target::All,
            device if device <= devices => Target::Device((device - 1) as u16),
            host if host == 1 + devices + processes => Target::Host,
            process => Target::Process((process - 1 - devices) as u32),
        };
    }

    /// Rows of a page: a screen less one, so that a line stays in sight.
    fn page(&self) -> usize {
        let height = match self.dialog {
            Some(_) => crate::dialog::text_height(self),
            None => self.list_height(),
        };
        height.saturating_sub(1).max(1)
    }

    /// Moves by screens.
    fn turn_page(&mut self, screens: isize) {
        match (self.screen, self.dialog, self.shown_output()) {
            // Back is positive there.
            (Screen::Output, None, Some(output)) => output.page(-screens),
            _ => self.scroll(screens * self.page() as isize),
        }
    }

    /// Moves in whatever list or text is in front.
    pub(super) fn scroll(&mut self, by: isize) {
        let last = crate::dialog::last_line(self);
        if let Some(Dialog::Help(first) | Dialog::Findings(first)) = &mut self.dialog {
            *first = first.saturating_add_signed(by).min(last);
            return;
        }
        let (total, height) = (self.list_total(), self.list_height());
        match self.screen {
            Screen::Overview => {}
            Screen::Allocations => self.allocations.list.step(by, total, height),
            Screen::Scopes => {
                self.scopes.list.step(by, total, height);
                self.remember_scope();
            }
            Screen::Segments => self.segments.step(by, total, height),
            Screen::Steps => {
                self.steps.step(by, total, height);
                self.follows_steps = self.steps.selected + 1 >= total;
            }
            // Back is positive there.
            Screen::Output => drop(self.shown_output().map(|output| output.scroll(by.saturating_neg()))),
        }
    }

    pub(super) fn remember_scope(&mut self) {
        let nodes = self.answer.scopes.clone();
        self.scopes.remember(nodes.as_deref().map_or(&[], |nodes| nodes));
    }

    /// After the size or the screen has changed.
    pub(super) fn keep_selection_seen(&mut self) {
        let height = self.list_height();
        let list = match self.screen {
            Screen::Overview | Screen::Output => return,
            Screen::Allocations => &mut self.allocations.list,
            Screen::Scopes => &mut self.scopes.list,
            Screen::Segments => &mut self.segments,
            Screen::Steps => &mut self.steps,
        };
        list.select(list.selected, list.selected + 1, height);
    }
}
