//! A signal for one process that was seen earlier, and for no other that has its pid by now.
//!
//! Owns: making sure. Refuses: to choose the process or the signal.

use memscope_core::source::start_time;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// Sends the signal to the process with this pid that started then (in clock ticks since boot, as in /proc/PID/stat).
///
/// # Errors
/// The process has ended (whatever has its pid now), or belongs to somebody else: a sentence.
pub fn send(pid: u32, started: u64, signal: Signal) -> Result<(), String> {
    let ended = || format!("process {pid} has ended; nothing was sent");
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(ended)?;
    // The descriptor holds on to the process that has the pid at this moment. If that one started when the one that was meant
    // did, it is that one, and stays it.
    let handle = match pidfd_open(number, PidfdFlags::empty()) {
        Ok(handle) => Some(handle),
        Err(Errno::SRCH | Errno::INVAL) => return Err(ended()),
        // A kernel before 5.3 has none, and a sandbox may forbid it: the moment between check and signal is then not covered.
        Err(_) => None,
    };
    match start_time(pid) {
        None => return Err(ended()),
        Some(now) if now != started => {
            return Err(format!("process {pid} has ended, and another one has its pid; nothing was sent"));
        }
        Some(_) => {}
    }
    let sent = match &handle {
        Some(handle) => pidfd_send_signal(handle, signal),
        None => kill_process(number, signal),
    };
    sent.map_err(|error| match error {
        Errno::SRCH => ended(),
        Errno::PERM => format!("process {pid} belongs to another user: only they and root may send it a signal"),
        error => format!("process {pid} cannot be sent a signal: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("3600").stdin(Stdio::null()).spawn().expect("sleep starts")
    }

    #[test]
    fn the_process_that_was_meant_gets_the_signal() {
        for signal in [Signal::TERM, Signal::USR1, Signal::KILL] {
            let (mut meant, mut other) = (sleeper(), sleeper());
            let started = start_time(meant.id()).expect("it runs");
            assert_eq!(send(meant.id(), started, signal), Ok(()));
            assert_eq!(meant.wait().expect("it ends").signal(), Some(signal.as_raw()));
            assert!(other.try_wait().expect("a child").is_none(), "the other one runs on");
            let gone = send(meant.id(), started, signal).expect_err("it has ended");
            assert!(gone.ends_with("nothing was sent"), "{gone}");
            other.kill().and_then(|()| other.wait()).expect("it ends");
        }
    }

    #[test]
    fn another_process_with_the_same_pid_gets_nothing() {
        let mut now = sleeper();
        let started = start_time(now.id()).expect("it runs");
        // As if the list had been made when an earlier process had this pid.
        let refused = send(now.id(), started - 1, Signal::KILL).expect_err("it is another one");
        assert!(refused.contains("another one has its pid"), "{refused}");
        assert!(now.try_wait().expect("a child").is_none(), "it runs on");
        now.kill().and_then(|()| now.wait()).expect("it ends");
        for impossible in [0, u32::MAX] {
            assert!(send(impossible, 0, Signal::KILL).is_err());
        }
    }
}
