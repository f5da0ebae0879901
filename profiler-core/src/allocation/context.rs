//! Contexts, and what else the driver makes without telling its bytes.
//!
//! Owns: which allocation belongs to which context, and what ends with a context: what the driver's documentation lists, memory
//! of the device, managed and pinned memory and arrays. Stream-ordered memory is its pool's, and goes with a reset of the
//! device alone; memory of cuMemCreate is its handle's. Refuses: bytes for a context, a module or a graph: nobody tells them.

use memscope_wire::{Event, MemoryKind, Object};

use serde::{Deserialize, Serialize};

use super::apply::At;
use super::model::{Changes, Model};
use super::process::Process;
use super::row::{Allocation, AllocationId, flag};

/// The driver's function that takes all memory of a device away, by what its name begins with.
const RESET: &str = "cuDevicePrimaryCtxReset";

/// How many of one kind a process had the driver make.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ObjectCount {
    /// How many were made.
    pub made: u64,
    /// How many there are.
    pub live: u64,
    /// Most at one time.
    pub most: u64,
}

impl Process {
    fn object_made(&mut self, object: Object, handle: u64, device: u32) {
        let count = &mut self.object_counts[object as usize];
        count.made += 1;
        if self.objects.insert((object, handle), device).is_none() {
            count.live += 1;
            count.most = count.most.max(count.live);
        }
    }

    /// An object is there no more; the ordinal of its device, if it was known.
    pub(super) fn object_ends(&mut self, object: Object, handle: u64) -> Option<u32> {
        let device = self.objects.remove(&(object, handle))?;
        self.object_counts[object as usize].live -= 1;
        Some(device)
    }
}

impl Model {
    /// The context in which a thread allocates; 0 when it is not known.
    pub(super) fn context_of(&self, at: At) -> u64 {
        self.processes[at.process].threads.get(&at.thread).map_or(0, |thread| thread.context)
    }

    /// The context with which memory of a kind ends; 0 for none.
    pub(super) fn context_for(&self, at: At, memory: MemoryKind) -> u64 {
        match memory {
            MemoryKind::Device | MemoryKind::Managed | MemoryKind::Host => self.context_of(at),
            MemoryKind::Pool | MemoryKind::Pageable => 0,
        }
    }

    pub(super) fn object(&mut self, at: At, event: Event) {
        if let Event::Object { object, handle, device, .. } = event {
            self.processes[at.process].object_made(object, handle, device);
        }
    }

    pub(super) fn object_end(&mut self, at: At, event: Event, changes: &mut Changes) {
        let Event::ObjectEnd { object, handle, row } = event else { return };
        let device = self.processes[at.process].object_ends(object, handle);
        if object != Object::Context {
            return;
        }
        self.end_with_context(at, handle, changes);
        let function = self.processes[at.process].functions.get(&row).copied().unwrap_or_default();
        if let Some(ordinal) = device.filter(|_| self.names.text(function).starts_with(RESET)) {
            self.end_pools(at, ordinal, changes);
        }
    }

    fn end_with_context(&mut self, at: At, context: u64, changes: &mut Changes) {
        if context == 0 {
            return;
        }
        for address in self.processes[at.process].memory.owned.of_context(context) {
            self.end_owned(at, address, flag::WITH_CONTEXT, changes);
        }
        let memory = &mut self.processes[at.process].memory;
        let mut ended: Vec<AllocationId> = Vec::new();
        memory.physical.retain(|_, physical| {
            let stays = physical.context != context;
            ended.extend((!stays).then_some(physical.id));
            stays
        });
        ended.sort_unstable();
        for address in memory.registered.of_context(context) {
            ended.extend(memory.registered.leave(address));
        }
        for id in ended {
            self.death(at.process, id, flag::WITH_CONTEXT, changes);
        }
    }

    /// Ends the stream-ordered memory of a device.
    fn end_pools(&mut self, at: At, ordinal: u32, changes: &mut Changes) {
        let device = self.device(at.process, ordinal);
        let device = self.resolve(device);
        for address in self.processes[at.process].memory.owned.addresses() {
            let here = self.processes[at.process].memory.owned.starting(address);
            let of_pool = |allocation: Allocation| {
                allocation.memory == MemoryKind::Pool && self.resolve(allocation.device) == device
            };
            if here.is_some_and(|id| of_pool(self.allocations[id.0 as usize])) {
                self.end_owned(at, address, flag::WITH_CONTEXT, changes);
            }
        }
    }
}
