//! What must be told at once: that PyTorch has given up.
//!
//! Owns: which entries may say so, and what is new of it. Refuses: to print (whoever asks does), and to tell anything twice.

use std::collections::HashSet;

use memscope_wire::Event;
use memscope_wire::event::kind;

use crate::findings::{self, Evidence, Finding};
use crate::journal::entry::{Entry, ProcessIndex};

use super::explorer::Explorer;

/// Looks at entries for little money: of most records, at their kind alone.
#[derive(Debug, Default)]
pub struct Alertness {
    /// The rows by which processes call the function that says so.
    rows: HashSet<(ProcessIndex, u16)>,
}

impl Alertness {
    /// True when an out-of-memory error of PyTorch's is in this entry, or more is known about the last one.
    pub fn is_alarmed(&mut self, entry: &Entry) -> bool {
        let Entry::Records { process, records, .. } = entry else { return false };
        let mut alarmed = false;
        let kinds = [kind::FUNCTION, kind::ALLOC_FAILED, kind::REFUSED_LINE];
        for event in records.iter().filter(|record| kinds.contains(&record.kind())).filter_map(Event::decode) {
            match event {
                Event::Function { row, name } => {
                    if name.split(|byte| *byte == 0).next() == Some(findings::GIVEN_UP.as_bytes()) {
                        self.rows.insert((*process, row));
                    }
                }
                Event::AllocFailed { row, .. } => alarmed |= self.rows.contains(&(*process, row)),
                _ => alarmed = true,
            }
        }
        alarmed
    }
}

impl Explorer {
    /// The out-of-memory errors that PyTorch has reported and that were not told before, in the order of time. With
    /// `wait_for_lines`, one whose line is not known is left for later, and so are those after it.
    pub fn out_of_memory(&mut self, wait_for_lines: bool) -> Vec<Finding> {
        self.advance();
        let (model, walk) = (&self.model, &self.walk);
        let devices = walk.devices.iter().map(|track| &track.figures).collect();
        let evidence = Evidence::new(model, &walk.lifetimes, devices, &walk.markers);
        let new = findings::reported_after(&evidence, self.alerted, wait_for_lines);
        self.alerted = new.last().map_or(self.alerted, |(order, _)| *order);
        new.into_iter().map(|(_, finding)| finding).collect()
    }
}
