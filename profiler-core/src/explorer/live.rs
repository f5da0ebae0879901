//! What is live in a part of the session at a moment.
//!
//! Owns: going through it by positions in the order of changes, eight bytes an allocation. Refuses: what a list makes of it.

use crate::allocation::{Allocation, Model};
use crate::journal::entry::Nanoseconds;
use crate::timeline::Walk;

use super::history::Source;
use super::part::Part;

/// A part of the session right after a change.
#[derive(Clone, Copy)]
pub(super) struct Live<'m> {
    pub model: &'m Model,
    pub walk: &'m Walk,
    pub part: Part,
    pub order: u32,
    pub time: Nanoseconds,
}

impl<'m> Live<'m> {
    /// All allocations and blocks that live, containers and all, with their numbers.
    pub fn allocations(&self) -> impl Iterator<Item = (u32, &'m Allocation)> + use<'m> {
        let Live { model, walk, part, order, .. } = *self;
        let spans = walk.lifetimes.iter().enumerate().filter(move |(_, lifetime)| {
            // A birth at 0 has not been walked yet.
            lifetime.birth > 0 && lifetime.spans(order)
        });
        spans
            .map(move |(id, _)| (id as u32, &model.allocations[id]))
            .filter(move |(_, allocation)| part.has(model, allocation))
    }

    /// What counts as live bytes of the part, each with how many whole steps it had outlived.
    pub fn outlived(&self) -> impl Iterator<Item = (&'m Allocation, u64)> + use<'m> {
        let Live { model, walk, part, order, .. } = *self;
        let counts = move |allocation: &Allocation| allocation.is_leaf() && part.counts(model, allocation);
        let source = Source { model, walk };
        let leaves = self.allocations().filter(move |(_, allocation)| counts(allocation));
        leaves.map(move |(id, allocation)| (allocation, source.outlived(id, order)))
    }
}
