//! A caching allocator: memory that a tensor gives back stays with the program, and the next tensor takes it without asking
//! the driver.
//!
//! The rule of sizes is that of PyTorch's allocator with its defaults (c10/cuda/CUDACachingAllocator.cpp):
//!
//! 1. A request is rounded up to a multiple of 512 bytes.
//! 2. Up to 1 MiB it is small, else large. A small segment is 2 MiB; a large one 20 MiB for a request below 10 MiB, else the
//!    request rounded up to 2 MiB.
//! 3. The smallest free block of the same kind that holds it is taken, of equal ones that at the lowest address.
//! 4. Where there is none, a segment comes from the driver. If the driver has no room, every segment without a block in use
//!    is given back, and the driver is asked once more.
//! 5. The end of the block is cut off if it is at least 512 bytes (small) or more than 1 MiB (large); what is not cut off
//!    stays with the block.
//! 6. A freed block merges with free neighbours in its segment.
//!
//! Left out: other streams than one, caps and garbage collection, expandable segments, and the options of the rule of sizes.
//!
//! Bytes: reserved = segments, which is what the driver sees; live = what the tensors asked for; cached = the rest. Each
//! block is declared through memscope's C API with the bytes that were asked for, so that categories are those of the plain
//! allocator; what rounding and rule 5 add is in no block, and so it is cached.

use memscope_client as memscope;
use std::collections::{BTreeMap, BTreeSet};

/// The unit of blocks.
const UNIT: u64 = 512;
/// The largest small request.
const SMALL: u64 = 1 << 20;
/// Every small segment.
const SMALL_SEGMENT: u64 = 2 << 20;
/// A large segment that several blocks are to share, and the request from which on a segment is its own size.
const SHARED_SEGMENT: u64 = 20 << 20;
const OWN_SEGMENT: u64 = 10 << 20;

/// What the pool has, in bytes; as it counts itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolCount {
    /// Segments from the driver.
    pub segments: u64,
    /// Their bytes.
    pub reserved: u64,
    /// Bytes of blocks in use.
    pub granted: u64,
    /// Bytes that were asked for in them.
    pub requested: u64,
    /// Most bytes that were ever reserved.
    pub most_reserved: u64,
    /// Most bytes that were ever asked for at a time.
    pub most_requested: u64,
}

/// One block, free or in use.
#[derive(Clone, Copy)]
struct Block {
    bytes: u64,
    /// Bytes asked for; none of a free block.
    requested: Option<u64>,
    /// Address of its segment.
    segment: u64,
}

/// The pool: every block by its address, and the free ones by size.
#[derive(Default)]
pub(crate) struct Pool {
    /// Bytes of each segment.
    segments: BTreeMap<u64, u64>,
    blocks: BTreeMap<u64, Block>,
    /// (bytes, address) of free blocks: small, large.
    free: [BTreeSet<(u64, u64)>; 2],
    count: PoolCount,
}

/// Where segments come from and go to.
pub(crate) trait Source {
    /// What goes wrong.
    type Error;
    /// A segment of this many bytes; none when there is no room.
    fn take(&mut self, bytes: u64) -> Result<Option<u64>, Self::Error>;
    /// Gives a segment back.
    fn give_back(&mut self, address: u64);
}

/// A request in units.
fn rounded(bytes: u64) -> u64 {
    bytes.max(1).next_multiple_of(UNIT)
}

/// Bytes of the segment for a rounded request.
fn segment_for(rounded: u64) -> u64 {
    if rounded <= SMALL {
        SMALL_SEGMENT
    } else if rounded < OWN_SEGMENT {
        SHARED_SEGMENT
    } else {
        rounded.next_multiple_of(SMALL_SEGMENT)
    }
}

/// Which list of free blocks a segment's belong to. Only small segments are that small.
fn list_of(segment_bytes: u64) -> usize {
    usize::from(segment_bytes != SMALL_SEGMENT)
}

impl Pool {
    /// What it has.
    pub fn count(&self) -> PoolCount {
        self.count
    }

    /// The address of a block for `bytes`; none when there is no room, even with every unused segment given back.
    pub fn allocate<S: Source>(&mut self, bytes: u64, source: &mut S) -> Result<Option<u64>, S::Error> {
        let size = rounded(bytes);
        let list = usize::from(size > SMALL);
        let best = self.free[list].range((size, 0)..).next().copied();
        let address = match best {
            Some((_, address)) => address,
            None => match self.segment(segment_for(size), source)? {
                Some(address) => address,
                None => return Ok(None),
            },
        };
        let block = self.blocks[&address];
        self.free[list].remove(&(block.bytes, address));
        let rest = block.bytes - size;
        let cut = if list == 0 { rest >= UNIT } else { rest > SMALL };
        let granted = if cut { size } else { block.bytes };
        if cut {
            self.insert_free(address + size, Block { bytes: rest, requested: None, segment: block.segment });
        }
        self.blocks.insert(address, Block { bytes: granted, requested: Some(bytes), ..block });
        self.count.granted += granted;
        self.count.requested += bytes;
        self.count.most_requested = self.count.most_requested.max(self.count.requested);
        memscope::block_alloc(address, bytes, 0);
        Ok(Some(address))
    }

    /// A new segment, which is one free block.
    fn segment<S: Source>(&mut self, bytes: u64, source: &mut S) -> Result<Option<u64>, S::Error> {
        let mut taken = source.take(bytes)?;
        if taken.is_none() {
            self.empty_cache(source);
            taken = source.take(bytes)?;
        }
        let Some(address) = taken else { return Ok(None) };
        self.segments.insert(address, bytes);
        self.insert_free(address, Block { bytes, requested: None, segment: address });
        self.count.segments += 1;
        self.count.reserved += bytes;
        self.count.most_reserved = self.count.most_reserved.max(self.count.reserved);
        Ok(Some(address))
    }

    fn insert_free(&mut self, address: u64, block: Block) {
        self.blocks.insert(address, block);
        self.free[list_of(self.segments[&block.segment])].insert((block.bytes, address));
    }

    fn remove_free(&mut self, address: u64, block: Block) {
        self.blocks.remove(&address);
        self.free[list_of(self.segments[&block.segment])].remove(&(block.bytes, address));
    }

    /// Takes a block back.
    ///
    /// # Panics
    /// When no block in use is at `address`: a fault of the caller.
    pub fn free(&mut self, address: u64) {
        let block = self.blocks.remove(&address).expect("only blocks of the pool are freed");
        let requested = block.requested.expect("a block is freed once");
        memscope::block_free(address);
        self.count.granted -= block.bytes;
        self.count.requested -= requested;
        let (mut start, mut end) = (address, address + block.bytes);
        let free_in_segment = |other: &Block| other.requested.is_none() && other.segment == block.segment;
        if let Some((&before, &other)) = self.blocks.range(..address).next_back()
            && free_in_segment(&other)
        {
            self.remove_free(before, other);
            start = before;
        }
        if let Some((&after, &other)) = self.blocks.range(address..).next()
            && free_in_segment(&other)
        {
            self.remove_free(after, other);
            end = after + other.bytes;
        }
        self.insert_free(start, Block { bytes: end - start, requested: None, segment: block.segment });
    }

    /// Gives every segment back in which no block is in use.
    pub fn empty_cache<S: Source>(&mut self, source: &mut S) {
        let unused = |(address, bytes): (&u64, &u64)| {
            let block = self.blocks[address];
            (block.requested.is_none() && block.bytes == *bytes).then_some(*address)
        };
        for address in self.segments.iter().filter_map(unused).collect::<Vec<_>>() {
            self.remove_free(address, self.blocks[&address]);
            let bytes = self.segments.remove(&address).expect("listed above");
            self.count.segments -= 1;
            self.count.reserved -= bytes;
            source.give_back(address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// A driver with some room. Its segments lie `gap` bytes apart: with 0 they touch, and must not merge all the same.
    struct Driver {
        room: u64,
        next: u64,
        gap: u64,
        given: HashMap<u64, u64>,
    }

    impl Driver {
        fn new(room: u64, gap: u64) -> Driver {
            Driver { room, next: 1 << 30, gap, given: HashMap::new() }
        }
    }

    impl Source for Driver {
        type Error = std::convert::Infallible;

        fn take(&mut self, bytes: u64) -> Result<Option<u64>, Self::Error> {
            if bytes > self.room {
                return Ok(None);
            }
            self.room -= bytes;
            let address = self.next;
            self.next += bytes + self.gap;
            self.given.insert(address, bytes);
            Ok(Some(address))
        }

        fn give_back(&mut self, address: u64) {
            self.room += self.given.remove(&address).expect("a segment is given back once");
        }
    }

    const MIB: u64 = 1 << 20;

    /// Request, granted, segment and what is left free of it: PyTorch's, by its source.
    #[test]
    fn sizes_are_those_of_pytorch() {
        for (bytes, granted, segment, tail) in [
            (1, 512, 2 * MIB, 2_096_640),
            (MIB, MIB, 2 * MIB, MIB),
            (MIB + 1, 1_049_088, 20 * MIB, 19_922_432),
            (10 * MIB - 1, 10 * MIB, 10 * MIB, 0),
            (15 * MIB + 1, 16_777_216, 16 * MIB, 0),
            (8_519_680, 8_519_680, 20 * MIB, 12_451_840),
        ] {
            let (mut pool, mut driver) = (Pool::default(), Driver::new(4 << 30, 0));
            let Ok(address) = pool.allocate(bytes, &mut driver);
            let count = pool.count();
            assert_eq!((count.granted, count.reserved, count.requested), (granted, segment, bytes), "{bytes}");
            let free: Vec<u64> = pool.free.iter().flatten().map(|&(bytes, _)| bytes).collect();
            assert_eq!(free.iter().sum::<u64>(), tail, "{bytes}");
            pool.free(address.expect("there is room"));
            pool.empty_cache(&mut driver);
            assert_eq!((pool.count().reserved, driver.room), (0, 4 << 30));
        }
    }

    #[test]
    fn the_best_fit_is_taken_and_neighbours_merge() {
        let (mut pool, mut driver) = (Pool::default(), Driver::new(4 << 30, 0));
        let mut take = |pool: &mut Pool, mib: u64| pool.allocate(mib * MIB, &mut driver).unwrap().unwrap();
        let [a, b, c] = [4, 6, 2].map(|mib| take(&mut pool, mib));
        assert_eq!((b - a, c - b), (4 * MIB, 6 * MIB));
        pool.free(a);
        // Free: 4 at a, 8 at the end. 3 fit a best.
        let d = take(&mut pool, 3);
        assert_eq!(d, a);
        pool.free(b);
        pool.free(d);
        // a and b are one block of 10 now, c stands before the 8 of the end.
        assert_eq!(take(&mut pool, 9), a);
        assert_eq!(pool.count().segments, 1);
        pool.free(c);
        assert_eq!(pool.free[1].iter().map(|&(bytes, _)| bytes).collect::<Vec<_>>(), [10 * MIB]);
    }

    #[test]
    fn unused_segments_go_back_when_the_driver_is_full() {
        let (mut pool, mut driver) = (Pool::default(), Driver::new(64 * MIB, 0));
        let kept = pool.allocate(MIB, &mut driver).unwrap().unwrap();
        let first = pool.allocate(40 * MIB, &mut driver).unwrap().unwrap();
        pool.free(first);
        assert!(pool.allocate(50 * MIB, &mut driver).unwrap().is_some());
        assert_eq!((pool.count().segments, pool.count().reserved), (2, 52 * MIB));
        assert_eq!(pool.allocate(30 * MIB, &mut driver).unwrap(), None);
        pool.free(kept);
    }

    proptest::proptest! {
        /// Whatever is asked and given back in whatever order: blocks do not overlap, lie in segments, and the counts hold.
        #[test]
        fn blocks_never_overlap(
            sizes in proptest::collection::vec((1_u64..(24 << 20), 0_usize..8, proptest::bool::ANY), 1..120),
            gap in proptest::sample::select(vec![0, 512]),
        ) {
            let (mut pool, mut driver) = (Pool::default(), Driver::new(4 << 30, gap));
            let mut held: Vec<(u64, u64)> = Vec::new();
            for (size, which, small) in sizes {
                let bytes = if small { size % (2 << 20) + 1 } else { size };
                let address = pool.allocate(bytes, &mut driver).unwrap().expect("4 GiB are enough");
                for &(other, length) in &held {
                    proptest::prop_assert!(address + bytes <= other || other + length <= address);
                }
                let inside = driver.given.iter().any(|(&start, &length)| start <= address && address + bytes <= start + length);
                proptest::prop_assert!(inside);
                held.push((address, bytes));
                if which % 2 == 0 {
                    pool.free(held.swap_remove(which % held.len()).0);
                }
                if which == 7 {
                    pool.empty_cache(&mut driver);
                    let holds = |start: u64, length: u64| held.iter().any(|&(at, _)| start <= at && at < start + length);
                    proptest::prop_assert!(driver.given.iter().all(|(&start, &length)| holds(start, length)));
                }
                let count = pool.count();
                proptest::prop_assert_eq!(count.requested, held.iter().map(|&(_, bytes)| bytes).sum::<u64>());
                proptest::prop_assert_eq!(count.reserved, driver.given.values().sum::<u64>());
                let free: u64 = pool.free.iter().flatten().map(|&(bytes, _)| bytes).sum();
                proptest::prop_assert_eq!(count.reserved, count.granted + free);
            }
            held.into_iter().for_each(|(address, _)| pool.free(address));
            pool.empty_cache(&mut driver);
            proptest::prop_assert!(driver.given.is_empty() && pool.blocks.is_empty());
        }
    }
}
