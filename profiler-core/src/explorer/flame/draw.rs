//! The nodes that are told: those that are wide enough, the others of a parent as one.
//!
//! Owns: order, width, and what a search finds. Refuses: to lose a byte on the way.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::allocation::Model;
use crate::ledger::Sum;

use super::grow::{Grower, Growing};
use super::weigh::{Tree, Weights};
use super::{FlameNode, FlameQuery, FlameView, Frame};

/// What comes next.
enum Next {
    Node(Growing, u32, u64),
    Together(FlameNode),
    /// All inside of the node at this position has come.
    Close(usize),
}

impl Weights {
    /// The tree that a question asks for.
    pub fn view(&self, model: &Model, query: &FlameQuery) -> FlameView {
        let tree = Tree::of(model, self.by);
        let search = Search::of(tree, &query.search);
        let found = search.found(self);
        let grower = Grower::of(tree, self, &found);
        let mut view = FlameView {
            query: query.clone(),
            as_of: self.as_of,
            filter_error: self.filter_error.clone(),
            recorded: self.recorded,
            ..FlameView::default()
        };
        for (own, _) in self.own.iter().zip(&found).filter(|(_, found)| **found) {
            view.found = view.found.wrapping_add(own.bytes());
            view.found_allocations += own.allocations;
        }
        let seen = around(&grower, &search, query, &mut view);
        draw(&grower, &search, seen, query.parts, &mut view);
        let last = view.nodes.len() - 1;
        for (position, node) in view.nodes[..view.zoomed].iter_mut().enumerate() {
            node.inside = last - position;
        }
        view
    }
}

/// Tells the nodes around the one that is seen, and gives that.
fn around(grower: &Grower<'_>, search: &Search<'_>, query: &FlameQuery, view: &mut FlameView) -> Growing {
    let mut seen = grower.root(query.invert);
    for frame in &query.zoom {
        let Some(inner) = grower.children(&seen).into_iter().find(|child| child.frame == *frame) else { break };
        view.nodes.push(node(grower, search, &seen, view.zoomed as u32, 0));
        view.zoomed += 1;
        seen = inner;
    }
    seen
}

fn draw(grower: &Grower<'_>, search: &Search<'_>, seen: Growing, parts: usize, view: &mut FlameView) {
    let least = seen.all.bytes() / parts.max(1) as u64;
    let mut waiting = vec![Next::Node(seen, view.zoomed as u32, 0)];
    while let Some(next) = waiting.pop() {
        match next {
            Next::Close(position) => view.nodes[position].inside = view.nodes.len() - position - 1,
            Next::Together(together) => view.nodes.push(together),
            Next::Node(of, depth, begin) => {
                waiting.push(Next::Close(view.nodes.len()));
                view.nodes.push(node(grower, search, &of, depth, begin));
                let children = grower.children(&of);
                let inside = arranged(grower, search, children, least, (depth + 1, begin));
                waiting.extend(inside.into_iter().rev());
            }
        }
    }
}

/// Children side by side, the largest first, and at the end those that are too narrow, as one.
fn arranged(
    grower: &Grower<'_>,
    search: &Search<'_>,
    children: Vec<Growing>,
    least: u64,
    (depth, mut begin): (u32, u64),
) -> Vec<Next> {
    let narrow = |child: &Growing| child.all.bytes() < least.max(1);
    let (few, mut wide): (Vec<Growing>, Vec<Growing>) = children.into_iter().partition(narrow);
    // Of names that differ in a number the shorter one has the smaller number.
    let name = |child: &Growing| {
        let label = grower.tree.label(child.node);
        (label.len(), label)
    };
    wide.sort_by_cached_key(|child| (Reverse(child.all.bytes()), name(child), child.frame));
    let mut nexts = Vec::with_capacity(wide.len() + 1);
    for child in wide {
        let bytes = child.all.bytes();
        nexts.push(Next::Node(child, depth, begin));
        begin = begin.saturating_add(bytes);
    }
    if !few.is_empty() {
        let (mut sum, mut found, mut matches) = (Sum::default(), 0u64, false);
        for child in &few {
            sum.merge(&child.all);
            found = found.wrapping_add(child.found);
            matches |= search.matches(child.node);
        }
        nexts.push(Next::Together(FlameNode {
            depth,
            begin,
            merged: few.len() as u64,
            live: sum.live,
            own: sum.bytes(),
            allocations: sum.allocations,
            found,
            matches,
            ..FlameNode::default()
        }));
    }
    nexts
}

fn node(grower: &Grower<'_>, search: &Search<'_>, of: &Growing, depth: u32, begin: u64) -> FlameNode {
    FlameNode {
        frame: of.frame,
        depth,
        inside: 0,
        begin,
        label: grower.tree.label(of.node),
        merged: 0,
        live: of.all.live,
        own: of.own.bytes(),
        allocations: of.all.allocations,
        found: of.found,
        matches: search.matches(of.node),
        scope: grower.scope(of),
    }
}

/// What is looked for.
struct Search<'m> {
    tree: Tree<'m>,
    text: String,
}

impl<'m> Search<'m> {
    fn of(tree: Tree<'m>, text: &str) -> Search<'m> {
        Search { tree, text: text.trim().to_lowercase() }
    }

    /// True for a node whose name has the text in it.
    fn matches(&self, node: u32) -> bool {
        node != 0 && !self.text.is_empty() && self.tree.label(node).to_lowercase().contains(&self.text)
    }

    /// By position among the weights: whether what a node holds itself lies in one that matches.
    fn found(&self, weights: &Weights) -> Vec<bool> {
        if self.text.is_empty() {
            return vec![false; weights.nodes.len()];
        }
        let mut known: HashMap<Frame, bool> = HashMap::new();
        let mut found: Vec<bool> = Vec::with_capacity(weights.nodes.len());
        for (at, node) in weights.nodes.iter().enumerate() {
            let around = at > 0 && found[weights.parents[at] as usize];
            let matches = *known.entry(self.tree.frame(*node)).or_insert_with(|| self.matches(*node));
            found.push(around || matches);
        }
        found
    }
}
