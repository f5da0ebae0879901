//! How each entry and each event changes the model.
//!
//! Owns: the rules of birth, death, revival, containers and tags. Refuses: nothing that was recorded; what makes no sense is
//! counted in `Doubts`.

use memscope_wire::{Category, Event, MemoryKind, Origin, Record};

use crate::journal::entry::{Entry, ProcessIndex};

use super::device::{Device, canonical, uuid_text};
use super::memory::Freed;
use super::model::{Changes, Failure, Marker, MarkerKind, Model, Retag};
use super::process::{Change, MAX_NUMBER, Process};
use super::row::{Allocation, AllocationId, Container, flag};

/// Where and when an event happened.
#[derive(Clone, Copy)]
struct At {
    process: usize,
    thread: u32,
    slot: u64,
}

impl Model {
    /// Applies one entry and says what it changed.
    pub fn apply(&mut self, entry: &Entry) -> Changes {
        let first = self.allocations.len() as u32;
        let mut changes = Changes::default();
        match entry {
            Entry::Session(session) => {
                self.session = session.clone();
                changes.marks = true;
            }
            Entry::Process(info) => {
                let process = self.process(info.process);
                self.processes[process].info = info.clone();
                changes.marks = true;
            }
            Entry::Clock(index, calibration) => {
                let process = self.process(*index);
                self.processes[process].calibration = Some(*calibration);
            }
            Entry::Records { process, first_slot, records } => {
                let process = self.process(*process);
                self.records(process, *first_slot, records, &mut changes);
            }
            Entry::Telemetry(sample) => self.telemetry.push(sample.clone()),
            Entry::Counters(index, counters) => {
                let process = self.process(*index);
                self.processes[process].counters = *counters;
                if counters.ended {
                    self.close_process(process, &mut changes);
                }
            }
            Entry::End(end) => {
                self.end = Some(end.clone());
                changes.marks = true;
            }
        }
        changes.born = first..self.allocations.len() as u32;
        changes
    }

    fn process(&mut self, index: ProcessIndex) -> usize {
        let next = self.processes.len();
        let position = *self.process_by_index.entry(index).or_insert(next);
        if position == next {
            self.processes.push(Process::new(index));
        }
        position
    }

    fn records(&mut self, process: usize, first_slot: u64, records: &[Record], changes: &mut Changes) {
        for (record, slot) in records.iter().zip(first_slot..) {
            let state = &mut self.processes[process];
            if slot < state.next_slot {
                continue;
            }
            state.missing_slots += slot - state.next_slot;
            state.next_slot = slot + 1;
            if record.kind() == 0 {
                state.empty_slots += 1;
                continue;
            }
            state.ticks = Some(state.ticks.map_or(record.ticks, |ticks| ticks.max(record.ticks)));
            if let Some(event) = Event::decode(record) {
                self.event(At { process, thread: record.thread, slot }, event, changes);
            }
        }
        if self.processes[process].counters.ended {
            self.close_process(process, changes);
        }
    }

    fn event(&mut self, at: At, event: Event, changes: &mut Changes) {
        let process = &mut self.processes[at.process];
        match event {
            Event::Text { id, total_bytes, part, bytes } => self.names.part(id, total_bytes, part, &bytes),
            Event::Function { row, name } => {
                let text = name.split(|byte| *byte == 0).next().unwrap_or_default();
                let name = self.names.number_of(&String::from_utf8_lossy(text));
                process.functions.insert(row, name);
            }
            Event::Device { ordinal, total_bytes, uuid } => {
                self.device_named(at.process, ordinal, total_bytes, &uuid_text(uuid));
                changes.marks = true;
            }
            Event::Thread => {
                process.threads.remove(&at.thread);
            }
            Event::Alloc { .. } => self.alloc(at, event, changes),
            Event::Free { address, .. } => self.free(at, address, changes),
            Event::FreeRefused { address, slot, .. } => self.free_refused(at, address, slot, changes),
            Event::AllocFailed { .. } => self.alloc_failed(at, event, changes),
            Event::BlockAlloc { address, bytes, requested, stream, .. } => {
                self.block_alloc(at, address, (bytes, requested), stream, changes);
            }
            Event::BlockFree { address, .. } => match process.memory.blocks.leave(address) {
                Some(id) => {
                    self.death(at.process, id, 0, changes);
                }
                None => self.doubts.block_free_of_unknown += 1,
            },
            Event::Tag { address, name, category, origin } => {
                let found = process.memory.blocks.holding(address).or_else(|| process.memory.owned.holding(address));
                let name = self.names.number(name);
                match found {
                    Some(id) => self.tag(id, name, category, origin, changes),
                    None => self.doubts.tag_of_unknown += 1,
                }
            }
            Event::ScopePush { name } => {
                let name = self.names.number(name);
                process.threads.entry(at.thread).or_default().push(&mut self.scopes, name);
            }
            Event::ScopePop => {
                process.threads.entry(at.thread).or_default().pop(&self.scopes);
            }
            Event::Phase { name } => {
                let phase = self.names.number(name);
                process.phase = phase;
                self.mark(at.process, MarkerKind::Phase(phase), changes);
            }
            Event::Step { number } => {
                let step = self.steps.position(number);
                process.step = step + 1;
                self.mark(at.process, MarkerKind::Step(step), changes);
            }
        }
    }

    fn mark(&mut self, process: usize, kind: MarkerKind, changes: &mut Changes) {
        if self.markers.len() > MAX_NUMBER {
            self.doubts.over_limit += 1;
            return;
        }
        let state = &mut self.processes[process];
        state.push(Change::Marker(self.markers.len() as u32));
        self.markers.push(Marker { process: process as u32, ticks: state.ticks.unwrap_or_default(), kind });
        changes.marks = true;
    }

    /// The device with this ordinal in this process; one that was not announced is kept apart until it is.
    fn device(&mut self, process: usize, ordinal: u32) -> u16 {
        if let Some(device) = self.processes[process].devices.get(&ordinal) {
            return *device;
        }
        let position = self.new_device(Device { ordinal, ..Device::default() });
        self.processes[process].devices.insert(ordinal, position);
        position
    }

    fn new_device(&mut self, device: Device) -> u16 {
        if self.devices.len() >= Allocation::NO_DEVICE as usize {
            self.doubts.over_limit += 1;
            return Allocation::NO_DEVICE - 1;
        }
        self.devices.push(device);
        (self.devices.len() - 1) as u16
    }

    fn device_named(&mut self, process: usize, ordinal: u32, total_bytes: u64, uuid: &str) {
        let uuid = canonical(uuid);
        let known = self.device_by_uuid.get(&uuid).copied();
        let here = self.processes[process].devices.get(&ordinal).map(|position| self.resolve(*position));
        let position = match (known, here) {
            (Some(known), Some(here)) if known == here => known,
            (Some(known), Some(here)) if self.devices[here as usize].uuid.is_none() => {
                let placeholder = &mut self.devices[here as usize];
                placeholder.alias = Some(known);
                let (rows, managed) = (std::mem::take(&mut placeholder.rows), std::mem::take(&mut placeholder.managed));
                self.devices[known as usize].rows.merge(&rows);
                self.devices[known as usize].managed.merge(&managed);
                self.note_peak(known);
                known
            }
            (Some(known), _) => known,
            (None, Some(here)) if self.devices[here as usize].uuid.is_none() => here,
            (None, _) => self.new_device(Device { ordinal, ..Device::default() }),
        };
        let device = &mut self.devices[position as usize];
        device.capacity = Some(total_bytes).filter(|bytes| *bytes > 0).or(device.capacity);
        device.uuid = Some(uuid.clone());
        self.device_by_uuid.insert(uuid, position);
        self.processes[process].devices.insert(ordinal, position);
    }

    /// A new allocation or block with the circumstances of this moment.
    fn birth(&mut self, at: At, allocation: Allocation) -> Option<AllocationId> {
        if self.allocations.len() > MAX_NUMBER {
            self.doubts.over_limit += 1;
            return None;
        }
        let id = AllocationId(self.allocations.len() as u32);
        let process = &mut self.processes[at.process];
        let allocation = Allocation {
            birth_ticks: process.ticks.unwrap_or_default(),
            step: process.step,
            phase: process.phase,
            scope: process.threads.get(&at.thread).map_or(0, |thread| thread.scope),
            thread: at.thread,
            process: at.process as u32,
            requested: allocation.requested.min(allocation.bytes),
            ..allocation
        };
        process.push(Change::Birth(id));
        let ranges = if allocation.is(flag::BLOCK) { &mut process.memory.blocks } else { &mut process.memory.owned };
        ranges.enter(allocation.address, allocation.bytes, id);
        self.allocations.push(allocation);
        self.rows_mut(allocation.memory, allocation.device).enter(&allocation);
        self.note_peak(allocation.device);
        Some(id)
    }

    /// Ends an allocation that has left the process's ranges; says where the change stands.
    fn death(&mut self, process: usize, id: AllocationId, flags: u8, changes: &mut Changes) -> usize {
        let state = &mut self.processes[process];
        let position = state.push(Change::Death(id));
        let allocation = &mut self.allocations[id.0 as usize];
        allocation.death_ticks = state.ticks.unwrap_or_default();
        allocation.flags |= flag::DEAD | flags;
        let allocation = *allocation;
        self.rows_mut(allocation.memory, allocation.device).leave(&allocation);
        changes.ended.push(id);
        position
    }

    fn alloc(&mut self, at: At, event: Event, changes: &mut Changes) {
        let Event::Alloc { address, bytes, requested, stream, device, row, memory } = event else { return };
        for taken in self.processes[at.process].memory.owned.overlapping(address, bytes) {
            self.end_owned(at, taken, flag::MISSED_FREE, changes);
        }
        // Whoever is given the address owns it: a refusal of an earlier free comes too late.
        self.processes[at.process].memory.freed.remove(&address);
        let device = match memory {
            MemoryKind::Host => Allocation::NO_DEVICE,
            _ => self.device(at.process, device),
        };
        let function = self.processes[at.process].functions.get(&row).copied().unwrap_or_default();
        let stream = self.streams.position(stream);
        self.birth(
            at,
            Allocation { address, bytes, requested, stream, device, function, memory, ..Allocation::vacant() },
        );
    }

    /// Ends the allocation that begins at `address`, its blocks first.
    fn end_owned(&mut self, at: At, address: u64, flags: u8, changes: &mut Changes) -> Option<Freed> {
        let id = self.processes[at.process].memory.owned.leave(address)?;
        let mut blocks = Vec::new();
        let bytes = self.allocations[id.0 as usize].bytes;
        if self.allocations[id.0 as usize].is(flag::CONTAINER) {
            for block in self.processes[at.process].memory.blocks.overlapping(address, bytes) {
                if let Some(block) = self.processes[at.process].memory.blocks.leave(block) {
                    blocks.push((block, self.death(at.process, block, flags | flag::WITH_CONTAINER, changes)));
                }
            }
        }
        let position = self.death(at.process, id, flags, changes);
        Some(Freed { slot: at.slot, death: (id, position), blocks })
    }

    fn free(&mut self, at: At, address: u64, changes: &mut Changes) {
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

    fn free_refused(&mut self, at: At, address: u64, slot: u64, changes: &mut Changes) {
        self.doubts.refused_frees += 1;
        let memory = &mut self.processes[at.process].memory;
        if memory.unknown.get(&address) == Some(&slot) {
            memory.unknown.remove(&address);
            self.doubts.free_of_unknown -= 1;
            return;
        }
        if memory.freed.get(&address).is_none_or(|freed| freed.slot != slot) {
            self.doubts.refused_too_late += 1;
            return;
        }
        let Some(freed) = memory.freed.remove(&address) else { return };
        let (id, position) = freed.death;
        if !memory.owned.overlapping(address, self.allocations[id.0 as usize].bytes).is_empty() {
            self.doubts.refused_too_late += 1;
            return;
        }
        self.revive(at.process, id, position, changes);
        for (block, position) in freed.blocks {
            let row = self.allocations[block.0 as usize];
            if self.processes[at.process].memory.blocks.overlapping(row.address, row.bytes).is_empty() {
                self.revive(at.process, block, position, changes);
            }
        }
    }

    fn revive(&mut self, process: usize, id: AllocationId, position: usize, changes: &mut Changes) {
        let allocation = &mut self.allocations[id.0 as usize];
        allocation.flags &= !(flag::DEAD | flag::WITH_CONTAINER);
        let allocation = *allocation;
        let state = &mut self.processes[process];
        state.void(position);
        let ranges = if allocation.is(flag::BLOCK) { &mut state.memory.blocks } else { &mut state.memory.owned };
        ranges.enter(allocation.address, allocation.bytes, id);
        self.rows_mut(allocation.memory, allocation.device).enter(&allocation);
        self.note_peak(allocation.device);
        changes.revived.push(id);
    }

    fn block_alloc(
        &mut self,
        at: At,
        address: u64,
        (bytes, requested): (u64, u64),
        stream: u64,
        changes: &mut Changes,
    ) {
        for taken in self.processes[at.process].memory.blocks.overlapping(address, bytes) {
            if let Some(id) = self.processes[at.process].memory.blocks.leave(taken) {
                self.death(at.process, id, flag::MISSED_FREE, changes);
            }
        }
        let stream = self.streams.position(stream);
        let block = Allocation { address, bytes, requested, stream, flags: flag::BLOCK, ..Allocation::vacant() };
        let block = match self.processes[at.process].memory.owned.holding_all(address, bytes) {
            Some(container) => {
                self.contain(container, changes);
                let Allocation { device, memory, .. } = self.allocations[container.0 as usize];
                Allocation { device, memory, container: Container::new(container), ..block }
            }
            None => {
                self.doubts.outside_blocks += 1;
                Allocation { device: Allocation::NO_DEVICE, flags: flag::BLOCK | flag::OUTSIDE, ..block }
            }
        };
        self.birth(at, block);
    }

    /// From now on, and since its birth, this allocation is a container.
    fn contain(&mut self, id: AllocationId, changes: &mut Changes) {
        let allocation = self.allocations[id.0 as usize];
        if allocation.is(flag::CONTAINER) {
            return;
        }
        let container = Allocation { flags: allocation.flags | flag::CONTAINER, ..allocation };
        self.allocations[id.0 as usize] = container;
        let rows = self.rows_mut(allocation.memory, allocation.device);
        rows.leave(&allocation);
        rows.enter(&container);
        changes.containers.push(id);
    }

    fn tag(&mut self, id: AllocationId, name: u32, category: Category, origin: Origin, changes: &mut Changes) {
        let was = self.allocations[id.0 as usize];
        let is = Allocation { name, category, origin, ..was };
        if was == is {
            return;
        }
        self.allocations[id.0 as usize] = is;
        let rows = self.rows_mut(was.memory, was.device);
        rows.leave(&was);
        rows.enter(&is);
        changes.retagged.push(Retag { allocation: id, was: was.category, is: category, origin });
    }

    fn alloc_failed(&mut self, at: At, event: Event, changes: &mut Changes) {
        let Event::AllocFailed { requested, free, total, device, result, row, memory } = event else { return };
        let device = match memory {
            MemoryKind::Host => Allocation::NO_DEVICE,
            _ => self.device(at.process, device),
        };
        let process = &self.processes[at.process];
        let failure = Failure {
            requested,
            free,
            total,
            device,
            result,
            function: process.functions.get(&row).copied().unwrap_or_default(),
            memory,
            scope: process.threads.get(&at.thread).map_or(0, |thread| thread.scope),
            phase: process.phase,
            step: process.step,
        };
        self.mark(at.process, MarkerKind::Failure(failure), changes);
    }

    /// The end of a process gives back all that it holds.
    fn close_process(&mut self, process: usize, changes: &mut Changes) {
        let at = At { process, thread: 0, slot: self.processes[process].next_slot };
        for address in self.processes[process].memory.owned.addresses() {
            self.end_owned(at, address, flag::AT_EXIT, changes);
        }
        for address in self.processes[process].memory.blocks.addresses() {
            if let Some(id) = self.processes[process].memory.blocks.leave(address) {
                self.death(process, id, flag::AT_EXIT, changes);
            }
        }
    }
}
