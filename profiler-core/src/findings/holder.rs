//! Who holds memory: what a category means for the one who reads it.
//!
//! Owns: the names of holders, and what held most when memory ran out. Refuses: to guess: without a category there is none.

use std::cmp::Reverse;
use std::collections::HashMap;

use memscope_wire::{Category, Origin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::allocation::{Allocation, Model};
use crate::ledger::{CATEGORIES, Sum};
use crate::report::{self, units};

/// Who needs an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// A parameter or buffer of a module.
    Parameter,
    /// A gradient of a parameter.
    Gradient,
    /// The optimizer's state.
    OptimizerState,
    /// The graph of the forward pass keeps it until backward.
    SavedForBackward,
    /// A forward pass made it, and whole steps have begun and ended since: their backward passes and optimizers did not end it, so
    /// that the program itself keeps it, alone or with a graph.
    KeptByProgram,
    /// The batch.
    Input,
    /// A temporary of one operation.
    Workspace,
    /// Not known to memscope.
    Unknown,
}

impl Holder {
    /// The holder of what has this category, is known so, and has outlived so many whole steps.
    pub const fn of(category: Category, origin: Origin, outlived: u64) -> Holder {
        match category {
            // What the program has said itself stands.
            Category::Activations if outlived > 0 && matches!(origin, Origin::Inferred) => Holder::KeptByProgram,
            Category::Weights => Holder::Parameter,
            Category::Gradients => Holder::Gradient,
            Category::Optimizer => Holder::OptimizerState,
            Category::Activations => Holder::SavedForBackward,
            Category::Inputs => Holder::Input,
            Category::Workspace => Holder::Workspace,
            Category::Unknown => Holder::Unknown,
        }
    }

    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Holder::Parameter => "parameter",
            Holder::Gradient => "gradient",
            Holder::OptimizerState => "optimizer state",
            Holder::SavedForBackward => "saved for backward",
            Holder::KeptByProgram => "kept by the program",
            Holder::Input => "input",
            Holder::Workspace => "workspace",
            Holder::Unknown => "holder unknown",
        }
    }

    /// In words, with how that is known: `saved for backward (inferred)`. `steps` is how many it was kept, and says nothing of
    /// other holders: `kept by the program across 12 steps (inferred)`.
    pub fn with_origin(self, origin: &str, steps: &str) -> String {
        match self {
            Holder::Unknown => self.text().to_owned(),
            Holder::KeptByProgram => format!("{} across {steps} ({origin})", self.text()),
            _ => format!("{} ({origin})", self.text()),
        }
    }
}

/// Who needs one allocation, in words: its category, how that is known, and how many whole steps it has outlived.
pub fn held_by(category: Category, origin: Origin, outlived: u64) -> String {
    Holder::of(category, origin, outlived).with_origin(origin.name(), &units::count(outlived, "step", "steps"))
}

/// The same of several allocations; `kept_steps` is of the one that was kept longest.
pub(crate) fn held_by_all(holder: Holder, origin: &str, kept_steps: u64, allocations: u64) -> String {
    let up_to = if allocations > 1 { "up to " } else { "" };
    let steps = units::count(kept_steps, "step", "steps");
    holder.with_origin(origin, &format!("{up_to}{steps}"))
}

/// The largest category of a moment, and where most of it was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Largest {
    /// The category that holds most.
    pub category: String,
    /// Its live bytes.
    pub bytes: u64,
    /// The scope in which most of it was made, with `*` for numbers where several are alike; `null` outside all scopes.
    pub scope: Option<String>,
    /// Live bytes of the category that were made there.
    pub scope_bytes: u64,
    /// How many allocations those are.
    pub scope_allocations: u64,
    /// Who needs most of their bytes.
    pub holder: Holder,
    /// How that is known of most of these: tagged, hooked, inferred or none.
    pub origin: String,
    /// Where the program keeps them: how many whole steps it has kept that of them which it has kept longest. 0 otherwise.
    #[serde(default)]
    pub kept_steps: u64,
}

impl Largest {
    /// Finds it where sums by category are these; `live` has each live allocation of them, and how many whole steps it has outlived.
    /// `None` when nothing is live.
    pub(crate) fn of<'m>(
        model: &Model,
        sums: &[u64; CATEGORIES],
        live: impl Iterator<Item = (&'m Allocation, u64)>,
    ) -> Option<Largest> {
        // In the order of `ByCategory::named`, of which a finding's message names the largest.
        let named = Category::ALL.into_iter().cycle().skip(1).take(Category::ALL.len());
        let category = named.max_by_key(|category| sums[*category as usize])?;
        let of_category = sums[category as usize];
        let mut scopes: HashMap<u32, ByHolder> = HashMap::new();
        for (allocation, outlived) in live.filter(|(allocation, _)| allocation.category == category) {
            scopes.entry(allocation.scope).or_default().enter(allocation, outlived);
        }
        let texts = scopes.into_iter().map(|(scope, sums)| (model.scopes.path(scope, &model.names), (), sums));
        let mut together: Vec<(String, ByHolder)> =
            report::together(texts, ByHolder::and).map(|(path, (), sums)| (path, sums)).collect();
        together.sort_by(|(path, sums), (other, more)| {
            (Reverse(sums.all().bytes()), path).cmp(&(Reverse(more.all().bytes()), other))
        });
        let (path, sums) = together.into_iter().next()?;
        let (all, (kept, origin)) = (sums.all(), sums.most());
        Some(Largest {
            category: category.name().to_owned(),
            bytes: of_category,
            scope: Some(path).filter(|path| !path.is_empty()),
            scope_bytes: all.bytes(),
            scope_allocations: all.allocations,
            holder: Holder::of(category, origin, kept),
            origin: origin.name().to_owned(),
            kept_steps: kept,
        })
    }

    /// Who needs it, in words.
    pub fn held_by(&self) -> String {
        held_by_all(self.holder, &self.origin, self.kept_steps, self.scope_allocations)
    }

    /// As one sentence, the same in every view.
    pub fn sentence(&self) -> String {
        let place = self.scope.as_ref().map_or("outside all scopes".to_owned(), |scope| format!("in {scope}"));
        format!(
            "Most of it: {}, {}; of that {} in {} made {place}: {}.",
            self.category,
            units::bytes(self.bytes),
            units::bytes(self.scope_bytes),
            units::count(self.scope_allocations, "allocation", "allocations"),
            self.held_by(),
        )
    }
}

/// Sums by how the category is known, that of what has outlived whole steps apart.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByHolder {
    sums: [Sum; ORIGINS.len()],
    kept: Sum,
    /// The most steps that any of the latter has outlived.
    steps: u64,
}

const ORIGINS: [Origin; 4] = [Origin::None, Origin::Tagged, Origin::Hooked, Origin::Inferred];

impl ByHolder {
    /// One more allocation, which has outlived so many whole steps.
    pub fn enter(&mut self, allocation: &Allocation, outlived: u64) {
        if Holder::of(allocation.category, allocation.origin, outlived) == Holder::KeptByProgram {
            self.kept.enter(allocation);
            self.steps = self.steps.max(outlived);
            return;
        }
        let known = ORIGINS.iter().position(|origin| *origin == allocation.origin).unwrap_or_default();
        self.sums[known].enter(allocation);
    }

    /// Both together.
    pub fn and(mut self, other: ByHolder) -> ByHolder {
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, more)| sum.merge(more));
        self.kept.merge(&other.kept);
        self.steps = self.steps.max(other.steps);
        self
    }

    /// The sum of all.
    pub fn all(&self) -> Sum {
        let mut all = self.kept;
        self.sums.iter().for_each(|sum| all.merge(sum));
        all
    }

    /// What has outlived whole steps.
    pub fn kept_bytes(&self) -> u64 {
        self.kept.bytes()
    }

    /// Of most bytes: how many steps they were kept, 0 where they were not, and how that is known.
    pub fn most(&self) -> (u64, Origin) {
        let by_origin = ORIGINS.into_iter().zip(&self.sums).map(|(origin, sum)| (sum.bytes(), 0, origin));
        let all = by_origin.chain([(self.kept.bytes(), self.steps, Origin::Inferred)]);
        all.max_by_key(|(bytes, _, _)| *bytes).map_or((0, Origin::None), |(_, steps, origin)| (steps, origin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_but_the_unknown_one_has_a_holder() {
        for category in Category::ALL {
            let holder = Holder::of(category, Origin::Inferred, 0);
            assert_eq!(holder == Holder::Unknown, category == Category::Unknown);
            let later = Holder::of(category, Origin::Inferred, 3);
            assert_eq!(
                later != holder,
                category == Category::Activations,
                "only activations are said to end with a step"
            );
        }
        assert_eq!(held_by(Category::Activations, Origin::Inferred, 0), "saved for backward (inferred)");
        assert_eq!(held_by(Category::Activations, Origin::Inferred, 1), "kept by the program across 1 step (inferred)");
        assert_eq!(
            held_by(Category::Activations, Origin::Inferred, 12),
            "kept by the program across 12 steps (inferred)"
        );
        assert_eq!(held_by(Category::Activations, Origin::Tagged, 12), "saved for backward (tagged)");
        assert_eq!(held_by(Category::Unknown, Origin::None, 0), "holder unknown");
    }
}
