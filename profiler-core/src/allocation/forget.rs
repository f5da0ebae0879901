//! Forgetting what ended long ago, so that a session of any length can be followed in bounded memory.
//!
//! Owns: everything that holds the number of an allocation or of a marker. Refuses: to choose what goes.

use crate::timeline::Walked;

use super::memory::Memory;
use super::model::Model;
use super::row::{AllocationId, Container};

/// Numbers from now on, by those until now.
struct Numbers(Vec<u32>);

/// Stands for what has no number any more.
const GONE: u32 = u32::MAX;

impl Numbers {
    fn of(keep: impl Iterator<Item = bool>) -> Numbers {
        let mut next = 0;
        let number = |keep: bool| {
            if !keep {
                return GONE;
            }
            next += 1;
            next - 1
        };
        Numbers(keep.map(number).collect())
    }

    /// The number from now on of the first that stays from this one on.
    fn first_from(&self, was: u32) -> u32 {
        let from = self.0.iter().skip(was as usize).find(|now| **now != GONE);
        let before = || self.0.iter().rev().find(|now| **now != GONE).map_or(0, |last| last + 1);
        from.copied().unwrap_or_else(before)
    }

    fn now(&self, was: AllocationId) -> Option<AllocationId> {
        self.0.get(was.0 as usize).copied().filter(|now| *now != GONE).map(AllocationId)
    }
}

impl Model {
    /// Forgets allocations that have ended, and the changes that have been walked; all must have been. `keep` says by number
    /// what stays: everything that lives must. Who remains is numbered anew, in the same order.
    pub(crate) fn forget(&mut self, keep: &[bool], walked: &Walked) {
        let numbers = Numbers::of(keep.iter().copied());
        for (allocation, _) in self.allocations.iter().zip(keep).filter(|(_, keep)| !**keep) {
            self.forgotten.count(allocation);
            self.processes[allocation.process as usize].forgotten += 1;
            self.forgotten_rows += 1;
        }
        let mut number = 0;
        self.allocations.retain(|_| {
            number += 1;
            keep[number - 1]
        });
        for allocation in &mut self.allocations {
            allocation.container = allocation.container().and_then(|id| Container::new(numbers.now(id)?));
        }
        for (process, walked) in self.processes.iter_mut().zip(&walked.changes) {
            process.drop_changes(*walked);
            process.memory.renumber(&numbers);
            process.phases.renumber(|first| numbers.first_from(first));
            process.passes.renumber(|first| numbers.first_from(first));
        }
    }

    /// Forgets markers, and the changes that have been walked; all must have been. `keep` says by number which stay.
    pub(crate) fn forget_markers(&mut self, keep: &[bool], walked: &Walked) {
        for (process, walked) in self.processes.iter_mut().zip(&walked.changes) {
            process.drop_changes(*walked);
        }
        let gone = self.markers.iter().zip(keep).filter(|(marker, keep)| !**keep && marker.failure().is_some());
        self.forgotten.refused += gone.count() as u64;
        let mut number = 0;
        self.markers.retain(|_| {
            number += 1;
            keep[number - 1]
        });
    }

    /// Allocations and blocks so far, those that were forgotten too.
    pub(crate) fn seen(&self) -> u64 {
        self.forgotten_rows + self.allocations.len() as u64
    }
}

impl Memory {
    fn renumber(&mut self, numbers: &Numbers) {
        for ranges in [&mut self.owned, &mut self.registered, &mut self.blocks] {
            ranges.renumber(|id| numbers.now(id));
        }
        for physical in self.physical.values_mut() {
            physical.id = numbers.now(physical.id).unwrap_or(physical.id);
        }
        // A refusal of what is forgotten comes too late.
        self.freed.retain(|_, freed| match numbers.now(freed.death.0) {
            Some(id) => {
                freed.death.0 = id;
                freed.blocks.retain_mut(|(block, _)| {
                    let now = numbers.now(*block);
                    *block = now.unwrap_or(*block);
                    now.is_some()
                });
                true
            }
            None => false,
        });
    }
}
