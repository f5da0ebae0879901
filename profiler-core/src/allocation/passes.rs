//! Forward passes of a framework that recorded a graph, and whether a backward pass came for what they kept.
//!
//! Owns: the rule by which one was not used: what it kept ended before any backward pass began. Refuses: to judge a single one
//! (`findings`), and passes whose few survivors may be their results: a frozen model returns some, and keeps nothing.
//!
//! A pass that records a graph keeps something in most modules until backward. What ends while no backward pass runs was kept for
//! nothing: an evaluation without `no_grad`. Passes that wait for one backward pass together (accumulated losses, the two networks of
//! a GAN) keep theirs until it begins. Where an optimizer steps and no backward pass was seen, one was missed: nothing is concluded.

use std::collections::{BTreeSet, VecDeque};

use memscope_wire::{Category, Origin};
use serde::{Deserialize, Serialize};

use super::inference::Role;
use super::model::Model;

/// Fewest passes in a row without a backward pass: one or two are a trial, or a step that was left out.
const FEWEST: u64 = 3;
/// Fewest bytes that a pass must keep.
const SMALLEST: u64 = 1 << 20;
/// Modules in which a pass must keep something: so many, and so large a part of those in which it made something.
const MODULES: (usize, usize) = (3, 3);
/// Percent of what a pass kept that must have ended.
const ENDED: u64 = 90;
/// Most passes in a row that are remembered while what they kept lives.
const MOST_WAITING: usize = 64;

/// Forward passes that no backward pass came for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Unused {
    /// How many.
    pub passes: u64,
    /// What the one kept that kept most.
    pub bytes: u64,
    /// Of that one: the innermost scope around all that it kept.
    pub scope: u32,
    /// And the innermost place in the program from which all of it was made.
    pub stack: u32,
}

impl Unused {
    fn add(&mut self, other: Unused) {
        let most = if other.bytes > self.bytes { other } else { *self };
        *self = Unused { passes: self.passes + other.passes, ..most };
    }
}

/// A pass that has ended, and whose graph waits.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Waiting {
    /// Numbers of its first allocation and of the first one after it.
    numbers: (u32, u32),
    kept: Unused,
    ended: u64,
}

/// The forward passes of a process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Passes {
    /// Scopes in which the running pass made something.
    made_in: BTreeSet<u32>,
    /// Those since the last backward pass.
    waiting: VecDeque<Waiting>,
    /// Those of them that turned out to be unused.
    in_a_row: Unused,
    unused: Unused,
}

impl Passes {
    /// What has become of all so far.
    pub fn unused(&self) -> Unused {
        let mut unused = self.unused;
        if self.in_a_row.passes >= FEWEST {
            unused.add(self.in_a_row);
        }
        unused
    }

    /// As a profile has it.
    pub fn put(&mut self, unused: Unused) {
        self.unused = unused;
    }

    /// A framework's block begins.
    pub fn made(&mut self, role: Role, scope: u32) {
        if role == Role::Forward {
            self.made_in.insert(scope);
        }
    }

    /// A backward pass begins: who waited has been waited for.
    fn followed(&mut self) {
        self.unused = self.unused();
        self.missed();
    }

    /// What comes after passes that waited says that memscope has missed something.
    fn missed(&mut self) {
        self.waiting.clear();
        self.in_a_row = Unused::default();
    }

    /// What was held for backward ends while no backward pass runs.
    pub fn ends_unused(&mut self, number: u32, bytes: u64) {
        let holds = |pass: &Waiting| (pass.numbers.0..pass.numbers.1).contains(&number);
        let Some(position) = self.waiting.iter().rposition(holds) else { return };
        let pass = &mut self.waiting[position];
        pass.ended = pass.ended.saturating_add(bytes);
        if u128::from(pass.ended) * 100 >= u128::from(pass.kept.bytes) * u128::from(ENDED) {
            self.in_a_row.add(pass.kept);
            self.waiting.remove(position);
        }
    }

    /// Gives the numbers that allocations have from now on.
    pub fn renumber(&mut self, now: impl Fn(u32) -> u32) {
        for pass in &mut self.waiting {
            pass.numbers = (now(pass.numbers.0), now(pass.numbers.1));
        }
    }
}

impl Model {
    /// One phase follows another; the first allocation of the earlier one has this number.
    pub(super) fn pass_follows(&mut self, process: usize, (was, began): (Role, u32), now: Role) {
        if was == Role::Forward && now != Role::Forward {
            self.pass_ends(process, began);
        }
        let passes = &mut self.processes[process].passes;
        match now {
            Role::Backward | Role::Recompute if !matches!(was, Role::Backward | Role::Recompute) => passes.followed(),
            Role::Optimizer => passes.missed(),
            _ => {}
        }
    }

    fn pass_ends(&mut self, process: usize, began: u32) {
        let next = self.allocations.len() as u32;
        let made_in = std::mem::take(&mut self.processes[process].passes.made_in);
        let held = self.lasting(process, began..next, |_, allocation| allocation.category == Category::Activations);
        let (mut kept, mut scopes) = (Unused { passes: 1, ..Unused::default() }, BTreeSet::new());
        for id in held {
            let allocation = &self.allocations[id.0 as usize];
            debug_assert_eq!(allocation.origin, Origin::Inferred);
            kept.bytes = kept.bytes.saturating_add(allocation.requested);
            let first = scopes.is_empty();
            scopes.insert(allocation.scope);
            kept.scope = if first { allocation.scope } else { self.scopes.around(kept.scope, allocation.scope) };
            kept.stack = if first { allocation.stack } else { self.stacks.around(kept.stack, allocation.stack) };
        }
        let graph = scopes.len() >= MODULES.0 && scopes.len() * MODULES.1 >= made_in.len();
        if kept.bytes < SMALLEST || !graph {
            return;
        }
        let waiting = &mut self.processes[process].passes.waiting;
        if waiting.len() == MOST_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(Waiting { numbers: (began, next), kept, ended: 0 });
    }
}
