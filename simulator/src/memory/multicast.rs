//! Multicast objects: memory of several devices behind one range of addresses.
//!
//! Owns: which devices are in an object's team, and what memory is bound to it where. Memory that is bound stays as long as if it were
//! mapped, and is charged where it was created; the object itself takes none. Refuses: contents (no instruction that ordinary code
//! has reads or writes through such addresses), and to wait for devices that are still to join.

use super::virtual_memory::{GRANULARITY, Released, VirtualMemory};
use crate::error::{CUresult, Status};

/// Memory that is bound.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bound {
    physical: u32,
    offset: u64,
    bytes: u64,
    memory: u64,
}

/// The devices of an object, and what is bound to it.
pub struct Team {
    size: usize,
    devices: Vec<u32>,
    bound: Vec<Bound>,
}

impl Team {
    /// True once every device has joined.
    pub fn is_complete(&self) -> bool {
        self.devices.len() == self.size
    }

    /// Handles of the memory that is bound.
    pub fn memory(&self) -> impl Iterator<Item = u64> {
        self.bound.iter().map(|bound| bound.memory)
    }
}

impl VirtualMemory {
    /// Makes an object of `bytes` bytes for so many devices.
    pub fn create_team(&mut self, bytes: u64, size: usize, physical: u32, ordinal: i32) -> Result<u64, CUresult> {
        if size == 0 || bytes == 0 || !bytes.is_multiple_of(GRANULARITY) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let team = Team { size, devices: Vec::new(), bound: Vec::new() };
        self.make((bytes, 0), physical, ordinal, Some(team))
    }

    fn team(&mut self, object: u64) -> Result<&mut Team, CUresult> {
        let physical = self.handles.get_mut(&object);
        physical.and_then(|physical| physical.team.as_mut()).ok_or(CUresult::ERROR_INVALID_VALUE)
    }

    /// Adds a device to an object's team.
    pub fn join(&mut self, object: u64, physical: u32) -> Status {
        let team = self.team(object)?;
        if team.is_complete() || team.devices.contains(&physical) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        team.devices.push(physical);
        Ok(())
    }

    /// Binds `bytes` bytes of memory, from `from` on, at `offset` of an object.
    pub fn bind(&mut self, object: u64, offset: u64, (memory, from): (u64, u64), bytes: u64) -> Status {
        let within = |start: u64, size: u64| start.checked_add(bytes).is_some_and(|end| end <= size);
        let (object_bytes, bound) = (self.physical(object)?.bytes, self.physical(memory)?);
        let aligned = [offset, from, bytes].iter().all(|value| value.is_multiple_of(GRANULARITY));
        if !aligned || bytes == 0 || bound.team.is_some() || !within(from, bound.bytes) || !within(offset, object_bytes)
        {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let physical = bound.physical;
        let team = self.team(object)?;
        if !team.is_complete() {
            // It would wait for the others.
            return Err(CUresult::NOT_SIMULATED);
        }
        if !team.devices.contains(&physical) {
            return Err(CUresult::ERROR_INVALID_DEVICE);
        }
        let overlaps = |other: &Bound| {
            other.physical == physical && offset < other.offset + other.bytes && other.offset < offset + bytes
        };
        if team.bound.iter().any(overlaps) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        team.bound.push(Bound { physical, offset, bytes, memory });
        if let Some(bound) = self.handles.get_mut(&memory) {
            bound.mappings += 1;
        }
        Ok(())
    }

    /// The same of memory that is mapped at `address`.
    pub fn bind_mapped(&mut self, object: u64, offset: u64, address: u64, bytes: u64) -> Status {
        let memory = self.mapped(address)?;
        self.bind(object, offset, memory, bytes)
    }

    /// Unbinds what was bound with the same place and size.
    pub fn unbind(&mut self, object: u64, physical: u32, offset: u64, bytes: u64) -> Result<Released, CUresult> {
        let team = self.team(object)?;
        let is_it = |bound: &Bound| (bound.physical, bound.offset, bound.bytes) == (physical, offset, bytes);
        let index = team.bound.iter().position(is_it).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        let Bound { memory, .. } = team.bound.swap_remove(index);
        Ok(self.unuse(memory))
    }
}
