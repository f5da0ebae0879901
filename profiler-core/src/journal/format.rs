//! The journal's bytes: file header and frame header. All numbers are little-endian.
//!
//! Owns: the layout and its checks. Refuses: files, and what is inside a payload (`payload`).
//!
//! ```text
//! file    MAGIC (8) · version u32 · 0 u32 · frame · frame · …
//! frame   MARK u16 · kind u8 · flags u8 · stored u32 · plain u32 · crc of the stored payload u32
//!         · crc of these 16 bytes u32 · payload (`stored` bytes)
//! ```
//!
//! `plain` is the payload's size when unpacked; flag 1 says that it is packed with zstd. The header has a checksum of its
//! own, so that a length is believed only when it is what the writer wrote: then a frame that reaches beyond the file is
//! torn, and anything else that does not fit is damage. A reader skips frames of a kind it does not know: adding a kind
//! needs no new version.

/// First eight bytes of a journal.
pub const MAGIC: [u8; 8] = *b"MSCPJRNL";
/// Version of this layout. A reader refuses a newer one.
pub const VERSION: u32 = 1;
/// Version of the first file of a chain (`chain`): a reader that knows one file only must refuse it.
pub const CHAIN_VERSION: u32 = 2;
/// Size of the file header, in bytes; the first frame begins here.
pub const FILE_HEADER_BYTES: usize = 16;
/// Size of a frame's header, in bytes.
pub const FRAME_HEADER_BYTES: usize = 20;
/// Most records in a frame.
pub const MAX_RECORDS: usize = 16_384;
/// Most bytes of a payload, stored or plain. No reader allocates more for a frame.
pub const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// First two bytes of a frame.
const MARK: u16 = 0x4d7e;
/// Flag: the payload is packed with zstd.
const PACKED: u8 = 1;

/// Kinds of frames; the numbers are in files.
pub(super) mod kind {
    pub const SESSION: u8 = 1;
    pub const PROCESS: u8 = 2;
    pub const CLOCK: u8 = 3;
    pub const RECORDS: u8 = 4;
    pub const TELEMETRY: u8 = 5;
    pub const COUNTERS: u8 = 6;
    pub const END: u8 = 7;
}

/// The file header of a version.
pub(super) fn file_header(version: u32) -> [u8; FILE_HEADER_BYTES] {
    let mut bytes = [0; FILE_HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    bytes
}

/// A frame's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FrameHeader {
    pub kind: u8,
    pub packed: bool,
    pub stored: u32,
    pub plain: u32,
    pub payload_crc: u32,
}

impl FrameHeader {
    /// Its bytes.
    pub fn to_bytes(self) -> [u8; FRAME_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        bytes[0..2].copy_from_slice(&MARK.to_le_bytes());
        bytes[2] = self.kind;
        bytes[3] = if self.packed { PACKED } else { 0 };
        bytes[4..8].copy_from_slice(&self.stored.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.plain.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..16]);
        bytes[16..20].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header in these bytes; `None` when they are no header (wrong mark, checksum, flags or sizes).
    pub fn from_bytes(bytes: &[u8; FRAME_HEADER_BYTES]) -> Option<FrameHeader> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let header = FrameHeader {
            kind: bytes[2],
            packed: bytes[3] & PACKED != 0,
            stored: word(4),
            plain: word(8),
            payload_crc: word(12),
        };
        let fits = |size: u32| size as usize <= MAX_PAYLOAD_BYTES;
        let valid = bytes[0..2] == MARK.to_le_bytes()
            && crc32fast::hash(&bytes[..16]) == word(16)
            && bytes[3] & !PACKED == 0
            && fits(header.stored)
            && fits(header.plain);
        valid.then_some(header)
    }

    /// Size of the whole frame, in bytes.
    pub fn frame_bytes(&self) -> u64 {
        FRAME_HEADER_BYTES as u64 + self.stored as u64
    }
}

/// Offset of the first valid frame header in `bytes` at or after `from`.
pub(super) fn find_frame(bytes: &[u8], from: usize) -> Option<usize> {
    let first = MARK.to_le_bytes()[0];
    (from..bytes.len().saturating_sub(FRAME_HEADER_BYTES - 1)).find(|&at| {
        bytes[at] == first
            && bytes[at..].first_chunk::<FRAME_HEADER_BYTES>().is_some_and(|h| FrameHeader::from_bytes(h).is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_and_any_flipped_bit_is_noticed() {
        let header = FrameHeader { kind: 4, packed: true, stored: 99, plain: 1 << 20, payload_crc: 0xdead_beef };
        let bytes = header.to_bytes();
        assert_eq!(FrameHeader::from_bytes(&bytes), Some(header));
        for bit in 0..FRAME_HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FrameHeader::from_bytes(&flipped), None, "bit {bit}");
        }
    }

    #[test]
    fn an_absurd_length_is_refused_even_with_a_right_checksum() {
        let header = FrameHeader { kind: 1, packed: true, stored: 1, plain: u32::MAX, payload_crc: 0 };
        assert_eq!(FrameHeader::from_bytes(&header.to_bytes()), None);
    }

    #[test]
    fn a_frame_is_found_again_behind_damage() {
        let header = FrameHeader { kind: 7, packed: false, stored: 0, plain: 0, payload_crc: 0 };
        let mut bytes = vec![MARK.to_le_bytes()[0]; 37];
        bytes.extend_from_slice(&header.to_bytes());
        assert_eq!(find_frame(&bytes, 0), Some(37));
        assert_eq!(find_frame(&bytes[..56], 0), None);
    }
}
