//! The list of live allocations: filtered, sorted or grouped, and the window of it that is shown.
//!
//! Owns: order and grouping. Refuses: to make text of more rows than are shown.

use std::collections::HashMap;

use crate::allocation::{Allocation, Model, Sites};
use crate::journal::entry::Nanoseconds;
use crate::ledger::CATEGORIES;
use crate::report::{Groups, Together, units};

use super::answer::{AllocationRow, GroupRow, Row, RowsView};
use super::filter::{Filter, label, step_of};
use super::history::Source;
use super::live::Live;
use super::part::{Positions, birth_time};
use super::query::{Column, Grouping, Pick, RowsQuery};
use super::stacks;

/// Rows that are sorted at once; those behind them are when somebody looks at them.
const HEAD: usize = 1 << 12;

/// A list, as far as it was asked for.
#[derive(Debug)]
pub(super) struct RowList {
    as_of: Nanoseconds,
    /// Right after this change.
    order: u32,
    total: (usize, u64),
    matching: (usize, u64),
    filter_error: Option<String>,
    content: Content,
    /// What was looked for last, and where it is.
    found: Option<(Pick, Option<usize>)>,
}

#[derive(Debug)]
enum Content {
    /// Sort key and number of each; of these so many are in order.
    Allocations(Vec<(u64, u32)>, usize),
    Groups(Vec<GroupRow>),
}

impl RowList {
    /// Makes the list.
    pub fn of(live: &Live<'_>, positions: &Positions, query: &RowsQuery) -> RowList {
        let (filter, filter_error) = Filter::or_all(&query.filter);
        let prepared = filter.prepare(live.model);
        let all = filter.is_empty();
        let (mut total, mut matching) = ((0, 0u64), (0, 0u64));
        let count = |sum: &mut (usize, u64), bytes: u64| *sum = (sum.0 + 1, sum.1.wrapping_add(bytes));
        let rows = live.allocations().filter(|(_, allocation)| allocation.is_leaf()).filter(|(_, allocation)| {
            count(&mut total, allocation.requested);
            let lets = all || prepared.lets(allocation);
            if lets {
                count(&mut matching, allocation.requested);
            }
            lets
        });
        let content = match query.group {
            Some(Grouping::Name) => Content::Groups(named_groups(live.model, rows, query)),
            Some(grouping) => Content::Groups(groups(live.model, rows, grouping, query)),
            None => Content::Allocations(keys(live.model, positions, rows, query), 0),
        };
        RowList { as_of: live.time, order: live.order, total, matching, filter_error, content, found: None }
    }

    /// The rows of a window, and the place of what is looked for.
    pub fn view(&mut self, source: Source<'_>, positions: &Positions, query: &RowsQuery) -> RowsView {
        let (model, order) = (source.model, self.order);
        let (window, found) = (&query.window, query.find.map(|pick| (pick, self.find(model, pick))));
        let matching = match &self.content {
            Content::Allocations(keys, _) => keys.len(),
            Content::Groups(groups) => groups.len(),
        };
        let first = window.start.min(matching);
        let window = first..window.end.clamp(first, matching);
        let rows = match &mut self.content {
            Content::Allocations(keys, sorted) => {
                sort_until(keys, sorted, window.end);
                let row = |(_, id): &(u64, u32)| Row::Allocation(allocation_row(source, positions, *id, order));
                keys[window].iter().map(row).collect()
            }
            Content::Groups(groups) => groups[window].iter().cloned().map(Row::Group).collect(),
        };
        RowsView {
            as_of: self.as_of,
            total: self.total.0,
            total_bytes: self.total.1,
            matching,
            matching_allocations: self.matching.0,
            matching_bytes: self.matching.1,
            shares_of: self.matching.1,
            filter_error: self.filter_error.clone(),
            found,
            first,
            rows,
        }
    }

    /// Where an allocation is in the order: so many come before it.
    fn find(&mut self, model: &Model, pick: Pick) -> Option<usize> {
        let Content::Allocations(keys, _) = &self.content else { return None };
        let (_, found) = self.found.filter(|(known, _)| *known == pick).unwrap_or_else(|| {
            let here = keys.iter().find(|(_, id)| is_picked(model, *id, pick));
            (pick, here.map(|here| keys.iter().filter(|other| *other < here).count()))
        });
        self.found = Some((pick, found));
        found
    }
}

/// Puts the first ones in order, or all of them when more than the head is wanted.
fn sort_until(keys: &mut [(u64, u32)], sorted: &mut usize, end: usize) {
    if end <= *sorted {
        return;
    }
    if end <= HEAD && HEAD < keys.len() / 4 {
        let (head, _, _) = keys.select_nth_unstable(HEAD);
        head.sort_unstable();
        *sorted = HEAD;
    } else {
        keys.sort_unstable();
        *sorted = keys.len();
    }
}

/// Sort keys, the smallest first: of equals the largest allocation first, then the oldest.
fn keys<'m>(
    model: &Model,
    positions: &Positions,
    rows: impl Iterator<Item = (u32, &'m Allocation)>,
    query: &RowsQuery,
) -> Vec<(u64, u32)> {
    /// Sizes behind a rank: up to a tebibyte they count exactly.
    const SIZE_BITS: u32 = 40;
    let ranks = match query.sort {
        Column::Name => ranks(model.names.len(), |name| model.names.text(name)),
        Column::Scope => ranks(model.scopes.len(), |scope| model.scopes.path(scope, &model.names)),
        Column::Line => ranks(model.stacks.len(), |node| model.stacks.text(node, &model.names)),
        _ => Vec::new(),
    };
    let sites = match query.sort {
        Column::Line => Sites::of(&model.stacks, &model.names),
        _ => Sites::default(),
    };
    let descending = query.descending;
    let turn = |value: u64, bits: u32| if descending { !value & (u64::MAX >> (64 - bits)) } else { value };
    let ranked = |rank: u64, size: u64| {
        let most = (1 << SIZE_BITS) - 1;
        turn(rank.min((1 << (64 - SIZE_BITS)) - 1), 64 - SIZE_BITS) << SIZE_BITS | (most - size.min(most))
    };
    let rank = |number: u32| ranks.get(number as usize).copied().unwrap_or_default();
    let key = |allocation: &Allocation| match query.sort {
        Column::Size | Column::Count => turn(allocation.requested, 64),
        Column::Granted => turn(allocation.bytes, 64),
        Column::Address => turn(allocation.address, 64),
        Column::Line => ranked(rank(sites.site(allocation.stack)), allocation.requested),
        Column::Device => {
            let device = positions.number(allocation).map_or(0, |number| u64::from(number) + 1);
            ranked(device, allocation.requested)
        }
        Column::Process => {
            let process = model.processes[allocation.process as usize].info.pid;
            ranked(u64::from(process), allocation.requested)
        }
        Column::Category => ranked(allocation.category as u64, allocation.requested),
        Column::Origin => ranked(allocation.origin as u64, allocation.requested),
        Column::Name => ranked(rank(label(allocation)), allocation.requested),
        Column::Scope => ranked(rank(allocation.scope), allocation.requested),
        Column::Age => turn(birth_time(model, allocation).0, 64),
        // Before the first step comes before step 0.
        Column::Step => turn(step_of(model, allocation).map_or(0, |step| step.saturating_add(1)), 64),
        Column::Stream => turn(model.streams.value(allocation.stream), 64),
    };
    rows.map(|(id, allocation)| (key(allocation), id)).collect()
}

/// Places in the alphabet, by number; equal texts have equal ranks.
fn ranks(count: usize, text: impl Fn(u32) -> String) -> Vec<u64> {
    let mut texts: Vec<(String, u32)> = (0..count as u32).map(|number| (text(number), number)).collect();
    texts.sort_unstable();
    let mut ranks = vec![0; count];
    let mut rank = 0;
    for (position, (text, number)) in texts.iter().enumerate() {
        if position > 0 && texts[position - 1].0 != *text {
            rank += 1;
        }
        ranks[*number as usize] = rank;
    }
    ranks
}

/// What rows have in common, as a number.
fn group_of(allocation: &Allocation, grouping: Grouping, sites: &Sites) -> u64 {
    match grouping {
        Grouping::Line => u64::from(sites.site(allocation.stack)),
        Grouping::Name | Grouping::Scope => u64::from(allocation.scope),
        Grouping::Size => allocation.requested,
        Grouping::Category => allocation.category as u64,
    }
}

/// The groups of the report, all of them.
fn named_groups<'m>(
    model: &Model,
    rows: impl Iterator<Item = (u32, &'m Allocation)>,
    query: &RowsQuery,
) -> Vec<GroupRow> {
    let mut sums = Groups::default();
    for (_, allocation) in rows {
        let labels = (allocation.name, allocation.scope, allocation.function);
        sums.add(labels, allocation.category, allocation.requested);
    }
    let mut groups: Vec<Together> = sums.every(model).collect();
    groups.sort_unstable_by(|group, other| {
        let order = match query.sort {
            Column::Name => group.label.cmp(&other.label),
            Column::Count => group.allocations.cmp(&other.allocations),
            _ => group.bytes.cmp(&other.bytes),
        };
        let order = if query.descending { order.reverse() } else { order };
        // Labels may be alike: of another category, or of another size that is written alike.
        let rest = |group: &Together| (std::cmp::Reverse(group.bytes), group.category.name(), group.allocations);
        order.then_with(|| group.label.cmp(&other.label)).then_with(|| rest(group).cmp(&rest(other)))
    });
    let row = |group: Together| {
        let mut live = [0; CATEGORIES];
        live[group.category as usize] = group.bytes;
        GroupRow { label: group.label, name: group.name, allocations: group.allocations, live }
    };
    groups.into_iter().map(row).collect()
}

fn groups<'m>(
    model: &Model,
    rows: impl Iterator<Item = (u32, &'m Allocation)>,
    grouping: Grouping,
    query: &RowsQuery,
) -> Vec<GroupRow> {
    let mut sums: HashMap<u64, (u64, [u64; CATEGORIES])> = HashMap::new();
    let sites = match grouping {
        Grouping::Line => Sites::of(&model.stacks, &model.names),
        _ => Sites::default(),
    };
    for (_, allocation) in rows {
        let (count, live) = sums.entry(group_of(allocation, grouping, &sites)).or_default();
        *count += 1;
        let bytes = &mut live[allocation.category as usize];
        *bytes = bytes.wrapping_add(allocation.requested);
    }
    let label = |key: u64| match grouping {
        Grouping::Name | Grouping::Scope => model.scopes.path(key as u32, &model.names),
        Grouping::Line => model.stacks.text(key as u32, &model.names),
        Grouping::Size => units::bytes(key),
        Grouping::Category => memscope_wire::Category::from_number(key as u8).name().to_owned(),
    };
    let bytes = |live: &[u64; CATEGORIES]| live.iter().fold(0u64, |sum, bytes| sum.wrapping_add(*bytes));
    let mut groups: Vec<(u64, GroupRow)> = sums
        .into_iter()
        .map(|(key, (allocations, live))| (key, GroupRow { label: label(key), name: None, allocations, live }))
        .collect();
    // By what they have in common where the column shows that; else by size.
    let by_label = matches!(
        (grouping, query.sort),
        (Grouping::Scope | Grouping::Line, Column::Scope | Column::Line | Column::Name)
            | (Grouping::Category, Column::Category)
    );
    groups.sort_unstable_by(|(key, group), (other_key, other)| {
        let order = match grouping {
            _ if query.sort == Column::Count => group.allocations.cmp(&other.allocations),
            _ if !by_label => bytes(&group.live).cmp(&bytes(&other.live)),
            Grouping::Scope | Grouping::Line => group.label.cmp(&other.label),
            _ => key.cmp(other_key),
        };
        let order = if query.descending { order.reverse() } else { order };
        order.then_with(|| group.label.cmp(&other.label)).then_with(|| key.cmp(other_key))
    });
    groups.into_iter().map(|(_, group)| group).collect()
}

/// An allocation as a list shows it that is of the moment right after a change.
pub(super) fn allocation_row(source: Source<'_>, positions: &Positions, id: u32, order: u32) -> AllocationRow {
    let model = source.model;
    let allocation = &model.allocations[id as usize];
    AllocationRow {
        id: identity(allocation),
        bytes: allocation.requested,
        granted: allocation.bytes,
        category: allocation.category,
        origin: allocation.origin,
        name: model.names.text(allocation.name),
        function: model.names.text(allocation.function),
        scope: model.scopes.path(allocation.scope, &model.names),
        site: site(model, allocation.stack),
        stack: stacks::lines(model, allocation.stack),
        birth: birth_time(model, allocation),
        step: step_of(model, allocation),
        stream: model.streams.value(allocation.stream),
        memory: allocation.memory,
        pid: model.processes[allocation.process as usize].info.pid,
        device: positions.shown(allocation),
        address: allocation.address,
        outlived: source.outlived(id, order),
    }
}

/// How a view means an allocation.
pub(super) fn pick(model: &Model, id: u32) -> Pick {
    let allocation = &model.allocations[id as usize];
    Pick { id: identity(allocation), birth: birth_time(model, allocation) }
}

/// True for the allocation that is meant.
pub(super) fn is_picked(model: &Model, id: u32, pick: Pick) -> bool {
    let allocation = &model.allocations[id as usize];
    birth_time(model, allocation) == pick.birth && identity(allocation) == pick.id
}

/// The site of one stack, as [`Sites`] of all has it.
fn site(model: &Model, stack: u32) -> String {
    let mut lines =
        model.stacks.outwards(stack).filter(|(_, node)| node.file != 0).map(|(number, _)| number).peekable();
    let innermost = lines.peek().copied().unwrap_or_default();
    let own = lines.find(|number| model.stacks.is_own(*number, &model.names));
    model.stacks.text(own.unwrap_or(innermost), &model.names)
}

/// Tells an allocation from all others, whatever the model has forgotten: nothing else began at this address, in this process,
/// at this tick, and is a leaf. 64 bits of a hash: of a million at once, two are alike once in 30 million sessions.
fn identity(allocation: &Allocation) -> u64 {
    let mut hash = 0x9e37_79b9_7f4a_7c15_u64;
    for part in [allocation.address, allocation.birth_ticks, u64::from(allocation.process)] {
        // The mixing of splitmix64, by Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
        hash = (hash ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
    }
    hash
}
