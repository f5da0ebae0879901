//! Which colour a band has, and what the colours mean.
//!
//! Owns: colours given out to scopes, which stay while they are seen. Refuses: colours themselves (`theme`).

use std::collections::HashMap;
use std::sync::Arc;

use eframe::egui::Color32;
use memscope_core::colours::{SERIES, SIZES};
use memscope_core::explorer::{Band, BandsView, STACKED};
use memscope_core::ledger::CATEGORIES;

use crate::shared::Selection;
use crate::theme::Theme;

/// By what bands are coloured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Colouring {
    /// What they are for.
    #[default]
    Category,
    /// Where they were made; scopes that are alike (the layers of a model) as one.
    Scope,
    /// How large they are.
    Size,
}

impl Colouring {
    /// All, with their names.
    pub const ALL: [(Colouring, &'static str); 3] =
        [(Colouring::Category, "Category"), (Colouring::Scope, "Scope"), (Colouring::Size, "Size")];

    /// How many colours there are.
    pub const fn colours(self) -> usize {
        match self {
            Colouring::Category => CATEGORIES,
            // And one for all others.
            Colouring::Scope => SERIES + 1,
            Colouring::Size => SIZES,
        }
    }

    /// One of them.
    pub fn colour(self, theme: &Theme, number: usize) -> Color32 {
        match self {
            Colouring::Category => STACKED
                .iter()
                .find(|category| **category as usize == number)
                .map_or(theme.faint(), |category| theme.category(*category)),
            Colouring::Scope if number < SERIES => theme.series(number),
            Colouring::Scope => theme.faint(),
            Colouring::Size => theme.size(number),
        }
    }
}

/// Size classes that have one colour: below these powers of two.
const BELOW: [(u8, &str); SIZES] = [
    (12, "below 4 KiB"),
    (16, "4 to 64 KiB"),
    (20, "64 KiB to 1 MiB"),
    (24, "1 to 16 MiB"),
    (28, "16 to 256 MiB"),
    (32, "256 MiB to 4 GiB"),
    (64, "4 GiB and more"),
];

/// Colours that were given out to scopes.
#[derive(Default)]
pub struct Scopes {
    /// What has each of them; it keeps it as long as it is seen, and longer where nothing else wants it.
    slots: [Option<String>; SERIES],
    /// The colour of each of a view's scopes.
    colours: Vec<usize>,
    made: Option<Arc<BandsView>>,
}

impl Scopes {
    /// Gives out colours for a view: those that are not taken to the scopes with most bytes times time.
    pub fn follow(&mut self, view: &Arc<BandsView>) {
        if self.made.as_ref().is_some_and(|made| Arc::ptr_eq(made, view)) {
            return;
        }
        let mut areas: HashMap<&str, f64> = HashMap::new();
        for band in &view.bands {
            let Some(scope) = view.scope(band) else { continue };
            let time = band.end.0.saturating_sub(band.begin.0) as f64;
            *areas.entry(&scope.alike).or_default() += band.bytes as f64 * time;
        }
        let mut waiting: Vec<(&str, f64)> = areas.iter().map(|(name, area)| (*name, *area)).collect();
        waiting.retain(|(name, _)| !self.slots.iter().flatten().any(|taken| taken == name));
        waiting.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(other.0)));
        for (name, _) in waiting {
            let gone = |slot: &Option<String>| slot.as_ref().is_some_and(|taken| !areas.contains_key(taken.as_str()));
            let free = self.slots.iter().position(Option::is_none).or_else(|| self.slots.iter().position(gone));
            let Some(free) = free else { break };
            self.slots[free] = Some(name.to_owned());
        }
        let slot = |name: &str| self.slots.iter().position(|slot| slot.as_deref() == Some(name)).unwrap_or(SERIES);
        self.colours = view.scopes.iter().map(|scope| slot(&scope.alike)).collect();
        self.made = Some(Arc::clone(view));
    }

    fn colour(&self, view: &BandsView, band: &Band) -> usize {
        let at = view.scopes.binary_search_by_key(&band.scope, |scope| scope.id);
        at.ok().and_then(|at| self.colours.get(at).copied()).unwrap_or(SERIES)
    }
}

/// The number of a band's colour.
pub fn number(colouring: Colouring, scopes: &Scopes, view: &BandsView, band: &Band) -> usize {
    match colouring {
        Colouring::Category => band.category as usize,
        Colouring::Scope => scopes.colour(view, band),
        Colouring::Size => BELOW.iter().position(|(below, _)| band.size_class < *below).unwrap_or(SIZES - 1),
    }
}

/// A line of the legend.
pub struct Entry {
    /// Number of its colour.
    pub number: usize,
    /// What has it.
    pub name: String,
    /// What a click selects.
    pub leads: Option<Selection>,
}

/// What the colours that are seen mean.
pub fn legend(colouring: Colouring, scopes: &Scopes, view: &BandsView) -> Vec<Entry> {
    let mut seen = vec![false; colouring.colours()];
    view.bands.iter().for_each(|band| seen[number(colouring, scopes, view, band)] = true);
    match colouring {
        Colouring::Category => {
            let merged = |category| view.rest.iter().any(|rest| rest.live[category as usize] > 0);
            let there = STACKED.into_iter().filter(|category| seen[*category as usize] || merged(*category));
            there
                .map(|category| Entry {
                    number: category as usize,
                    name: category.name().to_owned(),
                    leads: Some(Selection::Category(category)),
                })
                .collect()
        }
        Colouring::Scope => {
            let named = (0..SERIES).filter(|number| seen[*number]);
            let mut entries: Vec<Entry> = named
                .map(|number| {
                    let path = scopes.slots[number].clone().unwrap_or_default();
                    let leads = (!path.is_empty()).then(|| Selection::Scope(path.clone()));
                    let name = if path.is_empty() { "outside all scopes".to_owned() } else { path };
                    Entry { number, name, leads }
                })
                .collect();
            if seen[SERIES] {
                entries.push(Entry { number: SERIES, name: "other scopes".to_owned(), leads: None });
            }
            entries
        }
        Colouring::Size => (0..SIZES)
            .filter(|number| seen[*number])
            .map(|number| Entry { number, name: BELOW[number].1.to_owned(), leads: None })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use memscope_core::explorer::{BandScope, Pick};
    use memscope_core::journal::entry::Nanoseconds;
    use memscope_core::{Category, Origin};

    use super::*;

    fn view(paths: &[&str]) -> Arc<BandsView> {
        let mut view = BandsView::default();
        for (id, path) in (0..).zip(paths) {
            view.scopes.push(BandScope { id, path: (*path).to_owned(), alike: (*path).to_owned() });
            view.bands.push(Band {
                pick: Pick::default(),
                begin: Nanoseconds(0),
                end: Nanoseconds(10),
                death: None,
                bytes: 1 << (30 - id),
                granted: 1 << 30,
                height: 1,
                name: String::new(),
                category: Category::Unknown,
                origin: Origin::None,
                scope: id,
                size_class: 30 - id as u8,
                process: 0,
                device: None,
                address: 0,
                points: 0..0,
                outlived: 0,
            });
        }
        Arc::new(view)
    }

    fn colours(scopes: &mut Scopes, paths: &[&str]) -> Vec<usize> {
        let view = view(paths);
        scopes.follow(&view);
        view.bands.iter().map(|band| number(Colouring::Scope, scopes, &view, band)).collect()
    }

    #[test]
    fn a_scope_keeps_its_colour_while_others_come_and_go() {
        let mut scopes = Scopes::default();
        assert_eq!(colours(&mut scopes, &["a", "b"]), [0, 1]);
        assert_eq!(colours(&mut scopes, &["c", "b", "a"]), [2, 1, 0]);
        assert_eq!(colours(&mut scopes, &["d", "e", "f", "g", "h"]), [3, 4, 5, 6, 7]);
        // All are given out: what is not seen gives its own, and what finds none is one of the others.
        assert_eq!(colours(&mut scopes, &["h", "i", "b"]), [7, 0, 1]);
        let many = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "b"];
        assert_eq!(colours(&mut scopes, &many), [0, 2, 3, 4, 5, 6, 7, 8, 8, 1]);
    }

    #[test]
    fn sizes_have_one_colour_a_group() {
        let (scopes, view) = (Scopes::default(), view(&["a"; 20]));
        let numbers: Vec<usize> = view.bands.iter().map(|band| number(Colouring::Size, &scopes, &view, band)).collect();
        // From 2^30 down to 2^11.
        let expected = [5, 5, 5, 4, 4, 4, 4, 3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0];
        assert_eq!(numbers, expected);
    }
}
