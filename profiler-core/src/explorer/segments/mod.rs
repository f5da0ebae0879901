//! Containers with the blocks in them.
//!
//! Owns: finding them, and what is free in each. Refuses: what lies where, block by block (`view`).
//!
//! | file | what it is about |
//! | --- | --- |
//! | view | what is told of a moment |
//! | slices | a container as it is drawn |
//! | pinned | the blocks that keep a mostly empty container |
//! | over_time | fragmentation at many moments |

mod over_time;
mod pinned;
mod slices;
mod view;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use memscope_wire::MemoryKind;

use crate::allocation::{Allocation, Model, flag};
use crate::journal::entry::Nanoseconds;

use super::live::Live;

use pinned::Pin;

pub(super) use over_time::over_time;
pub use over_time::{FragmentationPoint, FragmentationView};
pub use pinned::Pinned;
pub use view::{Segment, SegmentBlock, SegmentsView, Survivor};

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
    /// The allocation.
    id: u32,
    category: u8,
}

/// All containers of a moment.
#[derive(Debug, Default)]
pub(super) struct Segments {
    as_of: Nanoseconds,
    /// Right after this change.
    order: u32,
    /// The largest first.
    containers: Vec<Container>,
    /// Their positions in the order of processes and addresses.
    by_address: Vec<u32>,
    /// Blocks by container and address.
    blocks: Vec<Block>,
    /// What keeps mostly empty containers, once somebody has asked.
    pins: Option<Vec<Pin>>,
    bytes: u64,
    leaves: usize,
    /// What the driver's pools keep: the allocations that stand for it.
    kept: Vec<u32>,
    /// What is allocated from them.
    of_pools: u64,
}

impl Segments {
    /// Finds them.
    pub fn of(live: &Live<'_>) -> Segments {
        Segments { order: live.order, ..Segments::among(live.model, live.time, live.allocations()) }
    }

    /// Finds them among what lives at a time.
    fn among<'m>(
        model: &'m Model,
        as_of: Nanoseconds,
        allocations: impl Iterator<Item = (u32, &'m Allocation)>,
    ) -> Segments {
        let mut segments = Segments { as_of, ..Segments::default() };
        let mut found: Vec<(u32, Block)> = Vec::new();
        for (id, allocation) in allocations {
            if allocation.is(flag::POOL_RESERVE) {
                // It has no addresses.
                segments.kept.push(id);
                continue;
            }
            if allocation.memory == MemoryKind::Pool && !allocation.is(flag::BLOCK) {
                segments.of_pools = segments.of_pools.wrapping_add(allocation.bytes);
            }
            if allocation.is(flag::CONTAINER) {
                segments.bytes = segments.bytes.wrapping_add(allocation.bytes);
                let Allocation { address, bytes, .. } = *allocation;
                segments.containers.push(Container { id, pieces: vec![id], address, bytes, ..Container::default() });
            } else if !allocation.is(flag::BLOCK) {
                segments.leaves += 1;
            } else if let Some(container) = allocation.container() {
                let Allocation { address, bytes, category, .. } = *allocation;
                found.push((container.0, Block { address, bytes, id, category: category as u8 }));
            }
        }
        segments.join(model);
        let process = |container: &Container| model.allocations[container.id as usize].process;
        segments
            .containers
            .sort_by_cached_key(|container| (Reverse(container.bytes), process(container), container.address));
        segments.by_address = (0..segments.containers.len() as u32).collect();
        segments.by_address.sort_by_cached_key(|position| {
            let container = &segments.containers[*position as usize];
            (process(container), container.address)
        });
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

    fn in_blocks(&self) -> u64 {
        self.containers.iter().fold(0, |sum, container| sum.wrapping_add(container.in_blocks))
    }

    fn largest_hole(&self) -> u64 {
        self.containers.iter().map(|container| container.largest_hole).max().unwrap_or_default()
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
