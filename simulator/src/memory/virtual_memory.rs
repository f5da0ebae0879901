//! Virtual memory management: reserved addresses, physical allocations and the mappings between them.
//!
//! Owns: cuMemAddressReserve, cuMemCreate, cuMemMap and their undoing. A physical allocation is a memory file without
//! pages, so that it can be mapped twice and handed to another process as a descriptor; it is charged to the process
//! that made it. A multicast object is a physical allocation without bytes of its own ([`super::multicast`]). Refuses:
//! compression.

use super::Region;
use super::address_space::reserve_with;
use super::multicast::Team;
use super::shared::make_file;
use crate::error::{CUresult, Status};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Unit of sizes, addresses and offsets, bytes.
pub const GRANULARITY: u64 = 2 << 20;

/// Name of an allocation's file, before the number of its device.
const NAME: &str = "memscope-simulator-device-";

/// A physical allocation.
pub struct Physical {
    /// Bytes, a multiple of [`GRANULARITY`].
    pub bytes: u64,
    /// Bytes charged to this process; 0 for an imported one and a multicast object.
    pub charged: u64,
    /// The device's number in the shared state.
    pub physical: u32,
    /// The device's CUDA ordinal.
    pub ordinal: i32,
    /// What is bound to it, of a multicast object.
    pub(super) team: Option<Team>,
    file: OwnedFd,
    references: u32,
    /// Mappings of it, and of memory also the multicast objects that it is bound to.
    pub(super) mappings: u32,
}

#[derive(Clone, Copy)]
struct Mapping {
    bytes: u64,
    handle: u64,
    ordinal: i32,
}

/// The virtual memory of this process.
pub struct VirtualMemory {
    reservations: BTreeMap<u64, u64>,
    pub(super) handles: BTreeMap<u64, Physical>,
    mappings: BTreeMap<u64, Mapping>,
}

/// What handles that nobody holds any more give back: bytes charged, of which device.
pub type Released = Vec<(u32, u64)>;

impl VirtualMemory {
    /// Nothing reserved, nothing mapped.
    pub const fn new() -> VirtualMemory {
        VirtualMemory { reservations: BTreeMap::new(), handles: BTreeMap::new(), mappings: BTreeMap::new() }
    }

    /// Reserves addresses.
    pub fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<u64, CUresult> {
        let alignment = alignment.max(GRANULARITY);
        if bytes == 0 || !bytes.is_multiple_of(GRANULARITY) || bytes >= 1 << 47 || !alignment.is_power_of_two() {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let address = reserve_with(bytes, alignment, libc::PROT_NONE).ok_or(CUresult::ERROR_OUT_OF_MEMORY)?;
        self.reservations.insert(address, bytes);
        Ok(address)
    }

    /// Gives reserved addresses back; refused while something is mapped there.
    pub fn free(&mut self, address: u64, bytes: u64) -> Status {
        if self.reservations.get(&address) != Some(&bytes) || self.mappings.range(address..address + bytes).count() > 0
        {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        self.reservations.remove(&address);
        // SAFETY: the range is a reservation of ours in which nothing is mapped.
        unsafe { libc::munmap(address as *mut libc::c_void, bytes as usize) };
        Ok(())
    }

    /// Makes a physical allocation; the caller has charged `bytes`.
    pub fn create(&mut self, bytes: u64, physical: u32, ordinal: i32) -> Result<u64, CUresult> {
        self.make((bytes, bytes), physical, ordinal, None)
    }

    /// Makes what has `bytes` bytes of addresses, of which so many are charged.
    pub(super) fn make(
        &mut self,
        (bytes, charged): (u64, u64),
        physical: u32,
        ordinal: i32,
        team: Option<Team>,
    ) -> Result<u64, CUresult> {
        let name = std::ffi::CString::new(format!("{NAME}{physical}")).map_err(|_| CUresult::ERROR_UNKNOWN)?;
        let file = OwnedFd::from(make_file(&name, bytes)?);
        Ok(self.add(Physical { bytes, charged, physical, ordinal, team, file, references: 1, mappings: 0 }))
    }

    /// A descriptor with which another process can import the allocation.
    pub fn export(&self, handle: u64) -> Result<RawFd, CUresult> {
        let physical = self.physical(handle)?;
        if physical.team.is_some() {
            return Err(CUresult::NOT_SIMULATED);
        }
        let file = &physical.file;
        // SAFETY: the descriptor is open; the copy belongs to the program.
        match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0) } {
            number if number < 0 => Err(CUresult::ERROR_OPERATING_SYSTEM),
            number => Ok(number),
        }
    }

    /// Takes in an allocation that another process (or this one) exported. `ordinal` says which device here is the one with a
    /// number of the shared state.
    pub fn import(
        &mut self,
        descriptor: RawFd,
        ordinal: impl FnOnce(u32) -> Result<i32, CUresult>,
    ) -> Result<u64, CUresult> {
        let link = std::fs::read_link(format!("/proc/self/fd/{descriptor}"));
        let name = link.map_err(|_| CUresult::ERROR_INVALID_VALUE)?.to_string_lossy().into_owned();
        let number = name.strip_prefix("/memfd:").and_then(|name| name.strip_prefix(NAME));
        let number = number.and_then(|number| number.split(' ').next()?.parse().ok());
        let physical: u32 = number.ok_or(CUresult::ERROR_INVALID_VALUE)?;
        let ordinal = ordinal(physical)?;
        // SAFETY: fcntl refuses a number that is no descriptor; the copy is ours alone.
        let number = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
        if number < 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        // SAFETY: see above.
        let file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(number) });
        let bytes = file.metadata().map_err(|_| CUresult::ERROR_OPERATING_SYSTEM)?.len();
        if bytes == 0 || !bytes.is_multiple_of(GRANULARITY) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let file = OwnedFd::from(file);
        let team = None;
        Ok(self.add(Physical { bytes, charged: 0, physical, ordinal, team, file, references: 1, mappings: 0 }))
    }

    fn add(&mut self, physical: Physical) -> u64 {
        let handle = crate::registry::new_handle() as u64;
        self.handles.insert(handle, physical);
        handle
    }

    /// The allocation with this handle.
    pub fn physical(&self, handle: u64) -> Result<&Physical, CUresult> {
        self.handles.get(&handle).ok_or(CUresult::ERROR_INVALID_VALUE)
    }

    /// The handle mapped at `address`, with one more reference.
    pub fn retain(&mut self, address: u64) -> Result<u64, CUresult> {
        let (_, mapping) = self.mapping(address).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        let physical = self.handles.get_mut(&mapping.handle).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        physical.references += 1;
        Ok(mapping.handle)
    }

    /// Drops a reference to a handle; its memory stays while it is mapped.
    pub fn release(&mut self, handle: u64) -> Result<Released, CUresult> {
        let physical = self.handles.get_mut(&handle).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        physical.references = physical.references.checked_sub(1).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        Ok(self.drop_unused(handle))
    }

    /// Maps all of a handle at reserved addresses; not accessible until [`VirtualMemory::set_access`].
    pub fn map(&mut self, address: u64, bytes: u64, offset: u64, handle: u64) -> Status {
        let physical = self.physical(handle)?;
        if physical.team.as_ref().is_some_and(|team| !team.is_complete()) {
            // It would wait for the others.
            return Err(CUresult::NOT_SIMULATED);
        }
        let aligned = [address, bytes, offset].iter().all(|value| value.is_multiple_of(GRANULARITY));
        let inside = self.reservations.range(..=address).next_back();
        let inside = inside.is_some_and(|(&start, &length)| address + bytes <= start + length);
        if !aligned || !inside || bytes == 0 || offset != 0 || bytes != physical.bytes || self.occupied(address, bytes)
        {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let mapping = Mapping { bytes, handle, ordinal: physical.ordinal };
        place(address, bytes, Some(physical.file.as_raw_fd()))?;
        self.mappings.insert(address, mapping);
        if let Some(physical) = self.handles.get_mut(&handle) {
            physical.mappings += 1;
        }
        Ok(())
    }

    /// Unmaps whole mappings.
    pub fn unmap(&mut self, address: u64, bytes: u64) -> Result<Released, CUresult> {
        let whole = self.whole_mappings(address, bytes).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        place(address, bytes, None)?;
        let mut released = Vec::new();
        for start in whole {
            let Some(mapping) = self.mappings.remove(&start) else { continue };
            released.extend(self.unuse(mapping.handle));
        }
        Ok(released)
    }

    /// Makes mappings accessible (`true`) or not.
    pub fn set_access(&self, address: u64, bytes: u64, accessible: bool) -> Status {
        self.whole_mappings(address, bytes).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        let protection = if accessible { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_NONE };
        // SAFETY: the range is covered by mappings of ours.
        match unsafe { libc::mprotect(address as *mut libc::c_void, bytes as usize, protection) } {
            0 => Ok(()),
            _ => Err(CUresult::ERROR_OPERATING_SYSTEM),
        }
    }

    /// The mapping that holds `address`.
    pub fn region(&self, address: u64) -> Option<Region> {
        let (start, mapping) = self.mapping(address)?;
        Some(Region { start, bytes: mapping.bytes, allocation: None, ordinal: mapping.ordinal })
    }

    fn mapping(&self, address: u64) -> Option<(u64, Mapping)> {
        let (&start, &mapping) = self.mappings.range(..=address).next_back()?;
        (address - start < mapping.bytes).then_some((start, mapping))
    }

    fn occupied(&self, address: u64, bytes: u64) -> bool {
        self.mapping(address).is_some() || self.mappings.range(address..address + bytes).next().is_some()
    }

    /// Starts of the mappings that cover the range exactly; `None` if they do not.
    fn whole_mappings(&self, address: u64, bytes: u64) -> Option<Vec<u64>> {
        let end = address.checked_add(bytes)?;
        let (mut at, mut starts) = (address, Vec::new());
        while at < end {
            starts.push(at);
            at += self.mappings.get(&at)?.bytes;
        }
        (at == end && !starts.is_empty()).then_some(starts)
    }

    pub(super) fn drop_unused(&mut self, handle: u64) -> Released {
        let is_unused = self.handles.get(&handle).is_some_and(|held| held.references == 0 && held.mappings == 0);
        let removed = if is_unused { self.handles.remove(&handle) } else { None };
        let Some(physical) = removed else { return Vec::new() };
        let mut released = Vec::new();
        if physical.charged > 0 {
            released.push((physical.physical, physical.charged));
        }
        for memory in physical.team.iter().flat_map(Team::memory) {
            released.extend(self.unuse(memory));
        }
        released
    }

    /// Drops a use of memory by a mapping or a multicast object.
    pub(super) fn unuse(&mut self, handle: u64) -> Released {
        if let Some(physical) = self.handles.get_mut(&handle) {
            physical.mappings -= 1;
        }
        self.drop_unused(handle)
    }

    /// Handle and place in it of what is mapped at `address`.
    pub(super) fn mapped(&self, address: u64) -> Result<(u64, u64), CUresult> {
        let (start, mapping) = self.mapping(address).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        Ok((mapping.handle, address - start))
    }
}

/// Puts a file, or nothing, at reserved addresses, without access.
fn place(address: u64, bytes: u64, file: Option<RawFd>) -> Status {
    let kind = match file {
        Some(_) => libc::MAP_SHARED,
        None => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    };
    let flags = kind | libc::MAP_FIXED;
    let target = address as *mut libc::c_void;
    // SAFETY: the range lies inside a reservation of ours, which MAP_FIXED replaces.
    let placed = unsafe { libc::mmap(target, bytes as usize, libc::PROT_NONE, flags, file.unwrap_or(-1), 0) };
    if placed == libc::MAP_FAILED {
        return Err(CUresult::ERROR_OUT_OF_MEMORY);
    }
    // SAFETY: the range was just mapped.
    unsafe { libc::madvise(target, bytes as usize, libc::MADV_DONTDUMP) };
    Ok(())
}
