//! Containers with the blocks in them.
//!
//! Owns: holes, fragmentation, and slices to draw. Refuses: addresses of blocks: a view draws no more slices than it has room for.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::allocation::{Allocation, Model, flag};
use crate::journal::entry::Nanoseconds;
use crate::ledger::CATEGORIES;

use super::answer::{Segment, SegmentsView};
use super::live::Live;
use super::part::{Positions, birth_time};
use super::query::SegmentsQuery;

/// One container, and where its blocks are.
#[derive(Clone, Debug, Default)]
struct Container {
    id: u32,
    /// Its blocks in the list of all, by address.
    blocks: std::ops::Range<usize>,
    in_blocks: u64,
    holes: u64,
    largest_hole: u64,
}

/// All containers of a moment.
#[derive(Debug, Default)]
pub(super) struct Segments {
    as_of: Nanoseconds,
    /// The largest first.
    containers: Vec<Container>,
    /// Blocks by container and address.
    blocks: Vec<u32>,
    bytes: u64,
    leaves: usize,
}

impl Segments {
    /// Finds them.
    pub fn of(live: &Live<'_>) -> Segments {
        let model = live.model;
        let mut segments = Segments { as_of: live.time, ..Segments::default() };
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let mut blocks: Vec<(u32, u64, u32)> = Vec::new();
        for (id, allocation) in live.allocations() {
            if allocation.is(flag::CONTAINER) {
                segments.bytes = segments.bytes.wrapping_add(allocation.bytes);
                segments.containers.push(Container { id, ..Container::default() });
            } else if !allocation.is(flag::BLOCK) {
                segments.leaves += 1;
            } else if let Some(container) = allocation.container() {
                blocks.push((container.0, allocation.address, id));
            }
        }
        let by_size = |container: &Container| {
            let allocation = &model.allocations[container.id as usize];
            (Reverse(allocation.bytes), allocation.process, allocation.address)
        };
        segments.containers.sort_by_cached_key(by_size);
        for (number, container) in segments.containers.iter().enumerate() {
            numbers.insert(container.id, number as u32);
        }
        blocks.retain_mut(|(container, _, _)| match numbers.get(container) {
            Some(number) => {
                *container = *number;
                true
            }
            None => false,
        });
        blocks.sort_unstable();
        let mut begin = 0;
        for run in blocks.chunk_by(|a, b| a.0 == b.0) {
            segments.containers[run[0].0 as usize].blocks = begin..begin + run.len();
            begin += run.len();
        }
        segments.blocks = blocks.into_iter().map(|(_, _, id)| id).collect();
        for number in 0..segments.containers.len() {
            segments.measure(model, number);
        }
        segments
    }

    /// Adds up one container's blocks and holes.
    fn measure(&mut self, model: &Model, number: usize) {
        let mut container = std::mem::take(&mut self.containers[number]);
        let around = &model.allocations[container.id as usize];
        let mut at = around.address;
        let mut hole = |begin: u64, end: u64| {
            if end > begin {
                container.holes += 1;
                container.largest_hole = container.largest_hole.max(end - begin);
            }
        };
        for block in &self.blocks[container.blocks.clone()] {
            let block = &model.allocations[*block as usize];
            hole(at, block.address);
            container.in_blocks = container.in_blocks.wrapping_add(block.bytes);
            at = at.max(block.address.saturating_add(block.bytes));
        }
        hole(at, around.address.saturating_add(around.bytes));
        self.containers[number] = container;
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
            draw(around, &model.allocations[*block as usize], &mut drawn);
        }
        Segment {
            address: around.address,
            bytes: around.bytes,
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

/// Where slice `number` of `slices` begins.
fn edge(bytes: u64, slices: usize, number: usize) -> u64 {
    (u128::from(bytes) * number as u128 / slices as u128) as u64
}

/// Adds a block's bytes to the slices that it lies in.
fn draw(around: &Allocation, block: &Allocation, slices: &mut [[u64; CATEGORIES]]) {
    let count = slices.len();
    let begin = block.address.saturating_sub(around.address);
    let end = begin.saturating_add(block.bytes).min(around.bytes);
    if begin >= end {
        return;
    }
    // The slice that holds the first byte, or one before it: edges are rounded down.
    let mut number = (u128::from(begin) * count as u128 / u128::from(around.bytes)) as usize;
    while number < count && edge(around.bytes, count, number) < end {
        let from = edge(around.bytes, count, number).max(begin);
        let until = edge(around.bytes, count, number + 1).min(end);
        let bytes = &mut slices[number][block.category as usize];
        *bytes = bytes.wrapping_add(until.saturating_sub(from));
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_block_is_in_one_slice() {
        for (bytes, slices) in [(1000u64, 7usize), (10, 64), (1 << 40, 3), (3, 3)] {
            let around = Allocation { address: 5000, bytes, ..Allocation::vacant() };
            for begin in [0, 1, bytes / 3, bytes - 1] {
                let length = (bytes - begin).div_ceil(2);
                let block = Allocation { address: 5000 + begin, bytes: length, ..Allocation::vacant() };
                let mut drawn = vec![[0; CATEGORIES]; slices];
                draw(&around, &block, &mut drawn);
                assert_eq!(drawn.iter().map(|slice| slice[0]).sum::<u64>(), length, "{bytes} {slices} {begin}");
                for (number, slice) in drawn.iter().enumerate() {
                    assert!(slice[0] <= edge(bytes, slices, number + 1) - edge(bytes, slices, number));
                }
            }
        }
    }
}
