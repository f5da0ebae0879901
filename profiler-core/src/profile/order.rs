//! The order of changes, from the positions that rows and markers carry.
//!
//! Owns: that each position is one change's. Refuses: times.

use parquet::errors::{ParquetError, Result as TableResult};

use crate::allocation::{AllocationId, Change, Model, Packed};
use crate::timeline::{ALIVE, Lifetime};

/// The changes of all processes by position, which begin at 1; four bytes each.
pub(super) struct Order {
    /// Changes until this position are summed.
    base: u32,
    changes: Vec<Packed>,
}

impl Order {
    /// Puts each change in its place, from behind a position on.
    ///
    /// # Errors
    /// When two are at one position, or one is behind as many as there are.
    pub fn of(lifetimes: &[Lifetime], markers: &[u32], base: u32) -> TableResult<Order> {
        let deaths = lifetimes.iter().map(|lifetime| lifetime.death).filter(|death| *death != ALIVE);
        let all = lifetimes.iter().map(|lifetime| lifetime.birth).chain(deaths).chain(markers.iter().copied());
        // Where all is kept, a position 0 is a wrong one, and is met below.
        let changes = all.filter(|position| base == 0 || *position > base).count();
        let mut order = Order { base, changes: vec![Change::Void.into(); changes] };
        for (id, lifetime) in (0..).map(AllocationId).zip(lifetimes) {
            order.put(lifetime.birth, Change::Birth(id))?;
            if lifetime.death != ALIVE {
                order.put(lifetime.death, Change::Death(id))?;
            }
        }
        for (number, position) in (0..).zip(markers) {
            order.put(*position, Change::Marker(number))?;
        }
        Ok(order)
    }

    fn put(&mut self, position: u32, change: Change) -> TableResult<()> {
        if self.base > 0 && position <= self.base {
            return Ok(());
        }
        let place = position.checked_sub(self.base + 1).and_then(|place| self.changes.get_mut(place as usize));
        let Some(place) = place.filter(|place| Change::from(**place) == Change::Void) else {
            return Err(ParquetError::General(format!("no single change is at position {position}")));
        };
        *place = change.into();
        Ok(())
    }

    /// Gives each process its changes.
    pub fn put_into(self, model: &mut Model) -> TableResult<()> {
        if let [process] = &mut model.processes[..] {
            process.set_changes(self.changes);
            return Ok(());
        }
        for change in self.changes.into_iter().map(Change::from) {
            let process = match change {
                Change::Birth(id) | Change::Death(id) => model.allocations[id.0 as usize].process,
                Change::Marker(number) => model.markers[number as usize].process,
                Change::Void => continue,
            };
            model.processes[process as usize].push(change);
        }
        Ok(())
    }
}
