//! What a terminal sends for a key: xterm's bytes, as the terminfo entries of today's terminals have them.
//!
//! Owns: the mapping. Refuses: key protocols that a program would have to ask for.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Modes of the emulated terminal that change what keys send.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Modes {
    pub application_cursor: bool,
    pub bracketed_paste: bool,
}

/// The bytes of a key; none for keys that have no bytes.
pub(super) fn encode(key: &KeyEvent, modes: Modes) -> Vec<u8> {
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let plain = match key.code {
        KeyCode::Char(c) if control => match control_byte(c) {
            Some(byte) => vec![byte],
            None => c.to_string().into_bytes(),
        },
        KeyCode::Char(c) => c.to_string().into_bytes(),
        KeyCode::Enter => vec![b'\r'],
        KeyCode::Tab => vec![b'\t'],
        KeyCode::Backspace if control => vec![0x08],
        KeyCode::Backspace => vec![0x7f],
        KeyCode::Esc => vec![0x1b],
        KeyCode::BackTab => return b"\x1b[Z".to_vec(),
        code => return function_key(code, key.modifiers, modes),
    };
    if alt { [b"\x1b", &plain[..]].concat() } else { plain }
}

/// Text from the clipboard.
pub(super) fn encode_paste(text: &str, modes: Modes) -> Vec<u8> {
    // A terminal sends what Enter sends for the end of a line.
    let text = text.replace("\r\n", "\r").replace('\n', "\r");
    if !modes.bracketed_paste {
        return text.into_bytes();
    }
    // The text must not be able to close the bracket.
    let text = text.replace("\x1b[201~", "");
    [b"\x1b[200~", text.as_bytes(), b"\x1b[201~"].concat()
}

/// The C0 control that Ctrl makes of a character.
fn control_byte(c: char) -> Option<u8> {
    Some(match c {
        ' ' | '@' | '2' => 0x00,
        'a'..='z' => c as u8 - b'a' + 1,
        'A'..='Z' => c as u8 - b'A' + 1,
        '[' | '3' => 0x1b,
        '\\' | '4' => 0x1c,
        ']' | '5' => 0x1d,
        '^' | '6' => 0x1e,
        '_' | '/' | '7' | '-' => 0x1f,
        '8' | '?' => 0x7f,
        _ => return None,
    })
}

fn function_key(code: KeyCode, modifiers: KeyModifiers, modes: Modes) -> Vec<u8> {
    // xterm's parameter: 1 + Shift 1 + Alt 2 + Ctrl 4; left out when it is 1.
    let mut modifier = 1;
    for (flag, weight) in [(KeyModifiers::SHIFT, 1), (KeyModifiers::ALT, 2), (KeyModifiers::CONTROL, 4)] {
        modifier += if modifiers.contains(flag) { weight } else { 0 };
    }
    let letter = |letter: char| match (modifier, modes.application_cursor) {
        (1, true) => format!("\x1bO{letter}"),
        (1, false) => format!("\x1b[{letter}"),
        _ => format!("\x1b[1;{modifier}{letter}"),
    };
    let tilde = |number: u8| match modifier {
        1 => format!("\x1b[{number}~"),
        _ => format!("\x1b[{number};{modifier}~"),
    };
    let sequence = match code {
        KeyCode::Up => letter('A'),
        KeyCode::Down => letter('B'),
        KeyCode::Right => letter('C'),
        KeyCode::Left => letter('D'),
        KeyCode::Home => letter('H'),
        KeyCode::End => letter('F'),
        KeyCode::Insert => tilde(2),
        KeyCode::Delete => tilde(3),
        KeyCode::PageUp => tilde(5),
        KeyCode::PageDown => tilde(6),
        KeyCode::F(number @ 1..=4) => {
            let letter = ['P', 'Q', 'R', 'S'][usize::from(number) - 1];
            if modifier == 1 { format!("\x1bO{letter}") } else { format!("\x1b[1;{modifier}{letter}") }
        }
        KeyCode::F(number @ 5..=12) => tilde([15, 17, 18, 19, 20, 21, 23, 24][usize::from(number) - 5]),
        _ => String::new(),
    };
    sequence.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(code: KeyCode, modifiers: KeyModifiers) -> Vec<u8> {
        encode(&KeyEvent::new(code, modifiers), Modes::default())
    }

    /// Against terminfo's xterm-256color (infocmp): kcuu1 and khome in cursor mode, kf1, kf5, kdch1, kcbt, kUP5.
    #[test]
    fn keys_are_those_of_xterm() {
        let none = KeyModifiers::NONE;
        assert_eq!(bytes(KeyCode::Char('c'), KeyModifiers::CONTROL), [3]);
        assert_eq!(bytes(KeyCode::Char(']'), KeyModifiers::CONTROL), [0x1d]);
        assert_eq!(bytes(KeyCode::Char('x'), KeyModifiers::ALT), b"\x1bx");
        assert_eq!(bytes(KeyCode::Char('é'), none), "é".as_bytes());
        assert_eq!(bytes(KeyCode::Enter, none), b"\r");
        assert_eq!(bytes(KeyCode::Backspace, none), b"\x7f");
        assert_eq!(bytes(KeyCode::Up, none), b"\x1b[A");
        assert_eq!(bytes(KeyCode::Up, KeyModifiers::CONTROL), b"\x1b[1;5A");
        assert_eq!(bytes(KeyCode::F(1), none), b"\x1bOP");
        assert_eq!(bytes(KeyCode::F(5), none), b"\x1b[15~");
        assert_eq!(bytes(KeyCode::F(12), none), b"\x1b[24~");
        assert_eq!(bytes(KeyCode::Delete, none), b"\x1b[3~");
        assert_eq!(bytes(KeyCode::BackTab, KeyModifiers::SHIFT), b"\x1b[Z");
        assert!(bytes(KeyCode::CapsLock, none).is_empty());
        let modes = Modes { application_cursor: true, ..Modes::default() };
        assert_eq!(encode(&KeyEvent::new(KeyCode::Up, none), modes), b"\x1bOA");
        assert_eq!(encode(&KeyEvent::new(KeyCode::Home, none), modes), b"\x1bOH");
    }

    #[test]
    fn pasted_text_cannot_leave_its_brackets() {
        assert_eq!(encode_paste("a\nb", Modes::default()), b"a\rb");
        let modes = Modes { bracketed_paste: true, ..Modes::default() };
        assert_eq!(encode_paste("a\x1b[201~b", modes), b"\x1b[200~ab\x1b[201~");
    }
}
