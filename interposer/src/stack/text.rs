//! A str object of Python's as UTF-8.
//!
//! Owns: the compact forms, of one, two and four bytes a character (PEP 393), which all names of code have. Refuses: to make up
//! characters: half of a pair (a file name that is no UTF-8) becomes U+FFFD, and what is no str has no text.

use super::layout::Layout;

/// The characters of a str object.
pub struct Text<'o> {
    bytes: &'o [u8],
    /// Bytes a character.
    size: usize,
}

/// Bits of PyASCIIObject's state.
const KIND_SHIFT: u32 = 2;
const COMPACT: u32 = 1 << 5;
const ASCII: u32 = 1 << 6;

impl Text<'_> {
    const EMPTY: Text<'static> = Text { bytes: &[], size: 1 };

    /// # Safety
    /// `object` is null or an object of Python's that is alive as long as the result.
    #[inline(always)]
    pub unsafe fn of<'o>(layout: &Layout, object: *const u8) -> Text<'o> {
        // SAFETY: the caller's promise, and the layout of a str object.
        unsafe {
            if object.is_null() || object.add(layout.object_type).cast::<*const u8>().read() != layout.text_type {
                return Text::EMPTY;
            }
            let state = object.add(layout.text_state).cast::<u32>().read();
            let size = (state >> KIND_SHIFT & 7) as usize;
            if state & COMPACT == 0 || !matches!(size, 1 | 2 | 4) {
                return Text::EMPTY;
            }
            let begin = if state & ASCII != 0 { layout.text_ascii } else { layout.text_other };
            let length = object.add(layout.text_length).cast::<usize>().read();
            Text { bytes: core::slice::from_raw_parts(object.add(begin), length * size), size }
        }
    }

    /// The characters as they lie in memory.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// The text, cut before the first character that the buffer has no room for.
    pub fn utf8<'b>(&self, buffer: &'b mut [u8]) -> &'b [u8] {
        let mut used = 0;
        for character in self.bytes.chunks_exact(self.size.max(1)) {
            let mut number = 0;
            for byte in character.iter().rev() {
                number = number << 8 | *byte as u32;
            }
            let character = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
            let mut bytes = [0; 4];
            let bytes = character.encode_utf8(&mut bytes).as_bytes();
            let Some(room) = buffer.get_mut(used..used + bytes.len()) else { break };
            for (place, byte) in room.iter_mut().zip(bytes) {
                *place = *byte;
            }
            used += bytes.len();
        }
        buffer.get(..used).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf8(bytes: &[u8], size: usize, room: usize) -> Vec<u8> {
        let mut buffer = vec![0; room];
        Text { bytes, size }.utf8(&mut buffer).to_vec()
    }

    #[test]
    fn characters_of_each_size_become_utf8() {
        assert_eq!(utf8(b"plain", 1, 99), b"plain");
        assert_eq!(utf8(&[b'n', 0xe9], 1, 99), "né".as_bytes());
        let two: Vec<u8> = "é中".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(utf8(&two, 2, 99), "é中".as_bytes());
        let four: Vec<u8> = "a🦀".chars().flat_map(|c| (c as u32).to_le_bytes()).collect();
        assert_eq!(utf8(&four, 4, 99), "a🦀".as_bytes());
        assert_eq!(utf8(&0xdc80_u16.to_le_bytes(), 2, 99), "\u{fffd}".as_bytes());
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(utf8(&[b'a', 0xe9, b'b'], 1, 2), b"a");
        assert_eq!(utf8(b"abc", 1, 2), b"ab");
        assert_eq!(utf8(b"", 1, 0), b"");
    }
}
