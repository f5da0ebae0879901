//! The real terminal.
//!
//! Owns: its modes, and giving it back as it was: by a guard on every way out, and by a hook when this thread panics.
//! Refuses: what is drawn on it.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::sync::{Once, OnceLock};
use std::time::Duration;

use crossterm::event;
use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use ratatui::Frame;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

thread_local! {
    /// Whether this thread has a terminal to give back.
    static ENTERED: Cell<bool> = const { Cell::new(false) };
}
static HOOK: Once = Once::new();

/// What is written to: standard output where it is a terminal, else the terminal of this session.
enum Sink {
    Output(io::Stdout),
    Terminal(File),
}

impl Sink {
    fn open() -> io::Result<Sink> {
        if io::stdout().is_terminal() {
            return Ok(Sink::Output(io::stdout()));
        }
        let terminal = File::options().read(true).write(true).open("/dev/tty");
        terminal.map(Sink::Terminal).map_err(|error| {
            io::Error::new(error.kind(), format!("there is no terminal to draw on (/dev/tty: {error})"))
        })
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Output(output) => output.write(bytes),
            Sink::Terminal(terminal) => terminal.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Output(output) => output.flush(),
            Sink::Terminal(terminal) => terminal.flush(),
        }
    }
}

type Backend = CrosstermBackend<BufWriter<Sink>>;

/// A terminal in raw mode with the alternate screen.
pub struct Terminal {
    /// Never dropped: it would show the cursor, which [`give_back`] does, and panic where the terminal is gone and with it
    /// standard error.
    inner: ManuallyDrop<ratatui::Terminal<Backend>>,
    mouse: bool,
}

impl Terminal {
    /// Takes the terminal.
    ///
    /// # Errors
    /// There is none, or it does not do as it is told; it is then as it was.
    pub fn enter(mouse: bool) -> io::Result<Terminal> {
        let sink = Sink::open()?;
        give_back_on_panic();
        take(mouse).inspect_err(|_| give_back())?;
        // One write for a frame: BufWriter keeps what is larger than its buffer together as well as it can.
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, sink));
        let inner = ratatui::Terminal::new(backend).inspect_err(|_| give_back())?;
        Ok(Terminal { inner: ManuallyDrop::new(inner), mouse })
    }

    /// All of it.
    ///
    /// # Errors
    /// The terminal does not tell its size.
    pub fn area(&self) -> io::Result<Rect> {
        let size = self.inner.size()?;
        Ok(Rect::new(0, 0, size.width, size.height))
    }

    /// Draws a frame; only cells that have changed are written.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame)) -> io::Result<()> {
        self.inner.draw(draw).map(|_| ())
    }

    /// Gives the terminal back, stops this process, and takes the terminal again when it goes on.
    ///
    /// # Errors
    /// The terminal cannot be taken again.
    pub fn suspend(&mut self) -> io::Result<()> {
        give_back();
        // SIGSTOP, since SIGTSTP may be caught for the sake of a program, and here there is none.
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
        take(self.mouse)?;
        self.inner.clear()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Waits for an event; true when there is one to be read. A signal ends the wait, and is no error.
///
/// # Errors
/// The terminal has hung up. This must be found out here: crossterm would look for keys in such a terminal without an end.
pub fn wait(patience: Duration) -> io::Result<bool> {
    static KEYBOARD: OnceLock<Option<File>> = OnceLock::new();
    let looked = |patience: Duration| {
        let patience = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
        let stdin = io::stdin();
        let keyboard =
            if stdin.is_terminal() { None } else { KEYBOARD.get_or_init(|| File::open("/dev/tty").ok()).as_ref() };
        let keyboard = keyboard.map_or(stdin.as_fd(), |file| file.as_fd());
        let mut polled = [PollFd::from_borrowed_fd(keyboard, PollFlags::IN)];
        // A signal may be about the terminal's size, which crossterm knows next.
        let found = poll(&mut polled, Some(&patience));
        let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        if found.is_ok() && polled[0].revents().intersects(gone) {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the terminal is gone"));
        }
        event::poll(Duration::ZERO).or_else(|error| match error.kind() {
            io::ErrorKind::Interrupted => Ok(false),
            _ => Err(error),
        })
    };
    // Events that crossterm has read already come first.
    Ok(looked(Duration::ZERO)? || (!patience.is_zero() && looked(patience)?))
}

fn take(mouse: bool) -> io::Result<()> {
    ENTERED.set(true);
    enable_raw_mode()?;
    let mut sink = Sink::open()?;
    execute!(sink, EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)?;
    if mouse {
        execute!(sink, EnableMouseCapture)?;
    }
    Ok(())
}

/// Does nothing the second time. Errors are passed over: there is nobody left to tell.
fn give_back() {
    if !ENTERED.replace(false) {
        return;
    }
    if let Ok(mut sink) = Sink::open() {
        let _ = execute!(sink, DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen, cursor::Show);
    }
    let _ = disable_raw_mode();
}

/// A panic's message must be readable, and not lie on a screen that is then thrown away.
fn give_back_on_panic() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !crate::output::contains_panic() {
                give_back();
            }
            before(panic);
        }));
    });
}
