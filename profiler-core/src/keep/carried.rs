//! What a model that begins in the middle of its session knows of what was before.
//!
//! Owns: the figures of what was summed, and which moments are still told allocation by allocation. Refuses: to sum (`timeline`).

use serde::{Deserialize, Serialize};

use crate::allocation::Model;
use crate::journal::entry::Nanoseconds;
use crate::report::Snapshot;
use crate::timeline::{LAST, Late, Walk};

/// A part of the order of changes of which every allocation that lived is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptSpan {
    /// Position of the first change.
    pub from: u32,
    /// Position of the last one.
    pub until: u32,
    /// When the first one was.
    pub begin: Nanoseconds,
    /// When the last one was; `None` for the session's end.
    pub end: Option<Nanoseconds>,
}

impl KeptSpan {
    /// True when all that was live right after this change is kept.
    pub(crate) fn has_order(&self, order: u32) -> bool {
        self.from <= order && order <= self.until
    }

    /// True when all that was live at this time is kept. At a span's very end more may have begun that is not.
    pub(crate) fn has_time(&self, time: Nanoseconds) -> bool {
        self.begin <= time && self.end.is_none_or(|end| time < end)
    }
}

/// Which moments of a session are told allocation by allocation.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Kept {
    /// In order; the last one reaches to the session's end.
    pub spans: Vec<KeptSpan>,
    /// Allocations and blocks that were summed.
    pub summed: u64,
    /// From then on moments are told in figures alone: positions in the order of changes have come to their end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_since: Option<Nanoseconds>,
}

impl Kept {
    /// What ended by this change is gone as well.
    pub(crate) fn forget_before(&mut self, order: u32, time: Nanoseconds) {
        self.spans.retain(|span| span.until > order);
        for span in self.spans.iter_mut().filter(|span| span.from < order) {
            (span.from, span.begin) = (order, time);
        }
    }

    /// True when all that was live right after this change is kept.
    pub(crate) fn has_order(&self, order: u32) -> bool {
        order < LAST && self.spans.iter().any(|span| span.has_order(order))
    }

    /// True when all that was live at this time is kept.
    pub(crate) fn has_time(&self, time: Nanoseconds) -> bool {
        let stands = self.stands_since.is_some_and(|since| since <= time);
        !stands && self.spans.iter().any(|span| span.has_time(time))
    }
}

/// The moment of a largest value, in detail, when its allocations are not kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CarriedPeak {
    /// The device's position; `None` for host memory.
    pub device: Option<u16>,
    pub order: u32,
    pub time: Nanoseconds,
    pub snapshot: Snapshot,
}

/// All of it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Carried {
    /// As it stood when the last segment was summed.
    pub walk: Walk,
    pub peaks: Vec<CarriedPeak>,
    pub kept: Kept,
    /// What was learned since of what was counted.
    #[serde(skip)]
    pub late: Late,
}

impl Carried {
    /// The walk, with what was learned since put right. No more of the model has been walked.
    pub fn corrected(&self, model: &Model) -> Walk {
        let mut walk = self.walk.clone();
        if walk.is_mistaken(model) {
            walk.move_devices(model);
        }
        walk.correct(model, &mut self.late.clone());
        walk
    }
}

/// What a checkpoint is made of; borrowed where it is written.
#[derive(Serialize, Deserialize)]
pub(crate) struct CheckpointBody<M, C> {
    pub model: M,
    pub carried: C,
}

impl Model {
    /// Which moments are told allocation by allocation; `None` when all are.
    pub(crate) fn kept(&self) -> Option<&Kept> {
        self.carried.as_ref().map(|carried| &carried.kept)
    }

    /// True when all that was live right after this change is there.
    pub(crate) fn keeps(&self, order: u32) -> bool {
        self.kept().is_none_or(|kept| kept.has_order(order))
    }
}
