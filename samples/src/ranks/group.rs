//! What ranks do together, through one piece of shared memory.
//!
//! Owns: the shared memory, its layout, and the collectives. Refuses: to start ranks.
//!
//! | words | what |
//! | --- | --- |
//! | 0 | how many ranks have arrived at the barrier |
//! | 1 | how many barriers are over |
//! | 2 | a rank that failed, plus 1; 0 for none |
//! | 3 | a rank that abandoned a trial, plus 1; 0 for none |
//! | 4, 5 | as 0 and 1, of the barrier at which an abandoned trial is settled |
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
const ABANDONED: usize = 3;
const SETTLING: usize = 4;
const SETTLED: usize = 5;
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
    /// What is done together may be abandoned.
    trial: bool,
}

/// The part of `elements` that belongs to `rank` of `world`. Parts are cut between units of `unit` elements, and differ by one
/// unit at most, and by what the last one lacks; with fewer units than ranks, they are cut between elements.
pub fn part(elements: usize, unit: usize, rank: usize, world: usize) -> Range<usize> {
    let unit = if elements.div_ceil(unit) < world { 1 } else { unit };
    let cut = |rank: usize| (rank * elements.div_ceil(unit) / world * unit).min(elements);
    cut(rank)..cut(rank + 1)
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
        Ok(Group { shared: Arc::new(shared), rank: 0, world, launcher: None, trial: false })
    }

    /// The place of a rank in the shared memory at `path`, which `launcher` made.
    pub(super) fn join(path: &Path, rank: usize, world: usize, launcher: u32) -> Result<Group, Error> {
        let file = File::options().read(true).write(true).open(path);
        let file = file.map_err(|error| refused(&path.display().to_string(), error))?;
        let shared = Shared::map(file, world).map_err(|error| refused("mmap", error))?;
        Ok(Group { shared: Arc::new(shared), rank, world, launcher: Some(launcher), trial: false })
    }

    /// The place of another rank, for another thread of this process.
    pub fn member(&self, rank: usize) -> Group {
        Group { shared: Arc::clone(&self.shared), rank, ..*self }
    }

    /// The same place, for a trial that may be abandoned.
    pub fn for_trial(&self) -> Group {
        Group { trial: true, ..self.member(self.rank) }
    }

    /// True if it is for a trial.
    pub(super) fn is_trial(&self) -> bool {
        self.trial
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

    /// This rank's part of a tensor that is cut between units.
    pub fn part(&self, elements: usize, unit: usize) -> Range<usize> {
        part(elements, unit, self.rank, self.world)
    }

    /// A rank has failed: those that wait for it, or will, get an error. The first failure is the one that is told.
    pub fn fail(&self, rank: usize) {
        let words = self.shared.words();
        let _ = words[FAILED].compare_exchange(0, rank as u32 + 1, Ordering::AcqRel, Ordering::Acquire);
    }

    /// This rank cannot go on with what the ranks do together just now: those that wait for it, or will, get
    /// [`Error::Abandoned`], and all come to [`Group::settle`].
    pub fn abandon(&self) {
        let words = self.shared.words();
        let _ = words[ABANDONED].compare_exchange(0, self.rank as u32 + 1, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Waits until every rank is here, whatever came of the trial before; the rank that abandoned it, if one did. From then on
    /// collectives work again.
    ///
    /// # Errors
    /// As [`Group::barrier`], but for [`Error::Abandoned`].
    pub fn settle(&self) -> Result<Option<usize>, Error> {
        let words = self.shared.words();
        let check = || self.check_all();
        self.wait(SETTLING, SETTLED, &check)?;
        let abandoned = words[ABANDONED].load(Ordering::Acquire).checked_sub(1);
        // All have read it, and none is at another barrier.
        self.wait(SETTLING, SETTLED, &check)?;
        if self.rank == 0 {
            words[ARRIVED].store(0, Ordering::Relaxed);
            words[ABANDONED].store(0, Ordering::Release);
        }
        self.wait(SETTLING, SETTLED, &check)?;
        Ok(abandoned.map(|rank| rank as usize))
    }

    /// Waits until every rank is here.
    ///
    /// # Errors
    /// [`Error::Ranks`] when another rank has failed, or the process that started the ranks is gone; [`Error::Abandoned`] after
    /// [`Group::abandon`].
    pub fn barrier(&self) -> Result<(), Error> {
        self.wait(ARRIVED, BARRIERS, &|| self.check())
    }

    /// Waits until every rank is here, which is counted in one word, and the times that all were in another.
    fn wait(&self, arrived: usize, times: usize, check: &dyn Fn() -> Result<(), Error>) -> Result<(), Error> {
        let words = self.shared.words();
        let over = words[times].load(Ordering::Acquire);
        check()?;
        if words[arrived].fetch_add(1, Ordering::AcqRel) as usize + 1 == self.world {
            words[arrived].store(0, Ordering::Relaxed);
            words[times].store(over.wrapping_add(1), Ordering::Release);
            return Ok(());
        }
        let mut looks = 0_u32;
        while words[times].load(Ordering::Acquire) == over {
            check()?;
            looks += 1;
            match looks {
                ..LOOKS => std::thread::yield_now(),
                _ => std::thread::sleep(NAP),
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        self.check_all()?;
        match self.shared.words()[ABANDONED].load(Ordering::Acquire).checked_sub(1) {
            None => Ok(()),
            Some(rank) => Err(Error::Abandoned { rank: rank as usize }),
        }
    }

    /// That nothing has happened that ends all.
    fn check_all(&self) -> Result<(), Error> {
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
            let mine = self.part(chunk.len(), 1);
            let mut sums = vec![0.0; mine.len()];
            self.sums(mine.start, &mut sums);
            self.write(self.world, mine.start, &sums);
            // A slot is written again only after this, and the results only after the next: by then all have read them.
            self.barrier()?;
            self.read(self.world, 0, chunk);
        }
        Ok(())
    }

    /// This rank's part of the sum over the ranks. All ranks give equally many values, cut between units.
    ///
    /// # Errors
    /// As [`Group::barrier`].
    pub fn reduce_scatter(&self, values: &[f32], unit: usize) -> Result<Vec<f32>, Error> {
        let mine = self.part(values.len(), unit);
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

    /// `elements` values, cut between units, of which this rank has its part and gets the others'.
    ///
    /// # Errors
    /// As [`Group::barrier`].
    pub fn all_gather(&self, mine: &[f32], elements: usize, unit: usize) -> Result<Vec<f32>, Error> {
        assert_eq!(mine.len(), self.part(elements, unit).len());
        let mut all = vec![0.0; elements];
        // Every rank takes part in as many rounds as the largest part needs.
        let parts = (0..self.world).map(|rank| part(elements, unit, rank, self.world));
        let largest = parts.map(|part| part.len()).max().unwrap_or(0);
        for start in (0..largest).step_by(SLOT) {
            let rest = &mine[start.min(mine.len())..];
            self.write(self.rank, 0, &rest[..rest.len().min(SLOT)]);
            self.barrier()?;
            for rank in 0..self.world {
                let theirs = &mut all[part(elements, unit, rank, self.world)];
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
            for (elements, unit) in
                [(1, 1), (5, 1), (1000, 256), (1000, 1), (SLOT - 1, 1), (SLOT + 3, 256), (2 * SLOT + 77, 1)]
            {
                let all: Vec<Vec<f32>> = (0..world).map(|rank| given(rank, elements)).collect();
                let sums: Vec<f32> = (0..elements).map(|i| all.iter().map(|values| values[i]).sum()).collect();
                let outcomes = ranks(world, |group| {
                    let mut values = given(group.rank(), elements);
                    let part = group.reduce_scatter(&values, unit).unwrap();
                    let gathered = group.all_gather(&part, elements, unit).unwrap();
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
    fn parts_are_whole_units_where_there_are_enough() {
        let parts =
            |elements, unit, world| (0..world).map(|rank| part(elements, unit, rank, world)).collect::<Vec<_>>();
        assert_eq!(parts(1000, 1, 3), [0..333, 333..666, 666..1000]);
        // Four blocks of 256, the last of 232.
        assert_eq!(parts(1000, 256, 2), [0..512, 512..1000]);
        assert_eq!(parts(1000, 256, 3), [0..256, 256..512, 512..1000]);
        assert_eq!(parts(1000, 256, 4), [0..256, 256..512, 512..768, 768..1000]);
        // Five ranks, four blocks.
        assert_eq!(parts(1000, 256, 5), [0..200, 200..400, 400..600, 600..800, 800..1000]);
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
    fn a_trial_is_abandoned_by_all_and_the_next_one_works() {
        for who in 0..3 {
            let outcomes = ranks(3, |group| {
                let mut first = vec![1.0; 3 * SLOT];
                // The others wait in one of its barriers.
                let first = match group.rank() == who {
                    true => {
                        group.abandon();
                        None
                    }
                    false => Some(group.all_reduce(&mut first).unwrap_err()),
                };
                assert!(first.is_none_or(|error| matches!(error, Error::Abandoned { rank } if rank == who)));
                let settled = group.settle().unwrap();
                let mut second = given(group.rank(), 5);
                group.all_reduce(&mut second).unwrap();
                (settled, second, group.settle().unwrap())
            });
            let sum: Vec<f32> = (0..5).map(|i| (0..3).map(|rank| given(rank, 5)[i]).sum()).collect();
            assert!(outcomes.iter().all(|outcome| *outcome == (Some(who), sum.clone(), None)), "{who}: {outcomes:?}");
        }
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
