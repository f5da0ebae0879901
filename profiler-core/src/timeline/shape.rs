//! How live bytes rise and fall within a step, in a few equal parts of its duration.
//!
//! Owns: the parts, which double their width while the step lasts longer than they reach. Refuses: moments outside of the step.

use serde::{Deserialize, Serialize};

use crate::journal::entry::Nanoseconds;

/// Parts of a step at most; half of them are in use at least, once it has lasted for that many nanoseconds.
const PARTS: usize = 16;

/// Largest live bytes of each part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shape {
    parts: [u64; PARTS],
    used: u8,
    /// A part lasts 2 to the power of this many nanoseconds.
    power: u8,
}

impl Shape {
    /// A step that begins with these live bytes.
    pub(super) fn new(live: u64) -> Shape {
        let mut parts = [0; PARTS];
        parts[0] = live;
        Shape { parts, used: 1, power: 0 }
    }

    /// True when it has as many parts as it says.
    pub(super) fn is_sound(&self) -> bool {
        (1..=PARTS).contains(&usize::from(self.used)) && self.power < 64
    }

    /// Says how many bytes were live until now, so long after the beginning, before that changes.
    pub(super) fn advance(&mut self, elapsed: u64, before: u64) {
        while elapsed >> self.power >= PARTS as u64 {
            for part in 0..PARTS / 2 {
                self.parts[part] = self.parts[2 * part].max(self.parts[2 * part + 1]);
            }
            self.parts[PARTS / 2..].fill(0);
            self.used = self.used.div_ceil(2);
            self.power += 1;
        }
        let part = (elapsed >> self.power) as u8;
        if part >= self.used {
            self.parts[self.used as usize..=part as usize].fill(before);
            self.used = part + 1;
        }
    }

    /// Takes in how many bytes are live now.
    pub(super) fn include(&mut self, live: u64) {
        let last = &mut self.parts[self.used as usize - 1];
        *last = live.max(*last);
    }

    /// Largest live bytes, part by part.
    pub fn parts(&self) -> &[u64] {
        &self.parts[..self.used as usize]
    }

    /// How long a part lasts.
    pub fn width(&self) -> Nanoseconds {
        Nanoseconds(1 << self.power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_with_the_step_and_keep_its_peaks() {
        let mut shape = Shape::new(5);
        shape.advance(3, 5);
        shape.include(9);
        assert_eq!((shape.parts(), shape.width()), (&[5, 5, 5, 9][..], Nanoseconds(1)));
        shape.advance(16, 2);
        shape.include(1);
        assert_eq!(shape.parts(), [5, 9, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(shape.width(), Nanoseconds(2));
        shape.advance(u64::MAX, 3);
        assert!(shape.parts().len() > PARTS / 2 && shape.parts()[0] == 9, "{shape:?}");
    }
}
