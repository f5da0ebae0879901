//! Makes the view: chooses, lays out, and sums up the rest.
//!
//! Owns: which allocations may be drawn, and their facts. Refuses: where they lie (`stack`, `address`).

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use crate::allocation::{Allocation, Model};
use crate::journal::entry::Nanoseconds;
use crate::report::pattern;

use super::super::filter::Filter;
use super::super::history::{History, Source, choose};
use super::super::listed::Listed;
use super::super::part::{Part, Positions};
use super::super::query::{BandOrder, BandsQuery};
use super::super::rows::pick;
use super::super::window::Ruler;
use super::{Band, BandScope, BandsView, address, rest, stack};

/// What a layout is made from.
pub(super) struct Chosen<'m> {
    pub source: Source<'m>,
    pub positions: &'m Positions,
    pub range: Range<Nanoseconds>,
    /// After the first position, until the second.
    pub orders: (u32, u32),
    pub part: Part,
    pub listed: Option<&'m Listed>,
    /// In the order of births.
    pub ids: Vec<u32>,
    pub ruler: Ruler,
}

/// Makes the view of a part.
pub(in crate::explorer) fn view(
    history: &mut History,
    source: Source<'_>,
    positions: &Positions,
    (part, listed, last): (Part, Option<&Listed>, Nanoseconds),
    query: &BandsQuery,
) -> BandsView {
    // Nothing is known of what comes after the last moment.
    let end = query.range.end.min(Nanoseconds(last.0.saturating_add(1)));
    let range = query.range.start..end.max(query.range.start);
    let (filter, filter_error) = Filter::or_all(&query.filter);
    let mut view = BandsView { range: query.range.clone(), order: query.order, filter_error, ..BandsView::default() };
    if range.is_empty() {
        return view;
    }
    let sums = history.sums(source, part);
    let after = history.last_before(source, Nanoseconds(range.start.0.saturating_add(1)));
    let until = history.last_before(source, range.end).max(after);
    let (before, births_before) = sums.at(history, source, after);
    let (_, births) = sums.at(history, source, until);
    view.alive = before.allocations.wrapping_add(births - births_before);
    let prepared = (!filter.is_empty()).then(|| filter.prepare(source.model));
    let may = |allocation: &Allocation| {
        allocation.is_leaf()
            && allocation.requested >= query.least_bytes
            && part.counts(source.model, allocation)
            && prepared.as_ref().is_none_or(|prepared| prepared.lets(allocation))
    };
    let limit = query.limit.min(BandsQuery::MOST);
    let ids = choose(history, source, (&range, (after, until)), limit, may);
    let ruler = Ruler::of(&range, query.columns);
    let chosen = Chosen { source, positions, range, orders: (after, until), part, listed, ids, ruler };
    view.bands = chosen.ids.iter().map(|id| chosen.band(*id, query.order)).collect();
    view.scopes = scopes(source.model, &view.bands);
    match query.order {
        BandOrder::Stacked => stack::lay(&chosen, &mut view),
        BandOrder::Address => address::lay(history, &chosen, &mut view),
    }
    rest::sum(history, &sums, &chosen, &mut view);
    if query.order == BandOrder::Stacked {
        let top = |rest: &super::Rest| rest.drawn.saturating_add(rest.bytes());
        view.height = view.height.max(view.rest.iter().map(top).max().unwrap_or(0));
    }
    view
}

/// The scopes of bands, by number.
fn scopes(model: &Model, bands: &[Band]) -> Vec<BandScope> {
    let numbers: BTreeSet<u32> = bands.iter().map(|band| band.scope).collect();
    let mut scopes: Vec<BandScope> = Vec::with_capacity(numbers.len());
    let mut same: HashMap<String, usize> = HashMap::new();
    for id in numbers {
        let path = model.scopes.path(id, &model.names);
        let alike = pattern(&path);
        *same.entry(alike.clone()).or_default() += 1;
        scopes.push(BandScope { id, path, alike });
    }
    for scope in scopes.iter_mut().filter(|scope| same[&scope.alike] == 1) {
        scope.alike.clone_from(&scope.path);
    }
    scopes
}

impl Chosen<'_> {
    /// What of an allocation's life lies within the range.
    pub fn span(&self, id: u32) -> (Nanoseconds, Nanoseconds) {
        let death = self.source.death(id).unwrap_or(self.range.end);
        (self.source.birth(id).max(self.range.start), death.min(self.range.end))
    }

    fn band(&self, id: u32, order: BandOrder) -> Band {
        let allocation = self.source.allocation(id);
        let (begin, end) = self.span(id);
        Band {
            pick: pick(self.source.model, id),
            begin,
            end,
            death: self.source.death(id),
            bytes: allocation.requested,
            granted: allocation.bytes,
            name: self.source.model.names.text(allocation.name),
            height: if order == BandOrder::Stacked { allocation.requested } else { allocation.bytes },
            category: allocation.category,
            origin: allocation.origin,
            scope: allocation.scope,
            size_class: allocation.requested.checked_ilog2().unwrap_or(0) as u8,
            process: allocation.process,
            device: self.positions.shown(allocation),
            address: allocation.address,
            outlived: self.source.outlived(id, self.source.walk.walked.order),
            points: 0..0,
        }
    }
}
