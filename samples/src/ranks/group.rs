//! What ranks do together, through one piece of shared memory.
//!
//! Owns: the shared memory, its layout, and the collectives. Refuses: to start ranks.
//!
//! | words | what |
//! | --- | --- |
//! | 0 | how many ranks have arrived at the barrier |
//! | 1 | how many barriers are over |
//! | 2 | a rank that failed, plus 1; 0 for none |
//! | 1024… | a slot for each rank, and one for results |
//!
//! The memory has no name in any folder (memfd), so that nothing is left however the ranks end; others find it among the open
//! files of the process that made it. Sums are taken in the order of ranks, so that all ranks get the same bits.
//!
//! A rank that waits looks whether another one has failed, and whether the process that started it is still there. So a rank
//! that dies lets none of the others wait for ever.

use crate::Error;
use rustix::fs::{FallocateFlags, MemfdFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const ARRIVED: usize = 0;
const BARRIERS: usize = 1;
const FAILED: usize = 2;
const FIRST_SLOT: usize = 1024;
/// Floats of a slot: what a collective moves at a time.
const SLOT: usize = 1 << 18;
/// Looks at a barrier before a rank that waits goes to sleep between them.
const LOOKS: u32 = 200;
const NAP: Duration = Duration::from_micros(50);

/// Shared words, mapped for as long as this lives.
struct Shared {
    file: File,
    words: *const AtomicU32,
    count: usize,
}

// SAFETY: the words are atomic and stay mapped until drop.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    fn map(file: File, world: usize) -> Result<Shared, rustix::io::Errno> {
        let count = FIRST_SLOT + (world + 1) * SLOT;
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let words = unsafe { rustix::mm::mmap(std::ptr::null_mut(), count * 4, flags, MapFlags::SHARED, &file, 0) }?;
        Ok(Shared { file, words: words.cast(), count })
    }

    fn words(&self) -> &[AtomicU32] {
        // SAFETY: mapped until drop, page-aligned, and shared only as atomic words.
        unsafe { std::slice::from_raw_parts(self.words, self.count) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, once, and no reference outlives this. An error changes nothing now.
        let _ = unsafe { rustix::mm::munmap(self.words.cast_mut().cast(), self.count * 4) };
    }
}

/// One rank's place among the ranks.
pub struct Group {
    shared: Arc<Shared>,
    rank: usize,
    world: usize,
    /// The process that started the ranks, if they are processes.
    launcher: Option<u32>,
}

/// The part of `elements` that belongs to `rank` of `world`: all parts are equal, or differ by one element.
pub fn part(elements: usize, rank: usize, world: usize) -> Range<usize> {
    rank * elements / world..(rank + 1) * elements / world
}

fn refused(call: &str, error: impl std::fmt::Display) -> Error {
    Error::Ranks(format!("cannot share memory between ranks: {call}: {error}"))
}

impl Group {
    /// Shared memory for `world` ranks, and the place of rank 0.
    ///
    /// # Errors
    /// [`Error::Ranks`] when the host has no such memory left.
    pub fn create(world: usize) -> Result<Group, Error> {
        let file = rustix::fs::memfd_create("memscope-sample-ranks", MemfdFlags::CLOEXEC)
            .map_err(|error| refused("memfd_create", error))?;
        // Reserved before it is used: a page that cannot be had later would be a SIGBUS.
        let bytes = 4 * (FIRST_SLOT + (world + 1) * SLOT) as u64;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes).map_err(|error| refused("fallocate", error))?;
        let shared = Shared::map(File::from(file), world).map_err(|error| refused("mmap", error))?;
        Ok(Group { shared: Arc::new(shared), rank: 0, world, launcher: None })
    }

    /// The place of a rank in the shared memory at `path`, which `launcher` made.
    pub(super) fn join(path: &Path, rank: usize, world: usize, launcher: u32) -> Result<Group, Error> {
        let file = File::options().read(true).write(true).open(path);
        let file = file.map_err(|error| refused(&path.display().to_string(), error))?;
        let shared = Shared::map(file, world).map_err(|error| refused("mmap", error))?;
        Ok(Group { shared: Arc::new(shared), rank, world, launcher: Some(launcher) })
    }

    /// The place of another rank, for another thread of this process.
    pub fn member(&self, rank: usize) -> Group {
        Group { shared: Arc::clone(&self.shared), rank, ..*self }
    }

    /// Where other processes find the shared memory.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.shared.file.as_raw_fd()))
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    pub fn world(&self) -> usize {
        self.world
    }

    /// This rank's part of a tensor.
    pub fn part(&self, elements: usize) -> Range<usize> {
        part(elements, self.rank, self.world)
    }

    /// A rank has failed: those that wait for it, or will, get an error. The first failure is the one that is told.
    pub fn fail(&self, rank: usize) {
        let words = self.shared.words();
        let _ = words[FAILED].compare_exchange(0, rank as u32 + 1, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Waits until every rank is here.
    ///
    /// # Errors
    /// [`Error::Ranks`] when another rank has failed, or the process that started the ranks is gone.
    pub fn barrier(&self) -> Result<(), Error> {
        let words = self.shared.words();
        let over = words[BARRIERS].load(Ordering::Acquire);
        self.check()?;
        if words[ARRIVED].fetch_add(1, Ordering::AcqRel) as usize + 1 == self.world {
            words[ARRIVED].store(0, Ordering::Relaxed);
            words[BARRIERS].store(over.wrapping_add(1), Ordering::Release);
            return Ok(());
        }
        let mut looks = 0_u32;
        while words[BARRIERS].load(Ordering::Acquire) == over {
            self.check()?;
            looks += 1;
            match looks {
                ..LOOKS => std::thread::yield_now(),
                _ => std::thread::sleep(NAP),
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        let rank = self.rank;
        if let Some(failed) = self.shared.words()[FAILED].load(Ordering::Acquire).checked_sub(1) {
            return Err(Error::Ranks(format!(
                "rank {rank} stops: rank {failed} has failed, and would be waited for in vain"
            )));
        }
        if self.launcher.is_some_and(|launcher| std::os::unix::process::parent_id() != launcher) {
            return Err(Error::Ranks(format!("rank {rank} stops: the process that started the ranks is gone")));
        }
        Ok(())
    }

    /// The floats of a rank's slot; of the slot of results if `rank` is the number of ranks.
    fn slot(&self, rank: usize) -> &[AtomicU32] {
        &self.shared.words()[FIRST_SLOT + rank * SLOT..][..SLOT]
    }

    fn write(&self, slot: usize, at: usize, values: &[f32]) {
        for (word, value) in self.slot(slot)[at..].iter().zip(values) {
            word.store(value.to_bits(), Ordering::Relaxed);
        }
    }

    fn read(&self, slot: usize, at: usize, values: &mut [f32]) {
        for (word, value) in self.slot(slot)[at..].iter().zip(values) {
            *value = f32::from_bits(word.load(Ordering::Relaxed));
        }
    }

    /// The sums of every rank's slot in these places, in the order of ranks.
    fn sums(&self, at: usize, sums: &mut [f32]) {
        self.read(0, at, sums);
        let mut other = vec![0.0; sums.len()];
        for rank in 1..self.world {
            self.read(rank, at, &mut other);
            sums.iter_mut().zip(&other).for_each(|(sum, value)| *sum += value);
        }
    }

    /// Every rank's values become their sum over the ranks. All ranks give equally many.
    ///
    /// # Errors
    /// As [`Group::barrier`].
    pub fn all_reduce(&self, values: &mut [f32]) -> Result<(), Error> {
        for chunk in values.chunks_mut(SLOT) {
            self.write(self.rank, 0, chunk);
            self.barrier()?;
            let mine = self.part(chunk.len());
            let mut sums = vec![0.0; mine.len()];
            self.sums(mine.start, &mut sums);
            self.write(self.world, mine.start, &sums);
            // A slot is written again only after this, and the results only after the next: by then all have read them.
            self.barrier()?;
            self.read(self.world, 0, chunk);
        }
        Ok(())
    }

    /// This rank's part of the sum over the ranks. All ranks give equally many values.
    ///
    /// # Errors
    /// As [`Group::barrier`].
    pub fn reduce_scatter(&self, values: &[f32]) -> Result<Vec<f32>, Error> {
        let mine = self.part(values.len());
        let mut part = vec![0.0; mine.len()];
        for (index, chunk) in values.chunks(SLOT).enumerate() {
            let start = index * SLOT;
            self.write(self.rank, 0, chunk);
            self.barrier()?;
            let (from, to) = (mine.start.max(start), mine.end.min(start + chunk.len()));
            if from < to {
                self.sums(from - start, &mut part[from - mine.start..to - mine.start]);
            }
            self.barrier()?;
        }
        Ok(part)
    }

    /// `elements` values, of which this rank has its part and gets the others'.
    ///
    /// # Errors
    /// As [`Group::barrier`].
    pub fn all_gather(&self, mine: &[f32], elements: usize) -> Result<Vec<f32>, Error> {
        assert_eq!(mine.len(), self.part(elements).len());
        let mut all = vec![0.0; elements];
        // Every rank takes part in as many rounds as the largest part needs.
        for start in (0..elements.div_ceil(self.world)).step_by(SLOT) {
            let rest = &mine[start.min(mine.len())..];
            self.write(self.rank, 0, &rest[..rest.len().min(SLOT)]);
            self.barrier()?;
            for rank in 0..self.world {
                let theirs = &mut all[part(elements, rank, self.world)];
                let from = start.min(theirs.len());
                let to = (start + SLOT).min(theirs.len());
                self.read(rank, 0, &mut theirs[from..to]);
            }
            self.barrier()?;
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `body` as each of the ranks, each on a thread; what each came to.
    fn ranks<T: Send>(world: usize, body: impl Fn(Group) -> T + Sync) -> Vec<T> {
        let group = Group::create(world).unwrap();
        std::thread::scope(|scope| {
            let body = &body;
            let start = |rank| {
                let member = group.member(rank);
                scope.spawn(move || body(member))
            };
            let threads: Vec<_> = (0..world).map(start).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    /// What rank `rank` gives: small whole numbers, whose sums are exact in any order.
    fn given(rank: usize, elements: usize) -> Vec<f32> {
        (0..elements).map(|i| ((i * 7 + rank * 13) % 101) as f32).collect()
    }

    #[test]
    fn collectives_are_their_definitions() {
        for world in [1, 2, 3, 5] {
            for elements in [1, 5, 1000, SLOT - 1, SLOT + 3, 2 * SLOT + 77] {
                let all: Vec<Vec<f32>> = (0..world).map(|rank| given(rank, elements)).collect();
                let sums: Vec<f32> = (0..elements).map(|i| all.iter().map(|values| values[i]).sum()).collect();
                let outcomes = ranks(world, |group| {
                    let mut values = given(group.rank(), elements);
                    let part = group.reduce_scatter(&values).unwrap();
                    let gathered = group.all_gather(&part, elements).unwrap();
                    group.all_reduce(&mut values).unwrap();
                    (values, part, gathered)
                });
                let mut next = 0;
                for (reduced, part, gathered) in outcomes {
                    assert!(reduced == sums && gathered == sums, "{world} ranks, {elements} elements");
                    assert!(part == sums[next..next + part.len()]);
                    next += part.len();
                }
                assert_eq!(next, elements, "parts leave nothing out");
            }
        }
    }

    #[test]
    fn all_ranks_get_the_same_bits() {
        let outcomes = ranks(3, |group| {
            let mut values: Vec<f32> = (0..999).map(|i| (i as f32 + group.rank() as f32 * 0.37).sin()).collect();
            group.all_reduce(&mut values).unwrap();
            values.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        });
        assert!(outcomes[0] == outcomes[1] && outcomes[1] == outcomes[2]);
    }

    #[test]
    fn nobody_waits_for_a_rank_that_failed() {
        let outcomes = ranks(3, |group| match group.rank() {
            1 => {
                group.fail(1);
                String::new()
            }
            _ => group.all_reduce(&mut [1.0]).unwrap_err().to_string(),
        });
        for rank in [0, 2] {
            assert!(outcomes[rank].contains(&format!("rank {rank} stops: rank 1 has failed")), "{}", outcomes[rank]);
        }
    }
}
