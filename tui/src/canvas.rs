//! Cells with the characters and colours of this terminal: what all screens are drawn on.
//!
//! Owns: clipping, alignment, and that nothing of a program's names reaches the terminal but what it can show: control
//! characters never do, and in ASCII mode nothing beyond ASCII. Refuses: layout.

use memscope_core::Category;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use unicode_width::UnicodeWidthChar;

use crate::glyphs::Glyphs;
use crate::palette::Palette;
use crate::words::{columns, fit};

/// What is drawn on.
pub struct Canvas<'a> {
    /// The cells.
    pub buffer: &'a mut Buffer,
    /// The characters.
    pub glyphs: &'static Glyphs,
    /// The colours.
    pub palette: Palette,
}

impl Canvas<'_> {
    /// Writes from `x` on, at most `width` columns; what is too long is cut at its end. Returns the column behind it.
    pub fn text(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        let area = self.buffer.area;
        if y < area.top() || y >= area.bottom() || x < area.left() || x >= area.right() {
            return x;
        }
        let width = width.min(area.right() - x) as usize;
        if text.is_ascii() {
            self.plain_text(x, y, width, text, style)
        } else if self.glyphs.ascii {
            let plain: String = text.chars().map(|char| if char.is_ascii() { char } else { '?' }).collect();
            self.buffer.set_stringn(x, y, plain, width, style).0
        } else {
            self.buffer.set_stringn(x, y, text, width, style).0
        }
    }

    /// Most text is ASCII. It has a cell for each character, and needs not be taken apart by the rules of Unicode.
    fn plain_text(&mut self, x: u16, y: u16, width: usize, text: &str, style: Style) -> u16 {
        let shown = (0..text.len()).filter(|at| !text.as_bytes()[*at].is_ascii_control());
        let mut end = x;
        for at in shown.take(width) {
            self.buffer[(end, y)].set_symbol(&text[at..=at]).set_style(style);
            end += 1;
        }
        end
    }

    /// Writes so that the text ends before column `x + width`; what is too long loses its beginning no more than its end: it
    /// is cut at its end.
    pub fn right(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) {
        let taken = (columns(text) as u16).min(width);
        self.text(x + width - taken, y, taken, text, style);
    }

    /// Writes what fits; the middle of a longer text is left out, since both ends of a path tell most.
    pub fn fitted(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        if columns(text) <= width as usize {
            return self.text(x, y, width, text, style);
        }
        let fitted = fit(text, width as usize, self.glyphs);
        self.text(x, y, width, &fitted, style)
    }

    /// Writes what fits of a text whose begin tells most.
    pub fn begin_of(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        let end = self.text(x, y, width, text, style);
        if columns(text) > usize::from(width) && end > x {
            self.text(end - 1, y, 1, self.glyphs.gap, style);
        }
        end
    }

    /// Writes what fits of a text whose end tells most: a path, a tensor's name.
    pub fn end_of(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        if columns(text) <= usize::from(width) {
            return self.text(x, y, width, text, style);
        }
        let mut room = usize::from(width).saturating_sub(1);
        let clean = text.char_indices().rev().filter(|(_, char)| !char.is_control());
        let mut from = text.len();
        for (at, char) in clean {
            let taken = char.width().unwrap_or(0);
            if taken > room {
                break;
            }
            room -= taken;
            from = at;
        }
        let at = self.text(x, y, width, self.glyphs.gap, style);
        self.text(at, y, (x + width).saturating_sub(at), &text[from..], style)
    }

    /// Writes facts with commas between them, as many as fit whole; the first in any case.
    pub fn facts(&mut self, x: u16, y: u16, width: u16, facts: &[String], style: Style) {
        let end = x.saturating_add(width);
        let mut at = x;
        for (index, fact) in facts.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            if index > 0 && usize::from(at) + 2 + columns(fact) > usize::from(end) {
                return;
            }
            at = self.text(at, y, end - at, comma, style);
            at = self.text(at, y, end - at, fact, style);
        }
    }

    /// Puts one of this terminal's characters into a cell.
    pub fn glyph(&mut self, x: u16, y: u16, glyph: &str, style: Style) {
        if let Some(cell) = self.buffer.cell_mut((x, y)) {
            cell.set_symbol(glyph).set_style(style);
        }
    }

    /// Dresses what is there.
    pub fn dress(&mut self, area: Rect, style: Style) {
        let area = area.intersection(self.buffer.area);
        self.buffer.set_style(area, style);
    }

    /// Marks a selected line; colours that say something stay.
    pub fn select(&mut self, area: Rect) {
        let style = self.palette.selected();
        let area = area.intersection(self.buffer.area);
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                let cell = &mut self.buffer[(x, y)];
                let said = cell.bg != Color::Reset;
                let bg = cell.bg;
                cell.set_style(style);
                if said {
                    cell.set_bg(bg);
                }
            }
        }
    }

    /// Empties an area.
    pub fn clear(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                self.buffer[(x, y)].reset();
            }
        }
    }

    /// A titled rule over a section, with what its whole amounts to at the right.
    pub fn heading(&mut self, area: Rect, title: &str, whole: &str) {
        let faint = self.palette.faint();
        for x in area.left()..area.right() {
            self.glyph(x, area.y, self.glyphs.rule, faint);
        }
        if area.width < 6 {
            return;
        }
        let style = self.palette.accent();
        let room = area.width - 4;
        let end = self.text(area.x + 1, area.y, 1, " ", style);
        let end = self.fitted(end, area.y, room, title, style);
        self.text(end, area.y, 1, " ", style);
        let taken = columns(whole) as u16;
        if taken > 0 && end + taken + 4 <= area.right() {
            self.text(area.right() - taken - 3, area.y, taken + 2, &format!(" {whole} "), faint);
        }
    }

    /// What a cell full of a category looks like: character and style.
    pub fn ink(&self, category: Category) -> (&'static str, Style) {
        ink(&self.palette, self.glyphs, category)
    }
}

/// The glyph and the style of a category, without a canvas.
pub fn ink(palette: &Palette, glyphs: &'static Glyphs, category: Category) -> (&'static str, Style) {
    let style = palette.category_text(category);
    if glyphs.ascii || palette.mono() { (glyphs.patterns[category as usize], style) } else { ("█", style) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glyphs::{ASCII, UNICODE};
    use crate::palette::{Depth, Scheme};

    fn drawn(glyphs: &'static Glyphs, draw: impl Fn(&mut Canvas)) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 1));
        draw(&mut Canvas { buffer: &mut buffer, glyphs, palette: Palette::new(Scheme::Default, Depth::True) });
        buffer.content.iter().map(|cell| cell.symbol()).collect()
    }

    #[test]
    fn nothing_beyond_what_the_terminal_shows_gets_through() {
        assert_eq!(
            drawn(&UNICODE, |canvas| {
                canvas.text(0, 0, 12, "a\x1b[2Jb", Style::new());
            }),
            "a[2Jb       "
        );
        assert_eq!(
            drawn(&ASCII, |canvas| {
                canvas.text(0, 0, 12, "größe", Style::new());
            }),
            "gr??e       "
        );
        assert_eq!(drawn(&ASCII, |canvas| canvas.right(2, 0, 10, "7 µs", Style::new())), "        7 ?s");
        assert_eq!(
            drawn(&UNICODE, |canvas| {
                canvas.text(10, 0, 90, "abc", Style::new());
            }),
            "          ab"
        );
    }

    #[test]
    fn plain_text_is_drawn_as_any_other() {
        for (text, width) in [("abc def", 12), ("abc", 2), ("", 5), ("a\x07b\x7fc~", 3), ("exactly full", 12)] {
            let (mut ours, mut theirs) = (Buffer::empty(Rect::new(0, 0, 12, 1)), Buffer::empty(Rect::new(0, 0, 12, 1)));
            let mut canvas =
                Canvas { buffer: &mut ours, glyphs: &UNICODE, palette: Palette::new(Scheme::Default, Depth::True) };
            let style = Style::new().fg(Color::Red);
            let end = canvas.text(0, 0, width, text, style);
            assert_eq!(end, theirs.set_stringn(0, 0, text, usize::from(width), style).0, "{text:?}");
            assert_eq!(ours, theirs, "{text:?}");
        }
    }

    #[test]
    fn paths_keep_their_ends_and_commands_their_begins() {
        let path = "transformer/h.0/mlp/fc";
        let end = drawn(&UNICODE, |canvas| {
            canvas.end_of(0, 0, 12, path, Style::new());
        });
        assert_eq!(end, "…/h.0/mlp/fc");
        let begin = drawn(&ASCII, |canvas| {
            canvas.begin_of(0, 0, 8, path, Style::new());
        });
        assert_eq!(begin, "transfo~    ");
        let whole = drawn(&ASCII, |canvas| {
            canvas.end_of(1, 0, 3, "abc", Style::new());
        });
        assert_eq!(whole, " abc        ");
        let none = drawn(&ASCII, |canvas| {
            canvas.end_of(1, 0, 0, "abc", Style::new());
        });
        assert_eq!(none, "            ");
    }
}
