//! The emulated terminal: the vt100 crate, with what it leaves out.
//!
//! Owns: the screen and its scroll-back, the place of the view in it, replies to a program's questions. Refuses: to fail: what
//! the emulator cannot digest is dropped, and the screen begins anew.

use std::cell::Cell;
use std::num::NonZeroU16;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use vt100::{Callbacks, Parser, Screen};

use super::line_drawing::LineDrawing;
use super::search::{Direction, Hit, Pattern};
use super::typing::Modes;
use super::{Place, SCROLL_BACK};

/// Bytes that the emulator gets at once.
const PIECE: usize = 4 << 10;

thread_local! {
    static CONTAINS: Cell<bool> = const { Cell::new(false) };
}

/// True while this thread runs code whose panic is caught and means nothing to the user: a panic hook keeps quiet then.
pub(super) fn contains_panic() -> bool {
    CONTAINS.get()
}

/// Runs code of the emulator; `None` when it panicked.
fn contained<T>(work: impl FnOnce() -> T) -> Option<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !contains_panic() {
                others(info);
            }
        }));
    });
    CONTAINS.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work)).ok();
    CONTAINS.set(false);
    result
}

/// The emulator, and where the view is.
pub(super) struct Emulator {
    parser: Parser<Listener>,
    line_drawing: LineDrawing,
    /// Reused for bytes that had to be rewritten.
    rewritten: Vec<u8>,
    search: Option<Search>,
}

/// A search that is on.
#[derive(Clone)]
pub(super) struct Search {
    pub pattern: Pattern,
    /// The hit that was shown last.
    pub current: Option<Hit>,
    /// Its number, counted from 1, and how many there are; as of the last step.
    count: (usize, usize),
}

impl Emulator {
    pub fn new(rows: u16, columns: u16) -> Emulator {
        Emulator {
            parser: parser(rows, columns),
            line_drawing: LineDrawing::default(),
            rewritten: Vec::new(),
            search: None,
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        let Emulator { parser, line_drawing, rewritten, .. } = self;
        let bytes = line_drawing.translate(bytes, rewritten);
        // What a program writes must never end the recording, whatever a defect in the emulator makes of it. The rest of the
        // piece is then not shown (the transcript has it); were it the screen's state, the next piece would fail too.
        let mut failed = false;
        for piece in bytes.chunks(PIECE) {
            if contained(|| parser.process(piece)).is_none() {
                if failed {
                    let (rows, columns) = parser.screen().size();
                    *parser = self::parser(rows.get(), columns.get());
                }
                failed = true;
            }
        }
    }

    /// The same screen once more, with its scroll-back, its search and the place of the view.
    pub fn held(&self) -> Emulator {
        let (rows, columns) = self.size();
        let mut held = Emulator::new(rows, columns);
        *held.parser.screen_mut() = self.screen().clone();
        held.parser.callbacks_mut().dropped = self.oldest();
        held.search.clone_from(&self.search);
        held
    }

    /// What the terminal has to say to the program since the last call.
    pub fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.parser.callbacks_mut().replies)
    }

    pub fn resize(&mut self, rows: u16, columns: u16) {
        let (rows, columns) = sides(rows, columns);
        let parser = &mut self.parser;
        if contained(|| parser.set_size(rows, columns)).is_none() {
            *parser = self::parser(rows.get(), columns.get());
        }
    }

    /// An empty screen of another size. A search goes on.
    pub fn begin_anew(&mut self, rows: u16, columns: u16) {
        let search = self.search.take().map(|search| Search { current: None, count: (0, 0), ..search });
        *self = Emulator { search, ..Emulator::new(rows, columns) };
    }

    /// Rows and columns.
    pub fn size(&self) -> (u16, u16) {
        let (rows, columns) = self.screen().size();
        (rows.get(), columns.get())
    }

    pub fn screen(&self) -> &Screen {
        self.parser.screen()
    }

    pub fn search_state(&self) -> Option<&Search> {
        self.search.as_ref()
    }

    /// Number of the first row that is shown, counted from the first row that ever was.
    pub fn first_shown(&self) -> u64 {
        self.oldest() + (self.kept() - self.screen().scrollback()) as u64
    }

    pub fn scroll(&mut self, rows: isize) {
        let back = self.screen().scrollback().saturating_add_signed(rows);
        self.parser.screen_mut().set_scrollback(back);
    }

    pub fn place(&self) -> Place {
        Place {
            back: self.screen().scrollback(),
            kept: self.kept(),
            hit: self.search.as_ref().map(|search| search.count),
            full_screen: self.screen().alternate_screen(),
        }
    }

    pub fn modes(&self) -> Modes {
        Modes {
            application_cursor: self.screen().application_cursor(),
            bracketed_paste: self.screen().bracketed_paste(),
        }
    }

    pub fn text(&self) -> Vec<String> {
        let columns = self.size().1;
        self.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect()
    }

    pub fn search(&mut self, text: &str) {
        self.search = Pattern::new(text).map(|pattern| Search { pattern, current: None, count: (0, 0) });
        self.step(Direction::Up);
    }

    pub fn step(&mut self, direction: Direction) {
        let below = Hit { row: self.first_shown() + u64::from(self.size().0), column: 0 };
        let Some(mut search) = self.search.take() else { return };
        let hits = self.hits(&search.pattern);
        let from = search.current.unwrap_or(below);
        let found = match direction {
            Direction::Up => hits.iter().rposition(|hit| *hit < from).or(hits.len().checked_sub(1)),
            Direction::Down => hits.iter().position(|hit| *hit > from).or((!hits.is_empty()).then_some(0)),
        };
        search.current = found.map(|index| hits[index]);
        search.count = (found.map_or(0, |index| index + 1), hits.len());
        if let Some(hit) = search.current {
            self.show(hit.row);
        }
        self.search = Some(search);
    }

    /// Moves the view so that a row is in it, if it is not.
    fn show(&mut self, row: u64) {
        let rows = u64::from(self.size().0);
        let first = self.first_shown();
        if (first..first + rows).contains(&row) {
            return;
        }
        // In the middle, so that both what came before and what came after can be read.
        let top = row.saturating_sub(rows / 2).saturating_sub(self.oldest());
        let back = self.kept().saturating_sub(top as usize);
        self.parser.screen_mut().set_scrollback(back);
    }

    /// All hits in what is kept, from the oldest row on.
    fn hits(&mut self, pattern: &Pattern) -> Vec<Hit> {
        let (rows, columns) = self.size();
        let (oldest, kept, place) = (self.oldest(), self.kept(), self.screen().scrollback());
        let mut hits = Vec::new();
        let mut next = 0; // position of the first row that was not searched yet
        while next < kept + usize::from(rows) {
            let top = next.min(kept);
            self.parser.screen_mut().set_scrollback(kept - top);
            let skipped = next - top;
            for text in self.screen().rows(0, columns).skip(skipped) {
                let row = oldest + next as u64;
                hits.extend(pattern.columns(&text).map(|column| Hit { row, column }));
                next += 1;
            }
        }
        self.parser.screen_mut().set_scrollback(place);
        hits
    }

    /// Number of the oldest row that is kept, counted from the first row that ever was.
    fn oldest(&self) -> u64 {
        self.parser.callbacks().dropped
    }

    /// Rows that are kept above the screen.
    fn kept(&self) -> usize {
        self.screen().scrollback_len()
    }
}

fn parser(rows: u16, columns: u16) -> Parser<Listener> {
    let (rows, columns) = sides(rows, columns);
    Parser::new_with_callbacks(rows, columns, SCROLL_BACK, Listener::default())
}

fn sides(rows: u16, columns: u16) -> (NonZeroU16, NonZeroU16) {
    (NonZeroU16::new(rows).unwrap_or(NonZeroU16::MIN), NonZeroU16::new(columns).unwrap_or(NonZeroU16::MIN))
}

/// What the emulator reports beside its screen.
#[derive(Default)]
struct Listener {
    /// What the program asked for: see [`Callbacks::unhandled_csi`].
    replies: Vec<u8>,
    /// Rows that left the scroll-back at its old end.
    dropped: u64,
}

impl Callbacks for Listener {
    fn on_scroll(&mut self, _: vt100::capture::RowContents<'_>, alternate_screen: bool) {
        self.dropped += u64::from(!alternate_screen);
    }

    /// Questions that programs wait for: line editors ask for the cursor's position, others for the kind of terminal.
    fn unhandled_csi(&mut self, screen: &mut Screen, i1: Option<u8>, i2: Option<u8>, params: &[&[u16]], c: char) {
        let first = params.first().and_then(|param| param.first()).copied().unwrap_or(0);
        match (i1, i2, c, first) {
            (None, None, 'n', 5) => self.replies.extend(b"\x1b[0n"),
            (None, None, 'n', 6) => {
                let (row, column) = screen.cursor_position();
                let columns = screen.size().1.get();
                // A cursor behind the last column waits there for the next character.
                self.replies.extend(format!("\x1b[{};{}R", row + 1, column.min(columns - 1) + 1).bytes());
            }
            // A VT220 with colours; and, to the second question, no particular make.
            (None, None, 'c', 0) => self.replies.extend(b"\x1b[?62;22c"),
            (Some(b'>'), None, 'c', 0) => self.replies.extend(b"\x1b[>1;10;0c"),
            _ => {}
        }
    }
}
