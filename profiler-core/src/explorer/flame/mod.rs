//! What holds memory, as a tree that can be drawn: by scope or by stack, at a moment or over a span of time.
//!
//! Owns: the shapes. Refuses: pixels and colours; and to know every node: what would be too narrow to be drawn is told together.
//!
//! | file | what it does |
//! | --- | --- |
//! | weigh | what each scope or stack holds itself, and all inside it |
//! | grow | the children of a node, from the outermost inwards or the other way |
//! | draw | the nodes that are told, and what a search finds |
//! | kept | what is kept for the next question |

mod draw;
mod grow;
mod kept;
mod weigh;

use std::ops::Range;

use crate::allocation::StackNode;
use crate::journal::entry::Nanoseconds;
use crate::ledger::CATEGORIES;

use super::listed::Partial;

pub(super) use kept::{Moment, Weighed};

/// Which tree, of what, and which part of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlameQuery {
    /// What the nodes are.
    pub by: FlameBy,
    /// What they weigh.
    pub weight: FlameWeight,
    /// Only allocations for which these terms hold: see [`super::filter`].
    pub filter: String,
    /// The innermost first, and in it what it lies in or what called it.
    pub invert: bool,
    /// The node that is seen, from the outermost on: all of the tree where this is empty. A node that is not there is as near as
    /// there is one.
    pub zoom: Vec<Frame>,
    /// How many nodes have room side by side, at least 1: those of the node that is seen that are narrower are told together, as
    /// one of each parent.
    pub parts: usize,
    /// Text to be looked for in the names of nodes, in upper or lower case; nothing where it is empty.
    pub search: String,
}

/// What the nodes of the tree are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum FlameBy {
    /// Scopes: modules, where a framework's hook tells them.
    #[default]
    Scope,
    /// Lines of the program's own language, where stacks were recorded.
    Stack,
}

/// What nodes weigh.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum FlameWeight {
    /// What lives at the moment of the question.
    #[default]
    Cursor,
    /// What lives where the target's live bytes were largest.
    Peak,
    /// All that was made in a span of time, whether it still lives or not.
    AllocatedIn(Range<Nanoseconds>),
}

/// Tells a node from its siblings, as long as the session is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Frame {
    name: u32,
    file: u32,
    line: u32,
}

impl Frame {
    /// That of a line of the program.
    pub(super) fn of_line(node: &StackNode) -> Frame {
        Frame { name: node.function, file: node.file, line: node.line }
    }
}

/// The tree. Bytes are those asked for of device memory of the target, as in the ledger's live bytes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FlameView {
    /// The question.
    pub query: FlameQuery,
    /// The moment until which changes are in it: a large tree of a running session is made anew less often than the rest.
    pub as_of: Nanoseconds,
    /// Nodes, parents first, siblings by their bytes, the largest first. The first is all of the target. Those around the node
    /// that is seen come alone, without their other children.
    pub nodes: Vec<FlameNode>,
    /// Position of the node that is seen.
    pub zoomed: usize,
    /// What is found: allocations that lie in a node whose name has the text in it.
    pub found: u64,
    /// How many those are.
    pub found_allocations: u64,
    /// What is wrong with the filter, as a sentence; it then lets everything through.
    pub filter_error: Option<String>,
    /// True when at least one scope, or one stack, of the session is known.
    pub recorded: bool,
    /// How much of what it is of it covers, where that is not all.
    pub partial: Option<Partial>,
}

/// A node. Its bytes are its own and those of its children, those told together among them; unless it lies around the node that is
/// seen.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FlameNode {
    /// Which among its siblings.
    pub frame: Frame,
    /// Distance from the root.
    pub depth: u32,
    /// How many nodes after this one lie inside it.
    pub inside: usize,
    /// Where it begins, in bytes from the left edge of the node that is seen.
    pub begin: u64,
    /// Its name; empty for the root and for nodes told together.
    pub label: String,
    /// How many nodes are told together in this one; 0 for a node of its own.
    pub merged: u64,
    /// Bytes by category, of the node and all inside it.
    pub live: [u64; CATEGORIES],
    /// Bytes of the node alone.
    pub own: u64,
    /// Allocations of the node and all inside it.
    pub allocations: u64,
    /// Of its bytes, those that a search finds.
    pub found: u64,
    /// True when its own name is found.
    pub matches: bool,
    /// The path of its scope where it is one alone.
    pub scope: Option<String>,
}

impl FlameNode {
    /// Bytes of all categories.
    pub fn bytes(&self) -> u64 {
        self.live.iter().fold(0, |sum, bytes| sum.wrapping_add(*bytes))
    }
}

impl FlameView {
    /// What shares are of: the bytes of the root, and, without a filter, what is in no list.
    pub fn whole(&self) -> u64 {
        let missing = self.partial.filter(|_| self.query.filter.trim().is_empty() || self.filter_error.is_some());
        let listed = self.nodes.first().map_or(0, FlameNode::bytes);
        listed.saturating_add(missing.map_or(0, |partial| partial.missing()))
    }

    /// The nodes around one, from the root on, and itself at the end.
    pub fn path(&self, position: usize) -> Vec<usize> {
        let around = |at: &usize| self.nodes.get(*at).is_some_and(|node| *at + node.inside >= position);
        (0..=position.min(self.nodes.len().saturating_sub(1))).filter(around).collect()
    }

    /// What a question has to say to see this node; that around it, of nodes told together.
    pub fn zoom_to(&self, position: usize) -> Vec<Frame> {
        let own = |at: &usize| *at > 0 && self.nodes[*at].merged == 0;
        self.path(position).into_iter().filter(own).map(|at| self.nodes[at].frame).collect()
    }

    /// The children of a node.
    pub fn children(&self, position: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.nodes.get(position).map_or(0, |node| position + node.inside + 1);
        let inside = move |at: usize| Some(at).filter(|at| *at < end);
        std::iter::successors(inside(position + 1), move |at| inside(at + self.nodes[*at].inside + 1))
    }
}
