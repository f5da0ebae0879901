//! What all views of a document follow.
//!
//! Owns: the moment, the range, what is selected, the part of the session, and what is seen of time. Refuses: figures, and to
//! remember how any one view looks.

mod span;
mod zoom;

use memscope_core::Category;
use memscope_core::explorer::{At, Pick, Target};
use memscope_core::report::lies_in;

pub use span::Span;
pub use zoom::Zoom;

/// What all views of a document follow. A view changes it, and the others see the change in the same frame or the next.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Shared {
    /// The moment that figures are of.
    pub cursor: At,
    /// The part of time that was chosen, for what counts over time.
    pub range: Option<Span>,
    /// What is lit up everywhere.
    pub selection: Selection,
    /// The devices or processes that are looked at.
    pub target: Target,
    /// What is seen of time.
    pub zoom: Zoom,
}

/// What is selected.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Selection {
    /// Nothing.
    #[default]
    None,
    /// One allocation.
    Allocation(Pick),
    /// A scope: names from the outermost on, joined by `/`, as core writes them; with `*` several that are alike.
    Scope(String),
    /// All of one category.
    Category(Category),
    /// What of one category was made in a scope, as of [`Selection::Scope`].
    Group(Category, String),
}

impl Selection {
    /// The allocation that is selected.
    pub const fn pick(&self) -> Option<Pick> {
        match self {
            Selection::Allocation(pick) => Some(*pick),
            Selection::None | Selection::Scope(_) | Selection::Category(_) | Selection::Group(..) => None,
        }
    }
}

impl Shared {
    /// True when a category is selected, or some of it, and it is not this one: it is drawn fainter.
    pub fn dims(&self, category: Category) -> bool {
        matches!(self.selection, Selection::Category(selected) | Selection::Group(selected, _) if selected != category)
    }

    /// True for what the selection is about, of this category and made in this scope; a single allocation leaves all others as
    /// they are.
    pub fn lights(&self, category: Category, scope: &str) -> bool {
        match &self.selection {
            Selection::Category(selected) => *selected == category,
            Selection::Scope(path) => lies_in(scope, path),
            Selection::Group(selected, path) => *selected == category && lies_in(scope, path),
            Selection::None | Selection::Allocation(_) => true,
        }
    }

    /// Selects, or, where it is selected already, selects nothing.
    pub fn toggle(&mut self, selection: Selection) {
        self.selection = if self.selection == selection { Selection::None } else { selection };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_click_takes_the_selection_back() {
        let mut shared = Shared::default();
        shared.toggle(Selection::Category(Category::Weights));
        assert!(shared.dims(Category::Inputs) && !shared.dims(Category::Weights));
        shared.toggle(Selection::Category(Category::Weights));
        assert_eq!(shared.selection, Selection::None);
        assert!(!shared.dims(Category::Inputs));
    }

    #[test]
    fn of_a_group_only_its_category_in_its_scope_is_lit() {
        let group = Selection::Group(Category::Activations, "model/h.*".into());
        let shared = Shared { selection: group, ..Shared::default() };
        assert!(shared.lights(Category::Activations, "model/h.3/attn"));
        assert!(!shared.lights(Category::Activations, "model/head") && !shared.lights(Category::Weights, "model/h.3"));
        assert!(shared.dims(Category::Weights) && !shared.dims(Category::Activations));
    }

    #[test]
    fn layers_that_are_alike_are_lit_together() {
        let shared = Shared { selection: Selection::Scope("model/h.*".into()), ..Shared::default() };
        let lit = ["model/h.0/attn", "model/h.11", "model/head", "optimizer"]
            .map(|scope| shared.lights(Category::Activations, scope));
        assert_eq!(lit, [true, true, false, false]);
    }
}
