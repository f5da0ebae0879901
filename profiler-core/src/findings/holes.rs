//! What is free inside containers at a moment: the cache of an allocator, in the pieces in which it can be given out.
//!
//! Owns: those pieces of one process on one device. Refuses: which of them an allocator would take; that is its own affair.

use crate::allocation::flag;

use super::evidence::Evidence;

/// Free pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Holes {
    /// How many.
    pub count: u64,
    /// Bytes of the largest.
    pub largest: u64,
    /// Bytes of all.
    pub bytes: u64,
}

/// A range of addresses, its end exclusive.
type Span = (u64, u64);

impl Holes {
    /// Those of a process on a device right after a change.
    pub fn at(evidence: &Evidence<'_>, process: u32, device: usize, order: u32) -> Holes {
        let model = evidence.model;
        let (mut whole, mut pieces, mut blocks): (Vec<Span>, Vec<Span>, Vec<Span>) = Default::default();
        for (allocation, lifetime) in model.allocations.iter().zip(evidence.lifetimes) {
            let here = allocation.process == process && model.resolve(allocation.device) as usize == device;
            if !here
                || !allocation.on_device()
                || allocation.flags & (flag::OUTSIDE | flag::POOL_RESERVE) != 0
                || !lifetime.spans(order)
            {
                continue;
            }
            let list = match (allocation.is(flag::BLOCK), allocation.is(flag::CONTAINER)) {
                (true, _) => &mut blocks,
                (false, true) if allocation.is(flag::PHYSICAL) => &mut pieces,
                (false, true) => &mut whole,
                (false, false) => continue,
            };
            list.push((allocation.address, allocation.address.saturating_add(allocation.bytes)));
        }
        whole.extend(joined(pieces));
        Holes::between(whole, blocks)
    }

    /// What of the containers is in no block.
    fn between(mut containers: Vec<Span>, mut blocks: Vec<Span>) -> Holes {
        containers.sort_unstable();
        blocks.sort_unstable();
        let (mut holes, mut blocks) = (Holes::default(), blocks.into_iter().peekable());
        for (begin, end) in containers {
            let mut free = begin;
            while let Some((first, last)) = blocks.next_if(|(first, _)| *first < end) {
                holes.add(first.saturating_sub(free));
                free = free.max(last);
            }
            holes.add(end.saturating_sub(free));
        }
        holes
    }

    fn add(&mut self, bytes: u64) {
        if bytes > 0 {
            self.count += 1;
            self.largest = self.largest.max(bytes);
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }
}

/// Memory that is mapped piece by piece, one behind another, is one.
fn joined(mut pieces: Vec<Span>) -> Vec<Span> {
    pieces.sort_unstable();
    let mut joined: Vec<Span> = Vec::new();
    for (begin, end) in pieces {
        match joined.last_mut() {
            Some(last) if last.1 == begin => last.1 = end,
            _ => joined.push((begin, end)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_pieces_of_a_container_are_what_no_block_covers() {
        let holes = Holes::between(vec![(100, 200), (200, 260)], vec![(110, 120), (150, 200), (240, 260)]);
        // 100..110, 120..150, 200..240: a piece never reaches from one container into the next.
        assert_eq!(holes, Holes { count: 3, largest: 40, bytes: 80 });
        assert_eq!(Holes::between(vec![(0, 8)], vec![]), Holes { count: 1, largest: 8, bytes: 8 });
        assert_eq!(Holes::between(vec![(0, 8)], vec![(0, 8)]), Holes::default());
    }

    #[test]
    fn pieces_one_behind_another_are_one_container() {
        assert_eq!(joined(vec![(20, 30), (0, 10), (10, 15)]), [(0, 15), (20, 30)]);
        let holes = Holes::between(joined(vec![(0, 10), (10, 30)]), vec![(4, 12)]);
        assert_eq!(holes, Holes { count: 2, largest: 18, bytes: 22 });
    }
}
