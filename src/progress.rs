//! One line about the run, on a terminal only.
//!
//! The program shares the terminal, and memscope cannot know where its cursor is. So the line is written and the cursor goes
//! back to its beginning: what the program prints next goes over it. It is refreshed rarely for the same reason.
//!
//! Owns: the line and its pace. Refuses: to draw anything else while the program runs.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use memscope_core::allocation::Progress;
use memscope_core::report::units::bytes;

/// Time between two lines.
const PACE: Duration = Duration::from_secs(1);

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
        let step = progress.step.map_or(String::new(), |step| format!("step {step}  "));
        let text = format!(
            "memscope  {step}live {}  peak {}  {} allocations",
            bytes(progress.live_bytes),
            bytes(progress.peak_live_bytes),
            progress.allocations
        );
        let _ = write!(std::io::stderr(), "\r\x1b[K\x1b[2m{text}\x1b[0m\r");
        self.shown = true;
        self.next = Instant::now() + PACE;
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
            self.shown = false;
        }
    }
}
