//! Whether a model that was read from a file fits together: every number of something is one that there is.
//!
//! Owns: this check, without which a broken file would be a panic or an endless loop later. Refuses: to check sums.

use super::memory::Memory;
use super::model::{MarkerKind, Model};
use super::process::{Change, Process};
use super::row::{Allocation, AllocationId};

impl Model {
    /// True when all its numbers are numbers of what it has.
    pub(crate) fn is_sound(&self) -> bool {
        let (devices, processes) = (self.devices.len(), self.processes.len());
        let is_device = |device: u16| device == Allocation::NO_DEVICE || usize::from(device) < devices;
        let is_row = |row: &Allocation| {
            is_device(row.device)
                && (row.process as usize) < processes
                && row.container().is_none_or(|id| self.has(id))
                && (row.scope as usize) < self.scopes.len()
                && (row.stack as usize) < self.stacks.len()
        };
        let is_marker = |marker: &super::model::Marker| {
            (marker.process as usize) < processes
                && match &marker.kind {
                    MarkerKind::Failure(failure) => is_device(failure.device),
                    MarkerKind::Step(_) | MarkerKind::Phase(_) => true,
                }
        };
        let is_known = |device: &u16| usize::from(*device) < devices;
        !self.names.is_empty()
            && self.scopes.is_sound()
            && self.stacks.is_sound()
            && self.paths.values().all(|scope| (*scope as usize) < self.scopes.len())
            && (0..devices as u16).all(|device| self.is_resolved(device))
            && self.device_by_uuid.values().all(is_known)
            && self.process_by_index.values().all(|process| *process < processes)
            && self.allocations.iter().all(is_row)
            && self.markers.iter().all(is_marker)
            && self.processes.iter().all(|process| process.devices.values().all(is_known) && self.has_all(process))
    }

    fn has(&self, id: AllocationId) -> bool {
        (id.0 as usize) < self.allocations.len()
    }

    /// True when a device turns out to be one, and not to be one another.
    fn is_resolved(&self, device: u16) -> bool {
        let next = |device: &u16| self.devices.get(usize::from(*device)).and_then(|device| device.alias);
        let chain = std::iter::successors(Some(device), next).take(self.devices.len() + 1);
        let (count, last) = chain.fold((0, device), |(count, _), device| (count + 1, device));
        count <= self.devices.len() && usize::from(last) < self.devices.len()
    }

    fn has_all(&self, process: &Process) -> bool {
        let is_change = |change: Change| match change {
            Change::Birth(id) | Change::Death(id) => self.has(id),
            Change::Marker(number) => (number as usize) < self.markers.len(),
            Change::Void => true,
        };
        let first = process.first_change();
        let held = process.held.iter().all(|(device, _)| usize::from(*device) < self.devices.len());
        first.is_some_and(|first| (first..process.changes()).filter_map(|at| process.change(at)).all(is_change))
            && held
            && process.memory.all_ids().all(|id| self.has(id))
    }
}

impl Memory {
    /// The allocations that it tells of.
    fn all_ids(&self) -> impl Iterator<Item = AllocationId> + '_ {
        let ranges = self.owned.ids().chain(self.registered.ids()).chain(self.blocks.ids());
        let freed = self.freed.values().flat_map(|freed| freed.blocks.iter().chain([&freed.death]));
        ranges.chain(freed.map(|(id, _)| *id)).chain(self.physical.values().map(|physical| physical.id))
    }
}

#[cfg(test)]
mod tests {
    use crate::allocation::{Container, Device};

    use super::*;

    #[test]
    fn numbers_of_nothing_are_noticed() {
        let sound = || {
            let mut model = Model::new();
            model.devices = vec![Device { alias: Some(1), ..Device::default() }, Device::default()];
            model.processes.push(Process::new(crate::journal::entry::ProcessIndex(0)));
            model.allocations.push(Allocation { process: 0, device: 1, ..Allocation::vacant() });
            model
        };
        assert!(sound().is_sound() && Model::new().is_sound());
        let broken: [fn(&mut Model); 8] = [
            |model| model.allocations[0].process = 1,
            |model| model.allocations[0].device = 2,
            |model| model.allocations[0].scope = 1,
            |model| model.allocations[0].container = Container::new(AllocationId(1)),
            |model| model.devices[1].alias = Some(0),
            |model| model.devices[1].alias = Some(2),
            |model| model.processes[0].memory.blocks.enter(0, 1, AllocationId(1)),
            |model| {
                model.processes[0].push(Change::Marker(0));
            },
        ];
        for (number, breaks) in broken.into_iter().enumerate() {
            let mut model = sound();
            breaks(&mut model);
            assert!(!model.is_sound(), "{number}");
        }
    }
}
