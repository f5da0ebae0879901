//! Everything about one allocation, whenever it lived.
//!
//! Owns: finding it by what a list or a band says of it. Refuses: lists.

use crate::allocation::{Model, flag};
use crate::journal::entry::Nanoseconds;

use super::answer::AllocationRow;
use super::history::{History, Source};
use super::part::Positions;
use super::query::Pick;
use super::rows::{allocation_row, is_picked, pick};

/// One allocation.
#[derive(Clone, PartialEq, Debug)]
pub struct AllocationDetail {
    /// What the list of allocations says.
    pub row: AllocationRow,
    /// When it ended; `None` while it lives.
    pub death: Option<Nanoseconds>,
    /// True when its process ended with it.
    pub at_exit: bool,
    /// True when its context was destroyed or reset with it.
    pub with_context: bool,
    /// Phase at its birth; empty when there was none.
    pub phase: String,
    /// Thread at its birth.
    pub thread: u32,
    /// Number of its scope among the nodes of the tree of scopes.
    pub scope: u32,
    /// True for a container: what it holds is in its blocks.
    pub container: bool,
    /// The container around it: number and birth; `None` for what the driver gave itself.
    pub inside: Option<Pick>,
}

/// The allocation that is meant.
pub(super) fn find(
    history: &History,
    source: Source<'_>,
    positions: &Positions,
    pick: Pick,
) -> Option<AllocationDetail> {
    let after = history.last_before(source, pick.birth);
    let kept = |id: &u32| is_picked(source.model, *id, pick);
    let born = history.between(source, (after, u32::MAX)).take_while(|turn| turn.time <= pick.birth);
    let found = born.filter(|turn| !turn.ends).map(|turn| turn.id).find(kept);
    // What began before the changes that are kept, or was read late, is not among those of its time.
    let id = found.or_else(|| (0..source.walk.lifetimes.len() as u32).find(kept))?;
    Some(detail(source, positions, id))
}

fn detail(source: Source<'_>, positions: &Positions, id: u32) -> AllocationDetail {
    let model: &Model = source.model;
    let allocation = source.allocation(id);
    let inside = allocation.container().map(|container| container.0);
    AllocationDetail {
        row: allocation_row(source, positions, id, source.walk.walked.order),
        death: source.death(id),
        at_exit: source.death(id).is_some() && allocation.is(flag::AT_EXIT),
        with_context: source.death(id).is_some() && allocation.is(flag::WITH_CONTEXT),
        phase: model.names.text(allocation.phase),
        thread: allocation.thread,
        scope: allocation.scope,
        container: allocation.is(flag::CONTAINER),
        inside: inside.filter(|id| (*id as usize) < model.allocations.len()).map(|id| pick(model, id)),
    }
}
