//! How allocations and blocks begin, end, and come back.
//!
//! Owns: the rules of birth, death, revival and containers, with the running ledgers. Refuses: to leave two live allocations, or
//! two live blocks, at one address.

use memscope_wire::{Event, MemoryKind, Origin};

use super::apply::At;
use super::memory::Freed;
use super::model::{Changes, Model};
use super::process::{Change, MAX_NUMBER};
use super::retry::Asked;
use super::row::{Allocation, AllocationId, Container, flag};

impl Model {
    /// A new allocation or block with the circumstances of this moment. Whoever calls gives it its addresses.
    pub(super) fn birth(&mut self, at: At, allocation: Allocation) -> Option<AllocationId> {
        if self.allocations.len() > MAX_NUMBER {
            self.doubts.over_limit += 1;
            return None;
        }
        let id = AllocationId(self.allocations.len() as u32);
        let process = &mut self.processes[at.process];
        let thread = process.threads.get(&at.thread).copied().unwrap_or_default();
        self.doubts.stacks_in_part += u64::from(thread.stack_in_part);
        let of_driver = !allocation.is(flag::BLOCK) && allocation.memory != MemoryKind::Pageable;
        let (name, function) = if of_driver {
            (thread.owner.name, self.owners.call(allocation.function, thread.owner, &mut self.names))
        } else {
            (allocation.name, allocation.function)
        };
        let allocation = Allocation {
            name,
            function,
            birth_ticks: process.ticks.unwrap_or_default(),
            step: process.step,
            phase: process.phase,
            scope: thread.scope,
            stack: thread.stack,
            thread: at.thread,
            process: at.process as u32,
            requested: allocation.requested.min(allocation.bytes),
            ..allocation
        };
        if allocation.origin == Origin::Inferred {
            process.passes.made(process.phases.role(), allocation.scope);
        }
        process.push(Change::Birth(id));
        self.allocations.push(allocation);
        self.enter(&allocation);
        self.note_peak(allocation.device);
        Some(id)
    }

    /// Ends an allocation that has left the process's ranges; says where the change stands.
    pub(super) fn death(&mut self, process: usize, id: AllocationId, flags: u16, changes: &mut Changes) -> usize {
        let state = &mut self.processes[process];
        let position = state.push(Change::Death(id));
        let allocation = &mut self.allocations[id.0 as usize];
        allocation.death_ticks = state.ticks.unwrap_or_default();
        allocation.flags |= flag::DEAD | flags;
        let allocation = *allocation;
        self.doubts.note_end(&allocation);
        self.leave(&allocation);
        changes.ended.push(id);
        position
    }

    pub(super) fn alloc(&mut self, at: At, event: Event, changes: &mut Changes) {
        let Event::Alloc { address, bytes, requested, stream, device, row, memory } = event else { return };
        let device = match memory {
            memory if memory.on_host() => Allocation::NO_DEVICE,
            _ => self.device(at.process, device),
        };
        let function = self.processes[at.process].functions.get(&row).copied().unwrap_or_default();
        let stream = self.streams.position(stream);
        let (category, origin) = match memory {
            MemoryKind::Pageable => {
                self.processes[at.process].framework = true;
                self.inferred(at.process)
            }
            _ => self.inferred_by_range(at.process),
        };
        let vacant = Allocation { category, origin, ..Allocation::vacant() };
        let allocation = Allocation { address, bytes, requested, stream, device, function, memory, ..vacant };
        self.ask_again(at, Asked { function, requested, thread: at.thread }, memory, None);
        if self.register(at, row, allocation, changes) {
            return;
        }
        for taken in self.processes[at.process].memory.owned.overlapping(address, bytes) {
            self.end_owned(at, taken, flag::MISSED_FREE, changes);
        }
        if memory.on_host() {
            self.given_anew(at, address, bytes, changes);
        }
        // Whoever is given the address owns it: a refusal of an earlier free comes too late.
        self.processes[at.process].memory.freed.remove(&address);
        if let Some(id) = self.birth(at, allocation) {
            let context = self.context_for(at, memory);
            self.processes[at.process].memory.owned.enter_in(context, address, bytes, id);
        }
    }

    /// Ends the allocation that begins at `address`, its blocks first.
    pub(super) fn end_owned(&mut self, at: At, address: u64, flags: u16, changes: &mut Changes) -> Option<Freed> {
        let owned = &mut self.processes[at.process].memory.owned;
        let context = owned.context(address);
        let id = owned.leave(address)?;
        let bytes = self.allocations[id.0 as usize].bytes;
        let blocks = self.end_blocks(at.process, (address, bytes), id, flags | flag::WITH_CONTAINER, changes);
        let position = self.death(at.process, id, flags, changes);
        Some(Freed { slot: at.slot, death: (id, position), blocks, context, registered: None })
    }

    /// Ends the blocks of a container that lie in these bytes; says where the changes stand.
    pub(super) fn end_blocks(
        &mut self,
        process: usize,
        (address, bytes): (u64, u64),
        container: AllocationId,
        flags: u16,
        changes: &mut Changes,
    ) -> Vec<(AllocationId, usize)> {
        let mut ended = Vec::new();
        if !self.allocations[container.0 as usize].is(flag::CONTAINER) {
            return ended;
        }
        for start in self.processes[process].memory.blocks.overlapping(address, bytes) {
            // A block that reaches beyond the container was never in it.
            let inside = |block: &AllocationId| self.allocations[block.0 as usize].container() == Some(container);
            let ranges = &mut self.processes[process].memory.blocks;
            if let Some(block) = ranges.holding(start).filter(inside) {
                ranges.leave(start);
                ended.push((block, self.death(process, block, flags, changes)));
            }
        }
        ended
    }

    pub(super) fn free(&mut self, at: At, row: u16, address: u64, changes: &mut Changes) {
        if self.unregister(at, row, address, changes) {
            return;
        }
        match self.processes[at.process].memory.owned.starting(address) {
            Some(id) => self.settle_end(at.process, id, changes),
            None if self.processes[at.process].memory.elsewhere.leave(address, at.slot) => return,
            None => {}
        }
        match self.end_owned(at, address, 0, changes) {
            Some(freed) => {
                self.processes[at.process].memory.freed.insert(address, freed);
            }
            None => {
                self.doubts.free_of_unknown += 1;
                self.processes[at.process].memory.unknown.insert(address, at.slot);
            }
        }
    }

    pub(super) fn free_refused(&mut self, at: At, address: u64, slot: u64, changes: &mut Changes) {
        self.doubts.refused_frees += 1;
        let memory = &mut self.processes[at.process].memory;
        if let Some(physical) = memory.physical.get_mut(&address)
            && physical.references == 0
        {
            physical.references = 1;
            return;
        }
        if memory.unknown.get(&address) == Some(&slot) {
            memory.unknown.remove(&address);
            self.doubts.free_of_unknown -= 1;
            return;
        }
        if memory.freed.get(&address).is_none_or(|freed| freed.slot != slot) {
            if !memory.elsewhere.restore(address, slot) {
                self.doubts.refused_too_late += 1;
            }
            return;
        }
        let Some(freed) = memory.freed.remove(&address) else { return };
        let (id, position) = freed.death;
        let (ranges, bytes) = match freed.registered {
            Some(whole) => (&mut memory.registered, whole),
            None => (&mut memory.owned, self.allocations[id.0 as usize].bytes),
        };
        if !ranges.overlapping(address, bytes).is_empty() {
            self.doubts.refused_too_late += 1;
            return;
        }
        ranges.enter_in(freed.context, address, bytes, id);
        self.revive(at.process, id, position, changes);
        for (block, position) in freed.blocks {
            let row = self.allocations[block.0 as usize];
            let blocks = &mut self.processes[at.process].memory.blocks;
            if blocks.overlapping(row.address, row.bytes).is_empty() {
                blocks.enter(row.address, row.bytes, block);
                self.revive(at.process, block, position, changes);
            }
        }
    }

    fn revive(&mut self, process: usize, id: AllocationId, position: usize, changes: &mut Changes) {
        let allocation = &mut self.allocations[id.0 as usize];
        allocation.flags &= !(flag::DEAD | flag::WITH_CONTAINER);
        let allocation = *allocation;
        self.processes[process].void(position);
        self.enter(&allocation);
        self.note_peak(allocation.device);
        changes.revived.push(id);
    }

    pub(super) fn block_alloc(
        &mut self,
        at: At,
        address: u64,
        (bytes, requested): (u64, u64),
        (stream, origin): (u64, Origin),
        changes: &mut Changes,
    ) {
        for taken in self.processes[at.process].memory.blocks.overlapping(address, bytes) {
            if let Some(id) = self.processes[at.process].memory.blocks.leave(taken) {
                self.death(at.process, id, flag::MISSED_FREE, changes);
            }
        }
        let stream = self.streams.position(stream);
        let (category, origin) = match origin {
            Origin::Hooked => {
                self.processes[at.process].followed = true;
                self.inferred(at.process)
            }
            _ => self.inferred_by_range(at.process),
        };
        let vacant = Allocation { category, origin, ..Allocation::vacant() };
        let block = Allocation { address, bytes, requested, stream, flags: flag::BLOCK, ..vacant };
        let around = self.around(at.process, address, bytes);
        let block = match around.first() {
            Some(container) => {
                around.iter().for_each(|container| self.contain(*container, changes));
                let Allocation { device, memory, .. } = self.allocations[container.0 as usize];
                Allocation { device, memory, container: Container::new(*container), ..block }
            }
            None => {
                self.doubts.outside_blocks += 1;
                Allocation { device: Allocation::NO_DEVICE, flags: flag::BLOCK | flag::OUTSIDE, ..block }
            }
        };
        if let Some(id) = self.birth(at, block) {
            self.processes[at.process].memory.blocks.enter(address, bytes, id);
        }
    }

    /// From now on, and since its birth, this allocation is a container.
    fn contain(&mut self, id: AllocationId, changes: &mut Changes) {
        let allocation = self.allocations[id.0 as usize];
        if allocation.is(flag::CONTAINER) {
            return;
        }
        let container = Allocation { flags: allocation.flags | flag::CONTAINER, ..allocation };
        self.allocations[id.0 as usize] = container;
        self.leave(&allocation);
        self.enter(&container);
        changes.containers.push(id);
    }
}
