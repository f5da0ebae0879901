//! Makes an answer.
//!
//! Owns: which part of an answer is made of what, and which lists are kept for the next one. Refuses: to change what is known.

use std::sync::Arc;

use crate::allocation::Model;
use crate::diff::Side;
use crate::findings::{self, Evidence, Finding, Largest};
use crate::journal::entry::Nanoseconds;
use crate::ledger::{EventRows, Sum};
use crate::report;
use crate::timeline::State;

use super::answer::{Answer, MomentView, ScopeTotal};
use super::explorer::Explorer;
use super::flame::{Moment, Weighed};
use super::gravest::Gravest;
use super::history::Source;
use super::listed::Partial;
use super::live::Live;
use super::moment::{Ledgers, Place, place, remembered, state_at};
use super::pace::{Kept, Stamp};
use super::part::{Part, Positions};
use super::query::{At, Query, RowsQuery, SideAt};
use super::rows::RowList;
use super::scopes;
use super::segments::Segments;
use super::side;
use super::spans::Spans;
use super::steps;
use super::tracks;

/// Which lists are kept for the next question.
#[derive(Debug, Default)]
pub(super) struct Lists {
    rows: Kept<(Part, At, RowsQuery), RowList>,
    segments: Kept<(Part, At), Segments>,
    side: Kept<(Part, SideAt), Arc<Side>>,
    scopes_now: Kept<(Part, At), (Stamp, Nanoseconds, Vec<Sum>)>,
    tops: Kept<(Part, At), Tops>,
    scopes_peak: Kept<Part, Vec<Sum>>,
    largest: Kept<(Part, At), Option<Largest>>,
    pub(super) flame: Weighed,
    ledgers: Kept<(Part, At), Ledgers>,
    ledgers_peak: Kept<Part, Ledgers>,
    findings: Kept<(), Arc<Vec<Finding>>>,
    pub(super) spans: Spans,
}

/// So many scopes are grouped for each answer.
const FEW_SCOPES: usize = 1024;

/// The largest scopes, the bytes of all, and of when they are.
#[derive(Clone, Debug)]
struct Tops {
    list: Arc<Vec<ScopeTotal>>,
    bytes: u64,
    of: Stamp,
    time: Nanoseconds,
}

impl Tops {
    fn of(model: &Model, sums: &[Sum], of: Stamp, time: Nanoseconds) -> Tops {
        let bytes = sums.iter().fold(0u64, |bytes, sum| bytes.wrapping_add(sum.bytes()));
        Tops { list: Arc::new(scopes::largest(model, sums)), bytes, of, time }
    }
}

impl Lists {
    /// Numbers of allocations mean others from now on.
    pub fn forget(&mut self) {
        self.rows.forget();
        self.segments.forget();
        self.spans.forget();
    }
}

/// A question's moment.
pub(super) struct Asked {
    pub part: Part,
    pub at: At,
    pub order: u32,
    pub time: Nanoseconds,
    pub stamp: Stamp,
}

impl Explorer {
    /// Answers a question. Figures are those of all entries so far; of a large list, [`super::RowsView::as_of`] says of when it
    /// is.
    pub fn answer(&mut self, query: &Query) -> Answer {
        self.advance();
        self.pace.begin();
        let positions = Positions::of(&self.model);
        let (part, target) = positions.part(&self.model, &self.walk, query.target);
        let ended = self.is_ended();
        let place = place(&self.model, &self.walk, part, query.at, ended);
        let past = self.past;
        let (order, time) = match place {
            Place::Now => (self.walk.walked.order, self.last_time()),
            Place::Past(order, Some(state)) => (order, state.time),
            Place::Past(order, None) => (order, query.at.time().unwrap_or_default()),
        };
        let asked = Asked { part, at: query.at, order, time, stamp: Stamp { order, past } };
        let findings = self.findings(asked.stamp);
        let mut answer = Answer { target, at: query.at, findings, ..Answer::default() };
        (answer.of_host, answer.has_host) = (part == Part::Host, self.walk.has_host_memory());
        answer.session = self.session();
        self.moments(&positions, &asked, place, &mut answer);
        answer.gravest = self.gravest(&positions, &answer);
        self.over_time(query, part, &mut answer);
        self.lists(&positions, (&asked, place), query, &mut answer);
        self.spans(&positions, &asked, query, &mut answer);
        let tracks = query.tracks.as_ref();
        answer.tracks = tracks.map(|query| Arc::new(tracks::view(&self.model, &self.walk, &positions, part, query)));
        if let Some(at) = query.side {
            let stamp = Stamp { order: self.walk.walked.order, past };
            let (ended, last) = (self.is_ended(), self.last_time());
            let listed = answer.session.listed.as_ref();
            let make = || Arc::new(side::of(&self.model, &self.walk, (part, at, listed), (ended, last)));
            answer.side = Some(Arc::clone(self.pace.list(&mut self.lists.side, (part, at), stamp, make)));
        }
        answer
    }

    /// The moment that was asked for and the peak, and devices and processes at that moment.
    fn moments(&mut self, positions: &Positions, asked: &Asked, place: Place, answer: &mut Answer) {
        let (model, walk) = (&self.model, &self.walk);
        let (part, at) = (asked.part, asked.at);
        let whole = match (place, &answer.session.listed) {
            (Place::Now, _) | (_, None) => true,
            (Place::Past(order, _), Some(listed)) => listed.has_moment(at, order),
        };
        // What is listed, and where that is not all, what is known of the whole.
        let listed = match place {
            Place::Now => Ledgers::now(walk),
            Place::Past(order, _) => {
                let make = || Ledgers::past(model, walk, order);
                self.pace.list(&mut self.lists.ledgers, (part, at), asked.stamp, make).clone()
            }
        };
        let mut ledgers = if whole { listed.clone() } else { Ledgers::remembered(walk, asked.time) };
        let track = part.track(walk);
        let state = match place {
            Place::Past(_, Some(state)) => state,
            Place::Past(order, None) => {
                let mut state = state_at(model, walk, part, &ledgers, (order, asked.time));
                // Of several parts the largest moments need not be one.
                if let (false, Some(track)) = (whole, track) {
                    state.rows = remembered(track.series(), asked.time);
                }
                state
            }
            Place::Now => {
                let state = track.map(|track| track.now).unwrap_or_default();
                State { order: asked.order, time: asked.time, ..state }
            }
        };
        if !whole {
            ledgers.put(part, (state.rows, state.managed));
        }
        let partial = || Partial::of(listed.of(part).0.live_bytes(), state.rows.live_bytes());
        let partial = (!whole).then(partial).flatten();
        answer.devices = self.devices(positions, &ledgers, asked);
        answer.processes = self.processes(&ledgers);
        answer.now = MomentView { partial, ..self.moment(positions, part, state, ledgers.host) };
        answer.step_before = track.and_then(|track| steps::before(track, &state));
        answer.peak = track.and_then(|track| track.figures.live).map(|state| self.peak(positions, part, state, answer));
    }

    /// The peak of a part.
    fn peak(&mut self, positions: &Positions, part: Part, state: State, answer: &Answer) -> MomentView {
        let (model, walk) = (&self.model, &self.walk);
        let stamp = Stamp { order: state.order, past: self.past };
        let listed = answer.session.listed.as_ref();
        let whole = listed.is_none_or(|listed| listed.has_moment(At::Peak, state.order));
        let host_changed = part == Part::All && walk.host.changed > state.order && walk.host.figures.reserved.is_some();
        let unchanged = if walk.host.changed <= state.order { walk.host.now.rows } else { EventRows::default() };
        let (mut host, mut partial) = (unchanged, None);
        if host_changed || !whole {
            let make = || Ledgers::past(model, walk, state.order);
            let listed = self.pace.list(&mut self.lists.ledgers_peak, part, stamp, make);
            if !whole {
                partial = Partial::of(listed.of(part).0.live_bytes(), state.rows.live_bytes());
            }
            if host_changed {
                host = if whole { listed.host } else { remembered(walk.host.series(), state.time) };
            }
        }
        MomentView { partial, ..self.moment(positions, part, state, host) }
    }

    fn moment(&self, positions: &Positions, part: Part, state: State, host: EventRows) -> MomentView {
        let device = part.device(positions).and_then(|device| self.walk.devices.get(device as usize));
        MomentView {
            state,
            phase: self.model.names.text(state.phase),
            host: if part == Part::All { host } else { Default::default() },
            capacity: self.capacity(positions, part),
            device: device.and_then(|track| track.figures.sample_near(&state)).copied(),
            partial: None,
        }
    }

    /// Where memory ran out.
    fn gravest(&self, positions: &Positions, answer: &Answer) -> Option<Gravest> {
        let gravest = Gravest::of(&answer.findings, &answer.devices, &answer.processes)?;
        let device = gravest.device.and_then(|position| positions.devices.get(position as usize));
        let track = device.and_then(|device| self.walk.devices.get(*device as usize));
        let begins = track.into_iter().flat_map(|track| track.figures.steps.iter().map(|step| step.begin));
        Some(gravest.among(begins))
    }

    /// What is drawn over time.
    fn over_time(&self, query: &Query, part: Part, answer: &mut Answer) {
        answer.refusals = Arc::new(self.walk.refusals.clone());
        let Some(track) = part.track(&self.walk) else { return };
        answer.series = Arc::new(track.series().clone());
        answer.step_marks = Arc::new(steps::marks(track));
        answer.steps_total = track.figures.steps.len();
        answer.steps_repeat = track.steps_repeat();
        let now = &answer.now.state;
        answer.steps_now = now.step.and_then(|number| track.figures.step_at(number, now.time));
        let device = match part {
            Part::Device(device) => Some(crate::report::device_text(&self.model, device as usize)),
            // No finding is about it: none of its steps is one that grew on a device.
            Part::Host => Some(crate::report::HOST.to_owned()),
            _ => None,
        };
        (answer.steps_first, answer.steps) = steps::window(track, &query.steps, &answer.findings, device.as_deref());
    }

    fn lists(&mut self, positions: &Positions, (asked, place): (&Asked, Place), query: &Query, answer: &mut Answer) {
        let (model, walk) = (&self.model, &self.walk);
        let Asked { part, at, order, time, stamp } = *asked;
        let live = Live { model, walk, part, order, time };
        // Of all that lives now the model knows the sums.
        let known = matches!(place, Place::Now) && part.is_whole(model, positions);
        let (of, as_of, now): (Stamp, Nanoseconds, &Vec<Sum>) = match known {
            true => (stamp, time, &model.scope_sums),
            false => {
                let make = || (stamp, time, scopes::sums(&live));
                let (of, as_of, sums) = &*self.pace.list(&mut self.lists.scopes_now, (part, at), stamp, make);
                (*of, *as_of, sums)
            }
        };
        let make = || Tops::of(model, now, of, as_of);
        // By the stamp of what they are made of: newer sums of the same moment are grouped anew.
        let mut tops = match known && now.len() <= FEW_SCOPES {
            true => make(),
            false => self.pace.list(&mut self.lists.tops, (part, at), of, make).clone(),
        };
        answer.top_scopes_partial = answer.now.partial;
        tops.bytes = answer.now.whole(tops.bytes);
        if answer.now.partial.is_some()
            && let Some(carried) = carried(model, positions, part, &answer.now.state)
        {
            // Of a peak they were told before its allocations went.
            tops = Tops { list: carried, bytes: answer.now.state.rows.live_bytes(), ..tops };
            answer.top_scopes_partial = None;
        }
        (answer.top_scopes, answer.top_scopes_bytes) = (tops.list, tops.bytes);
        answer.top_scopes_as_of = (tops.of != stamp).then_some(tops.time);
        // Of a part of what lived, another may be the largest.
        if query.largest && answer.now.partial.is_none() {
            let sums = answer.now.state.rows.live;
            let make = || Largest::of(model, &sums, live.outlived());
            answer.largest = self.pace.list(&mut self.lists.largest, (part, at), stamp, make).clone();
        }
        if query.scopes {
            let peak = answer.peak.as_ref().map(|peak| peak.state).unwrap_or_default();
            let at_peak = Live { order: peak.order, ..live };
            let stamp = Stamp { order: peak.order, ..stamp };
            let peak = self.pace.list(&mut self.lists.scopes_peak, part, stamp, || scopes::sums(&at_peak));
            answer.scopes = Some(Arc::new(scopes::tree(model, now, peak)));
        }
        if let Some(rows) = &query.rows {
            // Windows differ from answer to answer; the list is the same.
            let key = (part, at, RowsQuery { window: 0..0, find: None, ..rows.clone() });
            let list = self.pace.list(&mut self.lists.rows, key, stamp, || RowList::of(&live, positions, rows));
            let mut view = list.view(Source { model, walk }, positions, rows);
            if view.matching_allocations == view.total {
                view.shares_of = answer.now.whole(view.shares_of);
            }
            answer.rows = Some(Arc::new(view));
        }
        if let Some(flame) = &query.flame {
            let now = Stamp { order: walk.walked.order, ..stamp };
            let peak = answer.peak.as_ref().map(|peak| peak.state).unwrap_or_default();
            let moment = Moment {
                at: (at, order, time),
                peak: (peak.order, peak.time),
                now,
                last: self.last_time(),
                partial: (answer.now.partial, answer.peak.as_ref().and_then(|peak| peak.partial)),
                listed: answer.session.listed.as_ref(),
            };
            let view = self.lists.flame.view(&mut self.pace, (model, walk), part, moment, flame);
            answer.flame = Some(view);
        }
        if let Some(segments) = &query.segments {
            // Where a block is not kept there would be a hole.
            let make = || if answer.now.partial.is_some() { Segments::default() } else { Segments::of(&live) };
            let list = self.pace.list(&mut self.lists.segments, (part, at), stamp, make);
            answer.segments = Some(Arc::new(list.view(Source { model, walk }, positions, segments)));
        }
    }

    fn findings(&mut self, stamp: Stamp) -> Arc<Vec<Finding>> {
        if let Some(given) = &self.given {
            return Arc::clone(given);
        }
        if std::mem::take(&mut self.alarm) {
            self.lists.findings.forget();
        }
        let (model, walk) = (&self.model, &self.walk);
        let now = Stamp { order: walk.walked.order, ..stamp };
        let make = || Arc::new(findings::detect(&Evidence::of_walk(model, walk)));
        Arc::clone(self.pace.list(&mut self.lists.findings, (), now, make))
    }
}

/// The largest scopes of a peak whose allocations are gone, as they were told before.
fn carried(model: &Model, positions: &Positions, part: Part, state: &State) -> Option<Arc<Vec<ScopeTotal>>> {
    let place = match part {
        Part::Host => report::Place::Host,
        _ => report::Place::Device(part.device(positions)?.into()),
    };
    let peak = model.carried_peak(place, state)?;
    Some(Arc::new(peak.snapshot.top_scope_groups.iter().map(ScopeTotal::from).collect()))
}
