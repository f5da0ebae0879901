//! Text measured in columns of cells.
//!
//! Owns: how wide a text is, and how it is shortened and broken into lines. Refuses: cells.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::glyphs::Glyphs;

/// Columns that a text takes, control characters not counted.
pub fn columns(text: &str) -> usize {
    if text.is_ascii() {
        return text.bytes().filter(|byte| !byte.is_ascii_control()).count();
    }
    text.width()
}

/// At most `width` columns of a text, its middle left out when it is longer.
pub fn fit(text: &str, width: usize, glyphs: &Glyphs) -> String {
    let clean = text.chars().filter(|char| !char.is_control());
    let chars: Vec<(char, usize)> = clean.map(|char| (char, char.width().unwrap_or(0))).collect();
    let total: usize = chars.iter().map(|(_, columns)| columns).sum();
    if total <= width {
        return chars.iter().map(|(char, _)| char).collect();
    }
    if width == 0 {
        return String::new();
    }
    let room = width - 1;
    let tail_room = room - room / 2;
    let take = |mut room: usize, chars: &mut dyn Iterator<Item = &(char, usize)>| -> Vec<char> {
        let mut taken = Vec::new();
        for (char, columns) in chars {
            if *columns > room {
                break;
            }
            room -= columns;
            taken.push(*char);
        }
        taken
    };
    let head = take(room / 2, &mut chars.iter());
    let tail = take(tail_room, &mut chars.iter().rev());
    head.into_iter().chain(glyphs.gap.chars()).chain(tail.into_iter().rev()).collect()
}

/// A paragraph as lines of at most `width` columns, broken between words where it can be.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut taken = 0;
    for word in text.split_whitespace() {
        let mut word: String = word.chars().filter(|char| !char.is_control()).collect();
        loop {
            let gap = usize::from(taken > 0);
            let long = columns(&word);
            let line = lines.last_mut().expect("there is always a line");
            if taken + gap + long <= width {
                if gap > 0 {
                    line.push(' ');
                }
                line.push_str(&word);
                taken += gap + long;
                break;
            }
            if taken > 0 {
                lines.push(String::new());
                taken = 0;
                continue;
            }
            // A word longer than a line is broken where the line ends.
            let mut room = width;
            let cut = word.char_indices().find_map(|(at, char)| {
                let columns = char.width().unwrap_or(0);
                if columns > room && at > 0 {
                    return Some(at);
                }
                room = room.saturating_sub(columns);
                None
            });
            let rest = word.split_off(cut.unwrap_or(word.len()));
            line.push_str(&word);
            if rest.is_empty() {
                taken = width;
                break;
            }
            lines.push(String::new());
            word = rest;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glyphs::{ASCII, UNICODE};

    #[test]
    fn long_texts_keep_both_ends() {
        assert_eq!(fit("abcdefghij", 10, &UNICODE), "abcdefghij");
        assert_eq!(fit("abcdefghijk", 10, &UNICODE), "abcd…ghijk");
        assert_eq!(fit("abcdefghijk", 4, &ASCII), "a~jk");
        assert_eq!(fit("日本語日本語", 5, &UNICODE), "日…語", "a wide character takes two columns");
        assert_eq!(fit("abc", 0, &UNICODE), "");
        assert_eq!(fit("abc", 1, &UNICODE), "…");
    }

    #[test]
    fn paragraphs_break_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("", 3), [""]);
    }
}
