//! One process as the model knows it: its clock, its threads, its memory, and the list of what changed.
//!
//! Owns: state that belongs to a process alone. Refuses: sums and devices.

use std::collections::HashMap;

use memscope_wire::Object;

use serde::{Deserialize, Serialize};

use crate::journal::entry::{Calibration, Counters, Nanoseconds, ProcessIndex, ProcessInfo};

use crate::ledger::EventRows;

use super::context::ObjectCount;
use super::inference::Phases;
use super::memory::Memory;
use super::names::Scopes;
use super::owner::Owner;
use super::passes::Passes;
use super::retry::Asked;
use super::row::AllocationId;

/// Deepest nesting of scopes that is told apart; deeper scopes count as the one at this depth.
const MAX_DEPTH: u32 = 256;

/// A thread's place in the trees of scopes and of stacks.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Thread {
    /// Its innermost scope.
    pub scope: u32,
    depth: u32,
    /// Where in the program it is.
    pub stack: u32,
    /// It is somewhere deeper, which had no room.
    pub stack_in_part: bool,
    /// The context in which it allocates; 0 while that is not known.
    pub context: u64,
    /// Whose code asks the driver.
    pub owner: Owner,
}

impl Thread {
    pub fn push(&mut self, scopes: &mut Scopes, name: u32) {
        if self.depth < MAX_DEPTH {
            self.scope = scopes.child(self.scope, name);
        }
        self.depth += 1;
    }

    /// The thread is at this node, and has entered nothing there.
    pub fn place(&mut self, node: u32) {
        (self.scope, self.depth) = (node, 0);
    }

    /// False when no scope was open.
    pub fn pop(&mut self, scopes: &Scopes) -> bool {
        if self.depth == 0 {
            return false;
        }
        if self.depth <= MAX_DEPTH {
            self.scope = scopes.parent(self.scope);
        }
        self.depth -= 1;
        true
    }
}

/// What happened to a process's memory or marks, in four bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// An allocation begins.
    Birth(AllocationId),
    /// An allocation ends.
    Death(AllocationId),
    /// A step or phase begins, or an allocation was refused: position in the model's markers.
    Marker(u32),
    /// Something that turned out not to have happened: a free that the driver refused.
    Void,
}

/// Most allocations, and most markers, of a session: what a [`Packed`] change can number.
pub(crate) const MAX_NUMBER: usize = (1 << 30) - 1;

/// A [`Change`] in four bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Packed(u32);

impl From<Change> for Packed {
    fn from(change: Change) -> Packed {
        Packed(match change {
            Change::Birth(id) => id.0,
            Change::Death(id) => 1 << 30 | id.0,
            Change::Marker(number) => 2 << 30 | number,
            Change::Void => 3 << 30,
        })
    }
}

impl From<Packed> for Change {
    fn from(packed: Packed) -> Change {
        let number = packed.0 & MAX_NUMBER as u32;
        match packed.0 >> 30 {
            0 => Change::Birth(AllocationId(number)),
            1 => Change::Death(AllocationId(number)),
            2 => Change::Marker(number),
            _ => Change::Void,
        }
    }
}

/// One process of the session.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Process {
    pub info: ProcessInfo,
    pub calibration: Option<Calibration>,
    pub counters: Counters,
    /// Slots that were read as never committed.
    pub empty_slots: u64,
    /// Slots that no entry brought.
    pub missing_slots: u64,
    /// Position of a device in the model, by CUDA ordinal.
    pub devices: HashMap<u32, u16>,
    /// Names of functions, by row.
    pub functions: HashMap<u16, u32>,
    /// Rows of the functions that pin memory of the program's own, and let it go.
    pub registering: Vec<u16>,
    pub threads: HashMap<u32, Thread>,
    pub phase: u32,
    pub phases: Phases,
    pub passes: Passes,
    /// A framework's allocator has given blocks of the device here, or has said that it could not: it says itself what it cannot
    /// get, after it has given its cache back and asked the driver again.
    pub followed: bool,
    /// A framework is there: its shim says so, or it has made tensors.
    pub framework: bool,
    /// The next phase is named by an NVTX range; and the one that runs is.
    pub ranges: (bool, bool),
    /// What its allocator was refused a moment ago, and may ask for once more.
    pub asked: Option<Asked>,
    /// Number in the table of steps plus 1; 0 before the first step.
    pub step: u32,
    pub memory: Memory,
    /// What the driver made for it and is still there, with the ordinal of its device.
    #[serde(with = "super::written::objects")]
    pub objects: HashMap<(Object, u64), u32>,
    /// How many there were, by the number of their kind.
    pub object_counts: [ObjectCount; Object::ALL.len()],
    /// When it gave back what it held at its end, where that is known otherwise than from its records.
    pub exit: Option<Nanoseconds>,
    /// Clock of the last record, never going back.
    pub ticks: Option<u64>,
    /// First slot that was not seen yet.
    pub next_slot: u64,
    /// The ledger of device memory that this process holds on each device that it used.
    pub held: Vec<(u16, EventRows)>,
    /// Allocations and blocks that are not there any more.
    pub forgotten: u64,
    changes: Vec<Packed>,
    /// Changes before those, which were walked and dropped.
    dropped: usize,
}

impl Process {
    pub fn new(process: ProcessIndex) -> Process {
        Process {
            info: ProcessInfo { process, ..ProcessInfo::default() },
            calibration: None,
            counters: Counters::default(),
            empty_slots: 0,
            missing_slots: 0,
            devices: HashMap::new(),
            functions: HashMap::new(),
            registering: Vec::new(),
            threads: HashMap::new(),
            phase: 0,
            phases: Phases::default(),
            passes: Passes::default(),
            followed: false,
            framework: false,
            ranges: (false, false),
            asked: None,
            step: 0,
            memory: Memory::default(),
            objects: HashMap::new(),
            object_counts: [ObjectCount::default(); Object::ALL.len()],
            exit: None,
            ticks: None,
            next_slot: 0,
            held: Vec::new(),
            forgotten: 0,
            changes: Vec::new(),
            dropped: 0,
        }
    }

    /// The last that is known of it: its last record, or its orderly exit.
    pub fn last_word(&self, session_start: u64) -> Nanoseconds {
        let record = self.ticks.map_or(Nanoseconds(0), |ticks| self.time(ticks, session_start));
        let closed = self.counters.closed_ns.map_or(0, |closed| closed.saturating_sub(session_start));
        record.max(Nanoseconds(closed))
    }

    /// True when it began after another had ended, as far as both are known. A process of which no end is known runs.
    pub fn came_after(&self, other: &Process, session_start: u64) -> bool {
        let began = self.info.began_ns.map(|began| Nanoseconds(began.saturating_sub(session_start)));
        other.counters.ended && began.is_some_and(|began| began > other.last_word(session_start))
    }

    /// Appends a change and returns its position.
    pub fn push(&mut self, change: Change) -> usize {
        self.changes.push(change.into());
        self.dropped + self.changes.len() - 1
    }

    /// All changes at once.
    pub fn set_changes(&mut self, changes: Vec<Packed>) {
        self.changes = changes;
    }

    /// Takes a change back; one that was dropped has been walked, and is put right there.
    pub fn void(&mut self, position: usize) {
        if let Some(change) = position.checked_sub(self.dropped).and_then(|position| self.changes.get_mut(position)) {
            *change = Change::Void.into();
        }
    }

    /// The change at this position, in slot order.
    pub fn change(&self, position: usize) -> Option<Change> {
        self.changes.get(position.checked_sub(self.dropped)?).map(|packed| (*packed).into())
    }

    /// Position of the first change that is there; `None` when no positions are left for those that are.
    pub fn first_change(&self) -> Option<usize> {
        self.dropped.checked_add(self.changes.len()).map(|_| self.dropped)
    }

    /// How many changes there are, those that were dropped too.
    pub fn changes(&self) -> usize {
        self.dropped + self.changes.len()
    }

    /// Drops the changes before this position.
    pub fn drop_changes(&mut self, before: usize) {
        let count = before.saturating_sub(self.dropped).min(self.changes.len());
        self.changes.drain(..count);
        self.dropped += count;
    }

    /// The ledger of what it holds on a device.
    pub fn held_mut(&mut self, device: u16) -> &mut EventRows {
        let position = match self.held.iter().position(|(known, _)| *known == device) {
            Some(position) => position,
            None => {
                self.held.push((device, EventRows::default()));
                self.held.len() - 1
            }
        };
        &mut self.held[position].1
    }

    /// Time of a reading of this process's clock, after the session's start (which is time 0).
    pub fn time(&self, ticks: u64, session_start: u64) -> Nanoseconds {
        match &self.calibration {
            None => Nanoseconds(ticks.saturating_sub(session_start)),
            Some(calibration) => calibration.time(ticks, session_start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_survives_packing() {
        for change in [
            Change::Birth(AllocationId(0)),
            Change::Death(AllocationId(MAX_NUMBER as u32)),
            Change::Marker(12),
            Change::Void,
        ] {
            assert_eq!(Change::from(Packed::from(change)), change);
        }
    }

    #[test]
    fn scopes_deeper_than_the_limit_close_in_order() {
        let (mut scopes, mut thread) = (Scopes::default(), Thread::default());
        for name in 0..MAX_DEPTH + 3 {
            thread.push(&mut scopes, name);
        }
        for _ in 0..MAX_DEPTH + 3 {
            assert!(thread.pop(&scopes));
        }
        assert_eq!(thread.scope, Scopes::ROOT);
        assert!(!thread.pop(&scopes));
    }
}
