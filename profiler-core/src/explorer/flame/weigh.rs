//! What each scope or stack holds itself, and with all inside it.
//!
//! Owns: one pass over the allocations, and sums up the tree. Refuses: nodes that hold nothing.

use std::ops::Range;

use crate::allocation::{Allocation, Model, Names, Scopes, Stacks};
use crate::journal::entry::Nanoseconds;
use crate::ledger::Sum;
use crate::timeline::Walk;

use super::super::filter::Filter;
use super::super::part::{Part, order_at};
use super::{FlameBy, Frame};

/// Which allocations are weighed, in the order of changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Those that live right after this change.
    Live(u32),
    /// Those made after the first, until the second.
    Born(u32, u32),
}

impl Kind {
    /// What was made in a span of time.
    pub fn born(model: &Model, walk: &Walk, range: &Range<Nanoseconds>) -> Kind {
        let before = |time: Nanoseconds| match time.0.checked_sub(1) {
            Some(before) => order_at(model, walk, Nanoseconds(before)),
            None => 0,
        };
        Kind::Born(before(range.start), before(range.end))
    }
}

/// The tree of the session that the nodes are of.
#[derive(Clone, Copy)]
pub(super) enum Tree<'m> {
    Scopes(&'m Scopes, &'m Names),
    Stacks(&'m Stacks, &'m Names),
}

impl<'m> Tree<'m> {
    pub fn of(model: &'m Model, by: FlameBy) -> Tree<'m> {
        match by {
            FlameBy::Scope => Tree::Scopes(&model.scopes, &model.names),
            FlameBy::Stack => Tree::Stacks(&model.stacks, &model.names),
        }
    }

    /// How many nodes, the root, which is number 0, among them.
    fn len(&self) -> usize {
        match self {
            Tree::Scopes(scopes, _) => scopes.len(),
            Tree::Stacks(stacks, _) => stacks.len(),
        }
    }

    pub fn parent(&self, node: u32) -> u32 {
        match self {
            Tree::Scopes(scopes, _) => scopes.parent(node),
            Tree::Stacks(stacks, _) => stacks.node(node).parent,
        }
    }

    pub fn frame(&self, node: u32) -> Frame {
        match self {
            Tree::Scopes(scopes, _) => Frame { name: scopes.name(node), file: 0, line: 0 },
            Tree::Stacks(stacks, _) => Frame::of_line(&stacks.node(node)),
        }
    }

    pub fn label(&self, node: u32) -> String {
        match self {
            Tree::Scopes(scopes, names) => names.text(scopes.name(node)),
            Tree::Stacks(stacks, names) => stacks.text(node, names),
        }
    }

    /// The path of a scope.
    pub fn scope(&self, node: u32) -> Option<String> {
        match self {
            Tree::Scopes(scopes, names) => Some(scopes.path(node, names)),
            Tree::Stacks(..) => None,
        }
    }

    fn place(&self, allocation: &Allocation) -> usize {
        let node = match self {
            Tree::Scopes(..) => allocation.scope,
            Tree::Stacks(..) => allocation.stack,
        } as usize;
        if node < self.len() { node } else { 0 }
    }
}

/// The nodes that hold something, those around them, and the root: in the order of their numbers, so that parents come first.
#[derive(Debug)]
pub(super) struct Weights {
    pub by: FlameBy,
    pub as_of: Nanoseconds,
    pub filter_error: Option<String>,
    pub recorded: bool,
    /// Numbers in the session's tree.
    pub nodes: Vec<u32>,
    /// Positions among these of the nodes around them; the root is around itself.
    pub parents: Vec<u32>,
    pub own: Vec<Sum>,
    pub all: Vec<Sum>,
}

impl Weights {
    /// Weighs what counts in the live bytes of a part.
    pub fn of(
        (model, walk): (&Model, &Walk),
        (part, as_of): (Part, Nanoseconds),
        (by, filter): (FlameBy, &str),
        kind: Kind,
    ) -> Weights {
        let (filter, filter_error) = Filter::or_all(filter);
        let prepared = (!filter.is_empty()).then(|| filter.prepare(model));
        let tree = Tree::of(model, by);
        let mut places = Places::of(tree);
        for (allocation, lifetime) in model.allocations.iter().zip(&walk.lifetimes) {
            let meant = match kind {
                Kind::Live(order) => lifetime.birth > 0 && lifetime.spans(order),
                Kind::Born(after, until) => after < lifetime.birth && lifetime.birth <= until,
            };
            if meant
                && allocation.is_leaf()
                && part.counts(model, allocation)
                && prepared.as_ref().is_none_or(|prepared| prepared.lets(allocation))
            {
                places.sum(tree.place(allocation)).enter(allocation);
            }
        }
        let (nodes, parents, own) = places.with_those_around(tree);
        let mut all = own.clone();
        for at in (1..all.len()).rev() {
            let inside = all[at];
            all[parents[at] as usize].merge(&inside);
        }
        Weights { by, as_of, filter_error, recorded: tree.len() > 1, nodes, parents, own, all }
    }

    /// Bytes of the whole tree.
    pub fn bytes(&self) -> u64 {
        self.all.first().map_or(0, Sum::bytes)
    }
}

/// Sums of the nodes of a tree of which most hold nothing.
struct Places {
    /// By number: the position of its sum plus 1; 0 for none.
    slots: Vec<u32>,
    sums: Vec<Sum>,
}

impl Places {
    fn of(tree: Tree<'_>) -> Places {
        let mut places = Places { slots: vec![0; tree.len().max(1)], sums: Vec::new() };
        places.sum(0);
        places
    }

    fn sum(&mut self, node: usize) -> &mut Sum {
        let slot = &mut self.slots[node];
        if *slot == 0 {
            self.sums.push(Sum::default());
            *slot = self.sums.len() as u32;
        }
        &mut self.sums[*slot as usize - 1]
    }

    fn with_those_around(mut self, tree: Tree<'_>) -> (Vec<u32>, Vec<u32>, Vec<Sum>) {
        // A node's number is larger than that of the one around it.
        for node in (1..self.slots.len()).rev() {
            if self.slots[node] > 0 {
                self.sum(tree.parent(node as u32) as usize);
            }
        }
        let nodes: Vec<u32> = (0..self.slots.len() as u32).filter(|node| self.slots[*node as usize] > 0).collect();
        let own = nodes.iter().map(|node| self.sums[self.slots[*node as usize] as usize - 1]).collect();
        // From here on a slot is a position among `nodes`.
        for (position, node) in nodes.iter().enumerate() {
            self.slots[*node as usize] = position as u32;
        }
        let parents = nodes.iter().map(|node| self.slots[tree.parent(*node) as usize]).collect();
        (nodes, parents, own)
    }
}
