//! Fragmentation over a span of time.
//!
//! Owns: which moments are looked at. Refuses: anything between two of them: each point is exact for its moment, and for no other.

use std::ops::Range;

use crate::journal::entry::Nanoseconds;

use super::super::history::{History, Source};
use super::super::listed::Listed;
use super::super::part::Part;
use super::super::query::WindowQuery;
use super::super::window::Ruler;
use super::Segments;
use super::view::fragmentation;

/// Most moments.
const MOST: usize = 1024;

/// Allocations that are looked at for one view, all moments together; where more live, there are fewer moments.
const EFFORT: u64 = 8 << 20;

/// Containers over a span of time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FragmentationView {
    /// The moment until which changes are in it.
    pub as_of: Nanoseconds,
    /// The span that was asked for.
    pub range: Range<Nanoseconds>,
    /// Moments at equal distances, the first at its beginning; fewer than were asked for where very much lives. None of which not
    /// everything is listed: what is not would be a hole.
    pub points: Vec<FragmentationPoint>,
}

/// The containers of one moment: right after the last change at or before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FragmentationPoint {
    /// When.
    pub time: Nanoseconds,
    /// How many containers there were.
    pub segments: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Of those, in blocks.
    pub in_blocks: u64,
    /// The largest hole in them.
    pub largest_hole: u64,
}

impl FragmentationPoint {
    /// What is in containers and in no block.
    pub fn cached(&self) -> u64 {
        self.bytes.saturating_sub(self.in_blocks)
    }

    /// External fragmentation: as [`super::SegmentsView::fragmentation`].
    pub fn fragmentation(&self) -> Option<f64> {
        fragmentation(self.bytes, self.in_blocks, self.largest_hole)
    }
}

/// Looks at the moments.
pub(in crate::explorer) fn over_time(
    history: &mut History,
    source: Source<'_>,
    (part, listed): (Part, Option<&Listed>),
    query: &WindowQuery,
) -> FragmentationView {
    let mut view = FragmentationView { range: query.range.clone(), ..FragmentationView::default() };
    let ruler = Ruler::of(&query.range, query.buckets.min(MOST));
    let sums = history.sums(source, part);
    let order = |number: usize| history.last_before(source, Nanoseconds(ruler.begin(number).0.saturating_add(1)));
    let mut moments: Vec<(Nanoseconds, u32)> =
        (0..ruler.parts()).map(|number| (ruler.begin(number), order(number))).collect();
    moments.retain(|(time, _)| listed.is_none_or(|listed| listed.has(*time)));
    let live = moments.iter().map(|(_, order)| sums.at(history, source, *order).0.allocations);
    let effort = live.fold(0u64, |sum, allocations| sum.saturating_add(allocations));
    let stride = effort.div_ceil(EFFORT).max(1);
    let mut number = 0;
    moments.retain(|_| {
        number += 1;
        (number - 1) % stride == 0
    });
    let mut last: Option<(u32, FragmentationPoint)> = None;
    view.points = moments
        .into_iter()
        .map(|(time, order)| {
            let point = match last {
                Some((known, point)) if known == order => point,
                _ => point(history, source, part, order),
            };
            last = Some((order, point));
            FragmentationPoint { time, ..point }
        })
        .collect();
    view
}

fn point(history: &History, source: Source<'_>, part: Part, order: u32) -> FragmentationPoint {
    let live = history.blocks.alive(source, (order, order), |_| true).map(|id| (id, source.allocation(id)));
    let live = live.filter(|(_, allocation)| part.has(source.model, allocation));
    let segments = Segments::among(source.model, Nanoseconds(0), live);
    FragmentationPoint {
        time: Nanoseconds(0),
        segments: segments.containers.len(),
        bytes: segments.bytes,
        in_blocks: segments.in_blocks(),
        largest_hole: segments.largest_hole(),
    }
}
