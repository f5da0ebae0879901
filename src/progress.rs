//! One line about the run, on a terminal only.
//!
//! The program shares the terminal, and memscope cannot know what stands in the current line. So the progress is written at
//! the right margin of that line, and the cursor goes back to where it was: what the program has written stays, and what
//! it writes next comes where it would have come. A line that scrolls away keeps its margin note.
//!
//! Owns: the note and its pace. Refuses: to move, clear or colour anything of the program's.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use memscope_core::allocation::Progress;
use memscope_core::report::units::bytes;

/// Time between two lines.
const PACE: Duration = Duration::from_secs(1);

/// Columns that the note takes; it is padded, so that a shorter one covers a longer one.
const COLUMNS: usize = 52;
/// Columns that must be left for the program.
const LEAST_LEFT: usize = 30;

/// The line's state.
pub struct Line {
    shown: bool,
    next: Instant,
}

impl Line {
    /// A line, if stderr is a terminal and the user did not ask for quiet.
    pub fn new(quiet: bool) -> Option<Line> {
        (!quiet && std::io::stderr().is_terminal()).then(|| Line { shown: false, next: Instant::now() + PACE })
    }

    /// True when it is time for the next line.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// Writes the line.
    pub fn show(&mut self, progress: &Progress) {
        self.next = Instant::now() + PACE;
        let step = progress.step.map_or(String::new(), |step| format!("step {step}  "));
        let text =
            format!("memscope {step}live {}  peak {}", bytes(progress.live_bytes), bytes(progress.peak_live_bytes));
        self.shown |= at_margin(&format!("\x1b[2m{text:>COLUMNS$.COLUMNS$}\x1b[0m"));
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if self.shown {
            at_margin("\x1b[K");
            self.shown = false;
        }
    }
}

/// Writes at the right margin of the current line and puts the cursor back. False when the terminal is too narrow.
fn at_margin(text: &str) -> bool {
    let Some(width) = terminal_width().filter(|width| *width >= COLUMNS + LEAST_LEFT) else { return false };
    // DECSC and DECRC keep the cursor; CHA moves it within its line.
    write!(std::io::stderr(), "\x1b7\x1b[{}G{text}\x1b8", width - COLUMNS + 1).is_ok()
}

/// Columns of the terminal behind stderr.
fn terminal_width() -> Option<usize> {
    let mut size = std::mem::MaybeUninit::<libc::winsize>::zeroed();
    // SAFETY: room for the answer; all bit patterns of it are valid.
    let size = unsafe {
        if libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, size.as_mut_ptr()) != 0 {
            return None;
        }
        size.assume_init()
    };
    Some(usize::from(size.ws_col))
}
