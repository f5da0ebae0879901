//! Pinned host memory.
//!
//! Owns: its mapping, and the table entries of memory that the program registers. Nothing of it is charged to a device.

use super::{Kind, MEMORY, PAGE};
use crate::context::Context;
use crate::error::{CUresult, Status};

/// Allocates pinned memory (cuMemHostAlloc, cuMemAllocHost).
pub fn allocate(context: &Context, bytes: u64, flags: u32) -> Result<u64, CUresult> {
    if bytes == 0 {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    let reach = bytes.checked_next_multiple_of(PAGE).filter(|&reach| reach < 1 << 47);
    let reach = reach.ok_or(CUresult::ERROR_OUT_OF_MEMORY)?;
    let (protection, sharing) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), reach as usize, protection, sharing, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(CUresult::ERROR_OUT_OF_MEMORY);
    }
    MEMORY.lock().adopt(address as u64, bytes, reach, Kind::Host(flags), context);
    Ok(address as u64)
}

/// Records memory of the program as pinned (cuMemHostRegister).
pub fn register(context: &Context, address: u64, bytes: u64, flags: u32) -> Status {
    let last = bytes.checked_sub(1).and_then(|rest| address.checked_add(rest));
    let last = last.filter(|_| address != 0).ok_or(CUresult::ERROR_INVALID_VALUE)?;
    let mut memory = MEMORY.lock();
    if memory.region(address).is_some() || memory.region(last).is_some() {
        return Err(CUresult::ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    }
    memory.adopt(address, bytes, 0, Kind::Registered(flags), context);
    Ok(())
}

/// Unmaps memory of [`allocate`].
pub fn unmap(address: u64, reach: u64) {
    // SAFETY: the range is a mapping made by `allocate`, and the program gave it back.
    unsafe { libc::munmap(address as *mut libc::c_void, reach as usize) };
}
