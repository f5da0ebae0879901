//! What is seen of a document first: where memory ran out, and the time just before it.
//!
//! Owns: the first moment and the first zoom. Refuses: to zoom where all of time is as good.

use memscope_core::explorer::{Answer, At, Gravest, Running};
use memscope_core::timeline::Series;

use super::out_of_memory;
use crate::shared::{Shared, Span};
use crate::view::whole;

/// Without steps so much is seen before a refusal, at most (nanoseconds).
const MOST: u64 = 60_000_000_000;
/// Less is never shown at first (nanoseconds).
const LEAST: u64 = 1_000_000;

/// Puts cursor, target and zoom where most profiles are opened for: where memory ran out. Without that, what counts is the peak;
/// of a session that runs, the present.
pub(super) fn begin(answer: &Answer, shared: &mut Shared) {
    let Some(gravest) = &answer.gravest else {
        if answer.session.state != Running::Live {
            shared.cursor = At::Peak;
        }
        return;
    };
    (shared.cursor, shared.target) = out_of_memory(answer, gravest);
    let (whole, wanted) = (whole(answer), before(answer, gravest));
    // Who has zoomed already looks at something. Where little is left out, it is not worth a change.
    if shared.zoom.is_whole() && wanted.length() < whole.length() / 4 * 3 {
        // Long before anything that the user does, so that it is undone alone.
        shared.zoom.show(wanted, whole, f64::NEG_INFINITY);
    }
}

/// The last steps before memory ran out; without steps, since memory was last half as full, at most a minute. A little around it.
fn before(answer: &Answer, gravest: &Gravest) -> Span {
    let end = gravest.time.0;
    let begin = gravest.since.map_or_else(|| filled_since(&answer.series, end), |since| since.0);
    let length = end.saturating_sub(begin).max(LEAST);
    Span::between(end.saturating_sub(length + length / 16), end.saturating_add(length / 8)).within(whole(answer))
}

/// When live bytes were last below half of what they were at a moment.
fn filled_since(series: &Series, time: u64) -> u64 {
    let live = |bucket: usize| series.buckets[bucket].live.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
    let width = series.width_ns.max(1);
    let earliest = time.saturating_sub(MOST);
    let Some(last) = series.buckets.len().checked_sub(1) else { return earliest };
    let here = ((time / width) as usize).min(last);
    let half = live(here) / 2;
    let before = (0..here).rev().find(|bucket| live(*bucket) < half);
    before.map_or(0, |before| before as u64 * width).max(earliest)
}

#[cfg(test)]
mod tests {
    use memscope_core::timeline::Bucket;

    use super::*;

    #[test]
    fn memory_fills_from_where_it_was_half_as_full() {
        const SECOND: u64 = 1_000_000_000;
        let series = |megabytes: &[u64]| Series {
            width_ns: SECOND,
            buckets: megabytes.iter().map(|live| Bucket { live: [*live, 0, 0, 0, 0, 0, 0], reserved: 0 }).collect(),
        };
        // Twice it was filled; the second time counts.
        let twice = series(&[10, 90, 30, 60, 80, 100, 0]);
        assert_eq!(filled_since(&twice, 5 * SECOND + 7), 2 * SECOND);
        assert_eq!(filled_since(&series(&[60, 100]), SECOND), 0, "it never was");
        assert_eq!(filled_since(&series(&[100; 500]), 400 * SECOND), 340 * SECOND, "a minute is enough");
        assert_eq!(filled_since(&Series::default(), 5), 0);
    }
}
