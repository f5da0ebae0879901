//! Where the ranks of a communicator meet: a page of counters and small files, in the folder of memscope's session.
//!
//! Owns: how many collectives each rank has called and how many messages each has sent to each other, what they put in if it
//! is small and known (a file each, gone once all have read it), and waiting for another rank. The folder goes with the
//! session, also after a kill. Refuses: to wait for a rank that has gone, and longer than [`RANK_WAIT_S`] says: then it says so, and
//! what was waited for is unknown.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::locked;

/// The simulator's state, which lies in the session's folder.
const STATE: &str = "MEMSCOPE_SIMULATOR_STATE";
/// Seconds that a rank waits at most for another one.
const RANK_WAIT_S: &str = "MEMSCOPE_SIMULATOR_RANK_WAIT_S";
/// As long, where nothing is said.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most bytes that a rank has lying there for the others.
const CAPACITY: usize = 64 << 20;
/// In place of a process's id: its communicator was destroyed.
const GONE: u64 = u64::MAX;

/// A rank's place among the others.
pub struct Meeting {
    name: String,
    folder: PathBuf,
    ranks: usize,
    rank: usize,
    /// Numbers of the ranks one after the other: collectives called, collectives settled, process; and messages from each to
    /// each.
    counters: &'static [AtomicU64],
    mine: Mutex<Mine>,
    patience: Duration,
    /// Nobody is waited for any more.
    lost: AtomicBool,
    /// It was said that a rank has gone.
    missed: AtomicBool,
}

#[derive(Default)]
struct Mine {
    /// Numbers and lengths of what lies there for the others.
    lying: VecDeque<(u64, usize)>,
    bytes: usize,
    /// Messages that were sent, read or not, and their lengths.
    messages: VecDeque<(Part, usize)>,
    message_bytes: usize,
    received: Vec<u64>,
}

/// Something that another rank put in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Of a collective: the rank and the collective's number.
    Collective(usize, u64),
    /// Sent: from whom, to whom, and the message's number.
    Message(usize, usize, u64),
}

/// The folder in which the ranks of this session meet; `None` outside a session.
fn folder() -> Option<PathBuf> {
    let state = std::env::var_os(STATE).filter(|path| !path.is_empty())?;
    Some(Path::new(&state).parent()?.join("ranks"))
}

impl Meeting {
    /// The place of `rank` in the communicator of this name; `None` if there is nowhere to meet.
    pub fn join(name: u64, ranks: usize, rank: usize) -> Option<Meeting> {
        Meeting::join_in(folder()?, name, ranks, rank)
    }

    /// As [`Meeting::join`], in this folder.
    pub fn join_in(folder: PathBuf, name: u64, ranks: usize, rank: usize) -> Option<Meeting> {
        let name = format!("{name:016x}");
        // Not the folder around it, which goes with the session: who outlives that leaves nothing behind.
        if let Err(error) = std::fs::create_dir(&folder)
            && error.kind() != ErrorKind::AlreadyExists
        {
            return None;
        }
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(folder.join(&name)).ok()?;
        let counters = map(&file, 3 * ranks + ranks * ranks)?;
        let mine = Mutex::new(Mine { received: vec![0; ranks], ..Mine::default() });
        counters[2 * ranks + rank].store(u64::from(std::process::id()), Ordering::Release);
        let patience = std::env::var(RANK_WAIT_S).ok().and_then(|seconds| seconds.parse().ok());
        Some(Meeting {
            name,
            folder,
            ranks,
            rank,
            counters,
            mine,
            patience: patience.map_or(PATIENCE, Duration::from_secs),
            lost: AtomicBool::new(false),
            missed: AtomicBool::new(false),
        })
    }

    /// Says that this rank's communicator is no more.
    pub fn leave(&self) {
        self.process(self.rank).store(GONE, Ordering::Release);
    }

    fn called(&self, rank: usize) -> &AtomicU64 {
        &self.counters[rank]
    }

    fn settled(&self, rank: usize) -> &AtomicU64 {
        &self.counters[self.ranks + rank]
    }

    /// The process of a rank: 0 before it joined.
    fn process(&self, rank: usize) -> &AtomicU64 {
        &self.counters[2 * self.ranks + rank]
    }

    fn sent(&self, from: usize, to: usize) -> &AtomicU64 {
        &self.counters[3 * self.ranks + from * self.ranks + to]
    }

    fn path(&self, part: Part) -> PathBuf {
        let Meeting { name, folder, .. } = self;
        folder.join(match part {
            Part::Collective(rank, number) => format!("{name}.{rank}.{number}"),
            Part::Message(from, to, number) => format!("{name}.{from}-{to}.{number}"),
        })
    }

    /// Calls the next collective with what this rank puts in, if it is known. Its number.
    pub fn call(&self, part: Option<&[u8]>) -> u64 {
        let number = self.called(self.rank).load(Ordering::Relaxed);
        if let Some(part) = part {
            let mut mine = locked(&self.mine);
            let read = (0..self.ranks).map(|rank| self.settled(rank).load(Ordering::Acquire)).min().unwrap_or(0);
            while let Some((_, bytes)) = mine.lying.front().copied().filter(|(number, _)| *number < read) {
                let old = mine.lying.pop_front().map_or(0, |(number, _)| number);
                mine.bytes -= bytes;
                let _ = std::fs::remove_file(self.path(Part::Collective(self.rank, old)));
            }
            if mine.bytes + part.len() <= CAPACITY && self.lay(Part::Collective(self.rank, number), part) {
                mine.lying.push_back((number, part.len()));
                mine.bytes += part.len();
            }
        }
        self.called(self.rank).store(number + 1, Ordering::Release);
        number
    }

    /// Sends a message, if it is known.
    pub fn send(&self, to: usize, message: Option<&[u8]>) {
        let sent = self.sent(self.rank, to);
        let number = sent.load(Ordering::Relaxed);
        if let Some(message) = message {
            let part = Part::Message(self.rank, to, number);
            let mut mine = locked(&self.mine);
            mine.messages.push_back((part, message.len()));
            mine.message_bytes += message.len();
            // What nobody has read for so long is forgotten.
            while mine.message_bytes > CAPACITY {
                let Some((old, bytes)) = mine.messages.pop_front() else { break };
                mine.message_bytes -= bytes;
                let _ = std::fs::remove_file(self.path(old));
            }
            self.lay(part, message);
        }
        sent.store(number + 1, Ordering::Release);
    }

    /// The next message from another rank, which may be still to come; and how many there are with it.
    pub fn receive(&self, from: usize) -> (Part, u64) {
        let mut mine = locked(&self.mine);
        let number = mine.received[from];
        mine.received[from] += 1;
        (Part::Message(from, self.rank, number), number + 1)
    }

    fn lay(&self, part: Part, bytes: &[u8]) -> bool {
        std::fs::write(self.path(part), bytes).is_ok()
    }

    /// Says that this rank reads nothing any more of collectives before `number`.
    pub fn settle(&self, number: u64) {
        self.settled(self.rank).fetch_max(number, Ordering::AcqRel);
    }

    /// How many collectives this rank has called.
    pub fn calls(&self) -> u64 {
        self.called(self.rank).load(Ordering::Relaxed)
    }

    /// Waits for what another rank puts in: the bytes, or `None` if it does not know them either.
    pub fn take(&self, part: Part) -> Option<Vec<u8>> {
        let (rank, there, number): (_, _, u64) = match part {
            Part::Collective(rank, number) => (rank, self.called(rank), number),
            Part::Message(from, to, number) => (from, self.sent(from, to), number),
        };
        if !self.wait(rank, there, number + 1) {
            return None;
        }
        let path = self.path(part);
        let bytes = std::fs::read(&path).ok();
        if matches!(part, Part::Message(..)) && bytes.is_some() {
            let _ = std::fs::remove_file(path);
        }
        bytes
    }

    /// Whether those that are to come have: all ranks to so many collectives, or one with so many messages. Who has gone, and who
    /// was waited for in vain, is nobody that comes.
    pub fn have_come(&self, from: Option<usize>, wanted: u64) -> bool {
        self.awaited(from).all(|(rank, counter)| self.has_come(rank, counter, wanted).is_some())
    }

    /// Waits until those that are to come have.
    pub fn together(&self, from: Option<usize>, wanted: u64) {
        for (rank, counter) in self.awaited(from) {
            if !self.wait(rank, counter, wanted) {
                return;
            }
        }
    }

    /// The ranks of other processes that are to come, and what they count.
    fn awaited(&self, from: Option<usize>) -> impl Iterator<Item = (usize, &AtomicU64)> {
        let elsewhere = |rank: usize| self.process(rank).load(Ordering::Acquire) != u64::from(std::process::id());
        let counter = move |rank| from.map_or_else(|| self.called(rank), |from| self.sent(from, self.rank));
        let ranks = (0..self.ranks).filter(move |&rank| from.is_none_or(|from| from == rank) && elsewhere(rank));
        ranks.map(move |rank| (rank, counter(rank)))
    }

    /// Waits until a counter of `rank` has come to `wanted`; false if it will not.
    fn wait(&self, rank: usize, counter: &AtomicU64, wanted: u64) -> bool {
        let (began, mut pause) = (Instant::now(), Duration::from_micros(20));
        loop {
            if let Some(come) = self.has_come(rank, counter, wanted) {
                return come;
            }
            if began.elapsed() > self.patience {
                if !self.lost.swap(true, Ordering::Relaxed) {
                    eprintln!(
                        "memscope: rank {} waited {} s for rank {rank} of {} in a collective of NCCL, and goes on without; \
                         what this communicator gives from now on reads zeros ({RANK_WAIT_S} is how long a rank waits)",
                        self.rank,
                        self.patience.as_secs(),
                        self.ranks,
                    );
                }
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }

    /// Whether a counter of `rank` has come to `wanted`: false if it never will, `None` if not yet.
    fn has_come(&self, rank: usize, counter: &AtomicU64, wanted: u64) -> Option<bool> {
        if counter.load(Ordering::Acquire) >= wanted {
            return Some(true);
        }
        if self.lost.load(Ordering::Relaxed) {
            return Some(false);
        }
        // The other leaves after its last call: asked in this order, nothing is missed.
        if !self.has_gone(rank) {
            return None;
        }
        let came = counter.load(Ordering::Acquire) >= wanted;
        if !came {
            self.miss(rank);
        }
        Some(came)
    }

    /// Says once that a rank will not come.
    fn miss(&self, rank: usize) {
        if !self.missed.swap(true, Ordering::Relaxed) {
            eprintln!(
                "memscope: rank {rank} of {} ended before it came to a collective of NCCL; rank {} goes on without, and what \
                 that rank would have given reads zeros",
                self.ranks, self.rank,
            );
        }
    }

    fn has_gone(&self, rank: usize) -> bool {
        match self.process(rank).load(Ordering::Acquire) {
            0 => false,
            GONE => true,
            process => has_ended(process),
        }
    }
}

#[cfg(test)]
impl Meeting {
    /// From now on a rank is of this process.
    pub fn stands_for(&self, rank: usize, process: u64) {
        self.process(rank).store(process, Ordering::Release);
    }
}

/// Whether a process has ended, also if its parent has not asked yet how.
fn has_ended(process: u64) -> bool {
    // SAFETY: signal 0 only asks whether the process is there.
    if unsafe { libc::kill(process as libc::pid_t, 0) != 0 && *libc::__errno_location() == libc::ESRCH } {
        return true;
    }
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // proc(5): the state follows the name, which stands in brackets and may have any characters.
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['Z', 'X']))
}

/// So many counters of a file, which are never unmapped: communicators are not either.
fn map(file: &File, counters: usize) -> Option<&'static [AtomicU64]> {
    use std::os::fd::AsRawFd;
    let bytes = counters * size_of::<AtomicU64>();
    // The first to come makes the file as long as it will be; the others find it so.
    if file.metadata().ok()?.len() < bytes as u64 {
        file.set_len(bytes as u64).ok()?;
    }
    // SAFETY: a fresh mapping of a file that is as long, and stays so.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping has room for them, is aligned to a page, and any bytes are a number.
    Some(unsafe { std::slice::from_raw_parts(start.cast(), counters) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranks of a communicator, in a folder of their own.
    fn ranks<const N: usize>(name: u64) -> ([Meeting; N], PathBuf) {
        let folder = std::env::temp_dir().join(format!("memscope-ranks-{}-{name}", std::process::id()));
        (std::array::from_fn(|rank| Meeting::join_in(folder.clone(), name, N, rank).unwrap()), folder)
    }

    fn files(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn what_one_puts_in_the_others_take() {
        let ([one, other], folder) = ranks::<2>(1);
        let number = one.call(Some(b"here"));
        assert_eq!(other.take(Part::Collective(0, number)), Some(b"here".to_vec()));
        assert_eq!(other.call(None), number, "collectives are numbered alike");
        assert_eq!(one.take(Part::Collective(1, number)), None, "it came, and knew nothing");
        // Once both have settled it, it goes with the next.
        assert_eq!(files(&folder), 2);
        one.settle(1);
        other.settle(1);
        one.call(Some(b"next"));
        assert_eq!(files(&folder), 2);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn messages_are_taken_in_their_order_once_they_come() {
        let ([one, other], folder) = ranks::<2>(2);
        let ((first, _), (second, _)) = (other.receive(0), other.receive(0));
        let waiting = std::thread::spawn(move || (other.take(first), other.take(second)));
        one.send(1, Some(b"first"));
        one.send(1, None);
        assert_eq!(waiting.join().unwrap(), (Some(b"first".to_vec()), None));
        assert_eq!(files(&folder), 1, "a message that was read is gone");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn nobody_waits_for_a_rank_that_has_gone() {
        let ([one, other], folder) = ranks::<2>(3);
        other.call(Some(b"last"));
        other.leave();
        assert_eq!(one.take(Part::Collective(1, 0)), Some(b"last".to_vec()), "what it left is there");
        assert_eq!(one.take(Part::Collective(1, 1)), None);
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        other.stands_for(1, u64::from(ended.id()));
        assert_eq!(one.take(Part::Collective(1, 1)), None, "its process has ended, which nobody has asked for");
        ended.wait().unwrap();
        assert_eq!(one.take(Part::Collective(1, 1)), None, "it is not there any more");
        assert!(!one.lost.load(Ordering::Relaxed), "nobody waited long");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn nobody_waits_longer_than_is_said() {
        let ([mut one, other], folder) = ranks::<2>(5);
        one.patience = Duration::from_millis(50);
        other.stands_for(1, 1); // init's, which is there
        assert_eq!(one.take(Part::Collective(1, 0)), None);
        assert!(one.lost.load(Ordering::Relaxed) && one.have_come(None, 1), "and from then on nobody does");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn who_outlives_the_session_leaves_nothing() {
        let session = std::env::temp_dir().join(format!("memscope-ranks-{}-ended", std::process::id()));
        assert!(Meeting::join_in(session.join("ranks"), 6, 2, 0).is_none());
        assert!(!session.exists());
    }

    #[test]
    fn all_come_together() {
        let ([one, other], folder) = ranks::<2>(4);
        one.call(None);
        one.together(None, 1); // Nobody waits for its own process.
        other.stands_for(1, 1); // init's
        assert!(!one.have_come(None, 1));
        let waiting = std::thread::spawn(move || {
            one.together(None, 1);
            one.have_come(None, 1)
        });
        std::thread::sleep(Duration::from_millis(20));
        assert!(!waiting.is_finished());
        other.call(None);
        assert!(waiting.join().unwrap());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
