//! Where in the program what is live was made: the stack of one allocation, and the tree of all stacks with what they hold.
//!
//! Owns: both as plain data. Refuses: to tell more lines of a stack than anyone reads.

use crate::allocation::Model;
use crate::ledger::Sum;

use super::answer::{ScopeNode, StackLine};
use super::live::Live;
use super::scopes::{Tree, tree};

/// Most lines that are told of one stack, the innermost ones.
const MOST_LINES: usize = 64;

/// The lines of a stack, the innermost first.
pub(super) fn lines(model: &Model, node: u32) -> Vec<StackLine> {
    let line = |(number, node): (u32, crate::allocation::StackNode)| StackLine {
        text: model.stacks.text(number, &model.names),
        file: model.names.text(node.file),
        line: node.line,
        function: model.names.text(node.function),
        own: model.stacks.is_own(number, &model.names),
    };
    model.stacks.outwards(node).take(MOST_LINES).map(line).collect()
}

/// Device memory of a moment by node, that of calls from there apart.
pub(super) fn sums(live: &Live<'_>) -> Vec<Sum> {
    let mut sums = vec![Sum::default(); live.model.stacks.len()];
    for (_, allocation) in live.allocations().filter(|(_, one)| one.is_leaf() && one.on_device()) {
        if let Some(sum) = sums.get_mut(allocation.stack as usize) {
            sum.enter(allocation);
        }
    }
    sums
}

/// The tree of calls, as that of scopes.
pub(super) fn of_calls(model: &Model, now: &[Sum], peak: &[Sum]) -> Vec<ScopeNode> {
    let stacks = &model.stacks;
    let of = Tree {
        count: stacks.len(),
        parent: &|node| stacks.node(node).parent,
        name: &|node| stacks.text(node, &model.names),
    };
    tree(&of, now, peak)
}
