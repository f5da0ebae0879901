//! What a part of the session holds at a moment, as one side of a difference.
//!
//! Owns: sums by category, scope and line of one pass over what is live. Refuses: the other side (`diff`).

use std::collections::HashMap;

use crate::allocation::{Model, Sites};
use crate::diff::{Held, Side};
use crate::journal::entry::Nanoseconds;
use crate::ledger::EventRows;
use crate::timeline::{State, Walk};

use super::listed::Listed;
use super::live::Live;
use super::moment::{Ledgers, Place, place, ran_out, remembered, state_at};
use super::part::Part;
use super::query::{At, SideAt};

/// Makes it, of a session that has ended or not, and whose last moment is known.
pub(super) fn of(
    model: &Model,
    walk: &Walk,
    (part, asked, listed): (Part, SideAt, Option<&Listed>),
    (ended, last): (bool, Nanoseconds),
) -> Side {
    let track = part.track(walk);
    let at = match asked {
        SideAt::At(at) => at,
        SideAt::Fullest => ran_out(model, walk, part).map_or(At::Peak, At::Refused),
    };
    let exists = match at {
        At::Step(number) => track.is_some_and(|track| track.step_named(number).is_some()),
        At::StepFrom(begin) => track.is_some_and(|track| track.figures.steps.iter().any(|step| step.begin == begin)),
        At::Peak => track.is_some_and(|track| track.figures.live.is_some()),
        At::Live | At::Time(_) | At::Refused(_) => true,
    };
    let state = match place(model, walk, part, at, ended) {
        Place::Past(_, Some(state)) => state,
        Place::Past(order, None) => {
            state_at(model, walk, part, &Ledgers::default(), (order, at.time().unwrap_or_default()))
        }
        Place::Now => {
            State { order: walk.walked.order, time: last, ..track.map(|track| track.now).unwrap_or_default() }
        }
    };
    let of_host = part == Part::Host;
    let mut side = Side { at, exists, of_host, state, phase: model.names.text(state.phase), ..Side::default() };
    side.steps = track.map_or_else(Vec::new, |track| {
        track.figures.steps.iter().map(|step| (step.number, step.peak.rows.live_bytes())).collect()
    });
    if listed.is_some_and(|listed| !listed.has_moment(at, state.order)) {
        return summed_only(side, walk, part);
    }
    let live = Live { model, walk, part, order: state.order, time: state.time };
    let mut rows = EventRows::default();
    let (mut scopes, mut stacks): (HashMap<u32, Held>, HashMap<u32, Held>) = Default::default();
    for (_, allocation) in live.allocations().filter(|(_, allocation)| part.counts(model, allocation)) {
        rows.enter(allocation);
        if allocation.is_leaf() {
            scopes.entry(allocation.scope).or_default().add(allocation.requested);
            stacks.entry(allocation.stack).or_default().add(allocation.requested);
        }
    }
    side.state.rows = rows;
    let named = |(scope, held): (u32, Held)| Held { name: model.scopes.path(scope, &model.names), ..held };
    side.scopes = scopes.into_iter().map(named).collect();
    if !model.stacks.is_empty() {
        let sites = Sites::of(&model.stacks, &model.names);
        let named =
            |(stack, held): (u32, Held)| Held { name: model.stacks.text(sites.site(stack), &model.names), ..held };
        side.sites = Some(stacks.into_iter().map(named).collect());
    }
    side
}

/// A moment of which there are figures, and no allocations.
fn summed_only(mut side: Side, walk: &Walk, part: Part) -> Side {
    if let At::Time(time) | At::Refused(time) = side.at
        && let Some(track) = part.track(walk)
    {
        side.state.rows = remembered(track.series(), time);
    }
    side.summed = true;
    side
}

impl Held {
    fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.wrapping_add(bytes);
        self.allocations = self.allocations.wrapping_add(1);
    }
}
