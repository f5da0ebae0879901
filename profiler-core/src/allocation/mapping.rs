//! Memory that is created, mapped, unmapped and released (cuMemCreate and its kin, arrays): allocations without an address of
//! their own.
//!
//! Owns: how long such memory lives (until it is released and no longer mapped), and at which addresses. Refuses: reservations
//! of addresses, which hold no memory.

use memscope_wire::{Event, Measure, MemoryKind};

use super::apply::At;
use super::memory::Physical;
use super::model::{Changes, Model};
use super::row::{Allocation, AllocationId, flag};

impl Model {
    pub(super) fn create(&mut self, at: At, event: Event, changes: &mut Changes) {
        let Event::Create { handle, bytes, measure, device, row, memory } = event else { return };
        self.doubts.note_measure(measure);
        if let Some(known) = self.processes[at.process].memory.physical.remove(&handle)
            && !self.allocations[known.id.0 as usize].is(flag::DEAD)
        {
            self.death(at.process, known.id, flag::MISSED_FREE, changes);
        }
        let device = match memory {
            memory if memory.on_host() => Allocation::NO_DEVICE,
            _ => self.device(at.process, device),
        };
        let function = self.processes[at.process].functions.get(&row).copied().unwrap_or_default();
        let memory = if memory.on_host() { MemoryKind::Host } else { memory };
        let vacant = Allocation { flags: flag::PHYSICAL, ..Allocation::vacant() };
        let created = Allocation { bytes, requested: bytes, device, function, memory, ..vacant };
        if let Some(id) = self.birth(at, created) {
            // An array is of its context; memory that is mapped is not.
            let context = if measure == Measure::Told { 0 } else { self.context_of(at) };
            let physical = Physical { id, mappings: 0, references: 1, context };
            self.processes[at.process].memory.physical.insert(handle, physical);
        }
    }

    pub(super) fn map(&mut self, at: At, (address, bytes): (u64, u64), handle: u64, changes: &mut Changes) {
        for taken in self.processes[at.process].memory.owned.overlapping(address, bytes) {
            match self.processes[at.process].memory.mapped.contains_key(&taken) {
                true => self.unmap_one(at, taken, changes),
                false => drop(self.end_owned(at, taken, flag::MISSED_FREE, changes)),
            }
        }
        let memory = &mut self.processes[at.process].memory;
        let Some(physical) = memory.physical.get_mut(&handle) else {
            if !self.map_elsewhere(at, address, bytes, handle) {
                self.doubts.map_of_unknown += 1;
            }
            return;
        };
        physical.mappings += 1;
        memory.owned.enter(address, bytes, physical.id);
        memory.mapped.insert(address, handle);
        self.allocations[physical.id.0 as usize].address = address;
    }

    pub(super) fn unmap(&mut self, at: At, address: u64, bytes: u64, changes: &mut Changes) {
        self.processes[at.process].memory.elsewhere.unmap(address, bytes);
        for start in self.processes[at.process].memory.owned.overlapping(address, bytes) {
            if start >= address && self.processes[at.process].memory.mapped.contains_key(&start) {
                self.unmap_one(at, start, changes);
            }
        }
    }

    /// What is mapped at `address` is there no more, and neither are the blocks that lay in it.
    fn unmap_one(&mut self, at: At, address: u64, changes: &mut Changes) {
        let memory = &mut self.processes[at.process].memory;
        let (Some(handle), Some(id)) = (memory.mapped.remove(&address), memory.owned.leave(address)) else { return };
        let bytes = self.allocations[id.0 as usize].bytes;
        self.end_blocks(at.process, (address, bytes), id, flag::WITH_CONTAINER, changes);
        if let Some(physical) = self.processes[at.process].memory.physical.get_mut(&handle) {
            physical.mappings = physical.mappings.saturating_sub(1);
        }
        self.settle_physical(at.process, handle, changes);
    }

    pub(super) fn release(&mut self, at: At, handle: u64, changes: &mut Changes) {
        if let Some(physical) = self.processes[at.process].memory.physical.get_mut(&handle) {
            physical.references = physical.references.saturating_sub(1);
        } else if !self.release_elsewhere(at, handle) {
            self.doubts.free_of_unknown += 1;
        }
        self.settle_physical(at.process, handle, changes);
    }

    pub(super) fn retain(&mut self, at: At, handle: u64) {
        let memory = &mut self.processes[at.process].memory;
        match memory.physical.get_mut(&handle) {
            Some(physical) => physical.references += 1,
            None => memory.elsewhere.take_handle(handle),
        }
    }

    /// Memory that is released and not mapped is gone.
    fn settle_physical(&mut self, process: usize, handle: u64, changes: &mut Changes) {
        let physical = &mut self.processes[process].memory.physical;
        if let Some(Physical { id, mappings: 0, references: 0, .. }) = physical.get(&handle).copied() {
            physical.remove(&handle);
            if !self.allocations[id.0 as usize].is(flag::DEAD) {
                self.death(process, id, 0, changes);
            }
        }
    }

    /// The allocations that hold these bytes: one, or several that are mapped one behind another; none where a byte is missing.
    pub(super) fn around(&self, process: usize, address: u64, bytes: u64) -> Vec<AllocationId> {
        let owned = &self.processes[process].memory.owned;
        if let Some(one) = owned.holding_all(address, bytes) {
            return vec![one];
        }
        let (mut found, mut next) = (Vec::new(), address);
        let end = address.saturating_add(bytes);
        while next < end {
            match owned.span(next) {
                Some((id, until)) if self.allocations[id.0 as usize].is(flag::PHYSICAL) => {
                    found.push(id);
                    next = until;
                }
                _ => return Vec::new(),
            }
        }
        found
    }
}
