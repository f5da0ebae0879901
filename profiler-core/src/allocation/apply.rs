//! How each entry and each event changes the model.
//!
//! Owns: which event means what, devices, tags and marks. Refuses: nothing that was recorded; what makes no sense is counted in
//! `Doubts`. Births and deaths are `lifetime`.

use memscope_wire::{Category, Event, Origin, Record, TextId};

use crate::journal::Checkpoint;
use crate::journal::entry::{Entry, ProcessIndex};
use crate::keep::{Carried, CheckpointBody};
use crate::symbols;

use super::device::{Device, canonical, uuid_text};
use super::model::{Changes, Failure, Marker, MarkerKind, Model, Retag};
use super::process::{Change, MAX_NUMBER, Process};
use super::retry::Asked;
use super::row::{Allocation, AllocationId, flag};
use super::stacks::StackNode;

/// So many markers are looked through for the refusal whose line is told: it has just happened.
const RECENT: usize = 1024;

/// Where and when an event happened.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub process: usize,
    pub thread: u32,
    pub slot: u64,
}

impl Model {
    /// Applies one entry and says what it changed.
    pub fn apply(&mut self, entry: &Entry) -> Changes {
        let first = self.allocations.len() as u32;
        let mut changes = Changes::default();
        match entry {
            Entry::Summed(checkpoint) => return self.carry(checkpoint),
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
        if let Some(carried) = &mut self.carried {
            carried.late.note(&changes, &carried.walk.lifetimes);
        }
        changes
    }

    /// Begins with what a checkpoint says of what was before.
    fn carry(&mut self, checkpoint: &Checkpoint) -> Changes {
        match checkpoint.body::<CheckpointBody<Model, Carried>>() {
            Ok(body) if !(body.model.is_sound() && body.carried.walk.is_of(&body.model)) => {
                self.journal_truncated("the sums of what is not kept do not fit together");
            }
            Ok(body) => {
                let (symbols, truncated) = (self.symbols.take(), self.truncated.take());
                *self = body.model;
                (self.symbols, self.carried) = (symbols, Some(Box::new(body.carried)));
                if let Some(why) = truncated {
                    self.journal_truncated(why);
                }
            }
            Err(what) => self.journal_truncated(format!("the sums of what is not kept cannot be read: {what}")),
        }
        Changes { marks: true, ..Changes::default() }
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
        for (offset, record) in records.iter().enumerate() {
            let slot = first_slot.saturating_add(offset as u64);
            let state = &mut self.processes[process];
            if slot < state.next_slot {
                continue;
            }
            state.missing_slots = state.missing_slots.saturating_add(slot - state.next_slot);
            state.next_slot = slot.saturating_add(1);
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
                let text = String::from_utf8_lossy(text);
                process.note_registering(row, &text);
                process.functions.insert(row, self.names.number_of(&text));
            }
            Event::Device { ordinal, total_bytes, uuid } => {
                self.device_named(at.process, ordinal, total_bytes, &uuid_text(uuid));
                changes.marks = true;
            }
            Event::Thread => {
                process.threads.remove(&at.thread);
            }
            Event::Context { context, .. } => process.threads.entry(at.thread).or_default().context = context,
            Event::Object { .. } => self.object(at, event),
            Event::ObjectEnd { .. } => self.object_end(at, event, changes),
            Event::Alloc { .. } => self.alloc(at, event, changes),
            Event::Free { address, row, .. } => self.free(at, row, address, changes),
            Event::FreeRefused { address, slot, .. } => self.free_refused(at, address, slot, changes),
            Event::AllocFailed { .. } => self.alloc_failed(at, event, changes),
            Event::RefusedLine { line, device } => self.refused_line(at, line, device, changes),
            Event::Create { .. } => self.create(at, event, changes),
            Event::Elsewhere { .. } => self.elsewhere(at, event),
            Event::GraphNode { address, .. } => self.processes[at.process].memory.elsewhere.plan(address),
            Event::Retain { handle, .. } => self.retain(at, handle),
            Event::GraphMemory { .. } => self.graph_memory(at, event, changes),
            Event::PoolReserve { .. } => self.pool_reserve(at, event, changes),
            Event::Release { handle, .. } => self.release(at, handle, changes),
            Event::Map { address, bytes, handle, .. } => self.map(at, (address, bytes), handle, changes),
            Event::Unmap { address, bytes, .. } => self.unmap(at, address, bytes, changes),
            Event::BlockAlloc { address, bytes, requested, stream, origin } => {
                self.block_alloc(at, address, (bytes, requested), (stream, origin), changes);
            }
            Event::BlockFree { address, .. } => match process.memory.blocks.leave(address) {
                Some(id) => {
                    self.settle_end(at.process, id, changes);
                    self.death(at.process, id, 0, changes);
                }
                None => self.doubts.block_free_of_unknown += 1,
            },
            Event::Tag { address, name, category, origin } => {
                let memory = &process.memory;
                let owned = || memory.owned.holding(address).or_else(|| memory.registered.holding(address));
                let found = memory.blocks.holding(address).or_else(owned);
                let name = self.names.number(name);
                match found {
                    Some(id) => self.tag(id, name, category, origin, changes),
                    // The shim tags what it meets, also what no hook sees: a batch in memory shared with a worker or with NumPy.
                    None if origin == Origin::Hooked => {}
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
            Event::Scope { path } => {
                let path = self.names.number(path);
                let node = self.scope_of_path(path);
                self.processes[at.process].threads.entry(at.thread).or_default().place(node);
            }
            Event::StackNode { node, parent, file, function, line } => {
                let [file, function] = [file, function].map(|text| self.names.number(text));
                if !self.stacks.add(node, parent, StackNode { parent: 0, file, line, function }) {
                    self.doubts.over_limit += 1;
                }
            }
            Event::StackAddress { node, parent, module, offset } => self.stack_address(node, parent, module, offset),
            Event::Stack { node, whole } => {
                let thread = process.threads.entry(at.thread).or_default();
                (thread.stack, thread.stack_in_part) = (self.stacks.number(node), !whole);
            }
            Event::Owner { owner } => {
                let file = self.names.number(owner);
                process.threads.entry(at.thread).or_default().owner = self.owners.of(file, &mut self.names);
            }
            Event::Notice { text } => {
                let text = self.names.number(text);
                let text = self.names.text(text);
                if !self.notices.contains(&text) {
                    self.notices.push(text);
                    changes.marks = true;
                }
            }
            Event::Framework => process.framework = true,
            Event::ProcessName { name } => {
                let name = self.names.number(name);
                process.info.name = Some(self.names.text(name));
            }
            Event::Ranges => process.ranges.0 = true,
            Event::NotComputed => {
                self.simulation.not_computed = true;
                changes.marks = true;
            }
            Event::NotSimulated { function } => {
                let calls = self.simulation.missed.entry(self.names.number(function)).or_default();
                *calls = calls.saturating_add(1);
                changes.marks = true;
            }
            Event::DeviceRead { line, bytes, known } => {
                let line = self.names.number(line);
                self.simulation.reads.entry(line).or_default().add(bytes, known);
                if !known {
                    self.simulation.last = line;
                }
            }
            Event::Phase { name } => {
                let phase = self.names.number(name);
                process.phase = phase;
                process.ranges = (false, process.ranges.0);
                self.phase_begins(at.process, name, changes);
                self.mark(at.process, MarkerKind::Phase(phase), changes);
            }
            Event::Step { number } => {
                let step = self.steps.position(number);
                process.step = step + 1;
                self.step_begins(at.process, changes);
                self.mark(at.process, MarkerKind::Step(step), changes);
            }
        }
    }

    /// A place in machine code: the lines behind it, where they are wanted.
    fn stack_address(&mut self, node: u64, parent: u64, module: TextId, address: u64) {
        if self.stacks.knows(node) {
            return;
        }
        let module = self.names.number(module);
        let module = self.names.text(module);
        let places = match &mut self.symbols {
            Some(symbols) => symbols.places(&module, address),
            None => vec![symbols::unknown(&module, address)],
        };
        if !self.stacks.add_places(node, parent, &places, &mut self.names) {
            self.doubts.over_limit += 1;
        }
    }

    /// The scope of a module's path.
    fn scope_of_path(&mut self, path: u32) -> u32 {
        if let Some(node) = self.paths.get(&path) {
            return *node;
        }
        let text = self.names.text(path);
        let node = self.scopes.of_path(&text, &mut self.names);
        if self.names.is_complete(path) {
            self.paths.insert(path, node);
        }
        node
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
    pub(super) fn device(&mut self, process: usize, ordinal: u32) -> u16 {
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

    fn tag(&mut self, id: AllocationId, name: u32, category: Category, origin: Origin, changes: &mut Changes) {
        let was = self.allocations[id.0 as usize];
        let mut is = Allocation { name, category, origin, ..was };
        if origin == Origin::Hooked {
            // The program's own word wins over a framework's. What a module is given is an input, unless the model made it:
            // the output of another module is an activation.
            let process = was.process as usize;
            let made =
                was.origin == Origin::Inferred && was.category != Category::Inputs && !self.is_of_loss(process, &was);
            if was.origin == Origin::Tagged || (category == Category::Inputs && made) {
                return;
            }
            is.name = if name == 0 { was.name } else { name };
        }
        self.relabel(id, is, changes);
    }

    /// An allocation's category or name is another one, for its whole life.
    pub(super) fn relabel(&mut self, id: AllocationId, is: Allocation, changes: &mut Changes) {
        let was = std::mem::replace(&mut self.allocations[id.0 as usize], is);
        if was == is {
            return;
        }
        self.leave(&was);
        self.enter(&is);
        changes.retagged.push(Retag { allocation: id, was: was.category, is: is.category, origin: is.origin });
    }

    fn alloc_failed(&mut self, at: At, event: Event, changes: &mut Changes) {
        let Event::AllocFailed { requested, free, total, device, result, row, memory } = event else { return };
        let device = match memory {
            memory if memory.on_host() => Allocation::NO_DEVICE,
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
            line: 0,
            asked_again: false,
        };
        self.ask_again(at, Asked { function: failure.function, requested, thread: at.thread }, memory, Some(result));
        if self.names.text(failure.function) == crate::findings::GIVEN_UP {
            let next = self.allocations.len() as u32;
            self.processes[at.process].phases.run_out(next);
            self.processes[at.process].followed = true;
        }
        self.mark(at.process, MarkerKind::Failure(failure), changes);
    }

    /// The line that asked for what was refused last.
    fn refused_line(&mut self, at: At, line: TextId, device: u32, changes: &mut Changes) {
        let (line, device) = (self.names.number(line), self.device(at.process, device));
        if let Some(failure) = self.recent_refusals(at.process).find(|failure| failure.device == device) {
            failure.line = line;
            changes.marks = true;
        }
    }

    /// The last refusals of a process, the latest first.
    pub(super) fn recent_refusals(&mut self, process: usize) -> impl Iterator<Item = &mut Failure> {
        let recent =
            self.markers.iter_mut().rev().take(RECENT).filter(move |marker| marker.process as usize == process);
        recent.filter_map(|marker| match &mut marker.kind {
            MarkerKind::Failure(failure) => Some(failure),
            _ => None,
        })
    }

    /// The end of a process gives back all that it holds.
    fn close_process(&mut self, process: usize, changes: &mut Changes) {
        let at = At { process, thread: 0, slot: self.processes[process].next_slot };
        for address in self.processes[process].memory.owned.addresses() {
            match self.processes[process].memory.mapped.remove(&address) {
                Some(_) => drop(self.processes[process].memory.owned.leave(address)),
                None => drop(self.end_owned(at, address, flag::AT_EXIT, changes)),
            }
        }
        let physical = self.processes[process].memory.physical.drain();
        let mut physical: Vec<AllocationId> = physical.map(|(_, physical)| physical.id).collect();
        physical.sort_unstable();
        for id in physical {
            if !self.allocations[id.0 as usize].is(flag::DEAD) {
                self.death(process, id, flag::AT_EXIT, changes);
            }
        }
        for address in self.processes[process].memory.registered.addresses() {
            if let Some(id) = self.processes[process].memory.registered.leave(address) {
                self.death(process, id, flag::AT_EXIT, changes);
            }
        }
        for address in self.processes[process].memory.blocks.addresses() {
            if let Some(id) = self.processes[process].memory.blocks.leave(address) {
                self.death(process, id, flag::AT_EXIT, changes);
            }
        }
    }
}
