//! Containers with the blocks in them.
//!
//! Owns: holes, fragmentation, and slices to draw. Refuses: addresses of blocks: a view draws no more slices than it has room for.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use crate::allocation::{Allocation, Model, flag};
use crate::journal::entry::Nanoseconds;
use crate::ledger::CATEGORIES;

use super::answer::{Segment, SegmentsView};
use super::live::Live;
use super::part::{Positions, birth_time};
use super::query::SegmentsQuery;

/// One container, and where its blocks are. Memory that is mapped piece by piece, one behind another, is one (PyTorch's
/// expandable segments).
#[derive(Clone, Debug, Default)]
struct Container {
    /// The container, or the first piece.
    id: u32,
    /// All of its pieces.
    pieces: Vec<u32>,
    address: u64,
    bytes: u64,
    /// Its blocks in the list of all, by address.
    blocks: Range<usize>,
    in_blocks: u64,
    holes: u64,
    largest_hole: u64,
}

/// What is needed of a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Block {
    address: u64,
    bytes: u64,
    category: u8,
}

/// All containers of a moment.
#[derive(Debug, Default)]
pub(super) struct Segments {
    as_of: Nanoseconds,
    /// The largest first.
    containers: Vec<Container>,
    /// Blocks by container and address.
    blocks: Vec<Block>,
    bytes: u64,
    leaves: usize,
}

impl Segments {
    /// Finds them.
    pub fn of(live: &Live<'_>) -> Segments {
        let model = live.model;
        let mut segments = Segments { as_of: live.time, ..Segments::default() };
        let mut found: Vec<(u32, Block)> = Vec::new();
        for (id, allocation) in live.allocations() {
            if allocation.is(flag::CONTAINER) {
                segments.bytes = segments.bytes.wrapping_add(allocation.bytes);
                let Allocation { address, bytes, .. } = *allocation;
                segments.containers.push(Container { id, pieces: vec![id], address, bytes, ..Container::default() });
            } else if !allocation.is(flag::BLOCK) {
                segments.leaves += 1;
            } else if let Some(container) = allocation.container() {
                let Allocation { address, bytes, category, .. } = *allocation;
                found.push((container.0, Block { address, bytes, category: category as u8 }));
            }
        }
        segments.join(model);
        let process = |container: &Container| model.allocations[container.id as usize].process;
        segments
            .containers
            .sort_by_cached_key(|container| (Reverse(container.bytes), process(container), container.address));
        segments.arrange(found);
        for container in &mut segments.containers {
            container.measure(&segments.blocks);
        }
        segments
    }

    /// Makes one of the pieces that are mapped one behind another.
    fn join(&mut self, model: &Model) {
        let place = |container: &Container| {
            let Allocation { process, device, .. } = model.allocations[container.id as usize];
            (process, device)
        };
        let is_piece = |container: &Container| model.allocations[container.id as usize].is(flag::PHYSICAL);
        let (mut pieces, whole): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.containers).into_iter().partition(is_piece);
        pieces.sort_by_key(|piece| (place(piece), piece.address));
        self.containers = whole;
        let mut last: Option<Container> = None;
        for piece in pieces {
            match &mut last {
                Some(last)
                    if place(last) == place(&piece) && last.address.checked_add(last.bytes) == Some(piece.address) =>
                {
                    last.bytes = last.bytes.wrapping_add(piece.bytes);
                    last.pieces.extend(piece.pieces);
                }
                _ => self.containers.extend(last.replace(piece)),
            }
        }
        self.containers.extend(last);
    }

    /// Puts the blocks of each container together, and then in the order of addresses: quicker than to sort all of them.
    fn arrange(&mut self, found: Vec<(u32, Block)>) {
        let numbers: HashMap<u32, u32> = (0..)
            .zip(&self.containers)
            .flat_map(|(number, container)| container.pieces.iter().map(move |piece| (*piece, number)))
            .collect();
        let (mut last, mut places) = ((u32::MAX, u32::MAX), Vec::with_capacity(found.len()));
        let mut counts = vec![0; self.containers.len() + 1];
        for (container, _) in &found {
            // Blocks that began together often lie in one container.
            if last.0 != *container {
                last = (*container, numbers.get(container).copied().unwrap_or(self.containers.len() as u32));
            }
            places.push(last.1);
            counts[last.1 as usize] += 1;
        }
        let mut begin = 0;
        for (container, count) in self.containers.iter_mut().zip(&counts) {
            container.blocks = begin..begin;
            begin += count;
        }
        self.blocks.resize(begin, Block::default());
        for ((_, block), place) in found.into_iter().zip(places) {
            if let Some(container) = self.containers.get_mut(place as usize) {
                self.blocks[container.blocks.end] = block;
                container.blocks.end += 1;
            }
        }
        for container in &self.containers {
            self.blocks[container.blocks.clone()].sort_unstable();
        }
    }

    /// The containers of a window.
    pub fn view(&self, model: &Model, positions: &Positions, query: &SegmentsQuery) -> SegmentsView {
        let first = query.window.start.min(self.containers.len());
        let end = query.window.end.clamp(first, self.containers.len());
        let shown = self.containers[first..end].iter();
        SegmentsView {
            as_of: self.as_of,
            total: self.containers.len(),
            bytes: self.bytes,
            in_blocks: self.containers.iter().fold(0, |sum, container| sum.wrapping_add(container.in_blocks)),
            largest_hole: self.containers.iter().map(|container| container.largest_hole).max().unwrap_or_default(),
            leaves: self.leaves,
            first,
            segments: shown.map(|container| self.segment(model, positions, container, query.slices.max(1))).collect(),
        }
    }

    fn segment(&self, model: &Model, positions: &Positions, container: &Container, slices: usize) -> Segment {
        let around = &model.allocations[container.id as usize];
        let mut drawn = vec![[0; CATEGORIES]; slices];
        for block in &self.blocks[container.blocks.clone()] {
            draw((container.address, container.bytes), block, &mut drawn);
        }
        Segment {
            address: container.address,
            bytes: container.bytes,
            in_blocks: container.in_blocks,
            blocks: container.blocks.len() as u64,
            holes: container.holes,
            largest_hole: container.largest_hole,
            pid: model.processes[around.process as usize].info.pid,
            device: positions.shown(around),
            birth: birth_time(model, around),
            slices: drawn,
        }
    }
}

impl Container {
    /// Adds up blocks and holes.
    fn measure(&mut self, blocks: &[Block]) {
        let mut at = self.address;
        for block in &blocks[self.blocks.clone()] {
            self.hole(at, block.address);
            self.in_blocks = self.in_blocks.wrapping_add(block.bytes);
            at = at.max(block.address.saturating_add(block.bytes));
        }
        self.hole(at, self.address.saturating_add(self.bytes));
    }

    fn hole(&mut self, begin: u64, end: u64) {
        if end > begin {
            self.holes += 1;
            self.largest_hole = self.largest_hole.max(end - begin);
        }
    }
}

/// Where slice `number` of `slices` begins.
fn edge(bytes: u64, slices: usize, number: usize) -> u64 {
    (u128::from(bytes) * number as u128 / slices as u128) as u64
}

/// Adds a block's bytes to the slices that it lies in.
fn draw((address, bytes): (u64, u64), block: &Block, slices: &mut [[u64; CATEGORIES]]) {
    let count = slices.len();
    let begin = block.address.saturating_sub(address);
    let end = begin.saturating_add(block.bytes).min(bytes);
    if begin >= end {
        return;
    }
    // The slice that holds the first byte, or one before it: edges are rounded down.
    let mut number = (u128::from(begin) * count as u128 / u128::from(bytes)) as usize;
    while number < count && edge(bytes, count, number) < end {
        let from = edge(bytes, count, number).max(begin);
        let until = edge(bytes, count, number + 1).min(end);
        let sum = &mut slices[number][block.category as usize];
        *sum = sum.wrapping_add(until.saturating_sub(from));
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_block_is_in_one_slice() {
        for (bytes, slices) in [(1000u64, 7usize), (10, 64), (1 << 40, 3), (3, 3)] {
            for begin in [0, 1, bytes / 3, bytes - 1] {
                let length = (bytes - begin).div_ceil(2);
                let block = Block { address: 5000 + begin, bytes: length, category: 0 };
                let mut drawn = vec![[0; CATEGORIES]; slices];
                draw((5000, bytes), &block, &mut drawn);
                assert_eq!(drawn.iter().map(|slice| slice[0]).sum::<u64>(), length, "{bytes} {slices} {begin}");
                for (number, slice) in drawn.iter().enumerate() {
                    assert!(slice[0] <= edge(bytes, slices, number + 1) - edge(bytes, slices, number));
                }
            }
        }
    }
}
