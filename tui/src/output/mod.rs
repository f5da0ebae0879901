//! The program's output, as a terminal would show it: with its colours, scroll-back and search.
//!
//! Owns: [`Output`], the emulated screen that a thread feeds and a view draws; feeding it from a transcript
//! ([`Output::of_transcript`]); the bytes that typed keys stand for ([`Output::encode`]). Refuses: processes and
//! pseudo-terminals (the command line has them), and to keep more than [`SCROLL_BACK`] lines: the transcript has all.

mod draw;
mod emulator;
mod line_drawing;
mod repaint;
mod search;
mod transcript;
mod typing;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossterm::event::KeyEvent;

pub use draw::Dress;
use emulator::Emulator;

/// Lines that are kept above the screen.
pub const SCROLL_BACK: usize = 10_000;
/// Fewest columns of an emulated screen: in a single one a wide character has no place.
const LEAST_COLUMNS: u16 = 2;
/// Rows and columns of an emulated screen at most; a terminal that claims more gets these.
const LARGEST_SIDE: u16 = 1_000;
/// How long a feeding thread steps back when a view waits for the screen.
const YIELD: Duration = Duration::from_micros(200);

/// The program's screen. Clones share it: one feeds, another draws.
#[derive(Clone)]
pub struct Output {
    shared: Arc<Shared>,
}

struct Shared {
    emulator: Mutex<Emulator>,
    /// Views that wait for the emulator: the feeding thread lets them in.
    waiting: AtomicUsize,
    /// Changes with every change of what is shown.
    version: AtomicU64,
    /// Of an output that is fed from a transcript: whether it is to be fed anew, for another width.
    anew: Option<AtomicBool>,
}

/// What a view can say about the place it shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// Rows between the last one and the last one shown: 0 when the view follows the output.
    pub back: usize,
    /// Rows that are kept above the screen.
    pub kept: usize,
    /// Which hit of the search is the current one, counted from 1, and how many there are; `None` without a search.
    pub hit: Option<(usize, usize)>,
    /// True while the program has the alternate screen, which has no scroll-back.
    pub full_screen: bool,
}

impl Output {
    /// An empty screen of this size, in cells.
    pub fn new(rows: u16, columns: u16) -> Output {
        Output::fed_by(rows, columns, None)
    }

    fn fed_by(rows: u16, columns: u16, anew: Option<AtomicBool>) -> Output {
        let (rows, columns) = sides(rows, columns);
        let shared = Shared {
            emulator: Mutex::new(Emulator::new(rows, columns)),
            waiting: AtomicUsize::new(0),
            version: AtomicU64::new(0),
            anew,
        };
        Output { shared: Arc::new(shared) }
    }

    /// A screen of this size that a thread of its own fills from a transcript: the last part of a long one. While `grows()`
    /// holds, what is added to the file is shown too. The thread ends with the last clone of the returned value.
    ///
    /// Errors: the file cannot be opened.
    pub fn of_transcript(
        path: &Path,
        rows: u16,
        columns: u16,
        grows: impl Fn() -> bool + Send + 'static,
    ) -> io::Result<Output> {
        let output = Output::fed_by(rows, columns, Some(AtomicBool::new(false)));
        transcript::follow(path, &output, grows)?;
        Ok(output)
    }

    /// Shows bytes that the program wrote. Returns what a terminal answers to them (to a request for the cursor's position,
    /// say): input for the program.
    pub fn feed(&self, bytes: &[u8]) -> Vec<u8> {
        // A lock is not fair: without this, a program that writes all the time would keep every view out.
        while self.shared.waiting.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(YIELD);
        }
        let mut emulator = self.shared.emulator.lock().unwrap_or_else(PoisonError::into_inner);
        emulator.feed(bytes);
        self.shared.version.fetch_add(1, Ordering::Relaxed);
        emulator.take_replies()
    }

    /// A number that changes whenever there is something else to draw.
    pub fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Relaxed)
    }

    /// Gives the screen another size, in cells; at least 1×2. The program must be told too. Lines of a transcript are broken
    /// anew for another width.
    pub fn resize(&self, rows: u16, columns: u16) {
        let (rows, columns) = sides(rows, columns);
        self.change(|emulator| match &self.shared.anew {
            Some(anew) if emulator.size().1 != columns => {
                emulator.begin_anew(rows, columns);
                anew.store(true, Ordering::Relaxed);
            }
            _ => emulator.resize(rows, columns),
        });
    }

    /// Rows and columns.
    pub fn size(&self) -> (u16, u16) {
        self.lock().size()
    }

    /// The screen and its scroll-back as they are now, apart: nothing more is written on it.
    pub fn held(&self) -> Output {
        let emulator = self.lock().held();
        let shared = Shared {
            emulator: Mutex::new(emulator),
            waiting: AtomicUsize::new(0),
            version: AtomicU64::new(self.version()),
            anew: None,
        };
        Output { shared: Arc::new(shared) }
    }

    /// Moves the view by rows: back (towards older ones) when positive.
    pub fn scroll(&self, rows: isize) {
        self.change(|emulator| emulator.scroll(rows));
    }

    /// Moves the view by screens: back when positive. One row stays in sight.
    pub fn page(&self, screens: isize) {
        self.change(|emulator| {
            let rows = isize::from(emulator.size().0.max(2) as i16 - 1);
            emulator.scroll(screens.saturating_mul(rows));
        });
    }

    /// Shows the oldest row.
    pub fn to_begin(&self) {
        self.change(|emulator| emulator.scroll(isize::MAX));
    }

    /// Shows the newest row, and follows what comes.
    pub fn to_end(&self) {
        self.change(|emulator| emulator.scroll(isize::MIN));
    }

    /// Marks `text` wherever it stands, and shows the last hit that is not below the view; upper and lower case differ only
    /// when `text` has an upper-case letter. An empty text ends the search.
    pub fn search(&self, text: &str) {
        self.change(|emulator| emulator.search(text));
    }

    /// Shows the next hit below the current one, and after the last the first.
    pub fn next_hit(&self) {
        self.change(|emulator| emulator.step(search::Direction::Down));
    }

    /// Shows the next hit above the current one, and after the first the last.
    pub fn previous_hit(&self) {
        self.change(|emulator| emulator.step(search::Direction::Up));
    }

    /// Where the view is.
    pub fn place(&self) -> Place {
        self.lock().place()
    }

    /// The bytes that a terminal sends for this key; nothing for a key that it has no bytes for.
    pub fn encode(&self, key: &KeyEvent) -> Vec<u8> {
        typing::encode(key, self.lock().modes())
    }

    /// The bytes that a terminal sends for pasted text: in brackets, if the program wants them.
    pub fn encode_paste(&self, text: &str) -> Vec<u8> {
        typing::encode_paste(text, self.lock().modes())
    }

    /// The text of the rows that are shown, without trailing blanks.
    pub fn text(&self) -> Vec<String> {
        self.lock().text()
    }

    fn lock(&self) -> MutexGuard<'_, Emulator> {
        self.shared.waiting.fetch_add(1, Ordering::Relaxed);
        let guard = self.shared.emulator.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    fn change(&self, change: impl FnOnce(&mut Emulator)) {
        change(&mut self.lock());
        self.shared.version.fetch_add(1, Ordering::Relaxed);
    }
}

/// True while this thread runs code of the emulator, whose panic is caught: a panic hook does nothing then.
pub fn contains_panic() -> bool {
    emulator::contains_panic()
}

/// A size that the emulator can have.
fn sides(rows: u16, columns: u16) -> (u16, u16) {
    (rows.clamp(1, LARGEST_SIDE), columns.clamp(LEAST_COLUMNS, LARGEST_SIDE))
}

#[cfg(test)]
mod tests;
