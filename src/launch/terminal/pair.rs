//! The pseudo-terminal that the program gets.
//!
//! Owns: making it, its size, and putting it in the place of those of the program's descriptors that were a terminal. Refuses:
//! descriptors that lead elsewhere: the program inherits them untouched.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::sync::PoisonError;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{self, OptionalActions, Termios, Winsize};

use super::Size;

/// Both ends of a pseudo-terminal.
pub struct Pair {
    /// memscope's end; it never blocks.
    master: OwnedFd,
    /// The program's end. memscope keeps it open until the program has ended: a terminal that nobody has open is nobody's
    /// controlling terminal any more, and a program may open /dev/tty late.
    slave: Mutex<Option<OwnedFd>>,
}

impl Pair {
    /// A pseudo-terminal with these settings and this size. Errors: those of the system (too many, /dev/pts not there).
    pub fn open(settings: &Termios, size: Size) -> io::Result<Pair> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let slave = ioctl_tiocgptpeer(&master, flags)?;
        termios::tcsetattr(&slave, OptionalActions::Now, settings)?;
        fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
        let pair = Pair { master, slave: Mutex::new(Some(slave)) };
        pair.resize(size);
        Ok(pair)
    }

    /// memscope's end.
    pub fn master(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }

    /// Tells the size; the system then sends SIGWINCH to the program. Does nothing when it is the size already.
    pub fn resize(&self, (rows, columns): Size) {
        // Nothing to do about a terminal that cannot be told: the program then has the size that it had.
        let _ =
            termios::tcsetwinsize(&self.master, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 });
    }

    /// The settings as the program has them now.
    pub fn settings(&self) -> io::Result<Termios> {
        Ok(termios::tcgetattr(&self.master)?)
    }

    /// The foreground process group of the program's session, if it has one.
    pub fn foreground(&self) -> Option<i32> {
        termios::tcgetpgrp(&self.master).ok().map(|group| group.as_raw_nonzero().get())
    }

    /// How the program's process takes the terminal. `replaced`: which of its standard descriptors become it.
    pub fn wiring(&self, replaced: [bool; 3]) -> Wiring {
        let slave = self.slave.lock().unwrap_or_else(PoisonError::into_inner);
        Wiring { slave: slave.as_ref().map_or(-1, |slave| slave.as_raw_fd()), replaced }
    }

    /// Closes memscope's copy of the program's end: from now on, the end of all that have it open is seen.
    pub fn let_go(&self) {
        self.slave.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// What the program's process does between fork and exec.
#[derive(Clone, Copy)]
pub struct Wiring {
    slave: RawFd,
    replaced: [bool; 3],
}

impl Wiring {
    /// Makes the terminal the controlling one of a session of its own, and puts it in the place of the descriptors.
    ///
    /// Errors: those of the system. Calls only async-signal-safe functions.
    pub fn take(&self) -> io::Result<()> {
        let checked = |result| if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) };
        // SAFETY: plain numbers; the descriptor is open in this process, which is the child of a fork.
        unsafe {
            checked(libc::setsid())?;
            checked(libc::ioctl(self.slave, libc::TIOCSCTTY, 0))?;
            for (descriptor, replaced) in (0..).zip(self.replaced) {
                if replaced {
                    checked(libc::dup2(self.slave, descriptor))?;
                }
            }
        }
        Ok(())
    }
}
