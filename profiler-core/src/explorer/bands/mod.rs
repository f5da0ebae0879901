//! Memory over time: allocations as bands.
//!
//! Owns: the shapes, and what lies where in them. Refuses: colours and pixels, and to choose (`history`).

mod address;
mod make;
mod rest;
mod stack;

use std::ops::Range;

use memscope_wire::{Category, Origin};

use crate::findings::held_by;
use crate::journal::entry::Nanoseconds;
use crate::ledger::CATEGORIES;

use super::answer::STACKED;
use super::listed::Partial;
use super::query::{BandOrder, Pick};

pub(super) use make::view;

/// Allocations of device memory of the target as bands over time. Those that are drawn and those that are summed up make live
/// bytes together, at every moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BandsView {
    /// The moment until which changes are in it.
    pub as_of: Nanoseconds,
    /// The span that was asked for.
    pub range: Range<Nanoseconds>,
    /// How they lie.
    pub order: BandOrder,
    /// The allocations that are drawn, in the order of their births.
    pub bands: Vec<Band>,
    /// Where bands lie from a time on, until the next of the same band: (time, offset in bytes).
    pub points: Vec<(Nanoseconds, u64)>,
    /// What is live and not drawn, from a time on; in [`BandOrder::Stacked`] it lies on top of all bands.
    pub rest: Vec<Rest>,
    /// True when each change of the rest is told: it stays until the next one. Else each tells of the moment in its column at
    /// which live bytes were largest.
    pub rest_exact: bool,
    /// How many allocations live within the range at all.
    pub alive: u64,
    /// Largest offset at which a band or the rest ends.
    pub height: u64,
    /// In [`BandOrder::Address`]: the spans of addresses that are shown, one on another.
    pub axis: Vec<AddressSpan>,
    /// In [`BandOrder::Address`]: the containers, largest first.
    pub segments: Vec<SegmentBand>,
    /// How many more containers live within the range.
    pub segments_hidden: usize,
    /// The scopes of the bands, by number.
    pub scopes: Vec<BandScope>,
    /// What is wrong with the filter, as a sentence; it then lets everything through.
    pub filter_error: Option<String>,
    /// How much can be drawn, at the moment of the range at which least of what was live can; `None` where all can. The rest is in
    /// [`BandsView::rest`] without a band.
    pub partial: Option<Partial>,
}

/// One allocation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Band {
    /// Its number, as in [`super::AllocationRow`], and when it was made.
    pub pick: Pick,
    /// Where its band begins: its birth, or the beginning of the range.
    pub begin: Nanoseconds,
    /// Where its band ends: its death, or the end of the range.
    pub end: Nanoseconds,
    /// When it ended; `None` while it lives.
    pub death: Option<Nanoseconds>,
    /// Bytes asked for.
    pub bytes: u64,
    /// Bytes granted.
    pub granted: u64,
    /// Height of its band: bytes asked for when stacked, bytes granted by address.
    pub height: u64,
    /// Name from its tag; empty when there is none.
    pub name: String,
    /// What it is for.
    pub category: Category,
    /// How that is known.
    pub origin: Origin,
    /// Number of its scope: [`super::ScopeNode::id`], and [`BandScope::id`].
    pub scope: u32,
    /// The size class of its bytes: n for sizes from 2ⁿ bytes on.
    pub size_class: u8,
    /// Position of its process among the answer's.
    pub process: u32,
    /// Position of its device among the answer's.
    pub device: Option<u16>,
    /// Address in its process.
    pub address: u64,
    /// How many steps have begun and ended while it lived, by its end, or by now.
    pub outlived: u64,
    /// Its points in [`BandsView::points`]; the first is at its begin.
    pub points: Range<u32>,
}

impl Band {
    /// Who needs it, in words.
    pub fn held_by(&self) -> String {
        held_by(self.category, self.origin, self.outlived)
    }
}

/// A scope in which bands were made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BandScope {
    /// Its number.
    pub id: u32,
    /// Names from the outermost scope on, joined by `/`; empty outside all scopes.
    pub path: String,
    /// The same for all scopes of bands whose names differ only in numbers, with `*` for these (the layers of a model); else the
    /// path.
    pub alike: String,
}

/// What is live and not drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rest {
    /// When.
    pub time: Nanoseconds,
    /// Live bytes of the bands: where the rest begins in [`BandOrder::Stacked`].
    pub drawn: u64,
    /// Live bytes of all others by category.
    pub live: [u64; CATEGORIES],
    /// How many those are.
    pub allocations: u64,
}

impl Rest {
    /// Bytes of all categories.
    pub fn bytes(&self) -> u64 {
        self.live.iter().fold(0, |sum, bytes| sum.wrapping_add(*bytes))
    }
}

/// A span of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressSpan {
    /// Position of the process among the answer's.
    pub process: u32,
    /// Its first address.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Where it begins on the axis.
    pub offset: u64,
}

/// A container over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentBand {
    /// Which.
    pub pick: Pick,
    /// Where it begins: its birth, or the beginning of the range.
    pub begin: Nanoseconds,
    /// Where it ends: its death, or the end of the range.
    pub end: Nanoseconds,
    /// Its bytes.
    pub bytes: u64,
    /// Where it lies on the axis.
    pub offset: u64,
    /// Position of its device among the answer's.
    pub device: Option<u16>,
}

/// What lies at a point of the picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hit {
    /// A band: its position among [`BandsView::bands`].
    Band(usize),
    /// What is summed up, of this category.
    Rest(Category),
}

impl BandsView {
    /// How many allocations within the range are not drawn themselves.
    pub fn merged(&self) -> u64 {
        self.alive.saturating_sub(self.bands.len() as u64)
    }

    /// True when something that is live is not drawn itself.
    pub fn has_rest(&self) -> bool {
        self.merged() > 0 || self.partial.is_some()
    }

    /// The scope of a band.
    pub fn scope(&self, band: &Band) -> Option<&BandScope> {
        let at = self.scopes.binary_search_by_key(&band.scope, |scope| scope.id).ok()?;
        self.scopes.get(at)
    }

    /// Where a band lies at a time: of the last point at or before it.
    pub fn offset(&self, band: &Band, time: Nanoseconds) -> Option<u64> {
        if time < band.begin || time >= band.end {
            return None;
        }
        let points = self.points.get(band.points.start as usize..band.points.end as usize)?;
        let after = points.partition_point(|(begin, _)| *begin <= time);
        points.get(after.checked_sub(1)?).map(|(_, offset)| *offset)
    }

    /// What is not drawn at a time.
    pub fn rest_at(&self, time: Nanoseconds) -> Option<&Rest> {
        let after = self.rest.partition_point(|rest| rest.time <= time);
        self.rest.get(after.saturating_sub(1))
    }

    /// What lies at a time and an offset.
    pub fn hit(&self, time: Nanoseconds, offset: u64) -> Option<Hit> {
        let lies = |band: &Band| {
            let begin = self.offset(band, time);
            begin.is_some_and(|begin| (begin..begin.saturating_add(band.height)).contains(&offset))
        };
        if let Some(band) = self.bands.iter().position(lies) {
            return Some(Hit::Band(band));
        }
        if self.order == BandOrder::Address {
            return None;
        }
        let rest = self.rest_at(time)?;
        let mut top = rest.drawn;
        STACKED.into_iter().filter(|_| offset >= rest.drawn).find_map(|category| {
            top = top.wrapping_add(rest.live[category as usize]);
            (offset < top).then_some(Hit::Rest(category))
        })
    }
}
