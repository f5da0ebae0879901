//! System calls, made directly: they leave `errno` alone and no other preloaded library sees or changes them.
//!
//! Owns: the calls that the writer of the log needs, with their results as `Result<usize, errno>`. Refuses: anything that a
//! hook needs on its fast path; every call in a program that filters its system calls, which is answered as if it were forbidden.

use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;

use crate::confinement;

/// An error number of the kernel, positive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub c_int);

type Outcome = Result<usize, Errno>;

/// # Safety
/// As the system call with that number demands.
#[inline(never)]
unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> Outcome {
    if confinement::is_confined() {
        return Err(Errno(libc::EPERM));
    }
    // SAFETY: the caller's promise.
    unsafe { make(number, arguments) }
}

/// # Safety
/// As the system call with that number demands.
unsafe fn make(number: libc::c_long, arguments: [usize; 6]) -> Outcome {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: the x86-64 system call convention; the caller answers for the arguments.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    if result < 0 { Err(Errno(-result as c_int)) } else { Ok(result as usize) }
}

/// The program's own call of prctl(2), in its name: also when it filters its calls.
pub fn prctl(arguments: [usize; 6]) -> Outcome {
    // SAFETY: the program answers for what it asks.
    unsafe { make(libc::SYS_prctl, arguments) }
}

/// The program's own call of execve(2), in its name; returns only if it fails.
pub fn execute(path: usize, arguments: usize, environment: usize) -> Errno {
    // SAFETY: the program answers for what it asks.
    match unsafe { make(libc::SYS_execve, [path, arguments, environment, 0, 0, 0]) } {
        Ok(_) => Errno(0),
        Err(error) => error,
    }
}

/// Makes a symbolic link at `path` that leads to `target`, which need not be there.
pub fn link(target: &CStr, path: &CStr) {
    // SAFETY: both are terminated.
    let _ = unsafe { call(libc::SYS_symlink, [target.as_ptr() as usize, path.as_ptr() as usize, 0, 0, 0, 0]) };
}

/// The calling thread's id.
pub fn thread_id() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { call(libc::SYS_gettid, [0; 6]) }.unwrap_or(0) as u32
}

/// The process's id, not the one that a library may have cached before a fork.
pub fn process_id() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { call(libc::SYS_getpid, [0; 6]) }.unwrap_or(0) as u32
}

/// The parent's process id.
pub fn parent_id() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { call(libc::SYS_getppid, [0; 6]) }.unwrap_or(0) as u32
}

/// Lets another thread run.
pub fn yield_now() {
    // SAFETY: no arguments.
    let _ = unsafe { call(libc::SYS_sched_yield, [0; 6]) };
}

/// Opens `path`; `flags` and `mode` as open(2).
pub fn open(path: &CStr, flags: c_int, mode: u32) -> Result<c_int, Errno> {
    // SAFETY: the path is terminated.
    unsafe {
        call(libc::SYS_openat, [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, mode as usize, 0, 0])
    }
    .map(|descriptor| descriptor as c_int)
}

/// Closes a descriptor that is ours.
pub fn close(descriptor: c_int) {
    // SAFETY: the caller owns the descriptor.
    let _ = unsafe { call(libc::SYS_close, [descriptor as usize, 0, 0, 0, 0, 0]) };
}

/// Removes a file.
pub fn unlink(path: &CStr) {
    // SAFETY: the path is terminated.
    let _ = unsafe { call(libc::SYS_unlink, [path.as_ptr() as usize, 0, 0, 0, 0, 0]) };
}

/// Fills `buffer` from the beginning of the file at `path`, as far as both reach; 0 when it cannot be read.
pub fn read_file(path: &CStr, buffer: &mut [u8]) -> usize {
    let Ok(descriptor) = open(path, libc::O_RDONLY | libc::O_CLOEXEC, 0) else { return 0 };
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        // SAFETY: the kernel writes at most `rest.len()` bytes into `rest`.
        let got =
            unsafe { call(libc::SYS_read, [descriptor as usize, rest.as_mut_ptr() as usize, rest.len(), 0, 0, 0]) };
        match got {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(Errno(libc::EINTR)) => {}
            Err(_) => break,
        }
    }
    close(descriptor);
    filled.min(buffer.len())
}

/// Reads once from a descriptor into `buffer`, again when a signal interrupts it: how many bytes; `None` when it cannot be read.
pub fn read(descriptor: c_int, buffer: &mut [u8]) -> Option<usize> {
    const ATTEMPTS: usize = 100;
    for _ in 0..ATTEMPTS {
        // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`.
        let got =
            unsafe { call(libc::SYS_read, [descriptor as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]) };
        match got {
            Ok(bytes) => return Some(bytes.min(buffer.len())),
            Err(Errno(libc::EINTR)) => {}
            Err(_) => return None,
        }
    }
    None
}

/// Fills `buffer` from memory of this process at `address`, which may not be there; false when not all of it can be read.
pub fn copy_memory(address: usize, buffer: &mut [u8]) -> bool {
    let to = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let from = libc::iovec { iov_base: address as *mut _, iov_len: buffer.len() };
    let (to, from) = (&raw const to as usize, &raw const from as usize);
    // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`, and itself finds out whether there is anything to read.
    let got = unsafe { call(libc::SYS_process_vm_readv, [process_id() as usize, to, 1, from, 1, 0]) };
    match got {
        Ok(bytes) => bytes == buffer.len(),
        // Forbidden (seccomp, an old container) or not there (before Linux 3.2): the same by a file.
        Err(Errno(libc::EPERM | libc::ENOSYS | libc::EACCES)) => {
            let Ok(memory) = open(c"/proc/self/mem", libc::O_RDONLY | libc::O_CLOEXEC, 0) else { return false };
            let (into, bytes) = (buffer.as_mut_ptr() as usize, buffer.len());
            // SAFETY: as above.
            let got = unsafe { call(libc::SYS_pread64, [memory as usize, into, bytes, address, 0, 0]) };
            close(memory);
            got == Ok(bytes)
        }
        Err(_) => false,
    }
}

/// Size in bytes of the file at `path`, and when it was changed last: seconds and nanoseconds.
pub fn file_status(path: &CStr) -> Option<(u64, i64, i64)> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: on x86-64 the kernel's stat is libc's; all its fields may be zero.
    unsafe {
        call(libc::SYS_stat, [path.as_ptr() as usize, status.as_mut_ptr() as usize, 0, 0, 0, 0]).ok()?;
        let status = status.assume_init();
        Some((status.st_size as u64, status.st_mtime, status.st_mtime_nsec))
    }
}

/// Fills `buffer` with the target of the link at `path`; 0 when it cannot be read.
pub fn read_link(path: &CStr, buffer: &mut [u8]) -> usize {
    // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`.
    unsafe { call(libc::SYS_readlink, [path.as_ptr() as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]) }
        .unwrap_or(0)
        .min(buffer.len())
}

/// A copy of `descriptor` at the first free number from `lowest` on, closed on exec.
pub fn duplicate(descriptor: c_int, lowest: c_int) -> Result<c_int, Errno> {
    // SAFETY: duplicates a descriptor of ours.
    unsafe { call(libc::SYS_fcntl, [descriptor as usize, libc::F_DUPFD_CLOEXEC as usize, lowest as usize, 0, 0, 0]) }
        .map(|copy| copy as c_int)
}

/// True when another process has a lock of fcntl(2) on the file. Takes none itself.
pub fn is_locked(descriptor: c_int) -> Result<bool, Errno> {
    let mut lock =
        libc::flock { l_type: libc::F_WRLCK as i16, l_whence: libc::SEEK_SET as i16, l_start: 0, l_len: 0, l_pid: 0 };
    // SAFETY: on x86-64 the kernel's flock is libc's, and the kernel writes one.
    unsafe {
        call(libc::SYS_fcntl, [descriptor as usize, libc::F_GETLK as usize, &raw mut lock as usize, 0, 0, 0])?;
    }
    Ok(lock.l_type != libc::F_UNLCK as i16)
}

/// Sets the permission bits of an open file.
pub fn set_mode(descriptor: c_int, mode: u32) {
    // SAFETY: plain numbers.
    let _ = unsafe { call(libc::SYS_fchmod, [descriptor as usize, mode as usize, 0, 0, 0, 0]) };
}

/// Which file a descriptor is open on: device and inode, while the file has a name.
pub fn identity(descriptor: c_int) -> Option<(u64, u64)> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: on x86-64 the kernel's stat is libc's; all its fields may be zero.
    unsafe {
        call(libc::SYS_fstat, [descriptor as usize, status.as_mut_ptr() as usize, 0, 0, 0, 0]).ok()?;
        let status = status.assume_init();
        (status.st_nlink > 0).then_some((status.st_dev, status.st_ino))
    }
}

/// Allocates the file's space from `offset` for `bytes`, and lets it grow to there. Repeats when a signal interrupts it.
pub fn allocate(descriptor: c_int, offset: u64, bytes: u64) -> Result<(), Errno> {
    const ATTEMPTS: usize = 100;
    let mut last = Errno(libc::EINTR);
    for _ in 0..ATTEMPTS {
        // SAFETY: plain numbers.
        match unsafe { call(libc::SYS_fallocate, [descriptor as usize, 0, offset as usize, bytes as usize, 0, 0]) } {
            Ok(_) => return Ok(()),
            Err(error) if error.0 == libc::EINTR => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// The soft limit of a resource; `u64::MAX` when there is none or it cannot be told.
pub fn limit(resource: libc::__rlimit_resource_t) -> u64 {
    let mut limit = libc::rlimit64 { rlim_cur: u64::MAX, rlim_max: u64::MAX };
    // SAFETY: reads the limit of this process into `limit`.
    let _ = unsafe { call(libc::SYS_prlimit64, [0, resource as usize, 0, &raw mut limit as usize, 0, 0]) };
    limit.rlim_cur
}

/// Maps `bytes` of a file, shared and writable, without reserving memory for them.
pub fn map_file(descriptor: c_int, bytes: u64) -> Option<*mut u8> {
    map(bytes, libc::MAP_SHARED | libc::MAP_NORESERVE, descriptor)
}

/// Maps `bytes` of zeroes that belong to this process alone.
pub fn map_zeroes(bytes: u64) -> Option<*mut u8> {
    map(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
}

fn map(bytes: u64, flags: c_int, descriptor: c_int) -> Option<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    unsafe {
        call(libc::SYS_mmap, [0, bytes as usize, protection as usize, flags as usize, descriptor as isize as usize, 0])
    }
    .ok()
    .map(|address| address as *mut u8)
}

/// Ends a mapping.
///
/// # Safety
/// Nobody uses the mapping any more.
pub unsafe fn unmap(address: *mut u8, bytes: u64) {
    // SAFETY: the caller's promise.
    let _ = unsafe { call(libc::SYS_munmap, [address as usize, bytes as usize, 0, 0, 0, 0]) };
}

/// Advises the kernel about a mapping of ours; true when it accepts.
///
/// # Safety
/// The advice must not destroy what is in use.
pub unsafe fn advise(address: *mut u8, bytes: u64, advice: c_int) -> bool {
    // SAFETY: the caller's promise.
    unsafe { call(libc::SYS_madvise, [address as usize, bytes as usize, advice as usize, 0, 0, 0]) }.is_ok()
}

/// True when eight bytes can be read at `address`. Asked by a call that every process may make, with an argument that makes it do
/// nothing: the kernel reads the set of signals before it finds that it does not know what to do with it.
pub fn can_read(address: usize) -> bool {
    const NO_SUCH_CHANGE: usize = 0x6d65;
    // SAFETY: the kernel reads eight bytes, or says that it cannot.
    let answer = unsafe { call(libc::SYS_rt_sigprocmask, [NO_SUCH_CHANGE, address, 0, size_of::<u64>(), 0, 0]) };
    answer != Err(Errno(libc::EFAULT))
}

/// Now, in nanoseconds of a POSIX clock, asked of the kernel itself; 0 when it does not tell.
pub fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    let _ = unsafe { call(libc::SYS_clock_gettime, [clock as usize, &raw mut time as usize, 0, 0, 0, 0]) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// True when the program has made reading the time-stamp counter an error (prctl PR_SET_TSC).
pub fn time_stamp_counter_is_forbidden() -> bool {
    const PR_GET_TSC: usize = 25;
    const PR_TSC_ENABLE: c_int = 1;
    let mut setting: c_int = PR_TSC_ENABLE;
    // SAFETY: the kernel writes one int.
    let _ = unsafe { call(libc::SYS_prctl, [PR_GET_TSC, &raw mut setting as usize, 0, 0, 0, 0]) };
    setting != PR_TSC_ENABLE
}
