//! From times to positions in the order of changes.
//!
//! Owns: a time for every so many positions. Refuses: the changes between them: whoever asks looks at those.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::journal::entry::Nanoseconds;
use crate::keep::KeptSpan;

/// Positions between two entries.
const STRIDE: u32 = 1024;

/// Times of some positions, never going back.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct OrderClock {
    /// By position; of each the largest time up to it.
    entries: Vec<(u32, Nanoseconds)>,
    last: Nanoseconds,
    order: u32,
}

impl OrderClock {
    /// True when positions and times never go back.
    pub fn is_sound(&self) -> bool {
        self.entries.is_sorted() && self.entries.last().is_none_or(|(noted, _)| *noted <= self.order)
    }

    /// The change at this position was made then.
    pub fn note(&mut self, order: u32, time: Nanoseconds) {
        self.last = self.last.max(time);
        self.order = order;
        if self.entries.last().is_none_or(|(noted, _)| order - noted >= STRIDE) {
            self.entries.push((order, self.last));
        }
    }

    /// The positions among which the last change at or before a time is, or 0 for none: the first of them is at or before it;
    /// with the largest time up to the first.
    pub fn around(&self, time: Nanoseconds) -> (RangeInclusive<u32>, Nanoseconds) {
        let after = self.entries.partition_point(|(_, noted)| *noted <= time);
        let end = self.entries.get(after).map_or(self.order, |(order, _)| order - 1);
        match after.checked_sub(1).and_then(|before| self.entries.get(before)) {
            Some((order, noted)) => (*order..=end.max(*order), *noted),
            None => (0..=0, Nanoseconds(0)),
        }
    }

    /// Some positions after this one, in order, and the largest time up to each: one at least every so many changes, the next
    /// position among them.
    pub fn marks_after(&self, order: u32) -> Vec<(u32, Nanoseconds)> {
        let after = self.entries.partition_point(|(noted, _)| *noted <= order);
        let mut marks = self.entries[after..].to_vec();
        if self.order > order && marks.first().is_none_or(|(first, _)| *first > order + 1) {
            let before = after.checked_sub(1).map_or(Nanoseconds(0), |before| self.entries[before].1);
            marks.insert(0, (order + 1, before));
        }
        marks
    }

    /// A time at or after that of the change at this position: that of the next entry.
    pub fn time_of(&self, order: u32) -> Nanoseconds {
        let after = self.entries.partition_point(|(noted, _)| *noted < order);
        self.entries.get(after).map_or(self.last, |(_, time)| *time)
    }

    /// Nobody asks for earlier positions any more, but for those of spans.
    pub fn forget_before(&mut self, order: u32, spans: &[KeptSpan]) {
        let first = self.entries.partition_point(|(noted, _)| *noted <= order).saturating_sub(1);
        let mut number = 0;
        self.entries.retain(|(noted, _)| {
            number += 1;
            // The entry before a span is that of its first positions.
            number > first || spans.iter().any(|span| span.from <= noted.saturating_add(STRIDE) && *noted <= span.until)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_lies_in_the_range() {
        let mut clock = OrderClock::default();
        assert_eq!(clock.around(Nanoseconds(5)).0, 0..=0);
        for order in 1..=3000 {
            clock.note(order, Nanoseconds(u64::from(order) * 10));
        }
        assert_eq!(clock.around(Nanoseconds(9)).0, 0..=0);
        for order in [1u32, 2, 1024, 1025, 1026, 2049, 3000] {
            let (range, _) = clock.around(Nanoseconds(u64::from(order) * 10 + 5));
            assert!(range.contains(&order) && range.end() - range.start() < STRIDE, "{order}: {range:?}");
        }
        clock.forget_before(1500, &[]);
        assert!(clock.around(Nanoseconds(15_000)).0.contains(&1500));
    }
}
