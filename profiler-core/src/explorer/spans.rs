//! What is drawn of a span of time, and allocations of any time.
//!
//! Owns: when the history is arranged anew, and the last views, which stay until something changes or something else is asked.
//! Refuses: what is in a view (`window`, `bands`, `detail`).

use std::sync::Arc;

use crate::journal::entry::Nanoseconds;

use super::answer::Answer;
use super::answering::Asked;
use super::bands::{self, BandsView};
use super::detail;
use super::explorer::Explorer;
use super::history::{History, Source};
use super::pace::{Kept, Stamp};
use super::part::{Part, Positions};
use super::query::{BandsQuery, Query, WindowQuery};
use super::segments::{self, FragmentationView};
use super::window::{self, WindowView};

/// What is kept for the next answer.
#[derive(Debug, Default)]
pub(super) struct Spans {
    history: Kept<(), Arranged>,
    window: Option<Made<WindowQuery, WindowView>>,
    bands: Option<Made<BandsQuery, BandsView>>,
    fragmentation: Option<Made<WindowQuery, FragmentationView>>,
}

/// The history, and of when it is.
#[derive(Debug)]
struct Arranged {
    of: Stamp,
    last: Nanoseconds,
    history: History,
}

/// What a view was made of: steps are as new as all else, also when the history has to wait for its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Freshness {
    part: Part,
    all: Stamp,
    last: Nanoseconds,
    history: Stamp,
}

/// The last view of a kind.
#[derive(Debug)]
struct Made<Query, View> {
    query: Query,
    of: Freshness,
    view: Arc<View>,
}

impl Spans {
    /// Numbers of allocations mean others from now on.
    pub fn forget(&mut self) {
        *self = Spans::default();
    }
}

impl Freshness {
    /// True when a category or another fact became known since the history was arranged: its sums hold the old one.
    fn is_mistaken(&self) -> bool {
        self.history.past != self.all.past
    }
}

impl<Query: PartialEq, View> Made<Query, View> {
    /// True for another question than the last one.
    fn is_new(kept: &Option<Self>, query: Option<&Query>, part: Part) -> bool {
        query.is_some_and(|query| kept.as_ref().is_none_or(|made| made.of.part != part || made.query != *query))
    }
}

/// The last view, or a new one. Of a history that is mistaken no view can be made; the last one stays.
fn view<Query: Clone + PartialEq, View>(
    kept: &mut Option<Made<Query, View>>,
    query: &Query,
    of: Freshness,
    make: impl FnOnce() -> View,
) -> Arc<View> {
    if let Some(made) = kept
        && (made.of.part, &made.query) == (of.part, query)
        && (made.of == of || of.is_mistaken())
    {
        return Arc::clone(&made.view);
    }
    let view = Arc::new(make());
    *kept = Some(Made { query: query.clone(), of, view: Arc::clone(&view) });
    view
}

impl Explorer {
    /// Puts into an answer what was asked of spans and picked allocations.
    pub(super) fn spans(&mut self, positions: &Positions, asked: &Asked, query: &Query, answer: &mut Answer) {
        let spans = query.window.is_some() || query.bands.is_some() || query.fragmentation.is_some();
        if !spans && query.picks.is_empty() {
            return;
        }
        let (last, part) = (self.last_time(), asked.part);
        let listed = answer.session.listed.as_ref();
        let source = Source { model: &self.model, walk: &self.walk };
        let Spans { history, window, bands, fragmentation } = &mut self.lists.spans;
        let all = Stamp { order: source.walk.walked.order, ..asked.stamp };
        let mistaken = history.known().is_some_and(|known| known.of.past != all.past);
        let anew = || {
            Made::is_new(window, query.window.as_ref(), part)
                || Made::is_new(bands, query.bands.as_ref(), part)
                || Made::is_new(fragmentation, query.fragmentation.as_ref(), part)
        };
        if mistaken && anew() {
            // Whoever asks something new does not wait.
            history.forget();
        }
        let make = || Arranged { of: all, last, history: History::of(source) };
        let arranged = self.pace.list(history, (), all, make);
        if arranged.of == all {
            // Time may pass without a change.
            arranged.last = last;
        }
        let (of, as_of) = (Freshness { part, all, last, history: arranged.of }, arranged.last);
        let history = &mut arranged.history;
        answer.window = query.window.as_ref().map(|query| {
            view(window, query, of, || {
                let mut view = window::view(history, source, (part, listed), query);
                window::marks(&mut view, source, positions, part, query);
                WindowView { as_of, ..view }
            })
        });
        answer.bands = query.bands.as_ref().map(|query| {
            view(bands, query, of, || {
                let view = bands::view(history, source, positions, (part, listed, as_of), query);
                BandsView { as_of, ..view }
            })
        });
        answer.fragmentation = query.fragmentation.as_ref().map(|query| {
            view(fragmentation, query, of, || {
                let view = segments::over_time(history, source, (part, listed), query);
                FragmentationView { as_of, ..view }
            })
        });
        let picks = query.picks.iter();
        answer.picks = picks.filter_map(|pick| detail::find(history, source, positions, *pick)).collect();
    }
}
