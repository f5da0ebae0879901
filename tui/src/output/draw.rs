//! The Output screen's drawing.
//!
//! Owns: cells of the emulated screen as cells of the view, marks on hits. Refuses: to choose the view's colours: the program
//! chose them, and [`Dress`] says what the view's terminal can show.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};

use super::emulator::{Emulator, Search};
use super::{Output, search};

/// What the terminal of the view can show, and how hits are marked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dress {
    /// False where colours are not wanted: attributes stay.
    pub colours: bool,
    /// True where only ASCII can be shown.
    pub ascii: bool,
    /// A hit of the search.
    pub hit: Style,
    /// The hit that was shown last.
    pub current_hit: Style,
}

impl Default for Dress {
    fn default() -> Dress {
        Dress {
            colours: true,
            ascii: false,
            hit: Style::new().add_modifier(Modifier::REVERSED),
            current_hit: Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD | Modifier::UNDERLINED),
        }
    }
}

impl Output {
    /// Draws the screen into `area`, from its top left corner. Returns where the program's cursor stands, if it is shown and in
    /// view: the view puts its own there while one types into the program.
    pub fn draw(&self, area: Rect, buffer: &mut Buffer, dress: &Dress) -> Option<Position> {
        let area = area.intersection(buffer.area);
        let emulator = self.lock();
        let screen = emulator.screen();
        let (rows, columns) = emulator.size();
        for row in 0..rows.min(area.height) {
            for column in 0..columns.min(area.width) {
                let Some(cell) = screen.cell(row, column) else { break };
                if cell.is_wide_continuation() {
                    continue;
                }
                let fits = !cell.is_wide() || column + 1 < area.width;
                let target = &mut buffer[(area.x + column, area.y + row)];
                target.set_symbol(if fits { symbol(cell.contents(), dress) } else { " " });
                target.set_style(style(cell, dress));
            }
        }
        if let Some(search) = emulator.search_state() {
            mark(&emulator, search, area, buffer, dress);
        }
        let (row, column) = screen.cursor_position();
        let row = usize::from(row) + screen.scrollback();
        let in_view = row < usize::from(area.height.min(rows)) && column < area.width;
        (in_view && !screen.hide_cursor()).then(|| Position::new(area.x + column, area.y + row as u16))
    }
}

/// Marks the hits in view.
fn mark(emulator: &Emulator, search: &Search, area: Rect, buffer: &mut Buffer, dress: &Dress) {
    let first = emulator.first_shown();
    let columns = emulator.size().1;
    for (index, text) in emulator.screen().rows(0, columns).enumerate().take(area.height.into()) {
        for column in search.pattern.columns(&text).filter(|column| *column < area.width) {
            let hit = search::Hit { row: first + index as u64, column };
            let style = if search.current == Some(hit) { dress.current_hit } else { dress.hit };
            let width = search.pattern.width().min(area.width - column);
            buffer.set_style(Rect::new(area.x + column, area.y + index as u16, width, 1), style);
        }
    }
}

/// What is drawn for a cell's contents.
fn symbol<'a>(contents: &'a str, dress: &Dress) -> &'a str {
    if contents.is_empty() || contents.contains(char::is_control) {
        return " ";
    }
    if !dress.ascii || contents.is_ascii() {
        return contents;
    }
    match contents.chars().next() {
        Some('─' | '━' | '═' | '╌' | '╍' | '┄' | '┅' | '┈' | '┉' | '–' | '—' | '⎺' | '⎻' | '⎼' | '⎽') => {
            "-"
        }
        Some('│' | '┃' | '║' | '╎' | '╏' | '┆' | '┇' | '┊' | '┋') => "|",
        Some('\u{2500}'..='\u{257f}') => "+",
        Some('\u{2580}'..='\u{259f}') => "#",
        Some('“' | '”') => "\"",
        Some('‘' | '’') => "'",
        Some('•' | '·') => "*",
        Some('✓' | '✔') => "v",
        Some('✗' | '✘' | '×') => "x",
        Some('→') => ">",
        Some('←') => "<",
        _ => "?",
    }
}

fn style(cell: &vt100::Cell, dress: &Dress) -> Style {
    let mut modifiers = Modifier::empty();
    for (set, modifier) in [
        (cell.bold(), Modifier::BOLD),
        (cell.dim(), Modifier::DIM),
        (cell.italic(), Modifier::ITALIC),
        (cell.underline(), Modifier::UNDERLINED),
        (cell.inverse(), Modifier::REVERSED),
    ] {
        modifiers.set(modifier, set);
    }
    let style = Style::reset().add_modifier(modifiers);
    if dress.colours { style.fg(colour(cell.fgcolor())).bg(colour(cell.bgcolor())) } else { style }
}

fn colour(colour: vt100::Color) -> Color {
    match colour {
        vt100::Color::Default => Color::Reset,
        vt100::Color::Idx(index) => Color::Indexed(index),
        vt100::Color::Rgb(red, green, blue) => Color::Rgb(red, green, blue),
    }
}
