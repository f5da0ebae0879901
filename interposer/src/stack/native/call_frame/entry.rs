//! The entries of `.eh_frame`: one for each piece of code, and what many have in common.
//!
//! Owns: their layout, as compilers write it for x86-64. Refuses: any other layout; to run the programs in them (`program.rs`).

use super::super::memory;
use super::cursor::Cursor;
use super::program::RETURN_ADDRESS;

/// Longest entry that is read: those of real code have less than a few kilobytes.
const MOST_BYTES: usize = 1 << 20;

/// What entries have in common (a CIE).
pub struct Common {
    pub code_unit: u64,
    pub data_unit: i64,
    pub encoding: u8,
    augmented: bool,
    pub signal: bool,
    pub instructions: (usize, usize),
}

/// The entry of a piece of code (an FDE).
pub struct Entry {
    pub common: Common,
    pub begin: usize,
    pub bytes: usize,
    /// Where its program is, and how long.
    pub instructions: (usize, usize),
}

/// The content of an entry behind its length.
fn content(at: usize) -> Option<Cursor> {
    let bytes = u32::from_le_bytes(memory::number(at)?) as usize;
    // 0 ends the section, and all ones begin a length that no module needs.
    if bytes == 0 || bytes > MOST_BYTES { None } else { Cursor::new(at.checked_add(4)?, bytes) }
}

impl Entry {
    pub fn read(at: usize) -> Option<Entry> {
        let mut cursor = content(at)?;
        let here = cursor.at;
        let back = u32::from_le_bytes(cursor.fixed()?) as usize;
        let common = Common::read(here.checked_sub(back).filter(|_| back != 0)?)?;
        let begin = cursor.pointer(common.encoding)?;
        // A size is never relative.
        let bytes = cursor.pointer(common.encoding & 0x0f)?;
        if common.augmented {
            let bytes = cursor.unsigned()?;
            cursor.skip(bytes)?;
        }
        Some(Entry { instructions: (cursor.at, cursor.end.wrapping_sub(cursor.at)), common, begin, bytes })
    }
}

impl Common {
    fn read(at: usize) -> Option<Common> {
        let mut cursor = content(at)?;
        if cursor.fixed::<4>()? != [0; 4] {
            return None;
        }
        let version = cursor.byte()?;
        let mut augmentation = [0; 8];
        let mut letters = 0;
        loop {
            match cursor.byte()? {
                0 => break,
                letter => *augmentation.get_mut(letters)? = letter,
            }
            letters = letters.wrapping_add(1);
        }
        let code_unit = cursor.unsigned()?;
        let data_unit = cursor.signed()?;
        let returns = match version {
            1 => cursor.byte()? as u64,
            3 => cursor.unsigned()?,
            _ => return None,
        };
        if returns != RETURN_ADDRESS {
            return None;
        }
        let mut common =
            Common { code_unit, data_unit, encoding: 0, augmented: false, signal: false, instructions: (0, 0) };
        let mut end_of_augmentation = None;
        for letter in augmentation.iter().take(letters) {
            match letter {
                b'z' => {
                    let bytes = cursor.unsigned()?;
                    let mut behind = cursor.clone();
                    behind.skip(bytes)?;
                    end_of_augmentation = Some(behind.at);
                    common.augmented = true;
                }
                b'R' => common.encoding = cursor.byte()?,
                b'P' => {
                    let encoding = cursor.byte()?;
                    // Its value is of no interest: what it is relative to does not matter.
                    cursor.pointer(encoding & 0x0f)?;
                }
                b'L' => {
                    cursor.byte()?;
                }
                b'S' => common.signal = true,
                _ => return None,
            }
        }
        if let Some(end) = end_of_augmentation {
            cursor.at = end;
        }
        common.instructions = (cursor.at, cursor.end.wrapping_sub(cursor.at));
        Some(common)
    }
}
