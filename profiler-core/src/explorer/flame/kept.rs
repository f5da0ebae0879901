//! What is kept for the next question: another width, zoom or search weighs nothing anew.
//!
//! Owns: of which moment a tree is. Refuses: what is in it.

use std::sync::Arc;

use crate::allocation::Model;
use crate::journal::entry::Nanoseconds;
use crate::timeline::Walk;

use super::super::listed::{Listed, Partial};
use super::super::pace::{Kept, Pace, Stamp};
use super::super::part::Part;
use super::super::query::At;
use super::weigh::{Kind, Weights};
use super::{FlameBy, FlameQuery, FlameView, FlameWeight};

/// What was weighed last, and the tree that was drawn of it.
#[derive(Debug, Default)]
pub(in crate::explorer) struct Weighed {
    weights: Kept<Key, (Weights, Option<Arc<FlameView>>)>,
}

/// What was weighed; the moment counts only where it is what weighs.
type Key = (Part, Option<At>, FlameBy, FlameWeight, String);

/// A question's moment, and others that it may mean.
pub(in crate::explorer) struct Moment<'a> {
    pub at: (At, u32, Nanoseconds),
    pub peak: (u32, Nanoseconds),
    pub now: Stamp,
    pub last: Nanoseconds,
    /// How much is listed at the moment and at the peak, where that is not all.
    pub partial: (Option<Partial>, Option<Partial>),
    /// Which moments have whole lists.
    pub listed: Option<&'a Listed>,
}

impl Weighed {
    /// The tree that a question asks for.
    pub fn view(
        &mut self,
        pace: &mut Pace,
        (model, walk): (&Model, &Walk),
        part: Part,
        moment: Moment<'_>,
        query: &FlameQuery,
    ) -> Arc<FlameView> {
        let (at, order, time) = moment.at;
        let (at, order, time) = match query.weight {
            FlameWeight::Cursor => (Some(at), order, time),
            FlameWeight::Peak => (None, moment.peak.0, moment.peak.1),
            FlameWeight::AllocatedIn(_) => (None, moment.now.order, moment.last),
        };
        let make = || {
            let kind = match &query.weight {
                FlameWeight::AllocatedIn(range) => Kind::born(model, walk, range),
                _ => Kind::Live(order),
            };
            (Weights::of((model, walk), (part, time), (query.by, &query.filter), kind), None)
        };
        let key = (part, at, query.by, query.weight.clone(), query.filter.clone());
        let (weights, drawn) = pace.list(&mut self.weights, key, Stamp { order, ..moment.now }, make);
        let partial = match &query.weight {
            FlameWeight::Cursor => moment.partial.0,
            FlameWeight::Peak => moment.partial.1,
            FlameWeight::AllocatedIn(range) => {
                let here = Partial { listed: weights.bytes(), whole: None };
                moment.listed.filter(|listed| !listed.has_all(range)).map(|_| here)
            }
        };
        match drawn {
            Some(view) if view.query == *query && view.partial == partial => Arc::clone(view),
            _ => Arc::clone(drawn.insert(Arc::new(FlameView { partial, ..weights.view(model, query) }))),
        }
    }
}
