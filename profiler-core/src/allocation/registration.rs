//! Memory of the program's own that the driver pins in place (cuMemHostRegister).
//!
//! Owns: the rule by which it counts. A registration is no memory of its own: what of it lies in host allocations that are known
//! (a CPU tensor, say) counts there, and only the rest counts as the registration. Where nothing of it is known, it is held to be
//! an allocation as any other, in which blocks may lie. Refuses: to change that when what it lay in is freed first.

use super::apply::At;
use super::memory::Freed;
use super::model::{Changes, Model};
use super::process::Process;
use super::row::{Allocation, flag};

/// The driver's functions, by what their names begin with.
const REGISTER: &str = "cuMemHostRegister";
const UNREGISTER: &str = "cuMemHostUnregister";

impl Process {
    /// Notes the row of a function that registers or unregisters memory.
    pub(super) fn note_registering(&mut self, row: u16, name: &str) {
        if (name.starts_with(REGISTER) || name.starts_with(UNREGISTER)) && !self.registering.contains(&row) {
            self.registering.push(row);
        }
    }
}

impl Model {
    /// Takes in what the driver has pinned, if it is memory of the program's own of which something is known already; false if
    /// it is an allocation as any other.
    pub(super) fn register(&mut self, at: At, row: u16, allocation: Allocation, changes: &mut Changes) -> bool {
        let process = &self.processes[at.process];
        let Allocation { address, bytes, .. } = allocation;
        let known = match process.registering.contains(&row) {
            true => {
                process.memory.owned.shared(address, bytes, |id| !self.is_registered(self.allocations[id.0 as usize]))
            }
            false => return false,
        };
        // The driver pins no byte twice: the end of an earlier registration was not seen.
        self.end_registrations(at, address, bytes, |_| true, changes);
        if known == 0 {
            return false;
        }
        for taken in self.processes[at.process].memory.owned.overlapping(address, bytes) {
            let earlier = self.processes[at.process].memory.owned.starting(taken);
            if earlier.is_some_and(|id| self.is_registered(self.allocations[id.0 as usize])) {
                self.end_owned(at, taken, flag::MISSED_FREE, changes);
            }
        }
        let own = bytes - known;
        if let Some(id) = self.birth(at, Allocation { bytes: own, requested: own, ..allocation }) {
            let context = self.context_of(at);
            self.processes[at.process].memory.registered.enter_in(context, address, bytes, id);
        }
        true
    }

    /// Ends what was pinned at `address`, and nothing else that begins there; false if the free is one as any other.
    pub(super) fn unregister(&mut self, at: At, row: u16, address: u64, changes: &mut Changes) -> bool {
        let process = &mut self.processes[at.process];
        if !process.registering.contains(&row) {
            return false;
        }
        let context = process.memory.registered.context(address);
        let whole = process.memory.registered.span(address).map(|(_, end)| end - address);
        if let (Some(id), Some(whole)) = (process.memory.registered.leave(address), whole) {
            let position = self.death(at.process, id, 0, changes);
            let freed =
                Freed { slot: at.slot, death: (id, position), blocks: Vec::new(), context, registered: Some(whole) };
            self.processes[at.process].memory.freed.insert(address, freed);
            return true;
        }
        let here = self.processes[at.process].memory.owned.starting(address);
        if here.is_none_or(|id| self.is_registered(self.allocations[id.0 as usize])) {
            return false;
        }
        self.doubts.free_of_unknown += 1;
        self.processes[at.process].memory.unknown.insert(address, at.slot);
        true
    }

    /// The host's memory at these bytes is given anew: a registration that counts there ends. One that counts for nothing may
    /// stay, until the program ends it.
    pub(super) fn given_anew(&mut self, at: At, address: u64, bytes: u64, changes: &mut Changes) {
        self.end_registrations(at, address, bytes, |allocation| allocation.bytes > 0, changes);
    }

    fn end_registrations(
        &mut self,
        at: At,
        address: u64,
        bytes: u64,
        which: impl Fn(&Allocation) -> bool,
        changes: &mut Changes,
    ) {
        for taken in self.processes[at.process].memory.registered.overlapping(address, bytes) {
            let registered = &mut self.processes[at.process].memory.registered;
            if let Some(id) = registered.starting(taken).filter(|id| which(&self.allocations[id.0 as usize])) {
                registered.leave(taken);
                self.death(at.process, id, flag::MISSED_FREE, changes);
            }
        }
    }

    fn is_registered(&self, allocation: Allocation) -> bool {
        self.names.text(allocation.function).starts_with(REGISTER)
    }
}
