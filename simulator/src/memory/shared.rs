//! Memory that processes share: pages of this one that another may map, and memory of others that is mapped here.
//!
//! Owns: one file a process, without pages until something is shared, in which a byte's place is its address; what is shared is
//! moved into it where it lies. Who holds the [`Share`] of an allocation maps it from there. An import is charged to nobody
//! but its owner. Refuses: to say who may share what.
//!
//! Limit: a byte that another thread writes while its page is moved may be lost. Small allocations lie on pages with others.

use super::PAGE;
use crate::error::{CUresult, Status};
use crate::state::{Identity, is_running};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// Places of the file: more than there are addresses of programs.
const PLACES: u64 = 1 << 47;
const MAGIC: u64 = u64::from_le_bytes(*b"MSCPSHR1");
/// Bits of a page in /proc/self/pagemap: in memory, swapped out.
const HAS_CONTENT: u64 = 0b11 << 62;
/// Pages that are looked at in one go.
const BATCH: u64 = 512;

/// What another process needs to map an allocation of this one. It crosses the C interface as 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Share {
    magic: u64,
    /// The owner's process id.
    pub pid: u32,
    /// The device's number in the shared state.
    pub physical: u32,
    start_time: u64,
    /// The owner's number of the allocation; 0 for what is no allocation.
    pub id: u64,
    /// Where it lies in its owner.
    address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The pool it belongs to, as its owner calls it.
    pub pool: u64,
    descriptor: i32,
    padding: u32,
}

const _: () = assert!(size_of::<Share>() == 64);

impl Share {
    /// A share of nothing but a pool of this process.
    pub fn of_pool(pool: u64, physical: u32) -> Share {
        let Identity { pid, start_time, .. } = Identity::of_this_process();
        let (descriptor, padding) = (-1, 0);
        Share { magic: MAGIC, pid, physical, start_time, id: 0, address: 0, bytes: 0, pool, descriptor, padding }
    }

    /// True for what this process shares itself.
    pub fn is_own(&self) -> bool {
        self.pid == std::process::id()
    }

    /// True when both belong to one pool.
    pub fn has_pool_of(&self, other: &Share) -> bool {
        (self.pid, self.start_time, self.pool) == (other.pid, other.start_time, other.pool)
    }

    /// CUDA_ERROR_INVALID_VALUE unless this was made here, by a process that still runs.
    pub fn checked(self) -> Result<Share, CUresult> {
        let is_ours = self.magic == MAGIC && is_running(self.pid, self.start_time);
        if is_ours { Ok(self) } else { Err(CUresult::ERROR_INVALID_VALUE) }
    }
}

/// What this process shares.
pub struct Shared {
    file: Option<File>,
    /// Ends of the ranges of pages that lie in the file, by their starts.
    ranges: BTreeMap<u64, u64>,
}

impl Shared {
    /// Nothing is shared.
    pub const fn new() -> Shared {
        Shared { file: None, ranges: BTreeMap::new() }
    }

    /// Shares the allocation of this number at `address`, which reaches over `reach` bytes.
    pub fn share(&mut self, address: u64, bytes: u64, reach: u64, share: Share) -> Result<Share, CUresult> {
        let (mut at, end) = (address & !(PAGE - 1), (address + reach).next_multiple_of(PAGE));
        let file = match self.file.take() {
            Some(file) => file,
            None => make_file(c"memscope-simulator", PLACES)?,
        };
        let file = self.file.insert(file);
        while at < end {
            let before = self.ranges.range(..=at).next_back().filter(|(_, until)| **until > at);
            if let Some((_, &until)) = before {
                at = until;
                continue;
            }
            let until = self.ranges.range(at..end).next().map_or(end, |(&start, _)| start);
            move_into(file, at, until)?;
            self.ranges.insert(at, until);
            at = until;
        }
        Ok(Share { address, bytes, descriptor: file.as_raw_fd(), ..share })
    }

    /// Takes back an allocation that has its pages for itself: they read as zeros. False if they are not shared, or lie in others'.
    pub fn take_back(&mut self, address: u64, reach: u64) -> bool {
        let end = address + reach;
        let is_alone = address.is_multiple_of(PAGE) && reach.is_multiple_of(PAGE);
        if !is_alone || self.ranges.get(&address) != Some(&end) {
            return false;
        }
        // SAFETY: the pages are our own, and hold nothing that is still allocated. First the file gives its pages up, then the
        // mapping is replaced by a private one.
        let replaced = unsafe {
            let target = address as *mut libc::c_void;
            libc::madvise(target, reach as usize, libc::MADV_REMOVE);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
            libc::mmap(target, reach as usize, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        if replaced != libc::MAP_FAILED {
            self.ranges.remove(&address);
            advise(address, reach);
        }
        true
    }
}

/// Maps what another process shares; its address here, and the bytes that the mapping takes.
pub fn map(share: &Share) -> Result<(u64, u64), CUresult> {
    let path = format!("/proc/{}/fd/{}", share.pid, share.descriptor);
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_CLOEXEC).open(path);
    map_file(&file.map_err(|_| CUresult::ERROR_MAP_FAILED)?, share.address, share.bytes)
}

/// Maps `bytes` bytes of a file from `offset` on; their address, and the bytes that the mapping takes.
pub fn map_file(file: &File, offset: u64, bytes: u64) -> Result<(u64, u64), CUresult> {
    let start = offset & !(PAGE - 1);
    let reach = (offset + bytes).next_multiple_of(PAGE) - start;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_NORESERVE);
    let (descriptor, place) = (file.as_raw_fd(), start as libc::off_t);
    // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), reach as usize, protection, flags, descriptor, place) };
    if mapped == libc::MAP_FAILED {
        return Err(CUresult::ERROR_MAP_FAILED);
    }
    advise(mapped as u64, reach);
    Ok((mapped as u64 + (offset - start), reach))
}

/// Unmaps what [`map`] or [`map_file`] has mapped.
pub fn unmap(address: u64, reach: u64) {
    // SAFETY: the range is a mapping made above, and the program gave it back.
    unsafe { libc::munmap((address & !(PAGE - 1)) as *mut libc::c_void, reach as usize) };
}

/// Keeps a mapping out of core dumps.
fn advise(address: u64, bytes: u64) {
    // SAFETY: advice changes no content.
    unsafe { libc::madvise(address as *mut libc::c_void, bytes as usize, libc::MADV_DONTDUMP) };
}

/// A file in memory of so many bytes, without pages. Its name is for people alone, but for the memory of a handle.
pub fn make_file(name: &CStr, bytes: u64) -> Result<File, CUresult> {
    // SAFETY: the name is a terminated string; the descriptor is ours alone.
    let file = unsafe {
        let number = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        if number < 0 {
            return Err(CUresult::ERROR_OPERATING_SYSTEM);
        }
        File::from_raw_fd(number)
    };
    file.set_len(bytes).map_err(|_| CUresult::ERROR_OPERATING_SYSTEM)?;
    Ok(file)
}

/// Moves private pages into the file, at the same addresses. Pages that were never touched cost nothing there either.
fn move_into(file: &File, start: u64, end: u64) -> Status {
    let map = File::open("/proc/self/pagemap").map_err(|_| CUresult::ERROR_OPERATING_SYSTEM)?;
    let mut at = start;
    while at < end {
        let pages = ((end - at) / PAGE).min(BATCH);
        let mut words = [0; BATCH as usize * 8];
        let words = &mut words[..pages as usize * 8];
        map.read_exact_at(words, at / PAGE * 8).map_err(|_| CUresult::ERROR_OPERATING_SYSTEM)?;
        for (page, word) in words.chunks_exact(8).enumerate() {
            let word = word.try_into().map_or(0, u64::from_le_bytes);
            let address = at + page as u64 * PAGE;
            if word & HAS_CONTENT != 0 {
                // SAFETY: a page of our own readable reservation.
                let content = unsafe { std::slice::from_raw_parts(address as *const u8, PAGE as usize) };
                file.write_all_at(content, address).map_err(|_| CUresult::ERROR_OUT_OF_MEMORY)?;
            }
        }
        at += pages * PAGE;
    }
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED);
    let (target, bytes) = (start as *mut libc::c_void, (end - start) as usize);
    // SAFETY: the pages are our own, and the file has their content at the same place.
    let placed = unsafe { libc::mmap(target, bytes, protection, flags, file.as_raw_fd(), start as libc::off_t) };
    if placed == libc::MAP_FAILED {
        return Err(CUresult::ERROR_OPERATING_SYSTEM);
    }
    advise(start, end - start);
    Ok(())
}
