//! A part of time.
//!
//! Owns: zooming and moving it, in whole nanoseconds, so that nothing jitters however deep one is. Refuses: pixels.

use memscope_core::journal::entry::Nanoseconds;

/// From a moment to a later one, in nanoseconds since the session began; never empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    /// Where it begins.
    pub begin: u64,
    /// Where it ends, later than it begins.
    pub end: u64,
}

/// The deepest zoom: a hundred nanoseconds over the whole width.
const NARROWEST: u64 = 100;

impl Span {
    /// Between two moments, in whichever order.
    pub fn between(one: u64, other: u64) -> Span {
        let (begin, end) = (one.min(other), one.max(other));
        Span { begin: begin.min(u64::MAX - 1), end: end.max(begin.saturating_add(1)) }
    }

    /// Its length in nanoseconds, at least 1.
    pub const fn length(&self) -> u64 {
        self.end - self.begin
    }

    /// The moment at a share of it: 0 is its beginning, 1 its end. Shares outside are moments outside; none is before 0.
    pub fn at(&self, share: f64) -> u64 {
        // The offset is exact up to 2^53 ns, 104 days.
        let offset = (share * self.length() as f64).round();
        if offset < 0.0 { self.begin.saturating_sub(-offset as u64) } else { self.begin.saturating_add(offset as u64) }
    }

    /// Where a moment is in it: 0 is its beginning, 1 its end.
    pub fn share(&self, time: u64) -> f64 {
        let offset = if time >= self.begin { (time - self.begin) as f64 } else { -((self.begin - time) as f64) };
        offset / self.length() as f64
    }

    /// True for a moment within it.
    pub const fn contains(&self, time: u64) -> bool {
        self.begin <= time && time <= self.end
    }

    /// The same moment stays at the same share, and the length is multiplied; within `whole`.
    pub fn scaled(&self, share: f64, factor: f64, whole: Span) -> Span {
        let wanted = (self.length() as f64 * factor).round().max(1.0) as u64;
        let length = wanted.clamp(NARROWEST.min(whole.length()), whole.length());
        let anchor = self.at(share);
        let before = (share * length as f64).round().max(0.0) as u64;
        Span::starting(anchor.saturating_sub(before), length, whole)
    }

    /// Moved by a share of its length, later where that is positive; within `whole`.
    pub fn moved(&self, share: f64, whole: Span) -> Span {
        Span::starting(self.at(share), self.length(), whole)
    }

    /// Cut or moved so that it lies within `whole`.
    pub fn within(&self, whole: Span) -> Span {
        Span::starting(self.begin, self.length(), whole)
    }

    fn starting(begin: u64, length: u64, whole: Span) -> Span {
        let length = length.min(whole.length()).max(1);
        let begin = begin.clamp(whole.begin, whole.end - length);
        Span { begin, end: begin + length }
    }

    /// Its beginning, as core has it.
    pub const fn from(&self) -> Nanoseconds {
        Nanoseconds(self.begin)
    }

    /// Its end, as core has it.
    pub const fn until(&self) -> Nanoseconds {
        Nanoseconds(self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOURS: Span = Span { begin: 0, end: 24 * 3600 * 1_000_000_000 };

    #[test]
    fn zooming_keeps_the_moment_under_the_pointer() {
        let mut span = HOURS;
        let (share, moment) = (0.37, 12_345_678_901_234);
        // Under the pointer first.
        span = span.scaled(span.share(moment), 0.5, HOURS);
        for _ in 0..200 {
            let share = span.share(moment);
            let next = span.scaled(share, 0.8, HOURS);
            assert!((next.share(moment) - share).abs() <= 1.0 / next.length() as f64, "{span:?} {next:?}");
            span = next;
        }
        assert_eq!(span.length(), NARROWEST);
        assert!(span.contains(moment));
        // And out again.
        for _ in 0..200 {
            span = span.scaled(share, 1.3, HOURS);
        }
        assert_eq!(span, HOURS);
    }

    #[test]
    fn moving_stops_at_the_ends() {
        let span = Span { begin: 100, end: 300 };
        let whole = Span { begin: 0, end: 1000 };
        assert_eq!(span.moved(0.5, whole), Span { begin: 200, end: 400 });
        assert_eq!(span.moved(-5.0, whole), Span { begin: 0, end: 200 });
        assert_eq!(span.moved(50.0, whole), Span { begin: 800, end: 1000 });
        assert_eq!(Span { begin: 0, end: 5000 }.within(whole), whole);
    }

    #[test]
    fn shares_and_moments_are_each_others_inverse() {
        let span = Span { begin: 7_200_000_000_001, end: 7_200_000_001_001 };
        for offset in [0, 1, 17, 500, 1000] {
            assert_eq!(span.at(span.share(span.begin + offset)), span.begin + offset);
        }
        assert_eq!(Span::between(5, 5), Span { begin: 5, end: 6 });
        assert_eq!(Span::between(9, 2), Span { begin: 2, end: 9 });
    }
}
