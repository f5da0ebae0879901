//! Holds a session's model and answers questions about it.
//!
//! Owns: when what is new is walked, and when the whole is walked anew. Refuses: threads and files (`follower`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::allocation::{Model, Progress};
use crate::findings::{self, Evidence, Finding};
use crate::journal::entry::{Entry, Nanoseconds};
use crate::ledger::Sum;
use crate::timeline::{Late, Walk};

use super::answer::{Answer, MomentView, Running};
use super::limits::Limits;
use super::live::Live;
use super::moment::{Ledgers, Place, place, remembered, state_at};
use super::pace::{Kept, Pace, Stamp};
use super::part::{Part, Positions};
use super::query::{At, Query, RowsQuery};
use super::rows::RowList;
use super::scopes;
use super::segments::Segments;
use super::steps;

/// A session, running or not, that answers questions about any moment of it.
#[derive(Debug)]
pub struct Explorer {
    pub(super) model: Model,
    pub(super) walk: Walk,
    late: Late,
    pub(super) limits: Limits,
    pub(super) state: Running,
    pub(super) notices: Vec<String>,
    /// The last moment, once it is known.
    pub(super) ended_at: Option<Nanoseconds>,
    /// Findings that came with a profile.
    given: Option<Arc<Vec<Finding>>>,
    /// Of each device by its UUID: position of its latest sample.
    pub(super) latest_sample: HashMap<String, usize>,
    /// Counts what changed the past: facts learned late, what was forgotten, the whole walked anew.
    past: u64,
    /// True when findings must be made anew at once.
    alarm: bool,
    /// True when entries came since the last walk.
    grown: bool,
    pace: Pace,
    lists: Lists,
}

/// Which lists are kept for the next question.
#[derive(Debug, Default)]
struct Lists {
    rows: Kept<(Part, At, RowsQuery), RowList>,
    segments: Kept<(Part, At), Segments>,
    scopes_now: Kept<(Part, At), Vec<Sum>>,
    scopes_peak: Kept<Part, Vec<Sum>>,
    ledgers: Kept<(Part, At), Ledgers>,
    ledgers_peak: Kept<Part, Ledgers>,
    findings: Kept<(), Arc<Vec<Finding>>>,
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
    /// A session of which nothing is known yet.
    pub fn new(limits: Limits) -> Explorer {
        Explorer::over(Model::new(), limits)
    }

    pub(super) fn over(model: Model, limits: Limits) -> Explorer {
        Explorer {
            model,
            walk: Walk::with_parts(Nanoseconds(0)),
            late: Late::default(),
            limits,
            state: Running::Live,
            notices: Vec::new(),
            ended_at: None,
            given: None,
            latest_sample: HashMap::new(),
            past: 0,
            alarm: false,
            grown: false,
            pace: Pace::new(limits.pace),
            lists: Lists::default(),
        }
    }

    /// Takes in one entry of the journal.
    pub fn apply(&mut self, entry: &Entry) {
        let changes = self.model.apply(entry);
        self.grown = true;
        self.late.note(&changes, &self.walk.lifetimes);
        match entry {
            Entry::Telemetry(sample) => {
                let position = self.model.telemetry.len() - 1;
                for device in &sample.devices {
                    self.latest_sample.insert(crate::allocation::canonical(&device.uuid), position);
                }
            }
            Entry::End(_) => self.end(Running::Ended),
            _ => {}
        }
    }

    /// Says that a part of the journal could not be read, as a sentence; answers carry it as a notice.
    pub fn journal_damaged(&mut self, what: impl Into<String>) {
        let what = what.into();
        if self.notice(&what) {
            self.model.journal_truncated(what);
            self.alarm = true;
        }
    }

    /// Tells the user something about the reading of the session; true when it is new.
    pub(super) fn notice(&mut self, what: &str) -> bool {
        let new = !self.notices.iter().any(|known| known == what);
        if new {
            self.notices.push(what.to_owned());
        }
        new
    }

    /// Says that the session's memscope died, and that no more entries come.
    pub fn broke_off(&mut self) {
        if self.state == Running::Live {
            self.model.journal_truncated("it has no end, so memscope did not end in an orderly way");
            self.end(Running::Broken);
        }
    }

    /// True once no more entries come.
    pub fn is_ended(&self) -> bool {
        self.state != Running::Live
    }

    /// Where the session stands, in few figures.
    pub fn progress(&self) -> Progress {
        self.model.progress()
    }

    /// Opens a profile: a session that has ended, of which everything is known.
    ///
    /// # Errors
    /// When its tables are damaged.
    pub fn of_profile(profile: &crate::profile::Profile) -> crate::Result<Explorer> {
        Ok(Explorer::finished(profile.model()?, profile.findings()))
    }

    /// When a list that an answer left as it was may be made anew; `None` when all are fresh.
    pub fn due(&self) -> Option<Instant> {
        self.pace.due()
    }

    /// From now on the session is a whole, and is walked as one: every figure is exact. One of which something was forgotten
    /// keeps the figures of its running.
    fn end(&mut self, state: Running) {
        let last = if self.walk.has_forgotten {
            self.state = Running::Live;
            self.advance();
            if state == Running::Ended {
                self.walk.end_well(&self.model);
            }
            let last = self.model.last_time();
            self.walk.finish(last);
            last
        } else {
            let (walk, last) = Walk::whole(&self.model, true);
            self.walk = walk;
            last
        };
        self.state = state;
        self.alarm = true;
        self.past += 1;
        self.pace = Pace::new(0);
        self.late = Late::default();
        self.grown = false;
        self.ended_at = Some(self.model.end.as_ref().map_or(last, |end| end.time));
    }

    /// Takes in a session whose end is known, with what was found out about it.
    pub(super) fn finished(model: Model, findings: Vec<Finding>) -> Explorer {
        let mut explorer = Explorer::over(model, Limits::NONE);
        explorer.end(Running::Ended);
        explorer.given = Some(Arc::new(findings));
        explorer.find_latest_samples();
        explorer
    }

    /// Walks what came since the last answer. To be called now and then when many entries come and nobody asks.
    pub fn advance(&mut self) {
        if self.is_ended() {
            // Of a session that broke off more may come: its processes may go on, and be looked at.
            if std::mem::take(&mut self.grown) {
                self.end(self.state);
            }
            return;
        }
        if self.walk.is_mistaken(&self.model) {
            self.past += 1;
            if self.walk.has_forgotten {
                self.walk.move_devices(&self.model);
            } else {
                self.walk = Walk::with_parts(Nanoseconds(0));
                self.late = Late::default();
            }
        }
        if !self.late.is_empty() {
            self.walk.correct(&self.model, &mut self.late);
            self.past += 1;
        }
        let refusals = self.walk.refusals.len();
        self.walk.advance(&self.model);
        self.alarm |= self.walk.refusals.len() > refusals;
        let last = self.model.last_time();
        self.walk.tracks().for_each(|track| track.pass(last));
        self.bound();
    }

    /// Numbers of allocations mean others from now on.
    pub(super) fn forget_lists(&mut self) {
        self.lists.rows.forget();
        self.lists.segments.forget();
    }

    pub(super) fn find_latest_samples(&mut self) {
        for (position, sample) in self.model.telemetry.iter().enumerate() {
            for device in &sample.devices {
                self.latest_sample.insert(crate::allocation::canonical(&device.uuid), position);
            }
        }
    }

    /// Answers a question. Figures are those of all entries so far; of a large list, [`super::RowsView::as_of`] says of when it
    /// is.
    pub fn answer(&mut self, query: &Query) -> Answer {
        self.advance();
        self.pace.begin();
        let positions = Positions::of(&self.model);
        let (part, target) = positions.part(&self.model, query.target);
        let ended = self.is_ended();
        let place = place(&self.model, &self.walk, part, query.at, ended);
        let past = self.past;
        let (order, time) = match place {
            Place::Now => (self.walk.walked.order, self.last_time()),
            Place::Past(order, Some(state)) => (order, state.time),
            Place::Past(order, None) => (order, if let At::Time(time) = query.at { time } else { Nanoseconds(0) }),
        };
        let asked = Asked { part, at: query.at, order, time, stamp: Stamp { order, past } };
        let findings = self.findings(asked.stamp);
        let mut answer = Answer { target, at: query.at, findings, ..Answer::default() };
        answer.session = self.session();
        self.moments(&positions, &asked, place, &mut answer);
        self.over_time(&positions, query, part, &mut answer);
        self.lists(&positions, (&asked, place), query, &mut answer);
        answer
    }

    /// The moment that was asked for and the peak, and devices and processes at that moment.
    fn moments(&mut self, positions: &Positions, asked: &Asked, place: Place, answer: &mut Answer) {
        let (model, walk) = (&self.model, &self.walk);
        let key = (asked.part, asked.at);
        let ledgers = match place {
            Place::Now => Ledgers::now(walk),
            Place::Past(order, _) => {
                let make = || Ledgers::past(model, walk, order);
                self.pace.list(&mut self.lists.ledgers, key, asked.stamp, make).clone()
            }
        };
        let state = match place {
            Place::Past(_, Some(state)) => state,
            Place::Past(order, None) => {
                let mut state = state_at(model, walk, asked.part, &ledgers, (order, asked.time));
                if let (Some(before), Some(track)) = (self.forgotten_before(), asked.part.track(walk))
                    && asked.time < before
                {
                    state.rows = remembered(track.series(), asked.time);
                }
                state
            }
            Place::Now => {
                let state = asked.part.track(walk).map(|track| track.now).unwrap_or_default();
                crate::timeline::State { order: asked.order, time: asked.time, ..state }
            }
        };
        answer.devices = self.devices(positions, &ledgers, asked);
        answer.processes = self.processes(&ledgers);
        let host = ledgers.host;
        answer.now = self.moment(positions, asked.part, state, host);
        answer.step_before = asked.part.track(walk).and_then(|track| steps::before(track, state.step));
        let peak = asked.part.track(walk).and_then(|track| track.figures.live);
        answer.peak = peak.map(|state| {
            let stamp = Stamp { order: state.order, past: self.past };
            let host = match asked.part {
                Part::All if self.walk.host.now.order <= state.order => self.walk.host.now.rows,
                Part::All if self.walk.host.figures.reserved.is_none() => Default::default(),
                Part::All => {
                    let (model, walk) = (&self.model, &self.walk);
                    let make = || Ledgers::past(model, walk, state.order);
                    self.pace.list(&mut self.lists.ledgers_peak, asked.part, stamp, make).host
                }
                _ => Default::default(),
            };
            self.moment(positions, asked.part, state, host)
        });
    }

    fn moment(
        &self,
        positions: &Positions,
        part: Part,
        state: crate::timeline::State,
        host: crate::ledger::EventRows,
    ) -> MomentView {
        let device = part.device(positions).and_then(|device| self.walk.devices.get(device as usize));
        MomentView {
            state,
            phase: self.model.names.text(state.phase),
            host: if part == Part::All { host } else { Default::default() },
            capacity: self.capacity(positions, part),
            device: device.and_then(|track| track.figures.sample_near(&state)).copied(),
        }
    }

    /// What is drawn over time.
    fn over_time(&self, positions: &Positions, query: &Query, part: Part, answer: &mut Answer) {
        answer.refusals = Arc::new(self.walk.refusals.clone());
        let Some(track) = part.track(&self.walk) else { return };
        answer.series = Arc::new(track.series().clone());
        answer.step_marks = Arc::new(steps::marks(track));
        answer.steps_total = track.figures.steps.len();
        let device = match part {
            Part::Device(device) => Some(crate::report::device_text(&self.model, device as usize)),
            _ => None,
        };
        let _ = positions;
        (answer.steps_first, answer.steps) = steps::window(track, &query.steps, &answer.findings, device.as_deref());
    }

    fn lists(&mut self, positions: &Positions, (asked, place): (&Asked, Place), query: &Query, answer: &mut Answer) {
        let (model, walk) = (&self.model, &self.walk);
        let Asked { part, at, order, time, stamp } = *asked;
        let live = Live { model, walk, part, order, time };
        // Of all that lives now the model knows the sums.
        let known = matches!(place, Place::Now) && part.is_whole(model, positions);
        let now: &Vec<Sum> = match known {
            true => &model.scope_sums,
            false => self.pace.list(&mut self.lists.scopes_now, (part, at), stamp, || scopes::sums(&live)),
        };
        answer.top_scopes = Arc::new(scopes::largest(model, now));
        if query.scopes {
            let peak = answer.peak.as_ref().map(|peak| peak.state).unwrap_or_default();
            let at_peak = Live { order: peak.order, ..live };
            let stamp = Stamp { order: peak.order, ..stamp };
            let peak = self.pace.list(&mut self.lists.scopes_peak, part, stamp, || scopes::sums(&at_peak));
            answer.scopes = Some(Arc::new(scopes::tree(model, now, peak)));
        }
        if let Some(rows) = &query.rows {
            // Windows differ from answer to answer; the list is the same.
            let key = (part, at, RowsQuery { window: 0..0, ..rows.clone() });
            let list = self.pace.list(&mut self.lists.rows, key, stamp, || RowList::of(&live, rows));
            answer.rows = Some(Arc::new(list.view(model, positions, &rows.window)));
        }
        if let Some(segments) = &query.segments {
            let list = self.pace.list(&mut self.lists.segments, (part, at), stamp, || Segments::of(&live));
            answer.segments = Some(Arc::new(list.view(model, positions, segments)));
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
        let make = || {
            let devices = walk.devices.iter().map(|track| &track.figures).collect();
            Arc::new(findings::detect(&Evidence::new(model, &walk.lifetimes, devices, &walk.markers)))
        };
        Arc::clone(self.pace.list(&mut self.lists.findings, (), now, make))
    }
}
