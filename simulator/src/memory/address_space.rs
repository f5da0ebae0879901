//! Which addresses are taken: ranges of address space without backing, given out and taken back.
//!
//! Owns: reserving segments from the kernel, best fit and coalescing. Refuses: to know what an address is for.
//!
//! Address space costs nothing, and a real device never runs out of it before memory: the capacity check is not here.

use std::collections::{BTreeMap, BTreeSet};

/// Ranges of one granule size.
pub struct AddressSpace {
    granule: u64,
    segment: u64,
    by_address: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
}

impl AddressSpace {
    /// A space that hands out multiples of `granule` bytes and asks the kernel for `segment` bytes at a time.
    pub const fn new(granule: u64, segment: u64) -> AddressSpace {
        AddressSpace { granule, segment, by_address: BTreeMap::new(), by_size: BTreeSet::new() }
    }

    /// Bytes of the range that holds `bytes`; `None` when that is beyond any address space.
    pub fn reach(&self, bytes: u64) -> Option<u64> {
        bytes.checked_next_multiple_of(self.granule).filter(|&reach| reach < 1 << 47)
    }

    /// Takes a range of `reach` bytes: the smallest free one, the lowest among equals. `None` when the kernel gives no
    /// more address space.
    pub fn take(&mut self, reach: u64) -> Option<u64> {
        let fit = match self.by_size.range((reach, 0)..).next() {
            Some(&fit) => fit,
            None => {
                self.grow(reach)?;
                *self.by_size.range((reach, 0)..).next()?
            }
        };
        let (size, address) = fit;
        self.forget(address, size);
        if size > reach {
            self.remember(address + reach, size - reach);
        }
        Some(address)
    }

    /// Gives a range back and joins it with free neighbours.
    pub fn give_back(&mut self, address: u64, reach: u64) {
        let (mut start, mut size) = (address, reach);
        if let Some((&before, &length)) = self.by_address.range(..address).next_back()
            && before + length == start
        {
            self.forget(before, length);
            (start, size) = (before, size + length);
        }
        if let Some((&after, &length)) = self.by_address.range(address..).next()
            && after == start + size
        {
            self.forget(after, length);
            size += length;
        }
        self.remember(start, size);
    }

    fn grow(&mut self, reach: u64) -> Option<()> {
        let (address, size) = reserve(self.segment.max(reach), self.granule)
            .map(|address| (address, self.segment.max(reach)))
            .or_else(|| reserve(reach, self.granule).map(|address| (address, reach)))?;
        self.give_back(address, size);
        Some(())
    }

    fn remember(&mut self, address: u64, size: u64) {
        self.by_address.insert(address, size);
        self.by_size.insert((size, address));
    }

    fn forget(&mut self, address: u64, size: u64) {
        self.by_address.remove(&address);
        self.by_size.remove(&(size, address));
    }
}

/// Reserves readable and writable address space without backing, aligned to `alignment`.
fn reserve(bytes: u64, alignment: u64) -> Option<u64> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    reserve_with(bytes, alignment, protection)
}

/// Reserves address space with the given protection, aligned to `alignment` (a power of two).
pub fn reserve_with(bytes: u64, alignment: u64, protection: i32) -> Option<u64> {
    let padded = bytes.checked_add(alignment)? as usize;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), padded, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    let address = (start as u64).next_multiple_of(alignment);
    let (head, tail) = (address - start as u64, start as u64 + padded as u64 - address - bytes);
    // SAFETY: head and tail are the unused ends of the mapping just made; the advice concerns its middle.
    unsafe {
        if head > 0 {
            libc::munmap(start, head as usize);
        }
        if tail > 0 {
            libc::munmap((address + bytes) as *mut libc::c_void, tail as usize);
        }
        // A core dump must not hold the device, and a huge page must not make a touched byte cost 2 MiB.
        libc::madvise(address as *mut libc::c_void, bytes as usize, libc::MADV_DONTDUMP);
        libc::madvise(address as *mut libc::c_void, bytes as usize, libc::MADV_NOHUGEPAGE);
    }
    Some(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_freed_range_is_reused() {
        let mut space = AddressSpace::new(512, 1 << 20);
        let first = space.take(1024).unwrap();
        let _second = space.take(512).unwrap();
        space.give_back(first, 1024);
        assert_eq!(space.take(1024), Some(first));
    }

    #[test]
    fn neighbours_join() {
        let mut space = AddressSpace::new(512, 4096);
        let ranges: Vec<u64> = (0..8).map(|_| space.take(512).unwrap()).collect();
        for &range in ranges.iter().rev() {
            space.give_back(range, 512);
        }
        assert_eq!(space.take(4096), Some(ranges[0]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn live_ranges_never_overlap(steps in proptest::collection::vec((any::<bool>(), 1_u64..9000, any::<usize>()), 1..200)) {
            let mut space = AddressSpace::new(512, 1 << 16);
            let mut live: Vec<(u64, u64)> = Vec::new();
            for (allocate, bytes, which) in steps {
                if allocate || live.is_empty() {
                    let reach = space.reach(bytes).unwrap();
                    let address = space.take(reach).unwrap();
                    prop_assert_eq!(address % 512, 0);
                    for &(start, size) in &live {
                        prop_assert!(address + reach <= start || start + size <= address);
                    }
                    live.push((address, reach));
                } else {
                    let (address, reach) = live.swap_remove(which % live.len());
                    space.give_back(address, reach);
                }
            }
        }
    }
}
