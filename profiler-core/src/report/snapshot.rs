//! One moment in detail: which scopes and allocations hold the bytes.
//!
//! Owns: grouping and choosing, the same for a live model and for a profile. Refuses: to know where the rows come from.

use std::collections::{BTreeSet, HashMap};

use memscope_wire::{Category, Origin};

use crate::journal::entry::Nanoseconds;
use crate::ledger::CATEGORIES;
use crate::timeline::{SampleRows, State};

use super::group::{Groups, together};
use super::{ByCategory, LargeAllocation, Ledger, Rows, ScopeGroup, Snapshot, seconds};

/// How many scopes and allocations a snapshot names.
pub(super) const TOP: usize = 20;

/// One live allocation, with numbers in place of text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// Position in the order of births.
    pub birth: u32,
    pub time: Nanoseconds,
    pub address: u64,
    pub requested: u64,
    pub category: Category,
    pub origin: Origin,
    pub name: u32,
    pub scope: u32,
    pub function: u32,
    /// Where in the program it was made: a node of the tree of stacks, the same for the same line.
    pub site: u32,
    pub step: Option<u64>,
    pub process: u32,
}

/// Gives the text of numbers.
pub(crate) trait Words {
    /// A name; empty for the absent one.
    fn name(&self, number: u32) -> String;
    /// A scope's path.
    fn scope(&self, node: u32) -> String;
    /// A place in the program; empty for nowhere.
    fn line(&self, node: u32) -> String;
    /// A process's id.
    fn pid(&self, process: u32) -> u32;
}

/// Collects the largest scopes and allocations.
#[derive(Debug, Default)]
pub(crate) struct Tops {
    scopes: HashMap<u32, Sum>,
    groups: Groups,
    /// By size, then by later birth first, so that the first element is the first to go.
    largest: BTreeSet<(u64, std::cmp::Reverse<u32>)>,
    held: HashMap<u32, Held>,
}

/// Live bytes of one scope.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    bytes: u64,
    allocations: u64,
    live: [u64; CATEGORIES],
}

impl Tops {
    pub fn add(&mut self, held: Held) {
        let mut live = [0; CATEGORIES];
        live[held.category as usize] = held.requested;
        let sum = self.scopes.entry(held.scope).or_default();
        *sum = sum.and(Sum { bytes: held.requested, allocations: 1, live });
        self.groups.add((held.name, held.scope, held.function), held.category, held.requested);
        self.groups.made_at((held.name, held.scope, held.function), (held.category, held.requested), held.site);
        let key = (held.requested, std::cmp::Reverse(held.birth));
        if self.largest.len() == TOP {
            if self.largest.first().is_some_and(|smallest| key < *smallest) {
                return;
            }
            if let Some((_, birth)) = self.largest.pop_first() {
                self.held.remove(&birth.0);
            }
        }
        self.largest.insert(key);
        self.held.insert(held.birth, held);
    }

    fn scopes(&self, words: &impl Words) -> Vec<ScopeGroup> {
        let mut sums: Vec<(u32, Sum)> = self.scopes.iter().map(|(scope, sum)| (*scope, *sum)).collect();
        sums.sort_by_key(|(scope, sum)| (std::cmp::Reverse(sum.bytes), *scope));
        sums.into_iter().take(TOP).map(|(scope, sum)| sum.of(words.scope(scope))).collect()
    }

    fn scope_groups(&self, words: &impl Words) -> Vec<ScopeGroup> {
        let texts = self.scopes.iter().map(|(scope, sum)| (words.scope(*scope), (), *sum));
        let mut groups: Vec<ScopeGroup> = together(texts, Sum::and).map(|(scope, (), sum)| sum.of(scope)).collect();
        groups.sort_by(|a, b| (b.bytes, &a.scope).cmp(&(a.bytes, &b.scope)));
        groups.truncate(TOP);
        groups
    }

    fn allocations(&self, words: &impl Words) -> Vec<LargeAllocation> {
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let held = self.largest.iter().rev().filter_map(|(_, birth)| self.held.get(&birth.0));
        held.map(|held| LargeAllocation {
            name: some(words.name(held.name)),
            category: held.category.name().to_owned(),
            origin: held.origin.name().to_owned(),
            bytes: held.requested,
            scope: words.scope(held.scope),
            step: held.step,
            time_s: seconds(held.time),
            function: some(words.name(held.function)),
            line: some(words.line(held.site)),
            pid: words.pid(held.process),
            address: held.address,
        })
        .collect()
    }
}

impl Sum {
    fn and(self, more: Sum) -> Sum {
        let mut live = self.live;
        for (live, more) in live.iter_mut().zip(more.live) {
            *live = live.wrapping_add(more);
        }
        let allocations = self.allocations + more.allocations;
        Sum { bytes: self.bytes.wrapping_add(more.bytes), allocations, live }
    }

    fn of(&self, scope: String) -> ScopeGroup {
        let by_category = ByCategory::from_numbers(self.live);
        ScopeGroup { scope, bytes: self.bytes, allocations: self.allocations, by_category }
    }
}

/// What a snapshot is made of, besides its rows.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    /// UUID of the device.
    pub device: String,
    pub state: State,
    pub phase: String,
    pub scope: Option<String>,
    pub sample: Option<SampleRows>,
}

impl Moment {
    pub fn snapshot(self, tops: &Tops, words: &impl Words) -> Snapshot {
        Snapshot {
            device: self.device,
            of: "live".to_owned(),
            bytes: self.state.rows.live_bytes(),
            time_s: seconds(self.state.time),
            step: self.state.step,
            phase: Some(self.phase).filter(|phase| !phase.is_empty()),
            scope: self.scope,
            by_category: ByCategory::from_numbers(self.state.rows.live),
            ledger: Ledger::of(&self.state, self.sample.as_ref()),
            top_groups: tops.groups.largest(words),
            top_scope_groups: tops.scope_groups(words),
            top_scopes: tops.scopes(words),
            top_allocations: tops.allocations(words),
        }
    }
}

impl Ledger {
    /// The ledger of a state, with the device rows of a sample.
    pub(crate) fn of(state: &State, sample: Option<&SampleRows>) -> Ledger {
        Ledger {
            time_s: seconds(state.time),
            rows: Rows::from(&state.rows),
            managed: Rows::from(&state.managed),
            device: sample.map(|sample| (&sample.rows).into()),
        }
    }
}
