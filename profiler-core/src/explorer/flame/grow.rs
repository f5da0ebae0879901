//! The children of a node, made when they are needed.
//!
//! Owns: both directions: from the outermost inwards, and from the innermost outwards. Refuses: to grow what is not seen.

use std::collections::HashMap;

use crate::ledger::Sum;

use super::Frame;
use super::weigh::{Tree, Weights};

/// A node that may be told.
#[derive(Debug)]
pub(super) struct Growing {
    pub frame: Frame,
    /// A number of the session's tree with this frame, for its name.
    pub node: u32,
    pub all: Sum,
    pub own: Sum,
    pub found: u64,
    members: Members,
}

/// What a node is made of.
#[derive(Debug)]
enum Members {
    /// From the outermost inwards: its position among the weights.
    Inwards(u32),
    /// From the innermost outwards: positions of what holds memory itself, and the number of the node that comes next.
    Outwards(Vec<(u32, u32)>),
}

/// What children are made from.
pub(super) struct Grower<'w> {
    pub tree: Tree<'w>,
    weights: &'w Weights,
    /// By position among the weights: bytes that are found, those of the node alone and all.
    own_found: Vec<u64>,
    all_found: Vec<u64>,
    /// By position: where its children are in `inside`.
    starts: Vec<u32>,
    inside: Vec<u32>,
}

impl<'w> Grower<'w> {
    /// `found` says by position whether what a node holds itself is found.
    pub fn of(tree: Tree<'w>, weights: &'w Weights, found: &[bool]) -> Grower<'w> {
        let own_found: Vec<u64> =
            weights.own.iter().zip(found).map(|(own, found)| if *found { own.bytes() } else { 0 }).collect();
        let mut all_found = own_found.clone();
        for at in (1..all_found.len()).rev() {
            let parent = weights.parents[at] as usize;
            all_found[parent] = all_found[parent].wrapping_add(all_found[at]);
        }
        let count = weights.nodes.len();
        let mut starts = vec![0u32; count + 1];
        for parent in weights.parents.iter().skip(1) {
            starts[*parent as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut inside = vec![0; count.saturating_sub(1)];
        for (at, parent) in weights.parents.iter().enumerate().skip(1) {
            let place = &mut next[*parent as usize];
            inside[*place as usize] = at as u32;
            *place += 1;
        }
        Grower { tree, weights, own_found, all_found, starts, inside }
    }

    /// All of the target.
    pub fn root(&self, invert: bool) -> Growing {
        let root = self.inwards(0);
        if !invert {
            return root;
        }
        // What lies in no scope, or has no stack, is the root's own.
        let holding = (1..self.weights.nodes.len() as u32).filter(|at| self.weights.own[*at as usize].allocations > 0);
        let members = holding.map(|at| (at, self.weights.nodes[at as usize])).collect();
        Growing { members: Members::Outwards(members), ..root }
    }

    fn inwards(&self, at: u32) -> Growing {
        let position = at as usize;
        let node = self.weights.nodes[position];
        Growing {
            frame: self.tree.frame(node),
            node,
            all: self.weights.all[position],
            own: self.weights.own[position],
            found: self.all_found[position],
            members: Members::Inwards(at),
        }
    }

    /// Its children, in no order.
    pub fn children(&self, of: &Growing) -> Vec<Growing> {
        match &of.members {
            Members::Inwards(at) => {
                let (start, end) = (self.starts[*at as usize], self.starts[*at as usize + 1]);
                self.inside[start as usize..end as usize].iter().map(|child| self.inwards(*child)).collect()
            }
            Members::Outwards(members) => self.outwards(members),
        }
    }

    fn outwards(&self, members: &[(u32, u32)]) -> Vec<Growing> {
        let mut children: HashMap<Frame, Growing> = HashMap::new();
        for (at, node) in members.iter().filter(|(_, node)| *node != 0) {
            let frame = self.tree.frame(*node);
            let child = children.entry(frame).or_insert_with(|| Growing {
                frame,
                node: *node,
                all: Sum::default(),
                own: Sum::default(),
                found: 0,
                members: Members::Outwards(Vec::new()),
            });
            let (own, next) = (&self.weights.own[*at as usize], self.tree.parent(*node));
            child.all.merge(own);
            child.found = child.found.wrapping_add(self.own_found[*at as usize]);
            if next == 0 {
                child.own.merge(own);
            }
            if let Members::Outwards(members) = &mut child.members {
                members.push((*at, next));
            }
        }
        children.into_values().collect()
    }

    /// The path of its scope, if it is one alone.
    pub fn scope(&self, of: &Growing) -> Option<String> {
        let at = match &of.members {
            Members::Inwards(0) => return None,
            Members::Inwards(at) => *at,
            Members::Outwards(members) => match members[..] {
                [(at, _)] => at,
                _ => return None,
            },
        };
        self.tree.scope(self.weights.nodes[at as usize])
    }
}
