//! The order of changes, from the positions that rows and markers carry.
//!
//! Owns: that each position is one change's. Refuses: times.

use parquet::errors::{ParquetError, Result as TableResult};

use crate::allocation::{AllocationId, Change, Model, Packed};
use crate::timeline::{ALIVE, Lifetime};

/// The changes of all processes by position, which begin at 1; four bytes each.
pub(super) struct Order(Vec<Packed>);

impl Order {
    /// Puts each change in its place.
    ///
    /// # Errors
    /// When two are at one position, or one is behind as many as there are.
    pub fn of(lifetimes: &[Lifetime], markers: &[u32]) -> TableResult<Order> {
        let deaths = lifetimes.iter().filter(|lifetime| lifetime.death != ALIVE).count();
        let mut order = Order(vec![Change::Void.into(); lifetimes.len() + deaths + markers.len()]);
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
        let place = position.checked_sub(1).and_then(|place| self.0.get_mut(place as usize));
        let Some(place) = place.filter(|place| Change::from(**place) == Change::Void) else {
            return Err(ParquetError::General(format!("no single change is at position {position}")));
        };
        *place = change.into();
        Ok(())
    }

    /// Gives each process its changes.
    pub fn put_into(self, model: &mut Model) -> TableResult<()> {
        if let [process] = &mut model.processes[..] {
            process.set_changes(self.0);
            return Ok(());
        }
        for change in self.0.into_iter().map(Change::from) {
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
