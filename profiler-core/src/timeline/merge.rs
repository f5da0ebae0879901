//! The changes of all processes in one order.
//!
//! Owns: the k-way merge by time that keeps slot order within a process, and the time at which an ended process gave back
//! its memory. Refuses: sums.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use serde::{Deserialize, Serialize};

use crate::allocation::{Change, Model, Process, flag};
use crate::journal::entry::Nanoseconds;

use super::LAST;
use super::samples::WINDOW_NS;

/// One change in the session's order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Position in the order, from 1: 0 is before all changes.
    pub order: u32,
    pub time: Nanoseconds,
    /// Position of the process.
    pub process: usize,
    pub change: Change,
}

/// How far a model's changes have been walked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Walked {
    /// By process: how many of its changes.
    pub changes: Vec<usize>,
    /// Position of the last one in the order; 0 before the first.
    pub order: u32,
}

/// Iterates over a model's changes in the order of time: all of them, or those that came since.
pub(crate) struct Merge<'m> {
    model: &'m Model,
    exits: &'m [Option<Nanoseconds>],
    /// The next change of each process: its time, the process, its position in the process's changes.
    next: BinaryHeap<Reverse<(Nanoseconds, usize, usize)>>,
    order: u32,
}

impl<'m> Merge<'m> {
    pub fn new(model: &'m Model, exits: &'m [Option<Nanoseconds>], walked: &Walked) -> Merge<'m> {
        let mut merge = Merge { model, exits, next: BinaryHeap::new(), order: walked.order };
        for process in 0..model.processes.len() {
            let from = walked.changes.get(process).copied().unwrap_or_default();
            merge.next.extend(merge.following(process, from).map(Reverse));
        }
        merge
    }

    /// Where the next walk begins when this one is at its end.
    pub fn walked(&self) -> Walked {
        Walked { changes: self.model.processes.iter().map(Process::changes).collect(), order: self.order }
    }

    /// The first change at or after a position that really happened.
    fn following(&self, process: usize, from: usize) -> Option<(Nanoseconds, usize, usize)> {
        let state = &self.model.processes[process];
        for position in from..state.changes() {
            let ticks = match state.change(position)? {
                Change::Void => continue,
                Change::Birth(id) => self.model.allocations[id.0 as usize].birth_ticks,
                Change::Death(id) => {
                    let allocation = &self.model.allocations[id.0 as usize];
                    if allocation.is(flag::AT_EXIT)
                        && let Some(exit) = self.exits.get(process).copied().flatten()
                    {
                        return Some((exit, process, position));
                    }
                    allocation.death_ticks
                }
                Change::Marker(number) => self.model.markers[number as usize].ticks,
            };
            return Some((self.time(state, ticks), process, position));
        }
        None
    }

    fn time(&self, process: &Process, ticks: u64) -> Nanoseconds {
        process.time(ticks, self.model.session.start_monotonic_ns)
    }
}

impl Iterator for Merge<'_> {
    type Item = Moment;

    fn next(&mut self) -> Option<Moment> {
        let Reverse((time, process, position)) = *self.next.peek()?;
        let following = self.following(process, position + 1);
        if let Some(top) = self.next.peek_mut() {
            match following {
                // The new top sinks to its place when `top` goes out of scope.
                Some(following) => {
                    let mut top = top;
                    *top = Reverse(following);
                }
                None => {
                    PeekMut::pop(top);
                }
            }
        }
        // After 2^32 changes, 60 hours of 10,000 allocations a second, positions stand still.
        self.order = (self.order + 1).min(LAST);
        let order = self.order;
        let change = self.model.processes[process].change(position)?;
        Some(Moment { order, time, process, change })
    }
}

/// When each ended process gave back what it held: after its last record, its orderly exit, and the last sample in which NVML still
/// listed it. `None` for a process that runs.
pub(crate) fn exits(model: &Model) -> Vec<Option<Nanoseconds>> {
    (0..model.processes.len()).map(|process| exit(model, process)).collect()
}

/// The same of one process.
pub(crate) fn exit(model: &Model, process: usize) -> Option<Nanoseconds> {
    let process = &model.processes[process];
    if !process.counters.ended {
        return None;
    }
    if process.exit.is_some() {
        return process.exit;
    }
    let last = process.last_word(model.session.start_monotonic_ns);
    let pid = process.info.pid;
    // A later program of the same process id (exec) would be taken for this one.
    let ambiguous = model.processes.iter().filter(|other| other.info.pid == pid).count() > 1;
    let listed = |sample: &&crate::journal::entry::TelemetrySample| {
        let lists = sample.devices.iter().filter_map(|device| device.processes.as_ref());
        lists.flatten().any(|listed| listed.pid == pid)
    };
    let seen = model.telemetry.iter().rev().find(listed).filter(|_| !ambiguous);
    Some(seen.map_or(last, |sample| last.max(Nanoseconds(sample.time.0.saturating_add(WINDOW_NS + 1)))))
}
