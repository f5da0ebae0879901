//! The line-drawing characters of the VT100, which the emulator crate leaves out.
//!
//! A program that draws boxes switches to the other character set (`ESC ( 0`, or `ESC ) 0` and SO) and sends letters. Here they
//! become the Unicode characters that they stand for, before the emulator sees them.
//!
//! Owns: which set is in use, and the translation. Refuses: national character sets, which nobody uses any more.

use memchr::memchr3;

const ESCAPE: u8 = 0x1b;
const SHIFT_OUT: u8 = 0x0e;
const SHIFT_IN: u8 = 0x0f;

/// What `_` to `~` stand for in the set "DEC Special Graphics" (VT220 Programmer Reference Manual, table 2-4).
const GRAPHICS: [char; 32] = [
    ' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽', '├', '┤',
    '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];

/// The state of the character sets.
#[derive(Default)]
pub(super) struct LineDrawing {
    /// Whether G0 and G1 are the graphics.
    graphics: [bool; 2],
    /// Which of them is in use: 0, or 1 after SO.
    active: usize,
    state: State,
}

/// Where in an escape sequence the bytes are.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    /// After `ESC (` or `ESC )`: the next byte names the set for G0 or G1.
    Designate(usize),
    /// In an escape sequence with an intermediate byte of no interest here.
    Intermediate,
    /// In a control sequence, until a byte from `@` to `~`.
    Control,
    /// In a string, until BEL or `ESC \`.
    String,
    StringEscape,
}

impl LineDrawing {
    /// The bytes with graphics translated; `rewritten` is room for them, where something had to be changed.
    pub fn translate<'a>(&mut self, bytes: &'a [u8], rewritten: &'a mut Vec<u8>) -> &'a [u8] {
        if self.is_plain() && !may_switch(bytes) {
            return bytes;
        }
        rewritten.clear();
        for byte in bytes {
            self.byte(*byte, rewritten);
        }
        rewritten
    }

    /// True when nothing changes until the next switch.
    fn is_plain(&self) -> bool {
        self.state == State::Text && !self.graphics[self.active]
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        let drawn = (self.state == State::Text && self.graphics[self.active])
            .then(|| GRAPHICS.get(usize::from(byte).wrapping_sub(0x5f)).filter(|_| byte < 0x7f))
            .flatten();
        match drawn {
            Some(graphic) => out.extend_from_slice(graphic.encode_utf8(&mut [0; 4]).as_bytes()),
            None => out.push(byte),
        }
        self.state = match (self.state, byte) {
            (State::String, ESCAPE) => State::StringEscape,
            (State::String, 0x07) => State::Text,
            (State::String, _) => State::String,
            (State::StringEscape, b'\\') => State::Text,
            (_, ESCAPE) => State::Escape,
            (State::Text, SHIFT_OUT | SHIFT_IN) => {
                self.active = usize::from(byte == SHIFT_OUT);
                State::Text
            }
            (State::Text, _) => State::Text,
            (State::Escape | State::StringEscape, b'(') => State::Designate(0),
            (State::Escape | State::StringEscape, b')') => State::Designate(1),
            (State::Escape | State::StringEscape, b'[') => State::Control,
            (State::Escape | State::StringEscape, b']' | b'P' | b'X' | b'^' | b'_') => State::String,
            (State::Escape, b'c') => {
                *self = LineDrawing::default(); // a full reset
                State::Text
            }
            (State::Escape | State::StringEscape | State::Intermediate, 0x20..=0x2f) => State::Intermediate,
            (State::Designate(set), _) => {
                self.graphics[set] = byte == b'0';
                State::Text
            }
            (State::Control, 0x40..=0x7e) => State::Text,
            (State::Control, _) => State::Control,
            (State::Escape | State::StringEscape | State::Intermediate, _) => State::Text,
        };
    }
}

/// True when the bytes may switch the set, or end within something that does. Most output does not.
fn may_switch(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(position) = memchr3(ESCAPE, SHIFT_OUT, SHIFT_IN, rest) {
        if rest[position] != ESCAPE {
            return true;
        }
        match rest.get(position + 1) {
            None | Some(b'(' | b')') => return true,
            Some(_) => rest = &rest[position + 1..],
        }
    }
    // A sequence that is cut off at the end is followed to its end with the next bytes, which need no change: the state
    // stays `Text`, and only a switch that is cut in two would be missed. `None` above has found that.
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translate(parts: &[&[u8]]) -> String {
        let mut drawing = LineDrawing::default();
        let mut text = Vec::new();
        for part in parts {
            let mut room = Vec::new();
            text.extend_from_slice(drawing.translate(part, &mut room));
        }
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn boxes_are_drawn_and_text_is_not_touched() {
        assert_eq!(translate(&[b"lqk"]), "lqk");
        assert_eq!(translate(&[b"\x1b(0lqk\x1b(Blqk"]), "\x1b(0┌─┐\x1b(Blqk");
        assert_eq!(translate(&[b"\x1b)0a\x0ex\x0fx"]), "\x1b)0a\x0e│\x0fx");
        assert_eq!(
            translate(&[b"\x1b(0\x1b[1;31mq\x1b]0;title\x07q\x1b]0;title\x1b\\q"]),
            "\x1b(0\x1b[1;31m─\x1b]0;title\x07─\x1b]0;title\x1b\\─"
        );
        assert_eq!(translate(&[b"\x1b(0q\x1bcq"]), "\x1b(0─\x1bcq");
    }

    #[test]
    fn a_switch_may_come_in_pieces() {
        assert_eq!(translate(&[b"\x1b", b"(", b"0", b"q", b"\x1b(", b"B", b"q"]), "\x1b(0─\x1b(Bq");
        assert_eq!(translate(&[b"\x1b[3", b"1mq"]), "\x1b[31mq");
    }

    #[test]
    fn other_bytes_stay_as_they_are() {
        assert_eq!(translate(&["\x1b(0é A1\r\n".as_bytes()]), "\x1b(0é A1\r\n");
    }
}
