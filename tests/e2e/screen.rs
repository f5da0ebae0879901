//! A real terminal for `memscope`: a pseudo-terminal, and an emulator that shows what is drawn on it.
//!
//! The emulator is the one that memscope uses for its programs; what is compared here is memscope's own drawing, which the
//! emulator has no part in.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{self, Termios, Winsize};

/// How long a test waits for what must come. Many tests share two cores.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two looks.
const PACE: Duration = Duration::from_millis(20);

/// A program in a terminal of its own.
pub struct Screen {
    master: Option<File>,
    /// Kept, so that the settings can be looked at after the program's end.
    slave: OwnedFd,
    /// The settings before the program had it.
    first: Termios,
    child: Child,
    shown: Arc<Mutex<Shown>>,
    /// Reads what is drawn, until it is told to stop.
    reader: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

struct Shown {
    parser: vt100::Parser,
    written: Vec<u8>,
}

/// Which of the standard descriptors are the terminal; the others are left as the command has them.
pub const ALL: [bool; 3] = [true; 3];

impl Screen {
    /// Starts `command` in a terminal of this size, as the leader of a session of its own.
    pub fn start(mut command: Command, rows: u16, columns: u16, on_terminal: [bool; 3]) -> Screen {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a pseudo-terminal");
        unlockpt(&master).expect("unlocked");
        let slave = ioctl_tiocgptpeer(&master, flags).expect("its other end");
        let first = termios::tcgetattr(&slave).expect("settings");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        termios::tcsetwinsize(&master, size).expect("a size");
        let file = || Stdio::from(slave.try_clone().expect("a descriptor"));
        if on_terminal[0] {
            command.stdin(file());
        }
        if on_terminal[1] {
            command.stdout(file());
        }
        if on_terminal[2] {
            command.stderr(file());
        }
        let raw = slave.as_raw_fd();
        // SAFETY: async-signal-safe calls between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::setsid();
                libc::ioctl(raw, libc::TIOCSCTTY, 0);
                // As in a terminal: the tests themselves may run under nohup(1) or behind an `&`, which is inherited.
                for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                Ok(())
            })
        };
        let child = command.env("TERM", "xterm-256color").spawn().expect("the program starts");
        let size = |side| NonZeroU16::new(side).expect("a size");
        let parser = vt100::Parser::new(size(rows), size(columns), 1000);
        let shown = Arc::new(Mutex::new(Shown { parser, written: Vec::new() }));
        let master = File::from(master);
        let stop = Arc::new(AtomicBool::new(false));
        let reader = read(master.try_clone().expect("a descriptor"), Arc::clone(&shown), Arc::clone(&stop));
        Screen { master: Some(master), slave, first, child, shown, reader: Some(reader), stop }
    }

    /// Presses keys: the bytes that a terminal sends for them.
    pub fn keys(&self, keys: impl AsRef<[u8]>) {
        let mut master = self.master.as_ref().expect("the terminal is there");
        master.write_all(keys.as_ref()).expect("the terminal takes keys");
    }

    /// The rows that are shown.
    pub fn rows(&self) -> Vec<String> {
        let shown = self.shown.lock().unwrap();
        let columns = shown.parser.screen().size().1.get();
        shown.parser.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect()
    }

    /// All rows as one text.
    pub fn text(&self) -> String {
        self.rows().join("\n")
    }

    /// Everything that was written to the terminal so far.
    pub fn written(&self) -> Vec<u8> {
        self.shown.lock().unwrap().written.clone()
    }

    /// Where the cursor is, and whether it is seen.
    pub fn cursor(&self) -> ((u16, u16), bool) {
        let shown = self.shown.lock().unwrap();
        (shown.parser.screen().cursor_position(), !shown.parser.screen().hide_cursor())
    }

    /// The colours of what is shown.
    pub fn colours(&self) -> BTreeSet<String> {
        let shown = self.shown.lock().unwrap();
        let screen = shown.parser.screen();
        let (rows, columns) = screen.size();
        let cells =
            (0..rows.get()).flat_map(|row| (0..columns.get()).filter_map(move |column| screen.cell(row, column)));
        let colours = cells.flat_map(|cell| [cell.fgcolor(), cell.bgcolor()]);
        colours.filter(|colour| *colour != vt100::Color::Default).map(|colour| format!("{colour:?}")).collect()
    }

    /// True while the alternate screen is shown.
    pub fn is_alternate(&self) -> bool {
        self.shown.lock().unwrap().parser.screen().alternate_screen()
    }

    /// True while the terminal would tell the program of the mouse, or put pasted text in brackets.
    pub fn has_modes(&self) -> bool {
        let shown = self.shown.lock().unwrap();
        let screen = shown.parser.screen();
        screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None || screen.bracketed_paste()
    }

    /// Waits until the screen is as `condition` wants it.
    #[track_caller]
    pub fn wait_until(&self, what: &str, condition: impl Fn(&Screen) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !condition(self) {
            assert!(Instant::now() < deadline, "waited in vain: {what}; the screen is\n{}", self.text());
            sleep(PACE);
        }
    }

    /// Waits until `text` is somewhere on the screen.
    #[track_caller]
    pub fn wait(&self, text: &str) {
        self.wait_until(&format!("`{text}`"), |screen| screen.text().contains(text));
    }

    /// Waits until `text` is nowhere on the screen.
    #[track_caller]
    pub fn wait_gone(&self, text: &str) {
        self.wait_until(&format!("no `{text}`"), |screen| !screen.text().contains(text));
    }

    /// Gives the terminal another size.
    pub fn resize(&self, rows: u16, columns: u16) {
        let size = |side| NonZeroU16::new(side).expect("a size");
        self.shown.lock().unwrap().parser.set_size(size(rows), size(columns));
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        termios::tcsetwinsize(self.master.as_ref().expect("the terminal is there"), size).expect("a size");
    }

    /// The terminal's settings before the program had it.
    pub fn first_settings(&self) -> Termios {
        self.first.clone()
    }

    /// The terminal's settings now.
    pub fn settings(&self) -> Termios {
        termios::tcgetattr(&self.slave).expect("settings")
    }

    /// The process that was started.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Sends it a signal.
    pub fn kill(&self, signal: i32) {
        // SAFETY: plain numbers; the process is our child.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    /// Takes the terminal away, as a closed window does.
    pub fn hang_up(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.reader.take().expect("a reader").join().expect("the reader ends");
        drop(self.master.take());
    }

    /// Waits for the process to end.
    #[track_caller]
    pub fn end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("the process can be waited for") {
                sleep(3 * PACE); // what it wrote last is being read
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end; the screen is\n{}", self.text());
            sleep(PACE);
        }
    }
}

/// Starts the thread that reads what is drawn.
fn read(mut master: File, shown: Arc<Mutex<Shown>>, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while !stop.load(Ordering::Relaxed) {
            let mut polled = [PollFd::new(&master, PollFlags::IN)];
            let patience = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            if poll(&mut polled, Some(&patience)) != Ok(1) {
                continue;
            }
            // While nobody has the other end open a read fails: memscope may not have started yet.
            let Ok(count) = master.read(&mut buffer) else { continue };
            let mut shown = shown.lock().unwrap();
            shown.parser.process(&buffer[..count]);
            shown.written.extend_from_slice(&buffer[..count]);
        }
    })
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A test that failed must leave nothing behind: memscope passes SIGHUP on and ends with its program.
        if let Ok(None) = self.child.try_wait() {
            self.kill(libc::SIGHUP);
            sleep(Duration::from_millis(500));
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        self.stop.store(true, Ordering::Relaxed);
    }
}
