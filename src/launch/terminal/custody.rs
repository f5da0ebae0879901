//! The program while it runs in a session of its own: its state, and signals to it.
//!
//! Nothing that is sent to memscope or to its process group reaches the program by itself, so every such signal is passed on,
//! and no witness is needed. What a keyboard would send goes to the foreground group of the program's terminal; anything else
//! to that group and to the program.
//!
//! Owns: waiting, passing on, what is known of the program's state. Refuses: to stop memscope when the program stops: the
//! dashboard says so, and the program is continued by typing.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use libc::{c_int, pid_t};

use super::Pair;
use crate::launch::signals;

/// What is known of a program, and the way to send it signals.
pub struct Custody {
    pid: pid_t,
    pair: Arc<Pair>,
    /// How it ended. Guards the pid too: after the reaping it may be another process's.
    ended: Mutex<(Stage, Option<ExitStatus>)>,
    changed: Condvar,
    stopped: AtomicBool,
    /// Whether memscope was told to end.
    told: AtomicBool,
    /// Whether that was by a terminal that hung up.
    hung_up: AtomicBool,
    /// One SIGTSTP is memscope's own, to its job.
    own_stop: AtomicBool,
    /// Nobody waits for signals any more.
    over: AtomicBool,
}

/// How far a program has got.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Stage {
    /// It runs, or is stopped.
    #[default]
    Running,
    /// It has ended.
    Ended,
    /// All that it wrote has been moved.
    Moved,
    /// Its profile has been dealt with.
    Concluded,
}

impl Custody {
    /// Of the program with this pid, our child, not reaped yet.
    pub fn new(pid: u32, pair: Arc<Pair>) -> Custody {
        Custody {
            pid: pid as pid_t,
            pair,
            ended: Mutex::default(),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
            told: AtomicBool::new(false),
            hung_up: AtomicBool::new(false),
            own_stop: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    /// Waits until the program has ended, passing signals on.
    pub fn wait(&self) -> ExitStatus {
        loop {
            if let Some(status) = self.look() {
                return status;
            }
            if let Some(signal) = signals::next_apart(None) {
                self.received(signal);
            }
        }
    }

    /// Takes note of what happened to the program; its status when it has ended.
    fn look(&self) -> Option<ExitStatus> {
        let mut ended = lock(&self.ended);
        loop {
            let mut status = 0;
            // SAFETY: `status` is a local.
            let found =
                unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED) };
            let status = match found {
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => continue,
                // Somebody else has reaped it: its status is lost.
                -1 => ExitStatus::from_raw(1 << 8),
                0 => return None,
                _ if libc::WIFSTOPPED(status) || libc::WIFCONTINUED(status) => {
                    self.stopped.store(libc::WIFSTOPPED(status), Ordering::Relaxed);
                    continue;
                }
                _ => ExitStatus::from_raw(status),
            };
            self.stopped.store(false, Ordering::Relaxed);
            *ended = (Stage::Ended, Some(status));
            self.changed.notify_all();
            return Some(status);
        }
    }

    /// A signal to memscope.
    fn received(&self, signal: c_int) {
        if signal == libc::SIGTSTP && self.own_stop.swap(false, Ordering::Relaxed) {
            return;
        }
        if [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM].contains(&signal) {
            self.told.store(true, Ordering::Relaxed);
            self.hung_up.fetch_or(signal == libc::SIGHUP, Ordering::Relaxed);
        }
        if signals::is_passed_on(signal) {
            self.send(signal);
        }
    }

    /// Sends the program a signal, once to each process that gets it. Does nothing after its end.
    pub fn send(&self, signal: c_int) {
        let ended = lock(&self.ended);
        if ended.1.is_some() {
            return;
        }
        let from_keyboard = [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP].contains(&signal);
        let foreground = self.pair.foreground();
        // SAFETY: plain numbers. The program has not been reaped, so pid and group are its own; the foreground group is of its
        // session.
        unsafe {
            let own_group = libc::getpgid(self.pid);
            if let Some(group) = foreground {
                libc::kill(-group, signal);
            }
            if foreground != Some(own_group) && !(from_keyboard && foreground.is_some()) {
                libc::kill(self.pid, signal);
            }
        }
    }

    /// Continues the program, if it is stopped.
    pub fn go_on(&self) {
        if self.is_stopped() {
            self.send(libc::SIGCONT);
        }
    }

    /// True while the program is stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// How it ended, once it has.
    pub fn status(&self) -> Option<ExitStatus> {
        lock(&self.ended).1
    }

    /// How far it has got.
    pub fn stage(&self) -> Stage {
        lock(&self.ended).0
    }

    /// It has got so far.
    pub fn reach(&self, stage: Stage) {
        lock(&self.ended).0 = stage;
        self.changed.notify_all();
    }

    /// Waits until it has ended and got so far; how it ended.
    pub fn wait_for(&self, stage: Stage) -> ExitStatus {
        let mut ended = lock(&self.ended);
        loop {
            match *ended {
                (reached, Some(status)) if reached >= stage => return status,
                _ => ended = self.changed.wait(ended).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// True when the dashboard must be left without being asked: memscope was told to end, and the program has ended. That the
    /// profile may still be written is then said in plain form. (That its terminal is gone the dashboard notices by itself.)
    pub fn must_leave(&self) -> bool {
        self.told.load(Ordering::Relaxed) && self.stage() >= Stage::Moved
    }

    /// Goes on taking note of signals to memscope, after the program's end, until [`Custody::stop_watching`] or until the
    /// terminal is gone.
    pub fn watch(&self) {
        while !self.over.load(Ordering::Relaxed) && !self.has_hung_up() {
            if let Some(signal) = signals::next_apart(Some(Duration::from_millis(100))) {
                self.received(signal);
            }
        }
    }

    /// True when memscope was told that its terminal is gone.
    pub fn has_hung_up(&self) -> bool {
        self.hung_up.load(Ordering::Relaxed)
    }

    /// True when [`Custody::stop_watching`] is called in time.
    pub fn is_over_within(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while !self.over.load(Ordering::Relaxed) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.over.load(Ordering::Relaxed)
    }

    /// Ends [`Custody::watch`].
    pub fn stop_watching(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Stops memscope's whole job, as Ctrl-Z does, until it is continued; the program stops with it.
    pub fn stop_job(&self) {
        self.send(libc::SIGSTOP);
        self.own_stop.store(true, Ordering::Relaxed);
        // SAFETY: valid numbers. The first stops whatever else is in the job; memscope itself catches that signal, so it stops
        // by the second.
        unsafe {
            libc::kill(0, libc::SIGTSTP);
            libc::kill(libc::getpid(), libc::SIGSTOP);
        }
        self.send(libc::SIGCONT);
    }

    /// True when Ctrl-Z would be lost on the program: it is the foreground of its own terminal, and nobody in its session is
    /// there to continue it, so the kernel does not stop it.
    pub fn would_ignore_stop(&self) -> bool {
        // SAFETY: a query of a number.
        let own_group = unsafe { libc::getpgid(self.pid) };
        self.pair.foreground() == Some(own_group)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
