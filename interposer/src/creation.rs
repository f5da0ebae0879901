//! The log's file: its name, its mapping, its header.
//!
//! Owns: `<folder>/<pid>-<start time>-<exec count>.log`, created once in a process at its first recorded call, never at load.
//! Refuses: to retry: when the folder is missing or not writable, or whoever reads its logs is gone, the process is not recorded.
//! Where it can, it leaves an empty file whose name says why.
//!
//! The descriptor is kept for growing the file, at a number that programs rarely use; where RLIMIT_NOFILE allows no such number
//! none is kept, because the program's next file must have the number that it would have. Programs close descriptors that they do
//! not know, and may open other files at the number: it is compared with the file before each use, and the file is opened
//! again by its path when it is gone. A log that was deleted grows no more: a process that outlives its session must not
//! fill a file that nobody can see.

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::Ordering::{Relaxed, Release};
use memscope_wire::log::{
    CHUNK_SLOTS, FILE_SUFFIX, HEADER_BYTES, MAGIC, MAX_SLOTS, READER_FILE, REFUSAL_SUFFIX, Refusal, SLOT_BYTES, VERSION,
};
use memscope_wire::protocol::{self, Memory};
use memscope_wire::{Event, LogHeader, env};

use crate::state::State;
use crate::{beginning, clock, framework, log, system, table, thread};

/// Where the descriptor is moved to: below the usual soft limit of 1024, above what programs reach.
const LOWEST_DESCRIPTOR: c_int = 960;

/// Most logs of one process: so often can it exec.
const MOST_EXECS: u32 = 100_000;

/// Under a finite RLIMIT_AS the reservation takes at most this part of it, so that the program keeps its room.
const ADDRESS_SPACE_PART: u64 = 64;

/// A path in fixed memory, always terminated. All zero is the empty path.
pub struct Path {
    bytes: [u8; 4096],
    length: usize,
}

impl Path {
    /// The empty path.
    pub const EMPTY: Path = Path { bytes: [0; 4096], length: 0 };

    /// Appends bytes; false when they do not fit.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        // One byte stays for the terminator.
        let Some(room) = self.bytes.len().checked_sub(self.length + 1) else { return false };
        if bytes.len() > room {
            return false;
        }
        for (place, byte) in self.bytes.iter_mut().skip(self.length).zip(bytes) {
            *place = *byte;
        }
        self.length += bytes.len();
        true
    }

    /// Appends a number in decimal.
    fn push_number(&mut self, mut number: u64) -> bool {
        let mut digits = [0_u8; 20];
        let mut used = 0;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            used += 1;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.push(digits.get(20 - used..).unwrap_or(&[]))
    }

    /// Cuts the path.
    fn truncate(&mut self, length: usize) {
        for byte in self.bytes.iter_mut().skip(length) {
            *byte = 0;
        }
        self.length = length;
    }

    /// The path as system calls want it.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}

/// The value of an environment variable, as the program sees it now.
fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: the name is terminated. A program that changes its environment in another thread at this moment breaks its own
    // calls of getenv as well.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes())
    }
}

/// A name as getenv wants it; `SIZE` is one more than its length.
const fn terminated<const SIZE: usize>(name: &str) -> [u8; SIZE] {
    let mut terminated = [0; SIZE];
    let mut index = 0;
    while index < name.len() {
        terminated[index] = name.as_bytes()[index];
        index += 1;
    }
    terminated
}

const LOG_DIR: [u8; env::LOG_DIR.len() + 1] = terminated(env::LOG_DIR);
const STACKS: [u8; env::STACKS.len() + 1] = terminated(env::STACKS);
const STACK_NODES: [u8; env::STACK_NODES.len() + 1] = terminated(env::STACK_NODES);
const SHIM: [u8; env::SHIM.len() + 1] = terminated(env::SHIM);
const DEEPBIND: [u8; env::DEEPBIND.len() + 1] = terminated(env::DEEPBIND);

/// The folder of logs that the environment names, if it asks for a log.
pub fn folder() -> Option<&'static [u8]> {
    CStr::from_bytes_with_nul(&LOG_DIR).ok().and_then(variable).filter(|folder| !folder.is_empty())
}

/// True when the environment asks for a log.
pub fn is_asked_for() -> bool {
    folder().is_some()
}

/// True unless the environment keeps the shim out of Python programs.
pub fn wants_shim() -> bool {
    CStr::from_bytes_with_nul(&SHIM).ok().and_then(variable) != Some(b"0")
}

/// True when the environment takes RTLD_DEEPBIND away.
pub fn forbids_deep_binding() -> bool {
    CStr::from_bytes_with_nul(&DEEPBIND).ok().and_then(variable) == Some(b"0")
}

/// `None` unless the environment asks for stacks of Python; else how many nodes it allows, where it says so.
pub fn wants_stacks() -> Option<Option<u32>> {
    wants_stacks_of(b"python")
}

/// The same, for stacks of machine code.
pub fn wants_native_stacks() -> Option<Option<u32>> {
    wants_stacks_of(b"native")
}

/// True when the environment asks for nothing of where in the program an allocation is made.
pub fn wants_no_places() -> bool {
    CStr::from_bytes_with_nul(&STACKS).ok().and_then(variable) == Some(b"off")
}

fn wants_stacks_of(language: &[u8]) -> Option<Option<u32>> {
    let value = |name| CStr::from_bytes_with_nul(name).ok().and_then(variable);
    (value(&STACKS) == Some(language)).then(|| {
        let mut digits = value(&STACK_NODES)?.iter().map(|digit| char::from(*digit).to_digit(10));
        digits.try_fold(0_u32, |number, digit| Some(number.saturating_mul(10).saturating_add(digit?)))
    })
}

/// Creates the log, writes its first records and shows it to everyone. False when this process is not recorded.
pub fn create(state: &State) -> bool {
    let Some(folder) = folder() else { return false };
    let name = Name { folder, pid: system::process_id(), start_time: start_time() };
    // SAFETY: only the thread that opens the log comes here, and `log` is not set yet.
    let path = unsafe { &mut *state.path.get() };
    match open(state, path, &name) {
        Ok(()) => true,
        Err(Some(refusal)) => {
            name.leave(path, refusal);
            false
        }
        Err(None) => false,
    }
}

/// Leaves word why there will be no log.
pub fn leave(state: &State, refusal: Refusal) {
    if let Some(folder) = folder() {
        let name = Name { folder, pid: system::process_id(), start_time: start_time() };
        // SAFETY: the caller has made sure that nobody opens a log any more.
        name.leave(unsafe { &mut *state.path.get() }, refusal);
    }
}

/// What the names of this process's files are made of.
struct Name {
    folder: &'static [u8],
    pid: u32,
    start_time: u64,
}

impl Name {
    /// Makes `path` that of this process's files, up to what tells them apart; its length.
    fn stem(&self, path: &mut Path) -> Option<usize> {
        path.truncate(0);
        let whole = path.push(self.folder)
            && path.push(b"/")
            && path.push_number(self.pid as u64)
            && path.push(b"-")
            && path.push_number(self.start_time)
            && path.push(b"-");
        whole.then_some(path.length)
    }

    /// Leaves an empty file that says why there is no log: one call that opens and one that closes, nothing else.
    fn leave(&self, path: &mut Path, refusal: Refusal) {
        if self.stem(path).is_some()
            && path.push(refusal.name().as_bytes())
            && path.push(REFUSAL_SUFFIX.as_bytes())
            && let Ok(descriptor) =
                system::open(path.as_c_str(), libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC, 0o600)
        {
            system::close(descriptor);
        }
    }
}

/// Opens the log. The error says why there is none, where that can be told.
fn open(state: &State, path: &mut Path, name: &Name) -> Result<(), Option<Refusal>> {
    // SAFETY: only the thread that opens the log comes here, and `log` is not set yet.
    let reader = unsafe { &mut *state.reader_path.get() };
    reader.truncate(0);
    if !reader.push(name.folder) || !reader.push(b"/") || !reader.push(READER_FILE.as_bytes()) {
        return Err(None);
    }
    if has_no_reader(state) {
        return Err(Some(Refusal::Unread));
    }
    let (descriptor, exec_count) = create_file(path, name)?;
    let Some((log, capacity)) = map_header(state, descriptor) else {
        system::close(descriptor);
        system::unlink(path.as_c_str());
        let limited = system::limit(libc::RLIMIT_AS) != libc::RLIM64_INFINITY;
        return Err(Some(if limited { Refusal::AddressSpace } else { Refusal::Denied }));
    };
    state.capacity.store(capacity, Relaxed);
    let (device, inode) = system::identity(descriptor).unwrap_or((0, 0));
    state.file_device.store(device, Relaxed);
    state.file_inode.store(inode, Relaxed);
    // SAFETY: the header is mapped, its space is allocated, and nobody else knows it yet.
    unsafe { fill_header(log, state, name, exec_count) };
    // SAFETY: as above.
    let header = unsafe { &*log };
    // SAFETY: the header is mapped, and so is what follows it, up to the capacity.
    let mapped = unsafe { log::Mapped::new(state, log) };
    if mapped.allocate_in(0, CHUNK_SLOTS, descriptor) {
        protocol::raise(mapped.allocated(), CHUNK_SLOTS);
        mapped.populate(0);
    } else {
        state.full.store(1, Relaxed);
    }
    keep(state, descriptor);
    header.magic.store(MAGIC, Release);
    log::introduce(state, log, thread::current());
    let describe = |event: &Event| {
        // SAFETY: the header is mapped.
        unsafe { log::write(state, log, thread::current().id.get(), event) };
    };
    table::describe(describe);
    framework::describe(describe);
    log::settle_lost(state, header);
    state.log.store(log, Release);
    Ok(())
}

/// Creates the first file of this process's names that does not exist, with room for the header.
fn create_file(path: &mut Path, name: &Name) -> Result<(c_int, u32), Option<Refusal>> {
    let stem = name.stem(path).ok_or(None)?;
    for exec_count in 0..MOST_EXECS {
        path.truncate(stem);
        if !path.push_number(exec_count as u64) || !path.push(FILE_SUFFIX.as_bytes()) {
            return Err(None);
        }
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        match system::open(path.as_c_str(), flags, 0o600) {
            Ok(descriptor) => {
                // The program's umask may have taken away what a later opening needs.
                system::set_mode(descriptor, 0o600);
                let refusal = if system::limit(libc::RLIMIT_FSIZE) < HEADER_BYTES as u64 {
                    Refusal::FileSize
                } else {
                    match system::allocate(descriptor, 0, HEADER_BYTES as u64) {
                        Ok(()) => return Ok((descriptor, exec_count)),
                        Err(system::Errno(libc::ENOSPC | libc::EDQUOT)) => Refusal::Room,
                        Err(_) => Refusal::Denied,
                    }
                };
                system::close(descriptor);
                system::unlink(path.as_c_str());
                return Err(Some(refusal));
            }
            Err(system::Errno(libc::EEXIST)) => {}
            Err(system::Errno(libc::ENOSPC | libc::EDQUOT)) => return Err(Some(Refusal::Room)),
            Err(_) => return Err(None),
        }
    }
    Err(None)
}

/// Reserves address space for the whole log: the largest of 64 GiB, 32, … that the process's limits allow. The header's
/// address, and the number of slots behind it.
fn map_header(state: &State, descriptor: c_int) -> Option<(*mut LogHeader, u64)> {
    const CHUNK_BYTES: u64 = CHUNK_SLOTS * SLOT_BYTES as u64;
    let limit = system::limit(libc::RLIMIT_AS);
    let most = if limit == libc::RLIM64_INFINITY { u64::MAX } else { limit / ADDRESS_SPACE_PART };
    let mut slots_bytes = MAX_SLOTS * SLOT_BYTES as u64;
    while slots_bytes >= CHUNK_BYTES {
        let bytes = HEADER_BYTES as u64 + slots_bytes;
        if let Some(address) = (bytes <= most).then(|| system::map_file(descriptor, bytes)).flatten() {
            // SAFETY: both kinds of advice concern what a child or a core dump sees of a mapping that is new. A child that is not
            // told "no log yet" by its page must keep the mapping.
            unsafe {
                system::advise(address, bytes, libc::MADV_DONTDUMP);
                if state.wiped_on_fork.load(Relaxed) != 0 {
                    system::advise(address, bytes, libc::MADV_DONTFORK);
                }
            }
            return Some((address.cast(), slots_bytes / SLOT_BYTES as u64));
        }
        slots_bytes /= 2;
    }
    None
}

/// Writes everything in the header but the magic number.
///
/// # Safety
/// `log` is mapped and writable, and known to nobody else.
unsafe fn fill_header(log: *mut LogHeader, state: &State, name: &Name, exec_count: u32) {
    let Name { pid, start_time, .. } = *name;
    let clock = clock::choose();
    let (ticks, nanoseconds) = clock::calibrate(clock);
    state.clock.store(clock, Relaxed);
    // The pid makes it differ from the parent's even if two clocks read the same.
    state.generation.store((ticks.rotate_left(24) ^ pid as u64) | 1, Relaxed);
    // SAFETY: the caller's promise; each field is written through its own place.
    unsafe {
        (*log).version = VERSION;
        (*log).clock = clock;
        (*log).pid = pid;
        (*log).parent_pid = system::parent_id();
        (*log).start_time = start_time;
        (*log).exec_count = exec_count;
        let rank = ranked(&env::RANKS).and_then(|rank| i32::try_from(rank).ok()).unwrap_or(-1);
        (*log).rank = rank;
        // A job's size that another launcher has named, such as that of a shell in an allocation of one task, is none of this rank's.
        let size = ranked(&env::WORLD_SIZES).filter(|size| i64::from(*size) > i64::from(rank));
        (*log).world_size = size.filter(|_| rank >= 0).unwrap_or(0);
        (*log).local_rank_and_one =
            ranked(&env::LOCAL_RANKS).filter(|_| rank >= 0).map_or(0, |local| local.saturating_add(1));
        (*log).capacity = state.capacity.load(Relaxed);
        (*log).first_ticks = ticks;
        (*log).first_nanoseconds = nanoseconds;
        (*log).began_nanoseconds = beginning::of_program(start_time, nanoseconds);
        (*log).realtime_nanoseconds = clock::nanoseconds(libc::CLOCK_REALTIME);
        (*log).boot_id = boot_id();
        (*log).executable_bytes = system::read_link(c"/proc/self/exe", &mut (*log).executable) as u32;
        (*log).command_bytes = system::read_file(c"/proc/self/cmdline", &mut (*log).command) as u32;
    }
}

/// Gives `work` a descriptor of the log's file: the one that was kept if it still is that, else a new one. `None` when there is
/// none to be had.
pub fn with_descriptor<T>(state: &State, work: impl FnOnce(c_int) -> T) -> Option<T> {
    let file = (state.file_device.load(Relaxed), state.file_inode.load(Relaxed));
    let kept = state.descriptor.load(Relaxed);
    if system::identity(kept) == Some(file) {
        return Some(work(kept));
    }
    // SAFETY: the path was written before the log was shown, and is not written again.
    let path = unsafe { &*state.path.get() };
    let opened = system::open(path.as_c_str(), libc::O_RDWR | libc::O_CLOEXEC, 0).ok()?;
    if system::identity(opened) != Some(file) {
        system::close(opened);
        return None;
    }
    let result = work(opened);
    // Two threads may do this at once: the number of one of them is forgotten, and stays open until exec.
    keep(state, opened);
    Some(result)
}

/// True when nobody reads the logs of this folder. Where that cannot be told (no such file, as without memscope; a folder that is
/// out of reach by now; no locks) somebody may.
pub fn has_no_reader(state: &State) -> bool {
    // SAFETY: the path is written by the thread that opens the log, before it is shown, and not again.
    let path = unsafe { &*state.reader_path.get() };
    let Ok(file) = system::open(path.as_c_str(), libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK, 0) else {
        return false;
    };
    let is_locked = system::is_locked(file);
    system::close(file);
    is_locked == Ok(false)
}

/// Keeps a descriptor of the log's file at a number that programs rarely use; closes it where there is none to be had.
fn keep(state: &State, descriptor: c_int) {
    let moved = system::duplicate(descriptor, LOWEST_DESCRIPTOR);
    system::close(descriptor);
    state.descriptor.store(moved.unwrap_or(-1), Relaxed);
}

/// What a launcher of distributed jobs says in its environment: the first of these variables that is a number.
fn ranked(names: &[&CStr]) -> Option<u32> {
    names.iter().find_map(|name| u32::try_from(variable(name).and_then(decimal)?).ok())
}

/// A number in decimal digits and nothing else.
fn decimal(text: &[u8]) -> Option<u64> {
    let mut number: u64 = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(digit as u64)?;
    }
    (!text.is_empty()).then_some(number)
}

/// Start time of this process in clock ticks since boot; 0 when /proc does not tell.
fn start_time() -> u64 {
    let mut text = [0; 1024];
    let length = system::read_file(c"/proc/self/stat", &mut text);
    text.get(..length).and_then(start_time_in).unwrap_or(0)
}

/// Field 22 of /proc/PID/stat. The second field, the program's name in parentheses, may hold spaces and parentheses itself.
fn start_time_in(stat: &[u8]) -> Option<u64> {
    const FIELDS_AFTER_NAME: usize = 20;
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = stat.get(name_end + 1..)?;
    let mut words = fields.split(|byte| *byte == b' ' || *byte == b'\n').filter(|word| !word.is_empty());
    decimal(words.nth(FIELDS_AFTER_NAME - 1)?)
}

/// The kernel's boot id; zeroes when /proc does not tell.
fn boot_id() -> [u8; 16] {
    let mut text = [0; 37];
    system::read_file(c"/proc/sys/kernel/random/boot_id", &mut text);
    bytes_of_uuid(&text)
}

/// The 16 bytes of a UUID in its usual spelling.
fn bytes_of_uuid(text: &[u8]) -> [u8; 16] {
    let mut uuid = [0; 16];
    let mut digits = text.iter().filter_map(|byte| char::from(*byte).to_digit(16));
    for byte in &mut uuid {
        let (Some(high), Some(low)) = (digits.next(), digits.next()) else { return [0; 16] };
        *byte = (high * 16 + low) as u8;
    }
    uuid
}

/// The bytes of a C string, at most `most` of them; nothing for a null pointer.
///
/// # Safety
/// `text` is null or terminated, or at least `most` bytes of it can be read; it is not changed while the result is used.
pub unsafe fn bytes_of<'a>(text: *const c_char, most: usize) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: strnlen reads to the terminator or to `most`, and what it has read may be read again.
    unsafe { core::slice::from_raw_parts(text.cast(), libc::strnlen(text, most)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_an_odd_name() {
        let stat = b"17 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654321 20 21\n";
        assert_eq!(start_time_in(stat), Some(987_654_321));
        assert_eq!(start_time_in(b"17 (cut"), None);
        assert_eq!(start_time_in(b"17 (cut) S 1 2"), None);
    }

    #[test]
    fn only_whole_decimal_numbers_are_ranks() {
        assert_eq!(decimal(b"12"), Some(12));
        for text in [&b""[..], b"-1", b"1 ", b"0x1", b"99999999999999999999"] {
            assert_eq!(decimal(text), None);
        }
    }

    #[test]
    fn a_uuid_is_read() {
        let bytes = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0, 1, 2, 3, 4, 5, 6, 0xff];
        assert_eq!(bytes_of_uuid(b"01234567-89ab-cdef-0001-0203040506ff\n"), bytes);
        assert_eq!(bytes_of_uuid(b"01234567-89ab"), [0; 16]);
    }

    #[test]
    fn a_path_is_built_cut_and_refused_when_too_long() {
        let mut path = Path::EMPTY;
        assert!(path.push(b"/logs/") && path.push_number(0) && path.push(b"-") && path.push_number(u64::MAX));
        assert_eq!(path.as_c_str(), c"/logs/0-18446744073709551615");
        path.truncate(6);
        assert!(path.push_number(1230));
        assert_eq!(path.as_c_str(), c"/logs/1230");
        assert!(!path.push(&[b'x'; 4086]));
        assert!(path.push(&[b'x'; 4085]));
        assert_eq!(path.as_c_str().to_bytes().len(), 4095);
        assert!(!path.push(b"x"));
    }
}
