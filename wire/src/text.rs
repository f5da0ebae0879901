//! Names (scopes, tags, phases) travel as a 64-bit hash; the text itself is sent once, in parts of 32 bytes.

/// Longest name kept, in bytes; a longer one is cut here, on both sides.
pub const MAX_TEXT_BYTES: usize = 1024;

/// Bytes of text in one record.
pub const PART_BYTES: usize = 32;

/// What identifies a name: a 64-bit hash of its (cut) bytes. 0 means "no name".
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct TextId(pub u64);

impl TextId {
    /// The absent name.
    pub const NONE: TextId = TextId(0);

    /// Hash of `text`, cut to [`MAX_TEXT_BYTES`]. Never [`TextId::NONE`] for a non-empty text.
    ///
    /// The function is FNV-1a (64 bit) followed by the finaliser of MurmurHash3, so that short names differ in all bits.
    pub const fn of(text: &[u8]) -> TextId {
        if text.is_empty() {
            return TextId::NONE;
        }
        let length = if text.len() < MAX_TEXT_BYTES { text.len() } else { MAX_TEXT_BYTES };
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut index = 0;
        while index < length {
            hash = (hash ^ text[index] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            index += 1;
        }
        hash ^= hash >> 33;
        hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 33;
        hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^= hash >> 33;
        if hash == 0 { TextId(1) } else { TextId(hash) }
    }

    /// True for [`TextId::NONE`].
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_at_the_limit() {
        let long = [b'a'; MAX_TEXT_BYTES + 7];
        assert_eq!(TextId::of(&long), TextId::of(&long[..MAX_TEXT_BYTES]));
        assert_ne!(TextId::of(&long), TextId::of(&long[..MAX_TEXT_BYTES - 1]));
    }

    #[test]
    fn only_the_empty_name_is_none() {
        assert!(TextId::of(b"").is_none());
        assert!(!TextId::of(b"w").is_none());
    }
}
