//! The shared log: one file a process, a header page and then slots of 64 bytes that are only ever appended.
//!
//! Protocol. A writer claims a slot with one atomic add on [`LogHeader::head`]; this is the total order of the process.
//! It makes sure that the file's space up to that slot is allocated (`fallocate` by chunks, then [`LogHeader::allocated`]),
//! writes the words, and commits by storing [`Slot::head`] with release ordering. A slot whose head is 0 is not committed.
//! A claim beyond what could be allocated is counted in [`LogHeader::dropped`] and never committed.
//!
//! Anyone may grow the log: allocate the file's space from [`LogHeader::allocated`] on, up to [`LogHeader::capacity`], and
//! then raise `allocated` by an atomic maximum. It is never lowered.
//!
//! A log that nobody reads does not grow for ever. Whoever reads the logs of a folder holds a lock on its [`READER_FILE`], which
//! the kernel takes away when that process ends, however it ends. The writer lets its log grow beyond [`MOST_UNREAD_SLOTS`] that
//! were not read ([`LogHeader::read`]) only while there is such a lock, or while it cannot tell.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// First eight bytes of a log that is ready to be read; stored last when a log is created.
pub const MAGIC: u64 = u64::from_le_bytes(*b"MSCPLOG1");
/// Version of header and records. A reader refuses another.
pub const VERSION: u32 = 1;
/// Size of the header in the file, in bytes; slot 0 begins here.
pub const HEADER_BYTES: usize = 4096;
/// Size of a slot, in bytes.
pub const SLOT_BYTES: usize = 64;
/// Slots allocated at a time (1 MiB).
pub const CHUNK_SLOTS: u64 = 16_384;
/// Most slots of one log (64 GiB of file): claims beyond it are dropped and counted.
pub const MAX_SLOTS: u64 = 1 << 30;
/// Suffix of a log's file name, which is `<pid>-<start time>-<exec count>.log`.
pub const FILE_SUFFIX: &str = ".log";

/// Suffix of the empty file that a process leaves in the place of a log, `<pid>-<start time>-<reason>.refused`, where it can
/// leave one at all.
pub const REFUSAL_SUFFIX: &str = ".refused";

/// File in a folder of logs on which their reader holds a lock of fcntl(2) while it reads. Where there is none, nobody can tell
/// whether there is a reader.
pub const READER_FILE: &str = "reader";
/// Slots of a log that may be written without having been read, when there is no reader (64 MiB).
pub const MOST_UNREAD_SLOTS: u64 = 1 << 20;

/// Why a process that was asked to write a log did not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Refusal {
    /// There was no room for the log's header.
    Room,
    /// RLIMIT_FSIZE does not allow a log.
    FileSize,
    /// There was no address space for the log.
    AddressSpace,
    /// The system denied a call that a log needs.
    Denied,
    /// The process was about to give itself a filter of system calls (seccomp), which may end it at any that is not its own, and
    /// had not loaded a driver by then.
    Filter,
    /// Whoever was to read its log was gone before it could begin one.
    Unread,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Refusal; 6] =
        [Refusal::Room, Refusal::FileSize, Refusal::AddressSpace, Refusal::Denied, Refusal::Filter, Refusal::Unread];

    /// Its name in a file's name: letters only.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::Room => "room",
            Refusal::FileSize => "filesize",
            Refusal::AddressSpace => "addressspace",
            Refusal::Denied => "denied",
            Refusal::Filter => "filter",
            Refusal::Unread => "unread",
        }
    }

    /// The refusal that a file's name tells of.
    pub fn of_file(name: &str) -> Option<Refusal> {
        let (process, reason) = name.strip_suffix(REFUSAL_SUFFIX)?.rsplit_once('-')?;
        let (pid, start_time) = process.split_once('-')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        (is_number(pid) && is_number(start_time)).then_some(())?;
        Refusal::ALL.into_iter().find(|refusal| refusal.name() == reason)
    }
}

/// What the library leaves once in a folder of logs, whoever of the session's processes comes first: an empty file of that name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// It was loaded into a process that can reach the folder.
    Loaded,
    /// Such a process opened a library by RTLD_DEEPBIND, which finds the driver past every preload.
    BoundDeeply,
}

impl Mark {
    /// The name of its file.
    pub const fn file(self) -> &'static str {
        match self {
            Mark::Loaded => "library.loaded",
            Mark::BoundDeeply => "bound.deeply",
        }
    }

    /// Names of the links that lead to programs which such a process has started without the library. Each program has its place
    /// among them by its name, as it was called; so there are few, however many programs there are.
    pub const STARTED_WITHOUT: [&str; 8] =
        ["started.0", "started.1", "started.2", "started.3", "started.4", "started.5", "started.6", "started.7"];

    /// The link for a program of this name.
    pub fn started_without(name: &[u8]) -> &'static str {
        let sum = name.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
        Mark::STARTED_WITHOUT.get(sum % Mark::STARTED_WITHOUT.len()).copied().unwrap_or(Mark::STARTED_WITHOUT[0])
    }
}

/// [`LogHeader::clock`]: ticks are nanoseconds of CLOCK_MONOTONIC.
pub const CLOCK_MONOTONIC: u32 = 0;
/// [`LogHeader::clock`]: ticks are the processor's time-stamp counter.
pub const CLOCK_TSC: u32 = 1;

/// The header page. All numbers are little-endian. Written once at creation, except the atomics.
#[repr(C, align(4096))]
pub struct LogHeader {
    /// [`MAGIC`], stored last (release) when the log is created.
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: u32,
    /// [`CLOCK_MONOTONIC`] or [`CLOCK_TSC`].
    pub clock: u32,
    /// Process id in the writer's PID namespace.
    pub pid: u32,
    /// Parent's process id at creation.
    pub parent_pid: u32,
    /// Start time of the process, in clock ticks since boot (field 22 of /proc/PID/stat).
    pub start_time: u64,
    /// How many logs this (pid, start time) made before: exec replaces a program and begins a new log.
    pub exec_count: u32,
    /// Rank of a distributed job from its launcher's environment; -1 when there is none.
    pub rank: i32,
    /// First calibration: ticks and nanoseconds of CLOCK_MONOTONIC read together at creation.
    pub first_ticks: u64,
    /// See [`LogHeader::first_ticks`].
    pub first_nanoseconds: u64,
    /// CLOCK_REALTIME at creation, nanoseconds since 1970.
    pub realtime_nanoseconds: u64,
    /// Boot id (/proc/sys/kernel/random/boot_id, its 16 bytes): monotonic times compare only within one boot.
    pub boot_id: [u8; 16],
    /// Bytes used in [`LogHeader::executable`].
    pub executable_bytes: u32,
    /// Bytes used in [`LogHeader::command`].
    pub command_bytes: u32,
    /// Slots that the writer's mapping has room for: `allocated` may be raised so far. 0: only the writer raises it.
    pub capacity: u64,
    /// How many ranks the distributed job has; 0 when no launcher said so.
    pub world_size: u32,
    /// Rank on its node plus 1; 0 when no launcher named one.
    pub local_rank_and_one: u32,
    /// CLOCK_MONOTONIC nanoseconds at which this program began: was loaded, or, in a process that was forked from it, the end of the
    /// clock tick of the fork; 0 when that is not known.
    pub began_nanoseconds: u64,
    reserved: [u8; 16],

    /// Next slot to be claimed.
    pub head: PaddedU64,
    /// Slots for which the file's space is allocated.
    pub allocated: PaddedU64,
    /// Events that could not be written.
    pub dropped: PaddedU64,
    /// Faults of the interposer itself (a hook that could not find the real function, …).
    pub faults: PaddedU64,
    /// Second calibration, refreshed while the process runs: `last_nanoseconds` is stored with release after
    /// `last_ticks`; 0 until the first refresh. Any process may refresh it.
    pub last_ticks: PaddedU64,
    /// See [`LogHeader::last_ticks`].
    pub last_nanoseconds: PaddedU64,
    /// CLOCK_MONOTONIC nanoseconds at which the process closed its log in an orderly exit; 0 otherwise.
    pub closed_nanoseconds: PaddedU64,

    /// Path of the executable, not terminated.
    pub executable: [u8; 1024],
    /// The argument vector as in /proc/self/cmdline: arguments separated by NUL, cut.
    pub command: [u8; 2048],

    /// Slots below this one were read, and are kept elsewhere. Stored by the reader.
    pub read: PaddedU64,
    /// CLOCK_MONOTONIC nanoseconds at which the first event found no room because nobody read the log; 0 if none did.
    pub unread_nanoseconds: PaddedU64,
    tail: [u8; 320],
}

/// An atomic counter alone on its cache line.
#[repr(C, align(64))]
#[derive(Default)]
pub struct PaddedU64(pub AtomicU64);

/// A slot of the log as the writer sees it.
#[repr(C, align(64))]
pub struct Slot {
    /// Kind in the low 16 bits, flags in the high 16; 0 while not committed.
    pub head: AtomicU32,
    /// Thread id (gettid).
    pub thread: u32,
    /// Clock reading, in ticks of the header's clock.
    pub ticks: u64,
    /// Meaning by kind: [`crate::event`].
    pub words: [u64; 6],
}

/// A slot's content as a plain value.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// Kind in the low 16 bits, flags in the high 16; 0 when the slot was never committed.
    pub head: u32,
    /// Thread id.
    pub thread: u32,
    /// Clock reading, in ticks.
    pub ticks: u64,
    /// Meaning by kind.
    pub words: [u64; 6],
}

impl Record {
    /// The record's kind, one of the constants in [`crate::event::kind`]; 0 when not committed.
    pub const fn kind(&self) -> u16 {
        self.head as u16
    }

    /// The 64 bytes of the slot, little-endian.
    pub fn to_bytes(&self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        bytes[0..4].copy_from_slice(&self.head.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.thread.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.ticks.to_le_bytes());
        for (index, word) in self.words.iter().enumerate() {
            bytes[16 + index * 8..24 + index * 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The record in 64 bytes; the inverse of [`Record::to_bytes`].
    pub fn from_bytes(bytes: &[u8; SLOT_BYTES]) -> Record {
        let word = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        let first = word(0);
        let mut words = [0; 6];
        for (index, slot) in words.iter_mut().enumerate() {
            *slot = word(16 + index * 8);
        }
        Record { head: first as u32, thread: (first >> 32) as u32, ticks: word(8), words }
    }
}

const _: () = assert!(size_of::<LogHeader>() == HEADER_BYTES);
const _: () = assert!(size_of::<Slot>() == SLOT_BYTES);
const _: () = assert!(size_of::<Record>() == SLOT_BYTES);
const _: () = assert!(core::mem::offset_of!(LogHeader, capacity) == 88);
const _: () = assert!(core::mem::offset_of!(LogHeader, world_size) == 96);
const _: () = assert!(core::mem::offset_of!(LogHeader, began_nanoseconds) == 104);
const _: () = assert!(core::mem::offset_of!(LogHeader, head) == 128);
const _: () = assert!(core::mem::offset_of!(LogHeader, executable) == 576);
const _: () = assert!(core::mem::offset_of!(LogHeader, read) == 3648);
const _: () = assert!(MOST_UNREAD_SLOTS.is_multiple_of(CHUNK_SLOTS));

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[test]
    fn a_refusal_is_read_from_the_name_of_its_file_only() {
        assert_eq!(Refusal::of_file("12-345-room.refused"), Some(Refusal::Room));
        assert_eq!(Refusal::of_file("12-345-filesize.refused"), Some(Refusal::FileSize));
        for name in
            ["12-345-0.log", "12-room.refused", "12-345-rooms.refused", "12-345-room", "a-345-room.refused", "-"]
        {
            assert_eq!(Refusal::of_file(name), None, "{name}");
        }
    }
}
