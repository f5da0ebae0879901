//! Facts about allocations that were learned after their birth had been walked, as corrections of kept states.
//!
//! Owns: what has to be added to the ledgers of a moment. Refuses: to know which moments are kept (`device`, `series`).

use memscope_wire::MemoryKind;

use crate::allocation::Allocation;
use crate::ledger::EventRows;

use super::series::Drawing;
use super::{LAST, State};

/// What has to be added to the ledgers right after the changes from `orders[n]` on, until `orders[n + 1]`.
#[derive(Debug, Default)]
struct Steps {
    orders: Vec<u32>,
    sums: Vec<EventRows>,
}

/// Corrections of one part of the session.
#[derive(Debug, Default)]
pub(crate) struct Corrections {
    device: Vec<(u32, EventRows)>,
    managed: Vec<(u32, EventRows)>,
    device_steps: Steps,
    managed_steps: Steps,
}

impl Corrections {
    /// What was taken for `was` is, and has always been, `is`, from the change at one position until before another.
    pub fn replace(&mut self, (from, until): (u32, u32), was: Option<&Allocation>, is: Option<&Allocation>) {
        let Some(memory) = was.or(is).map(|allocation| allocation.memory) else { return };
        // Sums wrap, so that a difference may be negative.
        let (mut begin, mut end) = (EventRows::default(), EventRows::default());
        if let Some(was) = was {
            begin.leave(was);
            end.enter(was);
        }
        if let Some(is) = is {
            begin.enter(is);
            end.leave(is);
        }
        let list = if memory == MemoryKind::Managed { &mut self.managed } else { &mut self.device };
        list.extend([(from, begin), (until, end)]);
    }

    /// To be called when all are known.
    pub fn ready(&mut self) {
        self.device_steps = Steps::of(std::mem::take(&mut self.device));
        self.managed_steps = Steps::of(std::mem::take(&mut self.managed));
    }

    /// Position from which on something has to be put right.
    pub fn begin(&self) -> u32 {
        let first = |steps: &Steps| steps.orders.first().copied().unwrap_or(u32::MAX);
        first(&self.device_steps).min(first(&self.managed_steps))
    }

    /// Puts a state of the past right. One whose position is that of all later ones too stays as it was known then.
    pub fn apply_past(&self, state: &mut State) {
        if state.order < LAST {
            self.apply(state);
        }
    }

    /// Puts a state right.
    pub fn apply(&self, state: &mut State) {
        if let Some(sum) = self.device_steps.at(state.order) {
            state.rows.merge(sum);
        }
        if let Some(sum) = self.managed_steps.at(state.order) {
            state.managed.merge(sum);
        }
    }
}

impl Steps {
    fn of(mut changes: Vec<(u32, EventRows)>) -> Steps {
        changes.sort_by_key(|(order, _)| *order);
        let mut steps = Steps::default();
        let mut sum = EventRows::default();
        for (order, change) in changes {
            sum.merge(&change);
            if steps.orders.last() == Some(&order) {
                steps.sums.pop();
            } else {
                steps.orders.push(order);
            }
            steps.sums.push(sum);
        }
        steps
    }

    fn at(&self, order: u32) -> Option<&EventRows> {
        let after = self.orders.partition_point(|from| *from <= order);
        self.sums.get(after.checked_sub(1)?)
    }
}

impl Drawing {
    /// Puts the buckets right at the moments that they show.
    pub fn amend(&mut self, corrections: &Corrections) {
        for (bucket, order) in self.series.buckets.iter_mut().zip(&self.orders).filter(|(_, order)| **order < LAST) {
            if let Some(sum) = corrections.device_steps.at(*order) {
                let mut rows = EventRows { live: bucket.live, reserved: bucket.reserved, ..EventRows::default() };
                rows.merge(sum);
                (bucket.live, bucket.reserved) = (rows.live, rows.reserved);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::flag;

    #[test]
    fn only_moments_at_which_the_allocation_lived_are_put_right() {
        let leaf = Allocation { bytes: 100, requested: 90, ..Allocation::vacant() };
        let container = Allocation { flags: flag::CONTAINER, ..leaf };
        let mut corrections = Corrections::default();
        corrections.replace((5, 9), Some(&leaf), Some(&container));
        corrections.replace((7, 8), None, Some(&leaf));
        corrections.ready();
        let at = |order: u32, rows: EventRows| {
            let mut state = State { order, rows, ..State::default() };
            corrections.apply(&mut state);
            state.rows
        };
        let mut before = EventRows::default();
        before.enter(&leaf);
        let mut expected = EventRows::default();
        expected.enter(&container);
        assert_eq!(at(4, before), before);
        assert_eq!(at(6, before), expected);
        assert_eq!(at(9, before), before);
        expected.enter(&leaf);
        assert_eq!(at(7, before), expected);
    }
}
