//! Where in the program an allocation was made.
//!
//! Owns: the lines of its stack as plain data, and in which order they are told. Refuses: which line is the program's own
//! (`allocation::stacks`), the tree of all stacks (`flame`), and more lines than anyone reads.

use crate::allocation::{Model, StackNode};

use super::answer::{AllocationRow, StackLine};
use super::flame::Frame;

/// Most lines that are told of one stack, the innermost ones.
const MOST_LINES: usize = 64;

/// A stack as it is told: the program's own lines lead, for it is there that something can be changed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Told<'row> {
    /// The program's own lines, the innermost first; the innermost line where none is the program's.
    pub leading: Vec<&'row StackLine>,
    /// All other lines, the innermost first: libraries' and remarks.
    pub others: Vec<&'row StackLine>,
}

impl AllocationRow {
    /// The lines that led to it, in the order in which they are told.
    pub fn told(&self) -> Told<'_> {
        let (leading, others): (Vec<_>, Vec<_>) = self.stack.iter().partition(|line| line.own);
        match leading.is_empty() {
            false => Told { leading, others },
            // A remark is no line, and leads only where there is nothing else.
            true => {
                let first = self.stack.iter().position(|line| !line.file.is_empty()).unwrap_or(0);
                let others = self.stack.iter().enumerate().filter(|(position, _)| *position != first);
                Told {
                    leading: self.stack.get(first).into_iter().collect(),
                    others: others.map(|(_, line)| line).collect(),
                }
            }
        }
    }
}

/// The lines of a stack, the innermost first; where none of those that there is room for is the program's own, the innermost that
/// is comes last.
pub(super) fn lines(model: &Model, node: u32) -> Vec<StackLine> {
    let line = |(number, node): (u32, StackNode)| StackLine {
        text: model.stacks.text(number, &model.names),
        file: model.names.text(node.file),
        line: node.line,
        function: model.names.text(node.function),
        own: model.stacks.is_own(number, &model.names),
        frame: Frame::of_line(&node),
    };
    let mut outwards = model.stacks.outwards(node).map(line);
    let mut lines: Vec<StackLine> = outwards.by_ref().take(MOST_LINES).collect();
    if !lines.iter().any(|line| line.own) {
        lines.extend(outwards.find(|line| line.own));
    }
    lines
}
