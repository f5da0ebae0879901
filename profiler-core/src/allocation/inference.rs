//! What a framework's tensors are for, where nobody said: concluded from the phases in which they begin and end.
//!
//! Owns: the rules, for blocks and CPU tensors that a framework hook reported, and for what a program without a framework takes in a
//! pass that an NVTX range names. Refuses: other allocations of the driver and blocks of the C API, whose programs speak for
//! themselves, and to overrule a tag: it comes later, or not at all.
//!
//! | begins in | is held to be | until |
//! | --- | --- | --- |
//! | model | weights | |
//! | data | inputs | it outlives two whole steps: then it is unknown |
//! | forward | activations | it ends before a backward pass began: then it was workspace |
//! | loss | activations | the same; or it outlives two whole steps, or the program ends and no backward pass came: then it is unknown |
//! | recompute | activations | it ends before the phase does: then it was workspace |
//! | inference (a forward pass that records no gradients) | workspace | |
//! | backward | workspace | |
//! | optimizer | workspace | the phase ends and it lives: then it is the optimizer's |
//!
//! In any other phase it is unknown. What lives when the framework gives up for want of memory stays what it is held to be.

use std::ops::Range;

use memscope_wire::{Category, Origin, TextId};

use serde::{Deserialize, Serialize};

use super::model::{Changes, Model};
use super::row::{Allocation, AllocationId};

/// The phase in which a framework's interpreter ends.
pub(crate) const EXIT: TextId = TextId::of(b"exit");

/// Phases that mean something here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) enum Role {
    #[default]
    Other,
    Model,
    Data,
    Forward,
    Loss,
    Inference,
    Recompute,
    Backward,
    Optimizer,
    Exit,
}

impl Role {
    /// The role of the phase with this name.
    pub fn of(name: TextId) -> Role {
        const ROLES: [(TextId, Role); 9] = [
            (TextId::of(b"model"), Role::Model),
            (TextId::of(b"data"), Role::Data),
            (TextId::of(b"forward"), Role::Forward),
            (TextId::of(b"loss"), Role::Loss),
            (TextId::of(b"inference"), Role::Inference),
            (TextId::of(b"recompute"), Role::Recompute),
            (TextId::of(b"backward"), Role::Backward),
            (TextId::of(b"optimizer"), Role::Optimizer),
            (EXIT, Role::Exit),
        ];
        ROLES.iter().find(|(known, _)| *known == name).map_or(Role::Other, |(_, role)| *role)
    }

    /// The same of its text.
    pub fn named(name: &str) -> Role {
        Role::of(TextId::of(name.as_bytes()))
    }

    fn in_backward(self) -> bool {
        matches!(self, Role::Backward | Role::Recompute)
    }

    /// What begins in this phase.
    fn category(self) -> Category {
        match self {
            Role::Other | Role::Exit => Category::Unknown,
            Role::Model => Category::Weights,
            Role::Data => Category::Inputs,
            Role::Forward | Role::Loss | Role::Recompute => Category::Activations,
            Role::Inference | Role::Backward | Role::Optimizer => Category::Workspace,
        }
    }
}

/// What a process's phases have come to.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Phases {
    /// The phase that runs.
    now: Role,
    /// Number of the first allocation since it began.
    began: u32,
    /// Number of the first allocation since a backward pass was left, its recomputations included.
    after_backward: u32,
    /// Number of the first allocation since memory ran out: what was there keeps its category, since the error, and no end of a
    /// computation, makes an end of it.
    refused: u32,
    /// Numbers of the first allocation since the last step began, and since the one before.
    steps: [u32; 2],
    /// The name of the phase loss, once there was one.
    loss: Option<u32>,
}

impl Phases {
    /// Of the phase that runs.
    pub fn role(&self) -> Role {
        self.now
    }

    /// Memory ran out; the next allocation has this number.
    pub fn run_out(&mut self, next: u32) {
        self.refused = next;
    }

    /// Gives the numbers that allocations have from now on.
    pub fn renumber(&mut self, now: impl Fn(u32) -> u32) {
        self.began = now(self.began);
        self.after_backward = now(self.after_backward);
        self.refused = now(self.refused);
        self.steps = self.steps.map(&now);
    }
}

impl Model {
    /// What a framework's tensor is held to be that begins now.
    pub(super) fn inferred(&self, process: usize) -> (Category, Origin) {
        match self.processes[process].phases.now.category() {
            Category::Unknown => (Category::Unknown, Origin::None),
            category => (category, Origin::Inferred),
        }
    }

    /// The same of what the driver gave, or the program takes of it: only in a phase that an NVTX range names, and where no framework
    /// has the driver's memory as containers of its own.
    pub(super) fn inferred_by_range(&self, process: usize) -> (Category, Origin) {
        let state = &self.processes[process];
        match state.ranges.1 && !state.framework && !state.followed {
            true => self.inferred(process),
            false => (Category::Unknown, Origin::None),
        }
    }

    /// A phase begins.
    pub(super) fn phase_begins(&mut self, process: usize, name: TextId, changes: &mut Changes) {
        let next = self.allocations.len() as u32;
        let (was, now) = (self.processes[process].phases, Role::of(name));
        self.pass_follows(process, (was.now, was.began), now);
        let left_backward = was.now.in_backward() && !now.in_backward();
        let after_backward = if left_backward { next } else { was.after_backward };
        self.processes[process].phases = Phases { now, began: next, after_backward, ..was };
        if was.now == Role::Optimizer && now != Role::Optimizer {
            self.optimizer_ends(process, was.began, changes);
        }
        match now {
            Role::Loss => self.processes[process].phases.loss = Some(self.processes[process].phase),
            Role::Exit => {
                // What no backward pass came for, and what the last one did not free.
                let steps = self.processes[process].phases.steps;
                let refused = self.processes[process].phases.refused;
                let lasting = self.lasting(process, refused..u32::MAX, |number, allocation| {
                    (number < steps[0] || number >= after_backward) && self.is_of_loss(process, allocation)
                });
                self.disown(lasting, changes);
            }
            _ => {}
        }
    }

    /// A step begins: what was there before the last two has outlived them both. It is no batch that no model was given, and nothing
    /// that a backward pass frees.
    pub(super) fn step_begins(&mut self, process: usize, changes: &mut Changes) {
        let Phases { steps: [last, before], refused, .. } = self.processes[process].phases;
        // In the first two steps nothing has.
        if refused < before {
            let lasting = self.lasting(process, refused..before, |_, allocation| {
                allocation.category == Category::Inputs || self.is_of_loss(process, allocation)
            });
            self.disown(lasting, changes);
        }
        self.processes[process].phases.steps = [self.allocations.len() as u32, last];
    }

    /// What lives of a process, was concluded to be something, and holds; of these numbers.
    pub(super) fn lasting(
        &self,
        process: usize,
        numbers: Range<u32>,
        holds: impl Fn(u32, &Allocation) -> bool,
    ) -> Vec<AllocationId> {
        let memory = &self.processes[process].memory;
        let ids = memory.blocks.ids().chain(memory.owned.ids()).filter(|id| numbers.contains(&id.0));
        ids.filter(|id| {
            let allocation = &self.allocations[id.0 as usize];
            allocation.origin == Origin::Inferred && holds(id.0, allocation)
        })
        .collect()
    }

    /// What was concluded of these was wrong: they are unknown.
    fn disown(&mut self, ids: Vec<AllocationId>, changes: &mut Changes) {
        for id in ids {
            let is =
                Allocation { category: Category::Unknown, origin: Origin::None, ..self.allocations[id.0 as usize] };
            self.relabel(id, is, changes);
        }
    }

    /// Whether it was made between a forward pass and a backward pass, outside of models.
    pub(super) fn is_of_loss(&self, process: usize, allocation: &Allocation) -> bool {
        self.processes[process].phases.loss == Some(allocation.phase)
    }

    /// What the optimizer made and kept is its state.
    fn optimizer_ends(&mut self, process: usize, began: u32, changes: &mut Changes) {
        let kept = self.lasting(process, began..u32::MAX, |_, allocation| allocation.category == Category::Workspace);
        for id in kept {
            self.settle(id, Category::Optimizer, changes);
        }
    }

    /// An allocation is about to end: what was held for backward and ended before it was a temporary.
    pub(super) fn settle_end(&mut self, process: usize, id: AllocationId, changes: &mut Changes) {
        let allocation = &self.allocations[id.0 as usize];
        if (allocation.category, allocation.origin) != (Category::Activations, Origin::Inferred) {
            return;
        }
        let phases = &self.processes[process].phases;
        if id.0 < phases.refused {
            return;
        }
        let temporary = match phases.now {
            Role::Backward => false,
            Role::Recompute => id.0 >= phases.began,
            _ => id.0 >= phases.after_backward,
        };
        if temporary {
            let bytes = allocation.requested;
            self.processes[process].passes.ends_unused(id.0, bytes);
            self.settle(id, Category::Workspace, changes);
        }
    }

    /// The category of an inferred allocation becomes another one.
    fn settle(&mut self, id: AllocationId, category: Category, changes: &mut Changes) {
        let is = Allocation { category, ..self.allocations[id.0 as usize] };
        self.relabel(id, is, changes);
    }
}
