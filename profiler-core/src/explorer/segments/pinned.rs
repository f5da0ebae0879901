//! Mostly empty containers, and the blocks that keep them.
//!
//! Owns: what counts as mostly empty: less than half of it is in blocks, and something is. Memory that was mapped piece by piece
//! is given back piece by piece, and so each piece counts by itself. Refuses: whose fault it is.

use std::cmp::Reverse;

use crate::allocation::Model;

use super::super::part::Positions;
use super::super::query::Pick;
use super::super::rows::pick;
use super::view::{SegmentsView, Survivor, Texts};
use super::{Block, Container, Segments};

/// So many survivors of each are told.
const SURVIVORS: usize = 8;

/// A container, or a piece of one, that few bytes keep.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pinned {
    /// The container that it is, or is a piece of.
    pub segment: Pick,
    /// True for a piece of memory that was mapped piece by piece.
    pub piece: bool,
    /// Where it begins: bytes from the beginning of the container.
    pub offset: u64,
    /// Its address.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Of those, in blocks.
    pub in_blocks: u64,
    /// How many blocks keep it.
    pub blocks: u64,
    /// Those: the largest first, then the oldest; few.
    pub survivors: Vec<Survivor>,
    /// Process id.
    pub pid: u32,
    /// Position of its device among the answer's; `None` for host memory.
    pub device: Option<u16>,
}

impl Pinned {
    /// What is free in it: what its blocks keep from whoever wants memory of the driver.
    pub fn free(&self) -> u64 {
        self.bytes.saturating_sub(self.in_blocks)
    }
}

/// The same in numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pin {
    /// Position of the container in the order of size.
    container: u32,
    /// Whether it is a piece.
    piece: bool,
    address: u64,
    bytes: u64,
    in_blocks: u64,
    /// Positions of its blocks among all.
    blocks: (usize, usize),
}

impl Segments {
    /// Puts the first of them, and sums, into a view.
    pub(super) fn tell_pins(
        &mut self,
        texts: &mut Texts<'_>,
        positions: &Positions,
        most: usize,
        view: &mut SegmentsView,
    ) {
        let pins = self.pins.take().unwrap_or_else(|| self.find_pins(texts.source.model));
        view.pinned_total = pins.len();
        view.pinned_bytes = pins.iter().fold(0, |sum, pin| sum.wrapping_add(pin.bytes - pin.in_blocks));
        view.pinned = pins.iter().take(most).map(|pin| self.pinned(texts, positions, pin)).collect();
        self.pins = Some(pins);
    }

    /// All, those first of which most would come free.
    fn find_pins(&self, model: &Model) -> Vec<Pin> {
        let mut pins: Vec<Pin> = Vec::new();
        for (number, container) in (0..).zip(&self.containers) {
            for id in &container.pieces {
                let piece = &model.allocations[*id as usize];
                let (begin, end) = (piece.address, piece.address.saturating_add(piece.bytes));
                let first = container.blocks.start;
                let blocks = &self.blocks[container.blocks.clone()];
                // Blocks do not overlap, and are in the order of addresses.
                let from = blocks.partition_point(|block| block.end() <= begin);
                let until = blocks.partition_point(|block| block.address < end).max(from);
                let within = |block: &Block| block.end().min(end).saturating_sub(block.address.max(begin));
                let in_blocks = blocks[from..until].iter().fold(0u64, |sum, block| sum.saturating_add(within(block)));
                if from < until && in_blocks < piece.bytes.div_ceil(2) {
                    pins.push(Pin {
                        container: number,
                        piece: container.pieces.len() > 1,
                        address: begin,
                        bytes: piece.bytes,
                        in_blocks,
                        blocks: (first + from, first + until),
                    });
                }
            }
        }
        pins.sort_by_key(|pin| (Reverse(pin.bytes - pin.in_blocks), pin.container, pin.address));
        pins
    }

    fn pinned(&self, texts: &mut Texts<'_>, positions: &Positions, pin: &Pin) -> Pinned {
        let model = texts.source.model;
        let container: &Container = &self.containers[pin.container as usize];
        let around = &model.allocations[container.id as usize];
        let blocks = &self.blocks[pin.blocks.0..pin.blocks.1];
        let mut survivors: Vec<&Block> = blocks.iter().collect();
        let birth = |block: &Block| model.allocations[block.id as usize].birth_ticks;
        survivors.sort_unstable_by_key(|block| (Reverse(block.bytes), birth(block), block.address));
        survivors.truncate(SURVIVORS);
        Pinned {
            segment: pick(model, container.id),
            piece: pin.piece,
            offset: pin.address.saturating_sub(container.address),
            address: pin.address,
            bytes: pin.bytes,
            in_blocks: pin.in_blocks,
            blocks: blocks.len() as u64,
            survivors: survivors.into_iter().map(|block| texts.survivor(block, container.address)).collect(),
            pid: model.processes[around.process as usize].info.pid,
            device: positions.shown(around),
        }
    }
}
