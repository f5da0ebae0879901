//! What memscope was started with, and what its program must get unchanged: signal mask, dispositions, closed descriptors.
//!
//! Owns: the state noted before Rust's runtime changes it (it ignores SIGPIPE and opens closed standard descriptors), and
//! putting it back between fork and exec. Refuses: everything a program inherits by itself.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{c_int, sigset_t};

/// What must be put back.
#[derive(Clone, Copy)]
pub struct Inherited {
    mask: sigset_t,
    ignores_pipe: bool,
    ignores_child: bool,
    ignores_file_size: bool,
    closed: [bool; 3],
}

static IGNORES_PIPE: AtomicBool = AtomicBool::new(false);
static IGNORES_CHILD: AtomicBool = AtomicBool::new(false);
static IGNORES_FILE_SIZE: AtomicBool = AtomicBool::new(false);
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = {
    extern "C" fn note() {
        IGNORES_PIPE.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
        IGNORES_CHILD.store(is_ignored(libc::SIGCHLD), Ordering::Relaxed);
        IGNORES_FILE_SIZE.store(is_ignored(libc::SIGXFSZ), Ordering::Relaxed);
        for (descriptor, closed) in (0..).zip(&CLOSED) {
            // SAFETY: a query of a number.
            closed.store(unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1, Ordering::Relaxed);
        }
    }
    note
};

fn is_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a query into a local; all bit patterns of the structure are valid.
    unsafe {
        let found = libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        found == 0 && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

impl Inherited {
    /// Blocks `signals` in this thread and all that it starts later, and lets children be waited for. Call it before the
    /// first thread.
    pub fn take_over(signals: &sigset_t) -> Inherited {
        let mut mask = MaybeUninit::<sigset_t>::uninit();
        // SAFETY: the sets are valid; pthread_sigmask fills `mask`. With SIGCHLD ignored nothing could be waited for; with
        // SIGXFSZ ignored a file that may not grow is an error like a full disk.
        let mask = unsafe {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::pthread_sigmask(libc::SIG_BLOCK, signals, mask.as_mut_ptr());
            mask.assume_init()
        };
        let noted = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        Inherited {
            mask,
            ignores_pipe: noted(&IGNORES_PIPE),
            ignores_child: noted(&IGNORES_CHILD),
            ignores_file_size: noted(&IGNORES_FILE_SIZE),
            closed: [noted(&CLOSED[0]), noted(&CLOSED[1]), noted(&CLOSED[2])],
        }
    }

    /// Puts everything back; for the time between fork and exec.
    pub fn restore(&self) -> io::Result<()> {
        let disposition = |ignored| if ignored { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: only async-signal-safe calls with valid arguments.
        unsafe {
            libc::signal(libc::SIGPIPE, disposition(self.ignores_pipe));
            libc::signal(libc::SIGCHLD, disposition(self.ignores_child));
            libc::signal(libc::SIGXFSZ, disposition(self.ignores_file_size));
            for (descriptor, closed) in (0..).zip(self.closed) {
                if closed {
                    libc::close(descriptor);
                }
            }
        }
        self.restore_mask();
        Ok(())
    }

    /// Puts the mask of this thread back.
    pub fn restore_mask(&self) {
        // SAFETY: an initialised set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.mask, ptr::null_mut()) };
    }
}
