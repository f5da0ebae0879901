//! Live bytes over time, few enough points to draw.
//!
//! Owns: the buckets. Refuses: pixels. Each bucket keeps the state of its largest live bytes, so that no peak is lost.

use crate::journal::entry::Nanoseconds;
use crate::ledger::{CATEGORIES, EventRows};

/// Buckets of a whole session.
pub const BUCKETS: usize = 2048;

/// What is drawn for one span of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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

    fn live_bytes(&self) -> u64 {
        self.live.iter().fold(0, |sum, bytes| sum.wrapping_add(*bytes))
    }

    fn include(&mut self, rows: &EventRows) {
        if rows.live_bytes() > self.live_bytes() {
            self.live = rows.live;
        }
        self.reserved = self.reserved.max(rows.reserved);
    }
}

/// A session's buckets, from time 0 on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Series {
    /// Width of a bucket in nanoseconds, at least 1.
    pub width_ns: u64,
    /// The buckets.
    pub buckets: Vec<Bucket>,
}

impl Series {
    /// For a session of this length.
    pub(crate) fn new(last: Nanoseconds) -> Series {
        Series { width_ns: last.0 / BUCKETS as u64 + 1, buckets: vec![Bucket::default()] }
    }

    /// Says how things stood until now, before they change.
    pub(crate) fn advance(&mut self, time: Nanoseconds, before: &EventRows) {
        let bucket = ((time.0 / self.width_ns) as usize).min(BUCKETS - 1);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, Bucket::of(before));
        }
    }

    /// Takes in how things stand now.
    pub(crate) fn include(&mut self, rows: &EventRows) {
        if let Some(bucket) = self.buckets.last_mut() {
            bucket.include(rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_peak_is_kept_and_quiet_times_are_filled() {
        let mut series = Series::new(Nanoseconds(BUCKETS as u64 * 10));
        let rows = |bytes| EventRows { live: [bytes, 0, 0, 0, 0, 0, 0], reserved: bytes, ..EventRows::default() };
        let width = series.width_ns;
        series.include(&rows(900));
        series.include(&rows(5));
        series.advance(Nanoseconds(width * 3), &rows(5));
        series.include(&rows(7));
        let live: Vec<u64> = series.buckets.iter().map(|bucket| bucket.live[0]).collect();
        assert_eq!(live, [900, 5, 5, 7]);
    }
}
