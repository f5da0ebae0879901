//! The tree of scopes as a list: which nodes are unfolded, which one is selected, and the search in it.
//!
//! Owns: the order of what is seen. Refuses: bytes.

use std::collections::HashSet;

use memscope_core::explorer::ScopeNode;

use super::List;

/// Nodes that lie less deep are unfolded, unless something else was wished.
const UNFOLDED_DEPTH: u32 = 2;

/// State of the screen of scopes.
#[derive(Clone, PartialEq, Debug)]
pub struct Scopes {
    /// Where one is.
    pub list: List,
    /// Drawn as an icicle instead of a list.
    pub icicle: bool,
    /// What is searched for.
    pub search: String,
    /// Nodes that lie less deep are unfolded.
    depth: u32,
    /// Nodes that are the other way round.
    turned: HashSet<u32>,
    /// Positions of the nodes that are seen.
    visible: Vec<usize>,
    /// Number of the selected node.
    selected: u32,
}

impl Default for Scopes {
    fn default() -> Scopes {
        Scopes {
            list: List::default(),
            icicle: false,
            search: String::new(),
            depth: UNFOLDED_DEPTH,
            turned: HashSet::new(),
            visible: Vec::new(),
            selected: 0,
        }
    }
}

impl Scopes {
    /// Positions of the nodes that are seen, from top to bottom.
    pub fn visible(&self) -> &[usize] {
        &self.visible
    }

    /// True when what is inside the node is seen too.
    pub fn unfolded(&self, node: &ScopeNode) -> bool {
        (node.depth < self.depth) != self.turned.contains(&node.id)
    }

    /// Position of the selected node.
    pub fn selected(&self) -> Option<usize> {
        self.visible.get(self.list.selected).copied()
    }

    /// Works out what is seen of these nodes; the selected node stays selected wherever it has moved.
    pub fn unfold(&mut self, nodes: &[ScopeNode]) {
        self.visible.clear();
        let mut position = 0;
        while let Some(node) = nodes.get(position) {
            self.visible.push(position);
            position += if self.unfolded(node) { 1 } else { node.inside + 1 };
        }
        let same = self.visible.iter().position(|position| nodes[*position].id == self.selected);
        let seen = self.list.selected.saturating_sub(self.list.first);
        if let Some(row) = same {
            self.list.selected = row;
            self.list.first = row.saturating_sub(seen);
        }
        self.list.selected = self.list.selected.min(self.visible.len().saturating_sub(1));
        self.remember(nodes);
    }

    /// Notes which node is selected, after the selection has moved.
    pub fn remember(&mut self, nodes: &[ScopeNode]) {
        self.selected = self.selected().and_then(|position| nodes.get(position)).map_or(0, |node| node.id);
    }

    /// Folds or unfolds the selected node.
    pub fn turn(&mut self, nodes: &[ScopeNode]) {
        let Some(node) = self.selected().and_then(|position| nodes.get(position)) else { return };
        if !self.turned.remove(&node.id) {
            self.turned.insert(node.id);
        }
        self.unfold(nodes);
    }

    /// Unfolds everything; folds everything where all is unfolded.
    pub fn turn_all(&mut self, nodes: &[ScopeNode]) {
        let all = nodes.iter().all(|node| node.inside == 0 || self.unfolded(node));
        self.turned.clear();
        self.depth = if all { 1 } else { u32::MAX };
        self.unfold(nodes);
    }

    /// Selects a node and unfolds what it lies in.
    pub fn select(&mut self, position: usize, nodes: &[ScopeNode], height: usize) {
        let Some(node) = nodes.get(position) else { return };
        let mut above = 0;
        while above < position {
            let around = &nodes[above];
            if above + around.inside < position {
                above += around.inside + 1;
                continue;
            }
            if !self.unfolded(around) && !self.turned.remove(&around.id) {
                self.turned.insert(around.id);
            }
            above += 1;
        }
        self.selected = node.id;
        self.unfold(nodes);
        let row = self.list.selected;
        self.list.select(row, self.visible.len(), height);
    }

    /// True when the search finds the node.
    pub fn hit(&self, node: &ScopeNode) -> bool {
        !self.search.is_empty() && node.name.to_lowercase().contains(&self.search.to_lowercase())
    }

    /// Selects the next hit (or the one before), after the last the first; `here` lets the selected node be it.
    pub fn find(&mut self, nodes: &[ScopeNode], forward: bool, here: bool, height: usize) {
        let count = nodes.len();
        let Some(from) = self.selected().filter(|from| *from < count) else { return };
        let first = usize::from(!here);
        let order = |step: usize| if forward { (from + step) % count } else { (from + count - step % count) % count };
        let found = (first..count + first).map(order).find(|position| self.hit(&nodes[*position]));
        if let Some(position) = found {
            self.select(position, nodes, height);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(shape: &[(&str, u32, usize)]) -> Vec<ScopeNode> {
        let node = |(id, (name, depth, inside)): (usize, &(&str, u32, usize))| ScopeNode {
            id: id as u32,
            name: (*name).to_owned(),
            depth: *depth,
            inside: *inside,
            ..ScopeNode::default()
        };
        shape.iter().enumerate().map(node).collect()
    }

    fn tree() -> Vec<ScopeNode> {
        nodes(&[("", 0, 5), ("model", 1, 3), ("h.0", 2, 1), ("attn", 3, 0), ("h.1", 2, 0), ("optimizer", 1, 0)])
    }

    #[test]
    fn two_levels_are_unfolded_at_first() {
        let (tree, mut scopes) = (tree(), Scopes::default());
        scopes.unfold(&tree);
        assert_eq!(scopes.visible(), [0, 1, 2, 4, 5]);
        scopes.list.select(1, 5, 10);
        scopes.remember(&tree);
        scopes.turn(&tree);
        assert_eq!(scopes.visible(), [0, 1, 5]);
        scopes.turn_all(&tree);
        assert_eq!(scopes.visible(), [0, 1, 2, 3, 4, 5]);
        scopes.turn_all(&tree);
        assert_eq!(scopes.visible(), [0, 1, 5]);
    }

    #[test]
    fn the_selected_node_stays_selected_when_the_order_changes() {
        let (tree, mut scopes) = (tree(), Scopes::default());
        scopes.unfold(&tree);
        scopes.select(5, &tree, 10);
        let mut other = vec![tree[0].clone(), tree[5].clone()];
        other.extend_from_slice(&tree[1..5]);
        scopes.unfold(&other);
        assert_eq!((scopes.list.selected, scopes.selected()), (1, Some(1)));
    }

    #[test]
    fn a_search_unfolds_what_the_hit_lies_in() {
        let (tree, mut scopes) = (tree(), Scopes::default());
        scopes.unfold(&tree);
        scopes.search = "ATT".into();
        scopes.find(&tree, true, true, 10);
        assert_eq!(scopes.selected(), Some(3));
        scopes.search = "h.".into();
        for (forward, expected) in [(true, 4), (true, 2), (false, 4), (false, 2)] {
            scopes.find(&tree, forward, false, 10);
            assert_eq!(scopes.selected(), Some(expected));
        }
        scopes.search = "nothing".into();
        scopes.find(&tree, true, false, 10);
        assert_eq!(scopes.selected(), Some(2));
    }
}
