//! What this library leaves in the folder of logs without having a log: that it was loaded, and that it is or may be passed by.
//!
//! Most processes of a run use no CUDA. Where none does, why nothing was captured is told by these marks. One of each is enough for a
//! session, and whoever comes later finds it there.
//!
//! Owns: the moments, at which the program opens files itself: the dynamic linker has just opened this library, or is about to open
//! another one; and the start of a program without it. A mark that is there is only looked at, as the linker looks at a library:
//! filters of system calls that come with a process may forbid to open for writing. Refuses: any call at other moments, the end of
//! the process above all, and any call at all once the program has given itself a filter.

use core::ffi::CStr;

use memscope_wire::log::Mark;

use crate::creation::{self, Path};
use crate::{confinement, system};

/// Leaves the mark, if a log was asked for and nobody has left it yet.
#[cold]
pub fn leave(mark: Mark) {
    let Some(folder) = creation::folder().filter(|_| !confinement::is_confined()) else { return };
    let mut path = Path::EMPTY;
    if path.push(folder) && path.push(b"/") && path.push(mark.file().as_bytes()) {
        let there = system::open(path.as_c_str(), libc::O_RDONLY | libc::O_CLOEXEC, 0);
        let make = libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC;
        if let Ok(descriptor) = there.or_else(|_| system::open(path.as_c_str(), make, 0o600)) {
            system::close(descriptor);
        }
    }
}

/// Leaves the mark that a program is started without this library, if there is a file of that name: a link that leads to it. In a
/// process under a filter nothing is left: no filter is known to allow it.
#[cold]
pub fn leave_name(program: &CStr) {
    /// Where the line is that tells of filters, if the process is in few groups.
    const STATUS_BYTES: usize = 2048;
    let Some(folder) = creation::folder().filter(|_| !confinement::is_confined()) else { return };
    let mut status = [0_u8; STATUS_BYTES];
    let read = system::read_file(c"/proc/self/status", &mut status);
    const UNFILTERED: &[u8] = b"\nSeccomp:\t0\n";
    let mut lines = status.get(..read).unwrap_or(&[]).windows(UNFILTERED.len());
    // Whoever looks for a program along PATH tries to start it in every folder.
    if !lines.any(|line| line == UNFILTERED) || system::file_status(program).is_none() {
        return;
    }
    let mut path = Path::EMPTY;
    let place = Mark::started_without(program.to_bytes());
    if path.push(folder) && path.push(b"/") && path.push(place.as_bytes()) {
        system::link(program, path.as_c_str());
    }
}

extern "C" fn arrive() {
    leave(Mark::Loaded);
}

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
static ARRIVE: extern "C" fn() = arrive;
