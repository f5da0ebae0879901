//! Which allocations are drawn: those of the largest area.
//!
//! Owns: the search. Refuses: how they lie.
//!
//! A block is looked at only if what is known of it lets something in it be larger than the smallest that is chosen so far; the
//! most promising come first. So a range of hours costs little more than a sort of the blocks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::allocation::Allocation;
use crate::journal::entry::Nanoseconds;

use super::blocks::{lives, members};
use super::{History, Source};

/// Size of an allocation in a picture: bytes times nanoseconds, then bytes; of equals, the older one.
type Size = (u128, u64, Reverse<u32>);

/// Numbers of the `limit` largest allocations that may be drawn and live within a range: after the first position, begun until
/// the second.
pub(in crate::explorer) fn choose(
    history: &History,
    source: Source<'_>,
    (range, positions): (&Range<Nanoseconds>, (u32, u32)),
    limit: usize,
    may: impl Fn(&Allocation) -> bool,
) -> Vec<u32> {
    let span = range.end.0.saturating_sub(range.start.0);
    let blocks = &history.blocks;
    let bound = |number: usize| {
        let block = &blocks.0[number];
        block.area.min(block.bytes as f64 * span as f64 * (1.0 + 1e-9))
    };
    let mut promising: Vec<(f64, usize)> = blocks.near(positions).map(|number| (bound(number), number)).collect();
    promising.sort_unstable_by(|(one, number), (other, second)| other.total_cmp(one).then(number.cmp(second)));
    let mut chosen: BinaryHeap<Reverse<(Size, u32)>> = BinaryHeap::with_capacity(limit + 1);
    for (bound, number) in promising {
        if chosen.len() >= limit && chosen.peek().is_none_or(|Reverse(((area, ..), _))| (*area as f64) > bound) {
            break;
        }
        for id in members(source, number).filter(|id| lives(source, *id, positions)) {
            let allocation = source.allocation(id);
            if !may(allocation) {
                continue;
            }
            let birth = source.birth(id).max(range.start);
            let death = source.death(id).unwrap_or(range.end).min(range.end);
            let area = u128::from(allocation.requested) * u128::from(death.0.saturating_sub(birth.0));
            chosen.push(Reverse(((area, allocation.requested, Reverse(source.lifetime(id).birth)), id)));
            if chosen.len() > limit {
                chosen.pop();
            }
        }
    }
    let mut ids: Vec<u32> = chosen.into_iter().map(|Reverse((_, id))| id).collect();
    ids.sort_unstable_by_key(|id| source.lifetime(*id).birth);
    ids
}
