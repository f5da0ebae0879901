//! The tree of scopes with what they hold, now and at the peak.
//!
//! Owns: sums up the tree, and its order. Refuses: scopes that hold nothing at either moment.

use std::cmp::Reverse;

use crate::allocation::{Model, Scopes};
use crate::ledger::Sum;
use crate::report::together;

use super::answer::{ScopeNode, ScopeTotal};
use super::live::Live;
use super::part::Part;

/// How many scopes are named as the largest.
const TOP: usize = 20;

/// Device memory, or host memory where that is the part, of a moment by scope, that of scopes inside apart.
pub(super) fn sums(live: &Live<'_>) -> Vec<Sum> {
    let mut sums = vec![Sum::default(); live.model.scopes.len()];
    let of_host = live.part == Part::Host;
    for (_, allocation) in live.allocations() {
        if allocation.is_leaf()
            && (of_host || allocation.on_device())
            && let Some(sum) = sums.get_mut(allocation.scope as usize)
        {
            sum.enter(allocation);
        }
    }
    sums
}

/// The scopes that hold most, the largest first; those whose names differ only in numbers (the layers of a model) as one.
pub(super) fn largest(model: &Model, sums: &[Sum]) -> Vec<ScopeTotal> {
    let holding = sums.iter().enumerate().filter(|(_, sum)| sum.allocations > 0);
    let texts = holding.map(|(scope, sum)| (model.scopes.path(scope as u32, &model.names), (), *sum));
    let add = |mut sum: Sum, more: Sum| {
        sum.merge(&more);
        sum
    };
    let mut sums: Vec<(Reverse<u64>, String, Sum)> =
        together(texts, add).map(|(path, (), sum)| (Reverse(sum.bytes()), path, sum)).collect();
    sums.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    sums.truncate(TOP);
    sums.into_iter().map(|(_, path, sum)| ScopeTotal { path, live: sum.live, allocations: sum.allocations }).collect()
}

/// The tree, parents first, siblings by what they hold now.
pub(super) fn tree(model: &Model, now: &[Sum], peak: &[Sum]) -> Vec<ScopeNode> {
    let scopes = &model.scopes;
    let all = |sums: &[Sum]| {
        let mut all = sums.to_vec();
        all.resize(scopes.len(), Sum::default());
        // A scope's number is larger than that of the one around it.
        for scope in (1..all.len()).rev() {
            let inside = all[scope];
            all[scopes.parent(scope as u32) as usize].merge(&inside);
        }
        all
    };
    let (now_all, peak_all) = (all(now), all(peak));
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); scopes.len()];
    for scope in 1..scopes.len() {
        if now_all[scope].allocations > 0 || peak_all[scope].allocations > 0 {
            children[scopes.parent(scope as u32) as usize].push(scope as u32);
        }
    }
    let name = |scope: u32| model.names.text(scopes.name(scope));
    for siblings in &mut children {
        siblings.sort_by_cached_key(|scope| (Reverse(now_all[*scope as usize].bytes()), name(*scope), *scope));
    }
    let mut nodes: Vec<ScopeNode> = Vec::new();
    // Those still to be visited, and where those end that are inside of something: `inside` is known when they have.
    let mut waiting: Vec<(u32, u32)> = vec![(Scopes::ROOT, 0)];
    let mut open: Vec<usize> = Vec::new();
    while let Some((scope, depth)) = waiting.pop() {
        close(&mut nodes, &mut open, depth as usize);
        open.push(nodes.len());
        nodes.push(ScopeNode {
            id: scope,
            depth,
            inside: 0,
            name: name(scope),
            now: now_all[scope as usize].live,
            peak: peak_all[scope as usize].live,
            own: now.get(scope as usize).map_or(0, Sum::bytes),
            allocations: now_all[scope as usize].allocations,
        });
        waiting.extend(children[scope as usize].iter().rev().map(|child| (*child, depth + 1)));
    }
    close(&mut nodes, &mut open, 0);
    nodes
}

/// Nodes at this depth and deeper have all that is inside of them.
fn close(nodes: &mut [ScopeNode], open: &mut Vec<usize>, depth: usize) {
    let end = nodes.len();
    for node in open.drain(depth.min(open.len())..) {
        nodes[node].inside = end - node - 1;
    }
}
