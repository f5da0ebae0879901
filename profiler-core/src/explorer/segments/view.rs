//! What is told of the containers of a moment.
//!
//! Owns: the shapes, and which of a container's blocks are told. Refuses: to tell more blocks than a view has room for: the rest
//! is counted, and is in the slices.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use memscope_wire::{Category, Origin};

use crate::allocation::{Model, POOL_RESERVE, flag};
use crate::findings::held_by;
use crate::journal::entry::Nanoseconds;
use crate::ledger::CATEGORIES;
use crate::report::units;

use super::super::filter::step_of;
use super::super::history::Source;
use super::super::part::{Positions, birth_time};
use super::super::query::{Pick, SegmentOrder, SegmentsQuery};
use super::super::rows::{is_picked, pick};
use super::pinned::Pinned;
use super::slices::draw;
use super::{Block, Container, Segments};

/// Containers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SegmentsView {
    /// The moment for which the list was made.
    pub as_of: Nanoseconds,
    /// How many containers there are.
    pub total: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Of those, in blocks.
    pub in_blocks: u64,
    /// Largest hole: the largest request that could be served without a new container.
    pub largest_hole: u64,
    /// Live driver allocations that hold no blocks, and so are no containers.
    pub leaves: usize,
    /// Position of the first of `segments`.
    pub first: usize,
    /// The containers that were asked for.
    pub segments: Vec<Segment>,
    /// Where in the order the container is that was asked for, or that holds the block that was.
    pub found: Option<usize>,
    /// Mostly empty containers with what keeps them, those first of which most would come free.
    pub pinned: Vec<Pinned>,
    /// How many there are of those.
    pub pinned_total: usize,
    /// What is free in all of those.
    pub pinned_bytes: u64,
    /// Containers without any block, and their bytes: an allocator may give these back at any time.
    pub empty: (usize, u64),
    /// What the driver's pools of stream-ordered memory keep, with the name of each.
    pub pools: Vec<(Arc<str>, u64)>,
    /// What is allocated from them.
    pub of_pools: u64,
}

/// One container.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Segment {
    /// Which.
    pub pick: Pick,
    /// Address in its process.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Of those, in blocks.
    pub in_blocks: u64,
    /// Blocks in it.
    pub blocks: u64,
    /// Holes between, before and behind them.
    pub holes: u64,
    /// The largest of those, bytes.
    pub largest_hole: u64,
    /// Process id.
    pub pid: u32,
    /// Position of its device among the answer's; `None` for host memory.
    pub device: Option<u16>,
    /// When it was made.
    pub birth: Nanoseconds,
    /// How many pieces it was mapped in, one behind another; 0 when it was made as a whole.
    pub pieces: usize,
    /// What of it is told below: bytes from its beginning. All of it, where no part was asked for.
    pub part: Range<u64>,
    /// Equal parts of that in the order of addresses: bytes of blocks by category; the rest of a slice is free.
    pub slices: Vec<[u64; CATEGORIES]>,
    /// Blocks in that part, the largest of them where there are more than were asked for, in the order of addresses.
    pub shown: Vec<SegmentBlock>,
    /// How many more there are.
    pub hidden: u64,
}

/// A block in a container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentBlock {
    /// Which.
    pub pick: Pick,
    /// Where it begins: bytes from the beginning of its container.
    pub offset: u64,
    /// Bytes that it takes.
    pub bytes: u64,
    /// Bytes asked for.
    pub requested: u64,
    /// What it is for.
    pub category: Category,
    /// How that is known.
    pub origin: Origin,
    /// Name from its tag; empty when there is none.
    pub name: Arc<str>,
    /// Path of its scope; empty outside all scopes.
    pub scope: Arc<str>,
    /// How many steps have begun and ended while it lived, by this moment.
    pub outlived: u64,
}

/// A block that keeps a container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Survivor {
    /// The block.
    pub block: SegmentBlock,
    /// When it was made.
    pub birth: Nanoseconds,
    /// In which step.
    pub step: Option<u64>,
}

impl SegmentsView {
    /// External fragmentation of everything that is free in containers: 1 − largest hole / free bytes, between 0 and 1;
    /// `None` when nothing is free. (The measure of Johnstone and Wilson, "The memory fragmentation problem: solved?", 1998.)
    pub fn fragmentation(&self) -> Option<f64> {
        fragmentation(self.bytes, self.in_blocks, self.largest_hole)
    }

    /// What pools keep, that they have no map, and each by its name; `None` where none keeps anything.
    pub fn pools_in_words(&self) -> Option<String> {
        let kept = self.pools.iter().fold(0_u64, |sum, (_, bytes)| sum.wrapping_add(*bytes));
        let pool = |(name, bytes): &(Arc<str>, u64)| {
            format!("{} {}", name.strip_prefix(POOL_RESERVE).unwrap_or(name), units::bytes(*bytes))
        };
        (kept > 0).then(|| {
            format!(
                "pools keep {}, {} in use, no addresses to map: {}",
                units::bytes(kept),
                units::bytes(self.of_pools),
                self.pools.iter().map(pool).collect::<Vec<_>>().join(", ")
            )
        })
    }
}

impl SegmentBlock {
    /// Who needs it, in words.
    pub fn held_by(&self) -> String {
        held_by(self.category, self.origin, self.outlived)
    }
}

impl Segment {
    /// The same of this one container.
    pub fn fragmentation(&self) -> Option<f64> {
        fragmentation(self.bytes, self.in_blocks, self.largest_hole)
    }
}

pub(super) fn fragmentation(bytes: u64, in_blocks: u64, largest_hole: u64) -> Option<f64> {
    let free = bytes.checked_sub(in_blocks).filter(|free| *free > 0)?;
    Some(1.0 - largest_hole as f64 / free as f64)
}

/// Gives names and scopes, each text once.
pub(super) struct Texts<'m> {
    pub source: Source<'m>,
    /// Of the moment right after this change.
    order: u32,
    names: HashMap<u32, Arc<str>>,
    scopes: HashMap<u32, Arc<str>>,
}

impl Segments {
    /// The containers of a window.
    pub fn view(&mut self, source: Source<'_>, positions: &Positions, query: &SegmentsQuery) -> SegmentsView {
        let first = query.window.start.min(self.containers.len());
        let end = query.window.end.clamp(first, self.containers.len());
        let mut texts = Texts { source, order: self.order, names: HashMap::new(), scopes: HashMap::new() };
        let empty = self.containers.iter().filter(|container| container.blocks.is_empty());
        let mut view = SegmentsView {
            as_of: self.as_of,
            total: self.containers.len(),
            bytes: self.bytes,
            in_blocks: self.in_blocks(),
            largest_hole: self.largest_hole(),
            leaves: self.leaves,
            first,
            empty: empty.fold((0, 0), |(count, bytes), container| (count + 1, container.bytes.wrapping_add(bytes))),
            found: query.find.and_then(|pick| self.find(source.model, query.order, pick)),
            ..SegmentsView::default()
        };
        view.segments = (first..end)
            .map(|number| self.segment(&mut texts, positions, self.at(query.order, number), query))
            .collect();
        let pools = self.kept.iter().map(|id| &source.model.allocations[*id as usize]);
        view.pools = pools.map(|pool| (source.model.names.text(pool.name).into(), pool.bytes)).collect();
        view.pools.sort_by_key(|(_, bytes)| Reverse(*bytes));
        view.of_pools = self.of_pools;
        if query.pinned > 0 {
            self.tell_pins(&mut texts, positions, query.pinned, &mut view);
        }
        view
    }

    /// The container at a position of an order.
    fn at(&self, order: SegmentOrder, number: usize) -> &Container {
        match order {
            SegmentOrder::Size => &self.containers[number],
            SegmentOrder::Address => &self.containers[self.by_address[number] as usize],
        }
    }

    /// Where the container is that is meant, or that holds the block that is meant.
    fn find(&self, model: &Model, order: SegmentOrder, pick: Pick) -> Option<usize> {
        let is = |id: u32| is_picked(model, id, pick);
        let holds = |container: &Container| {
            container.pieces.iter().any(|piece| is(*piece))
                || self.blocks[container.blocks.clone()].iter().any(|block| is(block.id))
        };
        (0..self.containers.len()).find(|number| holds(self.at(order, *number)))
    }

    fn segment(
        &self,
        texts: &mut Texts<'_>,
        positions: &Positions,
        container: &Container,
        query: &SegmentsQuery,
    ) -> Segment {
        let model = texts.source.model;
        let around = &model.allocations[container.id as usize];
        let part = match &query.part {
            Some((pick, part)) if is_picked(model, container.id, *pick) => {
                part.start.min(container.bytes)..part.end.clamp(part.start.min(container.bytes), container.bytes)
            }
            _ => 0..container.bytes,
        };
        let begin = container.address.saturating_add(part.start);
        let end = container.address.saturating_add(part.end);
        let blocks = &self.blocks[container.blocks.clone()];
        let mut drawn = vec![[0; CATEGORIES]; query.slices.max(1)];
        let mut inside: Vec<Block> = Vec::new();
        for block in blocks.iter().filter(|block| block.address < end && block.end() > begin) {
            let from = block.address.max(begin);
            draw((begin, end - begin), &Block { address: from, bytes: block.end() - from, ..*block }, &mut drawn);
            inside.push(*block);
        }
        let hidden = inside.len().saturating_sub(query.blocks) as u64;
        if hidden > 0 {
            inside.sort_unstable_by_key(|block| (Reverse(block.bytes), block.address));
            inside.truncate(query.blocks);
            inside.sort_unstable();
        }
        Segment {
            pick: pick(model, container.id),
            address: container.address,
            bytes: container.bytes,
            in_blocks: container.in_blocks,
            blocks: container.blocks.len() as u64,
            holes: container.holes,
            largest_hole: container.largest_hole,
            pid: model.processes[around.process as usize].info.pid,
            device: positions.shown(around),
            birth: birth_time(model, around),
            pieces: if around.is(flag::PHYSICAL) { container.pieces.len() } else { 0 },
            part,
            slices: drawn,
            shown: inside.iter().map(|block| texts.block(block, container.address)).collect(),
            hidden,
        }
    }
}

impl Block {
    /// Where it ends.
    pub(super) fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes)
    }
}

impl Texts<'_> {
    /// A block of the container that begins at an address.
    pub fn block(&mut self, block: &Block, container: u64) -> SegmentBlock {
        let model = self.source.model;
        let allocation = &model.allocations[block.id as usize];
        let name = self.names.entry(allocation.name).or_insert_with_key(|name| model.names.text(*name).into());
        let path = |scope: &u32| model.scopes.path(*scope, &model.names).into();
        let scope = self.scopes.entry(allocation.scope).or_insert_with_key(path);
        SegmentBlock {
            pick: pick(model, block.id),
            offset: block.address.saturating_sub(container),
            bytes: block.bytes,
            requested: allocation.requested,
            category: allocation.category,
            origin: allocation.origin,
            name: Arc::clone(name),
            scope: Arc::clone(scope),
            outlived: self.source.outlived(block.id, self.order),
        }
    }

    /// The same with when it was made.
    pub fn survivor(&mut self, block: &Block, container: u64) -> Survivor {
        let model = self.source.model;
        let allocation = &model.allocations[block.id as usize];
        let (birth, step) = (birth_time(model, allocation), step_of(model, allocation));
        Survivor { block: self.block(block, container), birth, step }
    }
}
