//! The bytes of a module's tables, and the numbers that are written in them.
//!
//! Owns: reads that cannot fault and never pass the end. Refuses: what the numbers mean.

use super::super::memory;

/// Bytes of the module, one after the other.
#[derive(Clone)]
pub struct Cursor {
    pub at: usize,
    pub end: usize,
    window: [u8; 64],
    window_at: usize,
    window_bytes: usize,
}

impl Cursor {
    pub fn new(at: usize, bytes: usize) -> Option<Cursor> {
        let end = at.checked_add(bytes)?;
        Some(Cursor { at, end, window: [0; 64], window_at: at, window_bytes: 0 })
    }

    pub fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    pub fn byte(&mut self) -> Option<u8> {
        if self.is_empty() {
            return None;
        }
        if self.at.wrapping_sub(self.window_at) >= self.window_bytes {
            let bytes = self.end.wrapping_sub(self.at).min(self.window.len());
            self.window_at = self.at;
            self.window_bytes = 0;
            if !memory::copy(self.at, self.window.get_mut(..bytes)?) {
                return None;
            }
            self.window_bytes = bytes;
        }
        let byte = self.window.get(self.at.wrapping_sub(self.window_at))?;
        self.at = self.at.wrapping_add(1);
        Some(*byte)
    }

    pub fn fixed<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let mut bytes = [0; BYTES];
        for place in &mut bytes {
            *place = self.byte()?;
        }
        Some(bytes)
    }

    pub fn skip(&mut self, bytes: u64) -> Option<()> {
        self.at = self.at.checked_add(usize::try_from(bytes).ok()?).filter(|at| *at <= self.end)?;
        Some(())
    }

    /// An unsigned LEB128 number, of which all that matter have less than 64 bits; and the bits that its bytes had.
    fn leb(&mut self) -> Option<(u64, u32, u8)> {
        let (mut number, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = self.byte()?;
            if shift < u64::BITS {
                number |= (byte as u64 & 0x7f).wrapping_shl(shift);
            }
            shift = shift.wrapping_add(7);
            if byte & 0x80 == 0 {
                return Some((number, shift, byte));
            }
            if shift > 2 * u64::BITS {
                return None;
            }
        }
    }

    pub fn unsigned(&mut self) -> Option<u64> {
        self.leb().map(|(number, ..)| number)
    }

    pub fn signed(&mut self) -> Option<i64> {
        let (number, bits, last) = self.leb()?;
        let negative = last & 0x40 != 0 && bits < u64::BITS;
        Some(if negative { number | u64::MAX.wrapping_shl(bits) } else { number } as i64)
    }

    /// A pointer in one of the encodings that are written for code.
    pub fn pointer(&mut self, encoding: u8) -> Option<usize> {
        let here = self.at;
        let number = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => u64::from_le_bytes(self.fixed()?) as usize,
            0x03 => u32::from_le_bytes(self.fixed()?) as usize,
            0x0b => i32::from_le_bytes(self.fixed()?) as isize as usize,
            _ => return None,
        };
        match encoding & 0x70 {
            0x00 => Some(number),
            0x10 => Some(here.wrapping_add(number)),
            _ => None,
        }
    }
}
