//! This process's place in the session: settings, shared state, row, visible devices.
//!
//! Owns: initialisation, once, and the state after fork. Refuses: to initialise anything before the program calls
//! cuInit or an NVML function: a process that never does leaves no trace.

use crate::device::{self, Visible};
use crate::error::{CUresult, Status};
use crate::settings::Settings;
use crate::state::{Identity, Shortage, State, StateError};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What initialisation made.
pub struct Process {
    /// What the environment said.
    pub settings: &'static Settings,
    /// The state shared with the other processes.
    pub state: &'static State,
    /// Numbers of the visible devices in the shared state, by CUDA ordinal.
    pub visible: Vec<u32>,
    row: crate::state::Row,
}

struct Opened {
    settings: Settings,
    state: State,
}

static OPENED: OnceLock<Result<Opened, StateError>> = OnceLock::new();
static PROCESS: OnceLock<Result<Process, CUresult>> = OnceLock::new();
static FORKED: AtomicBool = AtomicBool::new(false);
static MEMORY_ONLY: AtomicBool = AtomicBool::new(false);

fn opened() -> Result<&'static Opened, CUresult> {
    let opened = OPENED.get_or_init(|| {
        let settings = Settings::from_environment()?;
        let state = State::open(&settings.state, &settings.shared)?;
        Ok(Opened { settings, state })
    });
    opened.as_ref().map_err(|error| {
        static SAID: AtomicBool = AtomicBool::new(false);
        // The one thing the simulator says unasked: a session that cannot work, and why.
        if !SAID.swap(true, Ordering::Relaxed) {
            eprintln!("memscope simulator: {error}");
        }
        CUresult::ERROR_SYSTEM_DRIVER_MISMATCH
    })
}

/// The shared state, also for a process that never calls cuInit (NVML).
pub fn state() -> Result<&'static State, CUresult> {
    opened().map(|opened| &opened.state)
}

/// CUDA version that the driver reports.
pub fn driver_version() -> i32 {
    opened().map_or(crate::settings::DEFAULT_DRIVER_VERSION, |opened| opened.settings.driver_version)
}

/// cuInit: registers the process with the session.
pub fn initialise() -> Status {
    if FORKED.load(Ordering::Relaxed) {
        return Err(CUresult::ERROR_NOT_INITIALIZED);
    }
    let made = PROCESS.get_or_init(|| {
        let Opened { settings, state } = opened()?;
        let visible = device::visible(settings.visible_devices.as_deref(), state.device_count());
        if visible.is_empty() {
            return Err(CUresult::ERROR_NO_DEVICE);
        }
        let row = state.register(Identity::of_this_process()).map_err(|_| CUresult::ERROR_OPERATING_SYSTEM)?;
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(after_fork)) };
        Ok(Process { settings, state, visible, row })
    });
    made.as_ref().map(|_| ()).map_err(|&result| result)
}

/// A child of an initialised process cannot use CUDA, as with the real driver.
unsafe extern "C" fn after_fork() {
    FORKED.store(true, Ordering::Relaxed);
}

/// This process, or CUDA_ERROR_NOT_INITIALIZED before cuInit and after fork.
pub fn process() -> Result<&'static Process, CUresult> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(CUresult::ERROR_NOT_INITIALIZED);
    }
    match PROCESS.get() {
        Some(Ok(process)) => Ok(process),
        _ => Err(CUresult::ERROR_NOT_INITIALIZED),
    }
}

/// False in a memory-only run, in which device memory is never touched.
pub fn computes() -> bool {
    process().is_ok_and(|process| process.settings.compute) && !MEMORY_ONLY.load(Ordering::Relaxed)
}

/// Makes this process a memory-only one, whatever its environment says.
pub fn stop_computing() {
    MEMORY_ONLY.store(true, Ordering::Relaxed);
}

impl Process {
    /// The device with this CUDA ordinal.
    pub fn device(&self, ordinal: i32) -> Result<Visible, CUresult> {
        let physical = usize::try_from(ordinal).ok().and_then(|index| self.visible.get(index));
        physical.map(|&physical| Visible { ordinal, physical }).ok_or(CUresult::ERROR_INVALID_DEVICE)
    }

    /// The device with this number in the shared state, or CUDA_ERROR_INVALID_DEVICE where this process does not see it.
    pub fn physical_device(&self, physical: u32) -> Result<Visible, CUresult> {
        let ordinal = self.visible.iter().position(|&visible| visible == physical);
        self.device(ordinal.and_then(|ordinal| i32::try_from(ordinal).ok()).ok_or(CUresult::ERROR_INVALID_DEVICE)?)
    }

    /// Charges bytes of a device to this process.
    pub fn charge(&self, physical: u32, bytes: u64) -> Result<(), Shortage> {
        self.state.charge(self.row, physical, bytes)
    }

    /// Gives charged bytes back.
    pub fn release(&self, physical: u32, bytes: u64) {
        if bytes > 0 {
            self.state.release(self.row, physical, bytes);
        }
    }

    /// Notes the first context on a device.
    pub fn enter_context(&self, physical: u32) -> Status {
        self.state.enter_context(self.row, physical).map_err(|Shortage| CUresult::ERROR_OUT_OF_MEMORY)
    }

    /// Notes that no context is left on a device.
    pub fn leave_context(&self, physical: u32) {
        self.state.leave_context(self.row, physical);
    }
}
