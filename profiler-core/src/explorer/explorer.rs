//! Holds a session's model and answers questions about it.
//!
//! Owns: when what is new is walked, and when the whole is walked anew. Refuses: threads and files (`follower`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::allocation::{Model, Progress};
use crate::findings::Finding;
use crate::journal::entry::{Entry, Nanoseconds, TelemetrySample, Threshold};
use crate::profile::{Profile, Reading};
use crate::timeline::{Late, Walk};

use super::answer::Running;
use super::answering::Lists;
use super::limits::Limits;
use super::pace::Pace;

/// So many allocations are worth a walk.
const LONG: usize = 1 << 17;
/// So many markers too.
const MANY_MARKERS: usize = 1 << 14;

/// A session, running or not, that answers questions about any moment of it.
#[derive(Debug)]
pub struct Explorer {
    pub(super) model: Model,
    pub(super) walk: Walk,
    pub(super) late: Late,
    pub(super) limits: Limits,
    pub(super) state: Running,
    pub(super) notices: Vec<String>,
    /// The last moment, once it is known.
    pub(super) ended_at: Option<Nanoseconds>,
    /// Findings that came with a profile.
    pub(super) given: Option<Arc<Vec<Finding>>>,
    /// Of each device by its UUID: position of its latest sample.
    pub(super) latest_sample: HashMap<String, usize>,
    /// Counts what changed the past: facts learned late, what was forgotten, the whole walked anew.
    pub(super) past: u64,
    /// True when findings must be made anew at once.
    pub(super) alarm: bool,
    /// Position of the last out-of-memory error that was told.
    pub(super) alerted: u32,
    /// By device and threshold: how often it was told that it was passed.
    pub(super) passings_told: HashMap<(usize, Threshold), u64>,
    /// True when entries came since the last walk.
    grown: bool,
    pub(super) pace: Pace,
    pub(super) lists: Lists,
}

impl Explorer {
    /// A session of which nothing is known yet.
    pub fn new(limits: Limits) -> Explorer {
        Explorer::over(Model::new(), limits)
    }

    /// The same, which finds the lines behind places in machine code.
    pub fn with_symbols(limits: Limits) -> Explorer {
        Explorer::over(Model::with_symbols(), limits)
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
            alerted: 0,
            passings_told: HashMap::new(),
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
                note_sample(&mut self.latest_sample, self.model.telemetry.len() - 1, sample);
            }
            Entry::Summed(_) => self.take_over(),
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

    /// Says that the session's memscope died, and that no more entries come; with why processes have no logs, and how many each.
    pub fn broke_off(&mut self, refusals: Vec<(String, u32)>) {
        self.model.refusals(refusals);
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
    pub fn of_profile(profile: &Profile) -> crate::Result<Explorer> {
        Explorer::of_profile_counted(profile, &Reading::default())
    }

    /// The same; `reading` counts the allocations meanwhile.
    ///
    /// # Errors
    /// When its tables are damaged.
    pub fn of_profile_counted(profile: &Profile, reading: &Reading) -> crate::Result<Explorer> {
        Ok(Explorer::finished(profile.model_counted(reading)?, profile.findings()))
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
            let last = self.model.last_time();
            self.walk.finish(&self.model, last);
            last
        } else {
            let (walk, last) = Walk::whole(&self.model, true, &Reading::default());
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
        explorer.say_kept();
        explorer
    }

    /// True when so much came since the last walk that it is worth one, where nobody asks.
    pub fn is_long(&self) -> bool {
        let walked = self.walk.lifetimes.len();
        let markers = self.model.markers.len() - self.walk.markers.len();
        self.model.allocations.len() > walked + walked / 2 + LONG || markers > MANY_MARKERS
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
        let alarming = |walk: &Walk| (walk.refusals.len(), walk.passings());
        let before = alarming(&self.walk);
        self.walk.advance(&self.model);
        self.alarm |= alarming(&self.walk) != before;
        let last = self.model.last_time();
        self.walk.tracks().for_each(|track| track.pass(last));
        self.bound();
    }

    pub(super) fn find_latest_samples(&mut self) {
        for (position, sample) in self.model.telemetry.iter().enumerate() {
            note_sample(&mut self.latest_sample, position, sample);
        }
    }
}

/// The sample at this position of the model is the latest one of its devices.
fn note_sample(latest: &mut HashMap<String, usize>, position: usize, sample: &TelemetrySample) {
    for device in &sample.devices {
        latest.insert(crate::allocation::canonical(&device.uuid), position);
    }
}
