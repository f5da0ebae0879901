//! The state that all processes of a session share: who holds how many bytes of which simulated device.
//!
//! Owns: the layout of the file, its accounting and its rescue after a process died. Refuses: addresses and contents,
//! which belong to each process alone.
//!
//! One robust mutex guards everything. The truth is each process's own row ([`ProcessRow`]); the totals of the devices
//! are sums of rows, kept beside them for speed and made anew when a process died inside the lock. A process that died
//! without freeing (SIGKILL) is swept when a process registers, when an allocation does not fit, and before every
//! question about usage.
//!
//! exec drops a process's memory; its row goes when the new program registers or ends.
//!
//! All processes of a session must live in one PID namespace: a row is alive as long as /proc says that its pid runs
//! with its start time.

mod accounting;
mod file;
mod identity;

pub use accounting::{Row, Shortage};
pub use identity::{Identity, is_running};

use memscope_wire::device::{Device, MAX_DEVICES};
use std::cell::UnsafeCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// First eight bytes of a state that is ready; stored last when it is created.
pub const MAGIC: u64 = u64::from_le_bytes(*b"MSCPSIM1");
/// Version of the layout. Another version is refused.
pub const VERSION: u32 = 1;
/// Rows for processes.
pub const MAX_PROCESSES: usize = 1024;
/// Pid under which NVML lists the injected foreign process: one more than the largest that Linux gives to a process, so
/// that it never is one of ours (as a process of another PID namespace, which NVML lists too).
pub const FOREIGN_PID: u32 = 1 << 22;

/// The file, as mapped. Native byte order; atomics are read and written under [`Layout::lock`], except
/// [`Layout::magic`] and [`Layout::unknown_launches`].
#[repr(C)]
pub struct Layout {
    /// [`MAGIC`], stored last (release).
    magic: AtomicU64,
    /// [`VERSION`].
    version: u32,
    /// Devices in use, at most [`MAX_DEVICES`].
    device_count: u32,
    /// Capacity of each device in bytes.
    capacity: u64,
    /// Bytes of a context: once for each process and device.
    context_bytes: u64,
    /// Bytes of the foreign process on each device.
    foreign_bytes: u64,
    /// Bytes of the firmware on each device.
    reserved_bytes: u64,
    /// Launches of kernels that have no host reference, all processes together.
    unknown_launches: AtomicU64,
    /// Bytes used in [`Layout::devices`].
    devices_bytes: u32,
    padding: u32,
    /// Value of MEMSCOPE_SIMULATOR_DEVICES that made the state, not terminated.
    devices: [u8; 64],
    /// The robust, process-shared pthread mutex.
    lock: MutexCell,
    /// Bytes that processes hold on each device: allocations and contexts.
    used: [AtomicU64; MAX_DEVICES as usize],
    /// One row a process.
    processes: [ProcessRow; MAX_PROCESSES],
}

#[repr(C, align(64))]
struct MutexCell(UnsafeCell<libc::pthread_mutex_t>);

/// What one process holds.
#[repr(C)]
struct ProcessRow {
    /// Process id; 0 when the row is free. Stored last when a row is taken, first when it is given back.
    pid: AtomicU32,
    /// Bit `d` is set while the process has a context on device `d`.
    contexts: AtomicU32,
    /// Start time of the process, in clock ticks since boot.
    start_time: AtomicU64,
    /// Which program image of the process this is: exec keeps pid and start time, and drops all memory.
    image: AtomicU64,
    /// Bytes allocated on each device, without the context.
    allocated: [AtomicU64; MAX_DEVICES as usize],
}

// SAFETY: the mutex cell is only handed to pthread functions, which synchronise it; all else is atomic or constant
// after creation.
unsafe impl Sync for Layout {}

const _: () = assert!(size_of::<ProcessRow>() == 152);
const _: () = assert!(std::mem::offset_of!(Layout, lock) == 128);

/// Why the state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A setting is not readable.
    #[error(transparent)]
    Setting(#[from] crate::settings::InvalidSetting),
    /// The devices cannot be read.
    #[error("{0:?} names no simulated device; `memscope devices` lists them, or give a number of bytes")]
    UnknownDevice(String),
    /// The file cannot be made, opened or mapped.
    #[error("cannot use the simulator's state {path}: {source}; set MEMSCOPE_SIMULATOR_STATE to a writable path")]
    File {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is of another kind or version.
    #[error("{0} is not a simulator state of this version; remove it or name another path")]
    Foreign(PathBuf),
    /// The file was made with other settings.
    #[error("{path} was made with other settings ({theirs}) than this process has ({ours}); use one set a session")]
    Settings {
        /// Its path.
        path: PathBuf,
        /// What it was made with.
        theirs: String,
        /// What this process asks for.
        ours: String,
    },
    /// No row is free.
    #[error("the simulator's state {0} has no room for another process (1024)")]
    Full(PathBuf),
}

/// The mapped state.
pub struct State {
    layout: &'static Layout,
    path: PathBuf,
    device: Device,
}

impl State {
    /// The simulated product.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// How many devices there are.
    pub fn device_count(&self) -> u32 {
        self.layout.device_count
    }

    /// Counts a launch of a kernel that has no host reference.
    pub fn count_unknown_launch(&self) {
        self.layout.unknown_launches.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}
