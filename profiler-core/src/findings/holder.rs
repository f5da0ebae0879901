//! Who holds memory: what a category means for the one who reads it.
//!
//! Owns: the names of holders, and what held most when memory ran out. Refuses: to guess: without a category there is none.

use std::cmp::Reverse;
use std::collections::HashMap;

use memscope_wire::{Category, Origin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ledger::Sum;
use crate::report::{self, units};
use crate::timeline::State;

use super::evidence::Evidence;

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
    /// The batch.
    Input,
    /// A temporary of one operation.
    Workspace,
    /// Not known to memscope.
    Unknown,
}

impl Holder {
    /// The holder of what has this category.
    pub const fn of(category: Category) -> Holder {
        match category {
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
            Holder::Input => "input",
            Holder::Workspace => "workspace",
            Holder::Unknown => "holder unknown",
        }
    }

    /// In words, with how that is known: `saved for backward (inferred)`.
    pub fn with_origin(self, origin: &str) -> String {
        match self {
            Holder::Unknown => self.text().to_owned(),
            _ => format!("{} ({origin})", self.text()),
        }
    }
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
    /// Who needs them.
    pub holder: Holder,
    /// How that is known of most of their bytes: tagged, hooked, inferred or none.
    pub origin: String,
}

impl Largest {
    /// Finds it; `None` when nothing is live.
    pub(super) fn of(evidence: &Evidence<'_>, device: usize, state: &State) -> Option<Largest> {
        let model = evidence.model;
        // In the order of `ByCategory::named`, of which a finding's message names the largest.
        let named = Category::ALL.into_iter().cycle().skip(1).take(Category::ALL.len());
        let category = named.max_by_key(|category| state.rows.live[*category as usize])?;
        let mut scopes: HashMap<(u32, Origin), Sum> = HashMap::new();
        for (allocation, _) in evidence.live_at(device, state.order) {
            if allocation.category == category {
                scopes.entry((allocation.scope, allocation.origin)).or_default().enter(allocation);
            }
        }
        let texts = scopes
            .into_iter()
            .map(|((scope, origin), sum)| (model.scopes.path(scope, &model.names), (), BySource::of(origin, sum)));
        let mut together: Vec<(String, BySource)> =
            report::together(texts, BySource::and).map(|(path, (), sums)| (path, sums)).collect();
        together.sort_by(|(path, sums), (other, more)| {
            (Reverse(sums.all().bytes()), path).cmp(&(Reverse(more.all().bytes()), other))
        });
        let (path, sums) = together.into_iter().next()?;
        let all = sums.all();
        Some(Largest {
            category: category.name().to_owned(),
            bytes: state.rows.live[category as usize],
            scope: Some(path).filter(|path| !path.is_empty()),
            scope_bytes: all.bytes(),
            scope_allocations: all.allocations,
            holder: Holder::of(category),
            origin: sums.origin().name().to_owned(),
        })
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
            self.holder.with_origin(&self.origin),
        )
    }
}

/// Sums by how the category is known.
#[derive(Clone, Copy, Default)]
struct BySource([Sum; ORIGINS.len()]);

const ORIGINS: [Origin; 4] = [Origin::None, Origin::Tagged, Origin::Hooked, Origin::Inferred];

impl BySource {
    fn of(origin: Origin, sum: Sum) -> BySource {
        BySource(ORIGINS.map(|known| if known == origin { sum } else { Sum::default() }))
    }

    fn and(mut self, other: BySource) -> BySource {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, more)| sum.merge(more));
        self
    }

    fn all(&self) -> Sum {
        let mut all = Sum::default();
        self.0.iter().for_each(|sum| all.merge(sum));
        all
    }

    fn origin(&self) -> Origin {
        ORIGINS.into_iter().zip(&self.0).max_by_key(|(_, sum)| sum.bytes()).map_or(Origin::None, |(origin, _)| origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_but_the_unknown_one_has_a_holder() {
        for category in Category::ALL {
            assert_eq!(Holder::of(category) == Holder::Unknown, category == Category::Unknown);
        }
        assert_eq!(Holder::SavedForBackward.with_origin("inferred"), "saved for backward (inferred)");
        assert_eq!(Holder::Unknown.with_origin("none"), "holder unknown");
    }
}
