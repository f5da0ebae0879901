//! What the targets share: records from a short description, and what becomes of entries.

use memscope_core::allocation::Model;
use memscope_core::journal::entry::Entry;
use memscope_core::report::{Style, text};
use memscope_wire::event::kind;
use memscope_wire::{LogHeader, Record};

/// Bytes of a log's header that an input may choose.
pub const FIELDS: usize = std::mem::offset_of!(LogHeader, executable);

/// Bytes that describe a record: kind, flags and thread, and one for each word.
const RECORD_BYTES: usize = 8;
/// Kinds end here, with some that nobody knows.
const KINDS: u16 = kind::OWNER + 4;

/// Records, in 8 bytes each. Words come from a small set, so that a free meets its allocation and a name its text.
pub fn records(bytes: &[u8]) -> Vec<Record> {
    let record = |(index, bytes): (usize, &[u8])| {
        let mut words = [0; 6];
        for (word, byte) in words.iter_mut().zip(&bytes[2..]) {
            *word = number(*byte);
        }
        let head = u32::from(u16::from(bytes[0]) % KINDS) | u32::from(bytes[1] >> 2) << 16;
        Record { head, thread: 1 + u32::from(bytes[1] & 3), ticks: 1000 + 10 * index as u64, words }
    };
    bytes.chunks_exact(RECORD_BYTES).enumerate().map(record).collect()
}

/// A number that means something somewhere: small ones, sizes, addresses that lie in each other, text, and the ends of ranges.
fn number(byte: u8) -> u64 {
    let low = u64::from(byte & 0x0f);
    match byte >> 4 {
        0 => low,
        1 => low << 9,
        2 => 0x7000_0000_0000 + (low << 20),
        3 => 0x7000_0000_0000 + (low << 9),
        4 => (low << 32) | 1,
        5 => 1 << (4 * low),
        6 => (1 << (4 * low)) - 1,
        7 => u64::MAX - low,
        8 => low << 48,
        9 => u64::from_le_bytes(*b"blocks.0") + low,
        10 => 0x0101_0101_0101_0101 * low,
        _ => u64::from(byte) << 20,
    }
}

/// Applies the entries as every view does, and makes the report and its text of them.
pub fn interpret(entries: &[Entry]) {
    let mut model = Model::new();
    for entry in entries {
        model.apply(entry);
    }
    let report = model.finish();
    let _ = text(&report, Style::Plain);
}
