//! Programs that give themselves a filter of system calls (seccomp), and the exported `prctl` by which they say so.
//!
//! Such a filter usually allows what its author knows of, and ends the process at anything else. So from the moment at which a
//! program prepares one, this library makes no system call that it can do without: a log that is not open yet is opened just
//! before, if a driver is loaded; the file grows no more by itself (memscope does it while it records). Where the filter is
//! seccomp's strict mode, or the log's clock may need a call, time stands still in the log; so it does when the program forbids the
//! time-stamp counter (PR_SET_TSC).
//! Filters that came with the process are made for any program, and count for nothing.
//!
//! Owns: that moment. Refuses: everything else of prctl, by jumping to the real one with all its arguments; programs that make the
//! system call themselves are not seen.

use core::ffi::{c_int, c_ulong};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use memscope_wire::log::Refusal;

use crate::before::told_before;
use crate::linker::Function;
use crate::{clock, creation, module, state, system};

const PR_SET_TSC: c_int = 26;
const PR_TSC_SIGSEGV: c_ulong = 2;

static REAL: Function = Function::next(c"prctl");

static CONFINED: AtomicBool = AtomicBool::new(false);

/// True once the program has prepared a filter: no system call is harmless any more.
#[inline(always)]
pub fn is_confined() -> bool {
    CONFINED.load(Relaxed)
}

told_before! {
    /// Stands in the way of the C library's `prctl`.
    fn prctl(option: c_int) -> c_int = "prctl", prepare, else direct
}

extern "C" fn prepare(option: c_int, value: c_ulong) -> *mut core::ffi::c_void {
    match option {
        // Without privileges the one must come before the other.
        libc::PR_SET_SECCOMP | libc::PR_SET_NO_NEW_PRIVS => {
            if !is_confined() && creation::is_asked_for() {
                confine();
            }
            if option == libc::PR_SET_SECCOMP && value == libc::SECCOMP_MODE_STRICT as c_ulong {
                state::stop_the_clock();
            }
        }
        PR_SET_TSC if value == PR_TSC_SIGSEGV => {
            state::stop_the_clock();
            clock::forbid_the_counter();
        }
        _ => {}
    }
    REAL.find()
}

/// The call itself, where there is nothing by which the C library's function could be found: an old one without libdl.
extern "C" fn direct(option: c_int, second: usize, third: usize, fourth: usize, fifth: usize) -> c_int {
    match system::prctl([option as usize, second, third, fourth, fifth, 0]) {
        Ok(result) => result as c_int,
        Err(error) => {
            // SAFETY: the calling thread's errno.
            unsafe { *libc::__errno_location() = error.0 };
            -1
        }
    }
}

#[cold]
fn confine() {
    let errno = crate::driver::preserving_errno;
    errno(|| {
        if module::driver_came() || state::already_recording().is_some() {
            state::get_ready_for_a_filter();
        } else {
            state::never_record(Refusal::Filter);
        }
    });
    CONFINED.store(true, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_itself_is_that_of_the_c_library() {
        let mut name = [0_u8; 16];
        assert_eq!(direct(libc::PR_SET_NAME, c"directly".as_ptr() as usize, 0, 0, 0), 0);
        // SAFETY: PR_GET_NAME fills 16 bytes.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) }, 0);
        assert_eq!(&name, b"directly\0\0\0\0\0\0\0\0");
        assert_eq!(direct(-1, 0, 0, 0, 0), -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
    }
}
