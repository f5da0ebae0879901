//! Live bytes over time, few enough points to draw.
//!
//! Owns: the buckets. Refuses: pixels. Each bucket keeps the state of its largest live bytes, so that no peak is lost. A series
//! whose end is not known doubles the width of its buckets when it is full.

use serde::{Deserialize, Serialize};

use crate::journal::entry::Nanoseconds;
use crate::ledger::{CATEGORIES, EventRows};

/// Buckets of a whole session.
pub const BUCKETS: usize = 2048;

/// What is drawn for one span of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Bucket {
    /// Live bytes by category where their sum is largest.
    pub live: [u64; CATEGORIES],
    /// Largest reserved bytes.
    pub reserved: u64,
}

impl Bucket {
    fn of(rows: &EventRows) -> Bucket {
        Bucket { live: rows.live, reserved: rows.reserved }
    }

    /// Sum of all categories.
    pub fn live_bytes(&self) -> u64 {
        self.live.iter().fold(0, |sum, bytes| sum.wrapping_add(*bytes))
    }

    /// As a ledger: what is reserved and not live counts as cached.
    pub(crate) fn rows(&self) -> EventRows {
        let mut rows = EventRows { live: self.live, ..EventRows::default() };
        rows.reserved = self.reserved.max(rows.live_bytes());
        rows.cached = rows.reserved - rows.live_bytes();
        rows
    }

    /// Says whether these are the largest live bytes so far.
    fn include(&mut self, other: &Bucket) -> bool {
        self.reserved = self.reserved.max(other.reserved);
        let larger = other.live_bytes() > self.live_bytes();
        if larger {
            self.live = other.live;
        }
        larger
    }
}

/// A session's buckets, from time 0 on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// Width of a bucket in nanoseconds, at least 1.
    pub width_ns: u64,
    /// The buckets.
    pub buckets: Vec<Bucket>,
}

impl Series {
    /// For a session of this length; one that lasts longer makes the buckets wider.
    pub(crate) fn new(last: Nanoseconds) -> Series {
        Series { width_ns: last.0 / BUCKETS as u64 + 1, buckets: vec![Bucket::default()] }
    }
}

/// A series that is being made, and which moment each of its buckets shows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Drawing {
    pub series: Series,
    /// By bucket: position of the change that made its live bytes what they are.
    pub orders: Vec<u32>,
    /// Times before this one are in the last bucket, or in earlier ones.
    until: u64,
}

impl Drawing {
    pub fn new(last: Nanoseconds) -> Drawing {
        Drawing { series: Series::new(last), orders: vec![0], until: 0 }
    }

    /// True when each bucket has its moment.
    pub fn is_sound(&self) -> bool {
        let buckets = self.series.buckets.len();
        self.series.width_ns > 0 && (1..=BUCKETS).contains(&buckets) && self.orders.len() == buckets
    }

    /// Says how things stood until now, since the change at this position, before they change.
    pub fn advance(&mut self, time: Nanoseconds, before: &EventRows, order: u32) {
        // Most changes are in the bucket of the one before.
        if time.0 < self.until {
            return;
        }
        while time.0 / self.series.width_ns >= BUCKETS as u64 {
            self.widen();
        }
        let bucket = (time.0 / self.series.width_ns) as usize;
        if bucket >= self.series.buckets.len() {
            self.series.buckets.resize(bucket + 1, Bucket::of(before));
            self.orders.resize(bucket + 1, order);
        }
        self.until = (self.series.buckets.len() as u64).saturating_mul(self.series.width_ns);
    }

    /// Takes in how things stand now.
    pub fn include(&mut self, rows: &EventRows, order: u32) {
        if let (Some(bucket), Some(last)) = (self.series.buckets.last_mut(), self.orders.last_mut())
            && bucket.include(&Bucket::of(rows))
        {
            *last = order;
        }
    }

    /// Two buckets become one.
    fn widen(&mut self) {
        let (buckets, orders) = (&mut self.series.buckets, &mut self.orders);
        let pairs = buckets.len().div_ceil(2);
        for pair in 0..pairs {
            let (mut bucket, mut order) = (buckets[2 * pair], orders[2 * pair]);
            if let Some(second) = buckets.get(2 * pair + 1)
                && bucket.include(second)
            {
                order = orders[2 * pair + 1];
            }
            (buckets[pair], orders[pair]) = (bucket, order);
        }
        buckets.truncate(pairs);
        orders.truncate(pairs);
        self.series.width_ns = self.series.width_ns.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(bytes: u64) -> EventRows {
        EventRows { live: [bytes, 0, 0, 0, 0, 0, 0], reserved: bytes, ..EventRows::default() }
    }

    fn live(drawing: &Drawing) -> Vec<u64> {
        drawing.series.buckets.iter().map(|bucket| bucket.live[0]).collect()
    }

    #[test]
    fn a_short_peak_is_kept_and_quiet_times_are_filled() {
        let mut drawing = Drawing::new(Nanoseconds(BUCKETS as u64 * 10));
        let width = drawing.series.width_ns;
        drawing.include(&rows(900), 1);
        drawing.include(&rows(5), 2);
        drawing.advance(Nanoseconds(width * 3), &rows(5), 2);
        drawing.include(&rows(7), 3);
        assert_eq!(live(&drawing), [900, 5, 5, 7]);
        assert_eq!(drawing.orders, [1, 2, 2, 3]);
    }

    #[test]
    fn a_series_that_lasts_longer_keeps_its_peaks_in_wider_buckets() {
        let mut drawing = Drawing::new(Nanoseconds(0));
        assert_eq!(drawing.series.width_ns, 1);
        for (order, bytes) in [4, 9, 2, 3, 8].into_iter().enumerate() {
            drawing.advance(Nanoseconds(order as u64), &rows(0), 0);
            drawing.include(&rows(bytes), order as u32 + 1);
        }
        drawing.advance(Nanoseconds(BUCKETS as u64), &rows(8), 5);
        assert_eq!((drawing.series.width_ns, drawing.series.buckets.len()), (2, BUCKETS / 2 + 1));
        assert_eq!(live(&drawing)[..4], [9, 3, 8, 8]);
        assert_eq!(drawing.orders[..4], [2, 4, 5, 5]);
        drawing.advance(Nanoseconds(u64::MAX), &rows(1), 6);
        assert!(drawing.series.buckets.len() <= BUCKETS);
        assert_eq!(live(&drawing).into_iter().max(), Some(9));
    }
}
