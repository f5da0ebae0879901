//! Memory that a process uses and that does not count in it: imports, which count at their exporter, and the nodes of graphs,
//! whose bytes are told with the graphs of the device. Which of both an event says itself.
//!
//! Owns: which addresses and handles these are, so that their free is no riddle; and the bytes that the driver holds for graphs,
//! as one allocation of each device; and what pools keep beyond their allocations. Refuses: to put an import in any sum.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use memscope_wire::{Event, MemoryKind, Object};

use serde::{Deserialize, Serialize};

use super::apply::At;
use super::memory::Physical;
use super::model::{Changes, Model};
use super::row::{Allocation, AllocationId, flag};

/// What the name of a pool's reserve begins with.
pub(crate) const POOL_RESERVE: &str = "pool's reserve: ";
/// Handles that stand for the memory of a device's graphs: no handle of a driver is so large.
const GRAPHS: u64 = u64::MAX << 32;
/// What is added to the handle of a pool for the one that stands for what it keeps.
const POOLS: u64 = 1 << 63;

/// Addresses and handles of one process that count elsewhere.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Elsewhere {
    /// How often what begins at an address was opened.
    addresses: BTreeMap<u64, u32>,
    /// Addresses of the nodes of graphs: each launch has memory there anew, which may be freed anew.
    nodes: BTreeSet<u64>,
    /// How often a handle was given.
    handles: HashMap<u64, u32>,
    /// Slot of the last free of such an address: the driver may refuse it.
    left: HashMap<u64, u64>,
}

impl Elsewhere {
    fn enter(&mut self, address: u64) {
        *self.addresses.entry(address).or_default() += 1;
    }

    /// One more reference to a handle.
    pub fn take_handle(&mut self, handle: u64) {
        *self.handles.entry(handle).or_default() += 1;
    }

    /// A node of a graph has memory at this address.
    pub fn plan(&mut self, address: u64) {
        self.nodes.insert(address);
    }

    /// Gives an address back once, by the free at a slot; false when it is none of these.
    pub fn leave(&mut self, address: u64, slot: u64) -> bool {
        let Some(times) = self.addresses.get_mut(&address) else { return self.nodes.contains(&address) };
        *times -= 1;
        if *times == 0 {
            self.addresses.remove(&address);
        }
        self.left.insert(address, slot);
        true
    }

    /// The free at that slot was refused; false when it gave none of these back.
    pub fn restore(&mut self, address: u64, slot: u64) -> bool {
        let is_it = self.left.get(&address) == Some(&slot);
        if is_it {
            self.left.remove(&address);
            self.enter(address);
        }
        is_it || self.nodes.contains(&address)
    }

    /// Nothing is mapped at these addresses any more.
    pub fn unmap(&mut self, address: u64, bytes: u64) {
        if !self.addresses.is_empty() {
            self.addresses.retain(|start, _| *start < address || *start - address >= bytes);
        }
    }

    fn release(&mut self, handle: u64) -> bool {
        let Some(times) = self.handles.get_mut(&handle) else { return false };
        *times -= 1;
        if *times == 0 {
            self.handles.remove(&handle);
        }
        true
    }
}

impl Model {
    pub(super) fn elsewhere(&mut self, at: At, event: Event) {
        let Event::Elsewhere { address, handle, .. } = event else { return };
        let memory = &mut self.processes[at.process].memory;
        if handle == 0 {
            memory.elsewhere.enter(address);
        } else if memory.physical.contains_key(&handle) {
            // Its own memory, imported by the process that exported it.
            self.retain(at, handle);
        } else {
            memory.elsewhere.take_handle(handle);
        }
    }

    /// Maps a handle that counts elsewhere, or a multicast object; false if it is neither.
    pub(super) fn map_elsewhere(&mut self, at: At, address: u64, bytes: u64, handle: u64) -> bool {
        let process = &mut self.processes[at.process];
        let is_known = process.memory.elsewhere.handles.contains_key(&handle)
            || process.objects.contains_key(&(Object::Multicast, handle));
        if is_known {
            process.memory.elsewhere.unmap(address, bytes);
            process.memory.elsewhere.enter(address);
        }
        is_known
    }

    /// Gives such a handle back; false if it is none.
    pub(super) fn release_elsewhere(&mut self, at: At, handle: u64) -> bool {
        let process = &mut self.processes[at.process];
        process.memory.elsewhere.release(handle) || process.object_ends(Object::Multicast, handle).is_some()
    }

    /// What the driver holds for graphs of a device.
    pub(super) fn graph_memory(&mut self, at: At, event: Event, changes: &mut Changes) {
        let Event::GraphMemory { bytes, device, row } = event else { return };
        let held = Allocation { bytes, memory: MemoryKind::Device, flags: flag::PHYSICAL, ..Allocation::vacant() };
        self.hold(at, GRAPHS | u64::from(device), held, (device, row), changes);
    }

    /// What a pool keeps beyond what is allocated from it.
    pub(super) fn pool_reserve(&mut self, at: At, event: Event, changes: &mut Changes) {
        let Event::PoolReserve { pool, bytes, device, row } = event else { return };
        let flags = flag::PHYSICAL | flag::CONTAINER | flag::POOL_RESERVE;
        let kept = Allocation { bytes, memory: MemoryKind::Pool, flags, ..Allocation::vacant() };
        let Some(id) = self.hold(at, POOLS | pool, kept, (device, row), changes) else { return };
        let is_made = self.processes[at.process].objects.contains_key(&(Object::Pool, pool));
        let name = if is_made { format!("pool {pool:#x}") } else { "default pool".to_owned() };
        self.allocations[id.0 as usize].name = self.names.number_of(&format!("{POOL_RESERVE}{name}"));
    }

    /// Of what the driver holds for its own ends, under a handle of ours: one allocation, which is made anew when its size changes.
    fn hold(
        &mut self,
        at: At,
        handle: u64,
        held: Allocation,
        (ordinal, row): (u32, u16),
        changes: &mut Changes,
    ) -> Option<AllocationId> {
        if let Some(known) = self.processes[at.process].memory.physical.remove(&handle) {
            self.death(at.process, known.id, 0, changes);
        }
        if held.bytes == 0 {
            return None;
        }
        let device = self.device(at.process, ordinal);
        let function = self.processes[at.process].functions.get(&row).copied().unwrap_or_default();
        let id = self.birth(at, Allocation { requested: held.bytes, device, function, ..held })?;
        let physical = Physical { id, mappings: 0, references: 1, context: 0 };
        self.processes[at.process].memory.physical.insert(handle, physical);
        Some(id)
    }
}
