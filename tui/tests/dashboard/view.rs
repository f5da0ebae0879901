//! A dashboard with an explorer behind it, as the loop in `dashboard` drives it, but for the terminal.

use std::sync::Arc;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use memscope_core::explorer::Explorer;
use memscope_tui::app::{Action, App};
use memscope_tui::glyphs::{Glyphs, UNICODE};
use memscope_tui::output::Output;
use memscope_tui::palette::{Depth, Palette, Scheme};
use memscope_tui::screens;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use crate::trace::Trace;

/// How it looks.
#[derive(Clone, Copy)]
pub struct Look {
    pub palette: Palette,
    pub glyphs: &'static Glyphs,
}

pub const COLOURED: Look = Look { palette: Palette::new(Scheme::Default, Depth::True), glyphs: &UNICODE };

pub struct View {
    explorer: Explorer,
    pub app: App,
    size: (u16, u16),
}

impl View {
    pub fn new(trace: &Trace, size: (u16, u16)) -> View {
        View::of(trace.explorer(), size, COLOURED, None, false)
    }

    pub fn looking(trace: &Trace, size: (u16, u16), look: Look) -> View {
        View::of(trace.explorer(), size, look, None, false)
    }

    /// With a program that runs behind it.
    pub fn of_program(trace: &Trace, size: (u16, u16), output: Option<Output>) -> View {
        View::of(trace.explorer(), size, COLOURED, output, true)
    }

    pub fn of(explorer: Explorer, size: (u16, u16), look: Look, output: Option<Output>, program: bool) -> View {
        let area = Rect::new(0, 0, size.0, size.1);
        let app = App::new(look.palette, look.glyphs, area, output, program);
        let mut view = View { explorer, app, size };
        view.settle();
        view
    }

    /// Asks until the answer raises no new question.
    pub fn settle(&mut self) {
        for _ in 0..4 {
            let query = self.app.query();
            self.app.receive(Arc::new(self.explorer.answer(&query)));
            if self.app.query() == query {
                return;
            }
        }
    }

    pub fn event(&mut self, event: &Event) -> Option<Action> {
        if let Event::Resize(width, height) = event {
            self.size = (*width, *height);
        }
        let action = self.app.handle(event);
        self.settle();
        action
    }

    pub fn key(&mut self, code: KeyCode) -> Option<Action> {
        self.event(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    /// Presses these characters one after the other.
    pub fn press(&mut self, keys: &str) -> &mut View {
        for char in keys.chars() {
            self.key(KeyCode::Char(char));
        }
        self
    }

    pub fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) -> Option<Action> {
        self.event(&Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }))
    }

    pub fn click(&mut self, column: u16, row: u16) -> Option<Action> {
        self.mouse(MouseEventKind::Down(MouseButton::Left), column, row)
    }

    pub fn buffer(&self) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(self.size.0, self.size.1)).expect("a terminal");
        terminal.draw(|frame| screens::draw(&self.app, frame)).expect("drawn");
        terminal.backend().buffer().clone()
    }

    /// The characters, line by line, without blanks at the ends.
    pub fn text(&self) -> String {
        let buffer = self.buffer();
        let mut text = String::new();
        for y in 0..buffer.area.height {
            let mut line = String::new();
            let mut x = 0;
            while x < buffer.area.width {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                x += (unicode_width::UnicodeWidthStr::width(symbol) as u16).max(1);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The same with styles: each run of cells with one style as `{style|text}`.
    pub fn styled(&self) -> String {
        let buffer = self.buffer();
        let mut text = String::new();
        for y in 0..buffer.area.height {
            let mut runs: Vec<(Style, String)> = Vec::new();
            for x in 0..buffer.area.width {
                let cell = &buffer[(x, y)];
                let style = cell.style();
                match runs.last_mut().filter(|(last, _)| *last == style) {
                    Some((_, run)) => run.push_str(cell.symbol()),
                    None => runs.push((style, cell.symbol().to_owned())),
                }
            }
            for (style, run) in runs {
                match describe(style) {
                    plain if plain.is_empty() => text.push_str(&run),
                    style => text.push_str(&format!("{{{style}|{run}}}")),
                }
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        text
    }

    /// The line that holds this text.
    pub fn line(&self, with: &str) -> String {
        let text = self.text();
        text.lines().find(|line| line.contains(with)).unwrap_or_else(|| panic!("no {with:?} in\n{text}")).to_owned()
    }
}

fn describe(style: Style) -> String {
    let colour = |colour: Color| match colour {
        Color::Rgb(red, green, blue) => format!("{red:02x}{green:02x}{blue:02x}"),
        Color::Indexed(index) => format!("#{index}"),
        other => format!("{other:?}").to_lowercase(),
    };
    let mut parts = Vec::new();
    parts.extend(style.fg.filter(|fg| *fg != Color::Reset).map(colour));
    parts.extend(style.bg.filter(|bg| *bg != Color::Reset).map(|bg| format!("on {}", colour(bg))));
    for (modifier, name) in [
        (Modifier::BOLD, "bold"),
        (Modifier::DIM, "dim"),
        (Modifier::REVERSED, "reversed"),
        (Modifier::UNDERLINED, "underlined"),
    ] {
        if style.add_modifier.contains(modifier) {
            parts.push(name.to_owned());
        }
    }
    parts.join(" ")
}
