//! memscope's own terminal.
//!
//! Owns: where the dashboard is drawn and keys are read, the settings as they were, raw mode for the relay. Refuses: the
//! dashboard's own modes (alternate screen, mouse): memscope-tui sets them and takes them back.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr;

use rustix::termios::{self, LocalModes, OptionalActions, Termios, Winsize};

use super::Size;

/// The terminal behind memscope, whatever its descriptors are.
pub struct OwnTerminal {
    screen: File,
    keyboard: File,
    settings: Termios,
}

impl OwnTerminal {
    /// Finds it as the dashboard does: output and input where they are a terminal, else the controlling one. `None` where there is none to draw on or none to
    /// read from.
    pub fn find() -> Option<OwnTerminal> {
        let controlling = || File::options().read(true).write(true).open("/dev/tty").ok();
        let duplicate = |descriptor: BorrowedFd<'_>| descriptor.try_clone_to_owned().ok().map(File::from);
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let screen = if stdout.is_terminal() { duplicate(stdout.as_fd()) } else { controlling() }?;
        let keyboard = if stdin.is_terminal() { duplicate(stdin.as_fd()) } else { controlling() }?;
        let settings = termios::tcgetattr(&keyboard).ok()?;
        Some(OwnTerminal { screen, keyboard, settings })
    }

    /// What is drawn on.
    pub fn screen(&self) -> &File {
        &self.screen
    }

    /// What keys are read from.
    pub fn keyboard(&self) -> &File {
        &self.keyboard
    }

    /// The settings as memscope found them.
    pub fn settings(&self) -> &Termios {
        &self.settings
    }

    /// The size now; that of a VT100 where it is not told.
    pub fn size(&self) -> Size {
        match termios::tcgetwinsize(&self.screen) {
            Ok(Winsize { ws_row, ws_col, .. }) if ws_row > 0 && ws_col > 0 => (ws_row, ws_col),
            _ => (24, 80),
        }
    }

    /// Stops memscope, as the terminal would, while it is in the background of its shell: the dashboard would take the
    /// terminal from whoever has it. Call it while there is one thread.
    pub fn wait_for_foreground(&self) {
        while let Ok(foreground) = termios::tcgetpgrp(&self.keyboard) {
            if foreground == rustix::process::getpgrp() {
                return;
            }
            // SAFETY: valid numbers. The signal stops the whole job, here, because it is unblocked and at its default.
            unsafe {
                let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
                libc::sigemptyset(set.as_mut_ptr());
                libc::sigaddset(set.as_mut_ptr(), libc::SIGTTOU);
                let set = set.assume_init();
                if is_ignored(libc::SIGTTOU) {
                    return;
                }
                libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
                libc::kill(0, libc::SIGTTOU);
                libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
            }
        }
    }

    /// Raw mode, until the returned value goes.
    ///
    /// Errors: the terminal is gone.
    pub fn raw(&self) -> io::Result<Raw<'_>> {
        let mut settings = self.settings.clone();
        settings.make_raw();
        termios::tcsetattr(&self.keyboard, OptionalActions::Flush, &settings)?;
        Ok(Raw { terminal: self })
    }

    /// Puts the settings back as they were found, whatever they are now.
    pub fn restore(&self) {
        // Where the terminal is gone there is nothing to restore.
        let _ = termios::tcsetattr(&self.keyboard, OptionalActions::Drain, &self.settings);
    }
}

/// Raw mode of the relay.
pub struct Raw<'terminal> {
    terminal: &'terminal OwnTerminal,
}

impl Drop for Raw<'_> {
    fn drop(&mut self) {
        self.terminal.restore();
    }
}

/// True when keys that send signals do so, by these settings.
pub fn sends_signals(settings: &Termios) -> bool {
    settings.local_modes.contains(LocalModes::ISIG)
}

fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a query into a local; all bit patterns of the structure are valid.
    unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
