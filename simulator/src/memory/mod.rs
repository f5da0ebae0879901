//! Device memory of this process: allocations, their addresses and their charges.
//!
//! Owns: the table of live allocations. Memory is address space without backing until a kernel or copy touches it, and
//! freed memory goes back to the system, save small pieces, which wait for their next use. Charges are the requested bytes rounded up to [`CHARGE_UNIT`], and nothing else.
//! Refuses: to decide what fits ([`crate::state`] does) and to move bytes ([`crate::copy`] does).

pub mod address_space;
pub mod array;
pub mod host;
mod import;
mod multicast;
pub mod pool;
pub mod shared;
pub mod virtual_memory;

use crate::context::Context;
use crate::error::{CUresult, Status};
use crate::lock::Lock;
use crate::process::Process;
use crate::registry::Handle;
use crate::side_table::SideTable;
use address_space::AddressSpace;
use pool::Pools;
use shared::{Share, Shared};
use std::collections::BTreeMap;
use virtual_memory::VirtualMemory;

/// Device allocations are charged in multiples of this many bytes.
pub const CHARGE_UNIT: u64 = 512;
/// From this size on an allocation has 2 MiB pages of its own, as on a real device.
const LARGE: u64 = 1 << 20;
/// Freed ranges of more than this size go back to the system; taking the pages of a smaller one again and again would cost
/// more than clearing them.
const KEPT: u64 = 4 << 20;
const PAGE: u64 = 4096;

/// What an allocation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// cuMemAlloc, cuMemAllocPitch.
    Device,
    /// Stream-ordered, from the pool with this handle.
    Pool(Handle),
    /// cuMemAllocManaged: lives on the host, is never charged to the device.
    Managed,
    /// Storage of a CUDA array; not to be freed by address.
    Array,
    /// A global variable of a module; not charged, not to be freed by address.
    Global,
    /// What a node of a graph allocates: charged while a launch holds it, not to be freed by address.
    Graph,
    /// Memory that is not this process's, nor charged to it.
    Imported(Import),
    /// Pinned host memory of ours (cuMemHostAlloc) with its flags.
    Host(u32),
    /// Pinned host memory of the program (cuMemHostRegister) with its flags.
    Registered(u32),
}

impl Kind {
    /// True for memory that the program may touch from the host.
    pub fn on_host(self) -> bool {
        matches!(self, Kind::Managed | Kind::Host(_) | Kind::Registered(_))
    }
}

/// How memory of another process or interface came here, or goes there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Import {
    /// cuIpcGetMemHandle, cuIpcOpenMemHandle; freed by cuIpcCloseMemHandle.
    Handle,
    /// cuMemPoolExportPointer, cuMemPoolImportPointer; freed as other memory is.
    Pointer,
    /// cuExternalMemoryGetMappedBuffer; freed as other memory is.
    Buffer,
}

/// A live allocation.
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    /// Requested bytes.
    pub bytes: u64,
    /// Bytes charged to the device.
    pub charged: u64,
    /// What it is.
    pub kind: Kind,
    /// The device's number in the shared state.
    pub physical: u32,
    /// The device's CUDA ordinal.
    pub ordinal: i32,
    /// The context it belongs to.
    pub context: Handle,
    /// A number unique in the process (CU_POINTER_ATTRIBUTE_BUFFER_ID).
    pub id: u64,
    reach: u64,
}

/// All memory of this process.
pub struct Memory {
    small: AddressSpace,
    large: AddressSpace,
    allocations: BTreeMap<u64, Allocation>,
    /// Pools of stream-ordered memory.
    pub pools: Pools,
    /// Reservations, physical allocations and mappings.
    pub virtual_memory: VirtualMemory,
    /// Small writes of a memory-only run.
    pub side_table: SideTable,
    shared: Shared,
    /// Address of what was opened, and how often.
    opened: BTreeMap<Share, (u64, u32)>,
    next_id: u64,
}

/// The memory of this process.
pub static MEMORY: Lock<Memory> = Lock::new(Memory {
    small: AddressSpace::new(CHARGE_UNIT, 64 << 20),
    large: AddressSpace::new(2 << 20, 4 << 30),
    allocations: BTreeMap::new(),
    pools: Pools::new(),
    virtual_memory: VirtualMemory::new(),
    side_table: SideTable::new(),
    shared: Shared::new(),
    opened: BTreeMap::new(),
    next_id: 1,
});

/// A range of memory that the driver knows.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// Bytes from there on.
    pub bytes: u64,
    /// What it is; `None` for a mapping of virtual memory.
    pub allocation: Option<Allocation>,
    /// The device's CUDA ordinal.
    pub ordinal: i32,
}

impl Region {
    /// True for memory that the program may touch from the host.
    pub fn on_host(&self) -> bool {
        self.allocation.is_some_and(|allocation| allocation.kind.on_host())
    }
}

impl Memory {
    /// Allocates `bytes` bytes and returns their address.
    pub fn allocate(&mut self, process: &Process, context: &Context, bytes: u64, kind: Kind) -> Result<u64, CUresult> {
        if bytes == 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let rounded = bytes.checked_next_multiple_of(CHARGE_UNIT).ok_or(CUresult::ERROR_OUT_OF_MEMORY)?;
        let charged = if matches!(kind, Kind::Managed | Kind::Global | Kind::Graph) { 0 } else { rounded };
        let space = self.space(bytes);
        let reach = space.reach(bytes).ok_or(CUresult::ERROR_OUT_OF_MEMORY)?;
        let physical = context.device.physical;
        match kind {
            Kind::Pool(pool) => self.pools.take(process, pool, charged)?,
            _ => self.charge(process, physical, charged)?,
        }
        let Some(address) = self.space(bytes).take(reach) else {
            self.uncharge(process, physical, kind, charged);
            return Err(CUresult::ERROR_OUT_OF_MEMORY);
        };
        let id = self.next_id();
        let (ordinal, context) = (context.device.ordinal, context.handle);
        let allocation = Allocation { bytes, charged, kind, physical, ordinal, context, id, reach };
        self.allocations.insert(address, allocation);
        prepare(process, address, &allocation);
        Ok(address)
    }

    /// Charges bytes of a device; takes cached bytes of this process's pools if there is no room otherwise.
    pub fn charge(&mut self, process: &Process, physical: u32, bytes: u64) -> Status {
        if process.charge(physical, bytes).is_ok() {
            return Ok(());
        }
        self.pools.release_cached(process, physical);
        process.charge(physical, bytes).map_err(|_| CUresult::ERROR_OUT_OF_MEMORY)
    }

    fn uncharge(&mut self, process: &Process, physical: u32, kind: Kind, charged: u64) {
        match kind {
            Kind::Pool(pool) => self.pools.give_back(process, pool, charged),
            _ => process.release(physical, charged),
        }
    }

    /// Frees the allocation at exactly `address` if `allowed` holds for it, else CUDA_ERROR_INVALID_VALUE.
    pub fn free(&mut self, process: &Process, address: u64, allowed: impl Fn(Kind) -> bool) -> Status {
        let allocation = *self.allocations.get(&address).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        if !allowed(allocation.kind) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        self.allocations.remove(&address);
        self.side_table.erase(address, allocation.bytes);
        match allocation.kind {
            Kind::Host(_) => host::unmap(address, allocation.reach),
            Kind::Registered(_) => {}
            Kind::Imported(_) => {
                shared::unmap(address, allocation.reach);
                self.opened.retain(|_, (opened, _)| *opened != address);
            }
            _ => {
                if self.shared.take_back(address, allocation.reach) {
                    // Fresh pages.
                } else if crate::process::computes() || allocation.kind == Kind::Managed {
                    discard(process, address, &allocation);
                }
                self.space(allocation.bytes).give_back(address, allocation.reach);
            }
        }
        self.uncharge(process, allocation.physical, allocation.kind, allocation.charged);
        Ok(())
    }

    /// Records host memory that needs no address of ours.
    pub fn adopt(&mut self, address: u64, bytes: u64, reach: u64, kind: Kind, context: &Context) {
        let id = self.next_id();
        let (physical, ordinal, context) = (context.device.physical, context.device.ordinal, context.handle);
        let allocation = Allocation { bytes, charged: 0, kind, physical, ordinal, context, id, reach };
        self.allocations.insert(address, allocation);
    }

    /// The region that holds `address`.
    pub fn region(&self, address: u64) -> Option<Region> {
        if let Some((&start, &allocation)) = self.allocations.range(..=address).next_back()
            && address - start < allocation.bytes
        {
            let (bytes, ordinal) = (allocation.bytes, allocation.ordinal);
            return Some(Region { start, bytes, allocation: Some(allocation), ordinal });
        }
        self.virtual_memory.region(address)
    }

    /// True when regions cover all of `bytes` bytes at `address`. Mappings that follow each other count as one.
    pub fn covers(&self, address: u64, bytes: u64) -> bool {
        let Some(end) = address.checked_add(bytes) else { return false };
        let mut at = address;
        while at < end {
            match self.region(at) {
                Some(region) if region.start + region.bytes >= end => return true,
                Some(region) if region.allocation.is_none() => at = region.start + region.bytes,
                _ => return false,
            }
        }
        true
    }

    fn space(&mut self, bytes: u64) -> &mut AddressSpace {
        if bytes < LARGE { &mut self.small } else { &mut self.large }
    }

    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

/// Takes away what a dead context held; with the last context on its device also what the pools cache. What is allocated from
/// a pool is the pool's and stays, unless the device is reset.
pub fn leave_context(process: &Process, context: &Context, last: bool, reset: bool) {
    let mut memory = MEMORY.lock();
    let theirs = |allocation: &Allocation| match allocation.kind {
        Kind::Pool(_) => reset && allocation.physical == context.device.physical,
        _ => allocation.context == context.handle,
    };
    let addresses: Vec<u64> =
        memory.allocations.iter().filter(|(_, allocation)| theirs(allocation)).map(|(&address, _)| address).collect();
    for address in addresses {
        // Every address was in the table a moment ago, under the same lock.
        let _ = memory.free(process, address, |_| true);
    }
    if last {
        memory.pools.release_cached(process, context.device.physical);
    }
}

/// Gives a fresh allocation its content. The content is undefined on a real device; here it is zeros, so that runs
/// repeat, or NaNs when asked. In a memory-only run the memory is not touched.
fn prepare(process: &Process, address: u64, allocation: &Allocation) {
    let touch = crate::process::computes() || allocation.kind == Kind::Managed;
    let fresh = allocation.bytes >= LARGE && !process.settings.poison;
    if touch && !fresh {
        let byte = if process.settings.poison { 0xff } else { 0 };
        // SAFETY: the range was just taken from our own readable and writable reservation.
        unsafe { std::ptr::write_bytes(address as *mut u8, byte, allocation.bytes as usize) };
    }
}

/// Leaves a freed range so that it reads as zeros when it is taken again, if [`prepare`] counts on that; gives the pages
/// inside a large one back to the system.
fn discard(process: &Process, address: u64, allocation: &Allocation) {
    if allocation.reach > KEPT {
        let (start, end) = (address.next_multiple_of(PAGE), (address + allocation.reach) & !(PAGE - 1));
        // SAFETY: the pages belong to our own reservation and hold nothing that is still allocated.
        unsafe { libc::madvise(start as *mut libc::c_void, (end - start) as usize, libc::MADV_DONTNEED) };
    } else if allocation.bytes >= LARGE && !process.settings.poison {
        // SAFETY: as above; nothing else uses them.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, allocation.bytes as usize) };
    }
}
