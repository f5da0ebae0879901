//! What must be told at once: that the program is out of memory.
//!
//! Owns: which entries may say so, and what is new of it. Refuses: to print (whoever asks does), and to tell anything twice.

use std::collections::HashSet;

use memscope_wire::event::kind;
use memscope_wire::{Event, MemoryKind, Origin};

use crate::findings::{self, Evidence, Finding};
use crate::journal::entry::{Entry, ProcessIndex};

use super::explorer::Explorer;

/// Looks at entries for little money: of most records, at their kind alone.
#[derive(Debug, Default)]
pub struct Alertness {
    /// The rows by which frameworks say that they have given up.
    rows: HashSet<(ProcessIndex, u16)>,
    /// Processes in which a framework's allocator has given blocks: the driver's refusals are its own affair.
    followed: HashSet<ProcessIndex>,
}

impl Alertness {
    /// True when an out-of-memory that may have reached the program is in this entry, or more is known about the last one.
    pub fn is_alarmed(&mut self, entry: &Entry) -> bool {
        let Entry::Records { process, records, .. } = entry else { return false };
        let (mut alarmed, mut followed) = (false, self.followed.contains(process));
        for record in records {
            match record.kind() {
                kind::FUNCTION | kind::ALLOC_FAILED | kind::REFUSED_LINE => {}
                kind::BLOCK_ALLOC if !followed => {}
                _ => continue,
            }
            match Event::decode(record) {
                Some(Event::Function { row, name }) => {
                    if name.split(|byte| *byte == 0).next() == Some(findings::GIVEN_UP.as_bytes()) {
                        self.rows.insert((*process, row));
                    }
                }
                Some(Event::BlockAlloc { origin, .. }) => followed |= origin == Origin::Hooked,
                Some(Event::AllocFailed { row, result, memory, .. }) => {
                    let of_cache = followed && memory == MemoryKind::Device && !self.rows.contains(&(*process, row));
                    alarmed |= result == findings::OUT_OF_MEMORY && !of_cache;
                }
                _ => alarmed = true,
            }
        }
        if followed {
            self.followed.insert(*process);
        }
        alarmed
    }
}

impl Explorer {
    /// The out-of-memory errors that have reached the program and that were not told before, in the order of time. With
    /// `patient`, one of which more may be known in a moment (its line; whether a framework gets over it) is left for later, and
    /// so are those after it.
    pub fn out_of_memory(&mut self, patient: bool) -> Vec<Finding> {
        self.advance();
        let evidence = Evidence::of_walk(&self.model, &self.walk);
        let new = findings::reached_after(&evidence, self.alerted, patient);
        self.alerted = new.last().map_or(self.alerted, |(order, _)| *order);
        new.into_iter().map(|(_, finding)| finding).collect()
    }
}
