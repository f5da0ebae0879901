//! The dashboard's state: what is shown, of which moment, and where in its lists one is.
//!
//! Owns: [`App`], which turns events into state and state into a [`Query`]. Refuses: terminals and threads (`dashboard`),
//! drawing (`screens`), and figures: they come with the answer.

mod arrange;
mod entry;
mod handle;
mod hold;
mod list;
mod mouse;
mod query;
mod receive;
mod scopes;
mod time;

use std::sync::Arc;

use memscope_core::explorer::{Answer, At, Column, Grouping, Target};
use memscope_core::journal::entry::Nanoseconds;
use ratatui::layout::Rect;

use crate::glyphs::Glyphs;
use crate::output::Output;
use crate::palette::Palette;
use crate::program::End;

pub use list::List;
pub use scopes::Scopes;
pub use time::Window;
pub(crate) use time::column_of;

#[cfg(doc)]
use memscope_core::explorer::Query;

/// A screen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Screen {
    /// Devices, ledger, chart, categories, findings.
    #[default]
    Overview,
    /// What is live.
    Allocations,
    /// The tree of scopes.
    Scopes,
    /// Containers with their blocks and holes.
    Segments,
    /// A row a step.
    Steps,
    /// What the program writes.
    Output,
}

impl Screen {
    /// All screens in the order of their tabs.
    pub const ALL: [Screen; 6] =
        [Screen::Overview, Screen::Allocations, Screen::Scopes, Screen::Segments, Screen::Steps, Screen::Output];

    /// Its name on the tab.
    pub const fn name(self) -> &'static str {
        match self {
            Screen::Overview => "Overview",
            Screen::Allocations => "Allocations",
            Screen::Scopes => "Scopes",
            Screen::Segments => "Segments",
            Screen::Steps => "Steps",
            Screen::Output => "Output",
        }
    }
}

/// What lies over the screen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialog {
    /// The keys; scrolled by so many lines.
    Help(usize),
    /// All findings; scrolled by so many lines.
    Findings(usize),
    /// How to leave; the last signal that was sent.
    Leaving(Option<End>),
}

/// Whether keys go to the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Typing {
    /// They are the dashboard's.
    #[default]
    Off,
    /// They are the program's.
    On,
    /// The last one was an Esc that took them back: a second one is the program's after all.
    Escaped,
}

/// How the dashboard was left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// Nothing runs behind it (any more).
    Quit,
    /// The program shall go on in plain form.
    GoOn,
    /// The user had the program ended, and it has ended.
    Ended,
    /// The program's owner said that the view must end.
    Told,
    /// This signal asked memscope to end.
    Signal(i32),
}

/// What [`App::handle`] wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// The dashboard is left.
    Leave(Left),
    /// memscope is suspended.
    Suspend,
    /// These bytes are typed into the program.
    TypeIn(Vec<u8>),
    /// The program is asked to end.
    End(End),
}

/// The list of live allocations.
#[derive(Clone, PartialEq, Debug)]
pub struct Allocations {
    /// Where one is.
    pub list: List,
    /// The column by which it is sorted.
    pub sort: Column,
    /// Largest first.
    pub descending: bool,
    /// What is let through.
    pub filter: String,
    /// What is counted as one.
    pub group: Option<Grouping>,
}

/// The dashboard.
pub struct App {
    pub(crate) answer: Arc<Answer>,
    pub(crate) glyphs: &'static Glyphs,
    pub(crate) palette: Palette,
    /// The whole terminal.
    pub(crate) area: Rect,
    pub(crate) screen: Screen,
    pub(crate) target: Target,
    pub(crate) at: At,
    /// The view stands still at this moment.
    pub(crate) paused: Option<Nanoseconds>,
    /// What it shows then, whatever comes.
    pub(crate) held: Option<hold::Held>,
    pub(crate) window: Window,
    pub(crate) allocations: Allocations,
    pub(crate) scopes: Scopes,
    pub(crate) segments: List,
    pub(crate) steps: List,
    /// The last step stays selected while the session runs, until another one is selected.
    pub(crate) follows_steps: bool,
    pub(crate) dialog: Option<Dialog>,
    /// A filter or search is being typed: of the screen that is shown.
    pub(crate) entry: bool,
    /// A sentence about the last key, until the next one.
    pub(crate) said: Option<String>,
    /// What is searched for in the output.
    pub(crate) output_search: String,
    pub(crate) typing: Typing,
    /// The program that the dashboard may end, with its status once it has ended.
    pub(crate) program: Option<Option<i32>>,
    /// That program is stopped.
    pub(crate) stopped: bool,
    pub(crate) output: Option<Output>,
}

impl App {
    /// A dashboard that knows nothing yet, for a terminal of this size. `program` says whether it may type into and end one.
    pub fn new(palette: Palette, glyphs: &'static Glyphs, area: Rect, output: Option<Output>, program: bool) -> App {
        App {
            answer: Arc::default(),
            glyphs,
            palette,
            area,
            screen: Screen::default(),
            target: Target::All,
            at: At::Live,
            paused: None,
            held: None,
            window: Window::default(),
            allocations: Allocations {
                list: List::default(),
                sort: Column::Size,
                descending: true,
                filter: String::new(),
                group: None,
            },
            scopes: Scopes::default(),
            segments: List::default(),
            steps: List::default(),
            follows_steps: true,
            dialog: None,
            entry: false,
            said: None,
            output_search: String::new(),
            typing: Typing::Off,
            program: program.then_some(None),
            stopped: false,
            output,
        }
    }

    /// True while there is a program that runs.
    pub(crate) fn program_runs(&self) -> bool {
        self.program == Some(None)
    }

    /// Tells the user something about the key that was pressed: in the footer, until the next one.
    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.said = Some(text.into());
    }

    /// The screen that is shown.
    pub fn screen(&self) -> Screen {
        self.screen
    }

    /// Where the Output screen draws: the size of the program's terminal.
    pub fn output_area(&self) -> Rect {
        crate::screens::output_body(self)
    }
}
