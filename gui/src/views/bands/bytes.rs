//! What is seen of bytes: all of them, or a part, as low bands need it.
//!
//! Owns: zooming and moving it, and its axis. Refuses: time.

use eframe::egui::Painter;

use super::plot::Plot;
use crate::theme::Theme;
use crate::views::timeline::axis::byte_lines;

/// The deepest zoom, bytes.
const LEAST: f64 = 256.0;

/// From an offset to a higher one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Part {
    /// At the lower edge.
    pub low: f64,
    /// At the upper edge.
    pub high: f64,
}

impl Part {
    /// All of so many bytes.
    pub const fn all(top: f64) -> Part {
        Part { low: 0.0, high: top }
    }

    /// Its length.
    pub fn length(self) -> f64 {
        self.high - self.low
    }

    /// What is at a share of its height stays there, and its length is multiplied; `None` once that is all.
    pub fn scaled(self, share: f64, factor: f64, top: f64) -> Option<Part> {
        let length = (self.length() * factor).max(LEAST);
        let anchor = self.low + share * self.length();
        Part { low: anchor - share * length, high: anchor + (1.0 - share) * length }.within(top)
    }

    /// Moved up by a share of its length.
    pub fn moved(self, share: f64, top: f64) -> Option<Part> {
        let by = share * self.length();
        Part { low: self.low + by, high: self.high + by }.within(top)
    }

    /// The same within so many bytes; `None` where it is all of them.
    pub fn within(self, top: f64) -> Option<Part> {
        let length = self.length();
        if length >= top {
            return None;
        }
        let low = self.low.clamp(0.0, top - length);
        Some(Part { low, high: low + length })
    }
}

/// Draws the axis of bytes.
pub fn axis(painter: &Painter, plot: &Plot<'_>, theme: &Theme) {
    let Part { low, high } = plot.part;
    byte_lines(painter, plot.chart.rect, low..=high, |value| plot.y(value as u64), theme);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_stays_within_all_and_is_all_in_the_end() {
        let top = 1e9;
        let near = Part::all(top).scaled(0.25, 0.5, top).expect("a part");
        assert_eq!(near, Part { low: 1.25e8, high: 6.25e8 });
        assert_eq!(near.moved(10.0, top), Some(Part { low: 5e8, high: 1e9 }));
        assert_eq!(near.moved(-10.0, top), Some(Part { low: 0.0, high: 5e8 }));
        assert_eq!(near.scaled(0.5, 0.0, top).expect("a part").length(), LEAST);
        assert_eq!(near.scaled(0.9, 3.0, top), None);
        // A chart that is lower than before.
        assert_eq!(near.within(4e8), None);
    }
}
