//! One line about the run, or about what memscope does after it, on a terminal only.
//!
//! The program shares the terminal, and memscope cannot know what stands in the current line. So the progress is written at
//! the right margin of that line, and the cursor goes back to where it was: what the program has written stays, and what
//! it writes next comes where it would have come. A line that scrolls away keeps its margin note.
//!
//! Owns: the note, its pace, and the line of [`Work`], which has the terminal for itself. Refuses: to move, clear or colour anything of the program's.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use memscope_core::allocation::Progress;
use memscope_core::profile::Reading;
use memscope_core::report::units::{bytes, grouped};

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

/// What memscope is at while the user waits for it alone: a line of its own on the terminal behind stderr, from the second second
/// on, and gone in the end.
pub struct Work {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    /// `None` when all is done.
    doing: Mutex<Option<Doing>>,
    changed: Condvar,
}

/// A part of the work, and how far it is.
struct Doing {
    what: &'static str,
    /// So many of these so far; 0 where they are not counted.
    counted: Arc<Reading>,
    things: &'static str,
    /// How many there are; 0 where that is not known.
    all: u64,
}

impl Doing {
    fn new(what: &'static str, things: &'static str, all: u64) -> Doing {
        Doing { what, counted: Arc::default(), things, all }
    }

    /// `making the report … 3,000 of 10,000 changes`.
    fn text(&self) -> String {
        let Doing { what, things, .. } = self;
        match (self.counted.count(), self.all) {
            (0, _) => format!("{what} …"),
            (count, 0) => format!("{what} … {} {things},", grouped(count)),
            (count, all) => format!("{what} … {} of {} {things},", grouped(count.min(all)), grouped(all)),
        }
    }
}

impl Work {
    /// Says nothing where there is no terminal.
    pub fn begin(what: &'static str) -> Work {
        let doing = Mutex::new(Some(Doing::new(what, "events", 0)));
        let shared = Arc::new(Shared { doing, changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let tell = move || of_thread.tell();
        // Without a thread there is no line.
        let thread = std::io::stderr().is_terminal().then(|| Builder::new().name("progress".into()).spawn(tell).ok());
        Work { shared, thread: thread.flatten() }
    }

    /// What comes next.
    pub fn goes_on(&self, what: &'static str) {
        self.goes_on_with(what, "", 0);
    }

    /// What comes next, of which so many things are to be counted.
    pub fn goes_on_with(&self, what: &'static str, things: &'static str, all: u64) -> Arc<Reading> {
        let doing = Doing::new(what, things, all);
        let counted = Arc::clone(&doing.counted);
        *self.shared.doing() = Some(doing);
        counted
    }

    /// So many more events were read.
    pub fn count(&self, events: u64) {
        if let Some(doing) = &*self.shared.doing() {
            doing.counted.add(events);
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        *self.shared.doing() = None;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // it writes a line, and cannot fail
        }
    }
}

impl Shared {
    fn doing(&self) -> MutexGuard<'_, Option<Doing>> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        let begin = Instant::now();
        let mut shown = false;
        loop {
            let waited = self.changed.wait_timeout_while(self.doing(), PACE, |doing| doing.is_some());
            let Some(text) = waited.unwrap_or_else(PoisonError::into_inner).0.as_ref().map(Doing::text) else { break };
            let seconds = begin.elapsed().as_secs();
            shown |= write!(std::io::stderr(), "\r\x1b[2mmemscope: {text} {seconds} s\x1b[0m\x1b[K").is_ok();
        }
        if shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K"); // a terminal that is gone shows nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Doing;

    #[test]
    fn how_far_it_is_is_told_of_how_much_where_that_is_known() {
        let (reading, making) = (Doing::new("reading", "events", 0), Doing::new("making", "changes", 12_000));
        assert_eq!(reading.text(), "reading …");
        for doing in [&reading, &making] {
            doing.counted.add(2_048);
        }
        assert_eq!(reading.text(), "reading … 2,048 events,");
        assert_eq!(making.text(), "making … 2,048 of 12,000 changes,");
        making.counted.add(10_240);
        assert_eq!(making.text(), "making … 12,000 of 12,000 changes,");
    }
}
