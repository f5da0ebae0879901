//! What must be told at once: that the program is out of memory, or has passed a threshold that the user gave.
//!
//! Owns: which entries may say so, and what is new of it. Refuses: to print (whoever asks does), and to tell anything twice.

use std::collections::HashSet;

use memscope_wire::event::kind;
use memscope_wire::{Event, MemoryKind, Origin};

use crate::findings::{self, Evidence, Finding};
use crate::journal::entry::{Entry, ProcessIndex, Threshold};

use super::explorer::Explorer;

/// Looks at entries for little money: of most records, at their kind alone.
#[derive(Debug, Default)]
pub struct Alertness {
    /// Thresholds of the use of a device.
    thresholds: Vec<Threshold>,
    /// The rows by which frameworks say that they have given up.
    rows: HashSet<(ProcessIndex, u16)>,
    /// Processes in which a framework's allocator has given blocks: the driver's refusals are its own affair.
    followed: HashSet<ProcessIndex>,
}

impl Alertness {
    /// Of out-of-memory, and of these thresholds.
    pub fn of(thresholds: Vec<Threshold>) -> Alertness {
        Alertness { thresholds, ..Alertness::default() }
    }

    /// True when an out-of-memory that may have reached the program is in this entry, or more is known about the last one; and
    /// when the use of a device may have passed a threshold.
    pub fn is_alarmed(&mut self, entry: &Entry) -> bool {
        // Both have a state to keep.
        let (out_of_memory, fuller) = (self.is_out_of_memory(entry), self.may_pass(entry));
        out_of_memory || fuller
    }

    /// Whether a threshold is passed, the explorer knows: after any allocation of the driver, and after a sample that says so.
    fn may_pass(&self, entry: &Entry) -> bool {
        if self.thresholds.is_empty() {
            return false;
        }
        match entry {
            Entry::Records { records, .. } => {
                records.iter().any(|record| matches!(record.kind(), kind::ALLOC | kind::CREATE))
            }
            Entry::Telemetry(sample) => sample.devices.iter().any(|device| {
                let used = device.used.map(|used| used.saturating_add(device.reserved.unwrap_or(0)));
                let passed = |threshold: &Threshold| used > threshold.bytes_of(device.total);
                used.is_some() && self.thresholds.iter().any(passed)
            }),
            _ => false,
        }
    }

    fn is_out_of_memory(&mut self, entry: &Entry) -> bool {
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

    /// Of each threshold that was passed since the last call: the finding that the last time would be alone. Its
    /// [`crate::findings::ThresholdPassed::times`] says the how-manieth time it was.
    pub fn thresholds_passed(&mut self) -> Vec<Finding> {
        self.advance();
        let evidence = Evidence::of_walk(&self.model, &self.walk);
        findings::passed_after(&evidence, &mut self.passings_told)
    }
}
