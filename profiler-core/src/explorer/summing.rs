//! Follows a session and leaves away what is not kept of it.
//!
//! Owns: which rows go, and the details of peaks whose rows go. Refuses: files and threads (`keep`), and what stays (`keep::Plan`).

use std::path::Path;

use serde::Serialize;

use crate::allocation::{Model, Sites};
use crate::error::Result;
use crate::journal::entry::Entry;
use crate::journal::{Checkpoint, Head, Standing};
use crate::keep::{CarriedPeak, CheckpointBody, Keep, Kept, Plan};
use crate::report::{Place, snapshot};
use crate::timeline::{LAST, State, Walk};

use super::explorer::Explorer;
use super::limits::Limits;

/// Of everything but allocations; those are forgotten by what is kept, and not by how many there are.
const LIMITS: Limits =
    Limits { dead_allocations: usize::MAX, steps: 1 << 16, markers: 1 << 16, samples: 1 << 12, pace: 0 };

/// Details of former peaks that are kept of each place, for one that turns out to have been none.
const FORMER_PEAKS: usize = 2;

/// The model of a session of which only a part is kept.
pub(crate) struct Summing {
    explorer: Explorer,
    plan: Plan,
    peaks: Vec<CarriedPeak>,
    kept: Kept,
    records: u64,
    recent: u32,
}

/// [`crate::keep::Carried`], borrowed.
#[derive(Serialize)]
struct Carrying<'a> {
    walk: &'a Walk,
    peaks: &'a [CarriedPeak],
    kept: &'a Kept,
}

impl Summing {
    /// Of a session that begins, with so many changes behind it. What ended within the last `recent` changes stays too.
    pub fn new(keep: Keep, recent: u32, changes: u32) -> Summing {
        let (mut explorer, plan) = (Explorer::with_symbols(LIMITS), Plan::new(keep));
        explorer.walk = explorer.walk.beginning_after(changes);
        Summing { explorer, plan, peaks: Vec::new(), kept: Kept::default(), records: 0, recent }
    }

    /// Takes in an entry.
    pub fn apply(&mut self, entry: &Entry) {
        match entry {
            // It comes last, and what has ended is read as a whole.
            Entry::End(_) => return,
            Entry::Records { records, .. } => self.records += records.len() as u64,
            _ => {}
        }
        self.explorer.apply(entry);
        if self.explorer.is_long() {
            self.fold();
        }
    }

    /// Allocations and blocks that it holds.
    pub fn rows(&self) -> u64 {
        self.explorer.model.allocations.len() as u64
    }

    /// A part of the journal could not be read.
    pub fn damaged(&mut self, what: &str) {
        self.explorer.journal_damaged(what);
    }

    /// Writes what was taken in as a checkpoint: the journal goes on with the segment of this number. `step` is called before each
    /// thing that is done. Returns the checkpoint's size in bytes.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn write(&mut self, path: &Path, next_segment: u64, step: impl FnMut()) -> Result<u64> {
        self.fold();
        let Explorer { model, walk, .. } = &self.explorer;
        let standing = |process: &crate::allocation::Process| Standing {
            info: process.info.clone(),
            calibration: process.calibration,
            next_slot: process.next_slot,
            uncommitted: process.counters.uncommitted,
        };
        let processes = model.processes.iter().map(standing).collect();
        let head = Head { next_segment, records: self.records, last: model.last_time(), processes };
        let carried = Carrying { walk, peaks: &self.peaks, kept: &self.kept };
        Checkpoint::write(path, &head, &CheckpointBody { model, carried }, step)
    }

    /// Walks what came, and leaves away what is not kept.
    fn fold(&mut self) {
        let before = self.explorer.walk.walked.order;
        self.explorer.advance();
        self.note_peaks(before);
        let Explorer { model, walk, .. } = &mut self.explorer;
        let spans = self.plan.spans(model, walk);
        let last = walk.walked.order;
        // Where positions stand still, all that has ended has ended at the last one.
        let recent = if walk.stands_since.is_some() { LAST } else { last.saturating_sub(self.recent) };
        let stays = |lifetime: &crate::timeline::Lifetime| {
            lifetime.death > recent
                || spans.iter().any(|span| lifetime.birth <= span.until && lifetime.death > span.from)
        };
        let keep: Vec<bool> = walk.lifetimes.iter().map(stays).collect();
        model.forget(&keep, &walk.walked);
        walk.forget(&keep, last, &spans);
        let summed = model.forgotten.allocations + model.forgotten.blocks;
        self.kept = Kept { spans, summed, stands_since: walk.stands_since };
    }

    /// Tells peaks in detail that came after a position, while their rows are there.
    fn note_peaks(&mut self, before: u32) {
        let Explorer { model, walk, .. } = &self.explorer;
        let places = walk.devices.iter().enumerate().map(|(device, track)| (Place::Device(device), track));
        let states = places.chain([(Place::Host, &walk.host)]).filter_map(|(place, track)| {
            let peak = track.figures.live.filter(|state| before < state.order && state.order < LAST)?;
            Some((place, &track.figures, peak))
        });
        let states: Vec<_> = states.collect();
        if states.is_empty() {
            return;
        }
        let sites = Sites::of(&model.stacks, &model.names);
        for (place, figures, state) in states {
            let snapshot = snapshot(model, &walk.lifetimes, figures, &sites, place, state);
            let peak = CarriedPeak { device: place.device(), order: state.order, time: state.time, snapshot };
            self.peaks.push(peak);
            let here = |peak: &&CarriedPeak| peak.device == place.device();
            let mut surplus = self.peaks.iter().filter(here).count().saturating_sub(FORMER_PEAKS);
            self.peaks.retain(|peak| {
                let goes = peak.device == place.device() && surplus > 0;
                surplus -= usize::from(goes);
                !goes
            });
        }
    }
}

impl Explorer {
    /// Goes on from what the model has been given in the place of its beginning.
    pub(super) fn take_over(&mut self) {
        let Some(carried) = &mut self.model.carried else { return };
        self.walk = std::mem::take(&mut carried.walk);
        self.late = Default::default();
        self.lists.forget();
        self.latest_sample.clear();
        self.find_latest_samples();
        self.past += 1;
        self.alarm = true;
        self.say_kept();
    }

    /// Tells the user what is kept, if that is not all.
    pub(super) fn say_kept(&mut self) {
        if let Some(sentence) = crate::report::kept_sentence(&self.model, self.walk.stands_since) {
            self.notice(&sentence);
        }
    }
}

impl Model {
    /// The moment of a place, in detail, as it was told when its rows were left away.
    pub(crate) fn carried_peak(&self, place: Place, state: &State) -> Option<&CarriedPeak> {
        let peaks = &self.carried.as_ref()?.peaks;
        // Where positions stand still, several moments have one.
        let is = |peak: &&CarriedPeak| peak.order == state.order && peak.time == state.time;
        peaks.iter().find(|peak| peak.device == place.device() && is(peak))
    }
}
