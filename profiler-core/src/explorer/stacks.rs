//! Where in the program an allocation was made.
//!
//! Owns: the lines of its stack as plain data. Refuses: the tree of all stacks (`flame`), and more lines than anyone reads.

use crate::allocation::Model;

use super::answer::StackLine;
use super::flame::Frame;

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
        frame: Frame::of_line(&node),
    };
    model.stacks.outwards(node).take(MOST_LINES).map(line).collect()
}
