//! What a view is.
//!
//! Owns: the one trait, and what a view is given. Refuses: to know any view.

use std::sync::Arc;

use eframe::egui::{Id, Key, Ui};
use memscope_core::explorer::{Answer, Query};

use crate::shared::{Shared, Span};
use crate::theme::Theme;

/// A view of a document. It draws the last answer, and never waits for the next one.
pub trait View {
    /// Its name, on its tab and for whoever hears the window.
    fn title(&self) -> &'static str;

    /// Adds what it needs to the document's question. Target and moment are set already. Each list of a [`Query`] belongs to one
    /// view, so that no two views of a document want it differently.
    fn ask(&self, shared: &Shared, query: &mut Query) {
        let _ = (shared, query);
    }

    /// The same of another open document, by its position among [`ViewContext::others`]: only for a view that compares. What is set
    /// already is that document's own target and moment; nobody looks at it meanwhile, so that they may be changed.
    fn ask_other(&self, shared: &Shared, other: usize, query: &mut Query) {
        let _ = (shared, other, query);
    }

    /// Draws it into all of `ui`, and acts on what the user does there. The same code draws exports, into a window that nobody
    /// sees.
    fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>);

    /// What it shows, as text.
    fn text(&self, context: &ViewContext<'_>) -> String;

    /// `/` was pressed: the field in which one filters or searches takes what is typed, from the next frame on.
    fn search(&mut self) {}

    /// Keys that it reads itself while it has the keyboard: they are none of the window's actions then. For the shortcut sheet.
    fn keys(&self) -> &'static [OwnKey] {
        &[]
    }

    /// The widget that has the keyboard while those keys are read.
    fn keyboard(&self) -> Option<Id> {
        None
    }
}

/// A key of a view.
#[derive(Clone, Copy, Debug)]
pub struct OwnKey {
    /// Which.
    pub key: Key,
    /// What it does, in words.
    pub says: &'static str,
}

/// What a view is given.
pub struct ViewContext<'a> {
    /// What the document is called.
    pub name: &'a str,
    /// The last answer. That may be to an earlier question: [`Answer::target`] and [`Answer::at`] say of what it is; lists that
    /// were not asked for then are absent.
    pub answer: &'a Answer,
    /// What all views follow.
    pub shared: &'a mut Shared,
    /// Colours.
    pub theme: Theme,
    /// The other documents that are open: name, and last answer.
    pub others: &'a [(String, Arc<Answer>)],
}

impl ViewContext<'_> {
    /// All of time that is known.
    pub fn whole(&self) -> Span {
        whole(self.answer)
    }

    /// What is seen of time.
    pub fn seen(&self) -> Span {
        self.shared.zoom.seen(self.whole())
    }
}

/// All of time that an answer knows.
pub fn whole(answer: &Answer) -> Span {
    Span::between(0, answer.session.last_time.0.max(1))
}
