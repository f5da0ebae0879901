//! The terminal is given back as it was, whichever way the dashboard ends: on a real pseudo-terminal.
//!
//! This program runs itself there: the ignored tests are what is run.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use memscope_core::explorer::{Answer, Query};
use memscope_tui::app::Left;
use memscope_tui::dashboard::{Answers, Options, show};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

/// Answers nothing, and panics when it is looked at for the so-manieth time.
struct Panicking {
    looks: AtomicU64,
    at: u64,
}

impl Answers for Panicking {
    fn ask(&self, _: Query) {}

    fn answer(&self) -> Arc<Answer> {
        Arc::default()
    }

    fn version(&self) -> u64 {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        assert!(looks < self.at, "a defect in the dashboard");
        looks
    }
}

fn shown(at: u64) -> Left {
    show(&Panicking { looks: AtomicU64::new(0), at }, None, Options::default()).expect("a terminal")
}

#[test]
#[ignore = "is run by the tests below on a terminal"]
fn panics() {
    shown(3);
}

#[test]
#[ignore = "is run by the tests below on a terminal"]
fn is_left() {
    println!("left: {:?}", shown(u64::MAX));
}

/// What a run on a terminal came to: all that was written, and the terminal's modes before and after.
struct Run {
    written: String,
    before: Termios,
    after: Termios,
    success: bool,
}

/// Runs an ignored test on a new terminal; `then` is done once the dashboard is there.
fn run(test: &str, then: impl FnOnce(&mut File, u32)) -> Run {
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&main).expect("granted");
    unlockpt(&main).expect("unlocked");
    let name = ptsname(&main, Vec::new()).expect("a name");
    let open = || -> OwnedFd {
        let path = name.to_str().expect("UTF-8");
        File::options().read(true).write(true).open(path).expect("opened").into()
    };
    let side = open();
    tcsetwinsize(&side, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
    let before = tcgetattr(&side).expect("modes");
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env("TERM", "xterm-256color")
        .stdin(Stdio::from(open()))
        .stdout(Stdio::from(open()))
        .stderr(Stdio::from(open()))
        .spawn()
        .expect("started");
    let mut keyboard = File::from(main.try_clone().expect("another descriptor"));
    let (sender, pieces) = mpsc::channel();
    let mut screen = File::from(main);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count) = screen.read(&mut buffer) {
            if count == 0 || sender.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    let (mut written, mut then) = (Vec::new(), Some(then));
    let deadline = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Ok(piece) = pieces.recv_timeout(Duration::from_millis(20)) {
            written.extend(piece);
        }
        if String::from_utf8_lossy(&written).contains("Overview")
            && let Some(then) = then.take()
        {
            then(&mut keyboard, child.id());
        }
        if let Some(status) = child.try_wait().expect("waited for") {
            break status;
        }
        assert!(Instant::now() < deadline, "it does not end: {}", String::from_utf8_lossy(&written));
    };
    while let Ok(piece) = pieces.recv_timeout(Duration::from_millis(200)) {
        written.extend(piece);
    }
    let after = tcgetattr(&side).expect("modes");
    Run { written: String::from_utf8_lossy(&written).into_owned(), before, after, success: status.success() }
}

/// The terminal shows what it showed before, has its cursor and its modes, and no mouse is watched.
fn is_given_back(run: &Run) -> &str {
    let left = run.written.rfind("\x1b[?1049l").unwrap_or_else(|| panic!("the screen was left: {:?}", run.written));
    assert!(run.written.rfind("\x1b[?1049h").is_some_and(|entered| entered < left));
    for sequence in ["\x1b[?25h", "\x1b[?1000l", "\x1b[?2004l"] {
        assert!(run.written.contains(sequence), "{sequence:?}");
    }
    assert!(run.before.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO));
    assert_eq!(run.after.local_modes, run.before.local_modes);
    assert_eq!(run.after.input_modes, run.before.input_modes);
    assert_eq!(run.after.output_modes, run.before.output_modes);
    &run.written[left..]
}

#[test]
fn after_a_panic_the_terminal_is_as_it_was_and_the_message_is_readable() {
    let run = run("panics", |_, _| {});
    assert!(!run.success);
    assert!(is_given_back(&run).contains("a defect in the dashboard"), "{}", run.written);
}

#[test]
fn after_the_key_that_leaves() {
    let run = run("is_left", |keyboard, _| keyboard.write_all(b"q").expect("typed"));
    assert!(run.success && is_given_back(&run).contains("left: Quit"), "{}", run.written);
}

#[test]
fn after_a_signal() {
    for (signal, number) in
        [(rustix::process::Signal::TERM, 15), (rustix::process::Signal::HUP, 1), (rustix::process::Signal::INT, 2)]
    {
        let run = run("is_left", |_, pid| {
            let pid = rustix::process::Pid::from_raw(pid as i32).expect("a process");
            rustix::process::kill_process(pid, signal).expect("sent");
        });
        assert!(run.success && is_given_back(&run).contains(&format!("left: Signal({number})")), "{}", run.written);
    }
}
