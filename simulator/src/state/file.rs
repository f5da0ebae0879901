//! Making and mapping the file.
//!
//! Owns: creation exactly once under an flock, and the check that a file fits. Refuses: to repair a file of another kind.

use super::{Layout, MAGIC, State, StateError, VERSION};
use crate::settings::{DEFAULT_DEVICES, Shared};
use memscope_wire::device::{self, Device};
use std::fs::{File, OpenOptions};
use std::io::Error;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::Ordering;

impl State {
    /// Maps the state at `path`, which is made from `shared` if it does not exist yet.
    pub fn open(path: &Path, shared: &Shared) -> Result<State, StateError> {
        let failed = |source: Error| StateError::File { path: path.to_owned(), source };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_CLOEXEC | libc::O_NOFOLLOW)
            .open(path)
            .map_err(failed)?;
        let _creation = CreationLock::take(&file).map_err(failed)?;
        let size = size_of::<Layout>() as u64;
        match file.metadata().map_err(failed)?.len() {
            0 => allocate(&file, size).map_err(failed)?,
            bytes if bytes == size => {}
            _ => return Err(StateError::Foreign(path.to_owned())),
        }
        let address = map(&file, size as usize).map_err(failed)?;
        // A file whose maker died before the magic was stored is made again: the flock says that nobody is at it.
        // SAFETY: `address` is a mapping of the size of `Layout`, page-aligned and writable, and stays for good.
        let layout = unsafe {
            if (*address).magic.load(Ordering::Acquire) == 0 {
                initialise(address, shared)?;
            }
            &*address
        };
        if layout.magic.load(Ordering::Acquire) != MAGIC || layout.version != VERSION {
            return Err(StateError::Foreign(path.to_owned()));
        }
        let device = compare(layout, shared, path)?;
        Ok(State { layout, path: path.to_owned(), device })
    }
}

/// The flock that one process at a time holds while it opens the state. Taken back by hand: a mapping keeps the lock of
/// its closed file alive.
struct CreationLock<'a>(&'a File);

impl CreationLock<'_> {
    fn take(file: &File) -> Result<CreationLock<'_>, Error> {
        // SAFETY: the descriptor is open for the whole call.
        while unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } != 0 {
            let error = Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(CreationLock(file))
    }
}

impl Drop for CreationLock<'_> {
    fn drop(&mut self) {
        // SAFETY: the descriptor is open for the whole call.
        unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) };
    }
}

/// Gives the file its pages, so that a full file system is an error here and no SIGBUS later.
fn allocate(file: &File, size: u64) -> Result<(), Error> {
    // SAFETY: the descriptor is open for the whole call.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, size as libc::off_t) } {
        0 => Ok(()),
        number => Err(Error::from_raw_os_error(number)),
    }
}

fn map(file: &File, size: usize) -> Result<*mut Layout, Error> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if address == libc::MAP_FAILED { Err(Error::last_os_error()) } else { Ok(address.cast()) }
}

fn parse(devices: &str) -> Result<(Device, u32), StateError> {
    device::parse(devices).ok_or_else(|| StateError::UnknownDevice(devices.to_owned()))
}

/// Fills a fresh file of zeros.
///
/// # Safety
/// `layout` must be mapped and writable, and nobody else may use it.
unsafe fn initialise(layout: *mut Layout, shared: &Shared) -> Result<(), StateError> {
    let text = shared.devices.as_deref().unwrap_or(DEFAULT_DEVICES);
    let (device, count) = parse(text)?;
    // SAFETY: the caller vouches for `layout`; the pthread calls get a mutex that nobody uses yet.
    unsafe {
        (*layout).version = VERSION;
        (*layout).device_count = count;
        (*layout).capacity = device.capacity;
        (*layout).context_bytes = shared.context_bytes.unwrap_or(0);
        (*layout).foreign_bytes = shared.foreign_bytes.unwrap_or(0);
        (*layout).reserved_bytes = shared.reserved_bytes.unwrap_or(0);
        (*layout).devices_bytes = text.len() as u32;
        (&mut (*layout).devices)[..text.len()].copy_from_slice(text.as_bytes());
        let mut attributes = std::mem::zeroed();
        libc::pthread_mutexattr_init(&mut attributes);
        libc::pthread_mutexattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED);
        libc::pthread_mutexattr_setrobust(&mut attributes, libc::PTHREAD_MUTEX_ROBUST);
        libc::pthread_mutex_init((*layout).lock.0.get(), &attributes);
        libc::pthread_mutexattr_destroy(&mut attributes);
        (*layout).magic.store(MAGIC, Ordering::Release);
    }
    Ok(())
}

/// The product that the state simulates, after a check that this process asked for nothing else.
fn compare(layout: &Layout, shared: &Shared, path: &Path) -> Result<Device, StateError> {
    let bytes = layout.devices.get(..layout.devices_bytes as usize).unwrap_or_default();
    let theirs = Shared {
        devices: Some(String::from_utf8_lossy(bytes).into_owned()),
        context_bytes: Some(layout.context_bytes),
        foreign_bytes: Some(layout.foreign_bytes),
        reserved_bytes: Some(layout.reserved_bytes),
    };
    let ours = Shared {
        devices: shared.devices.clone().or_else(|| theirs.devices.clone()),
        context_bytes: shared.context_bytes.or(theirs.context_bytes),
        foreign_bytes: shared.foreign_bytes.or(theirs.foreign_bytes),
        reserved_bytes: shared.reserved_bytes.or(theirs.reserved_bytes),
    };
    if theirs != ours {
        let (theirs, ours) = (format!("{theirs:?}"), format!("{ours:?}"));
        return Err(StateError::Settings { path: path.to_owned(), theirs, ours });
    }
    let (device, count) = parse(theirs.devices.as_deref().unwrap_or_default())?;
    if (layout.device_count, layout.capacity) != (count, device.capacity) {
        return Err(StateError::Foreign(path.to_owned()));
    }
    Ok(device)
}
