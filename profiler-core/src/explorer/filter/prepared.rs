//! A filter that knows a session's texts, and tests one allocation after another.
//!
//! Owns: what each term looks at. Refuses: the spelling of terms (`read.rs`).

use std::collections::HashMap;

use memscope_wire::{Category, Origin};

use crate::allocation::{Allocation, Model, Sites};
use crate::report::lies_in;

use super::super::part::Positions;
use super::{Filter, Term, Whole};

impl Filter {
    /// Makes the filter fast for a model: texts are looked through once.
    pub(in crate::explorer) fn prepare<'m>(&self, model: &'m Model) -> Prepared<'m> {
        let words = Words::of(model, self.terms.iter().any(Term::reads_text));
        let tests = self.terms.iter().map(|term| term.test(model, &words)).collect();
        Prepared { model, positions: Positions::of(model), tests }
    }
}

/// Texts of a model in lower case, by number.
struct Words {
    names: Vec<String>,
    scopes: Vec<String>,
}

impl Words {
    fn of(model: &Model, wanted: bool) -> Words {
        if !wanted {
            return Words { names: Vec::new(), scopes: Vec::new() };
        }
        let names = (0..model.names.len() as u32).map(|name| model.names.text(name).to_lowercase());
        let scopes = (0..model.scopes.len() as u32).map(|scope| model.scopes.path(scope, &model.names).to_lowercase());
        Words { names: names.collect(), scopes: scopes.collect() }
    }
}

/// A term as look-ups.
enum Test {
    Text {
        names: Vec<bool>,
        scopes: Vec<bool>,
        categories: [bool; Category::ALL.len()],
        origins: [bool; 4],
    },
    Above(u64),
    Below(u64),
    Step(u64),
    Category([bool; Category::ALL.len()]),
    Scope(Vec<bool>),
    Name(Vec<bool>),
    /// By node of the tree of stacks.
    Line(Vec<bool>),
    Stream(u64),
    Gpu(u64),
    Pid(u32),
}

/// By node of the tree of stacks: whether its site's text is one that is looked for.
fn sites(model: &Model, wanted: impl Fn(&str) -> bool) -> Vec<bool> {
    let sites = Sites::of(&model.stacks, &model.names);
    let mut known = HashMap::new();
    let mut test = |node: u32| {
        let site = sites.site(node);
        *known.entry(site).or_insert_with(|| wanted(&model.stacks.text(site, &model.names)))
    };
    (0..model.stacks.len() as u32).map(&mut test).collect()
}

impl Term {
    fn reads_text(&self) -> bool {
        matches!(self, Term::Text(_) | Term::Scope(_) | Term::Name(_))
    }

    fn test(&self, model: &Model, words: &Words) -> Test {
        let within = |texts: &[String], part: &String| texts.iter().map(|text| text.contains(part)).collect();
        match self {
            Term::Text(part) => Test::Text {
                names: within(&words.names, part),
                scopes: within(&words.scopes, part),
                categories: Category::ALL.map(|category| category.name().contains(part)),
                origins: [0, 1, 2, 3].map(|origin| Origin::from_number(origin).name().contains(part)),
            },
            Term::Above(bytes) => Test::Above(*bytes),
            Term::Below(bytes) => Test::Below(*bytes),
            Term::Step(number) => Test::Step(*number),
            Term::Category(begin) => Test::Category(Category::ALL.map(|category| category.name().starts_with(begin))),
            Term::Scope(part) => Test::Scope(within(&words.scopes, part)),
            Term::Name(part) => Test::Name(within(&words.names, part)),
            Term::Line(part) => Test::Line(sites(model, |text| text.to_lowercase().contains(part))),
            Term::Exact(Whole::Line, line) => Test::Line(sites(model, |text| text == line)),
            Term::Stream(stream) => Test::Stream(*stream),
            Term::Gpu(number) => Test::Gpu(*number),
            Term::Pid(pid) => Test::Pid(*pid),
            Term::Exact(Whole::Scope, path) => {
                let scopes = 0..model.scopes.len() as u32;
                Test::Scope(scopes.map(|scope| model.scopes.path(scope, &model.names) == *path).collect())
            }
            Term::Exact(Whole::Inside, path) => {
                let scopes = 0..model.scopes.len() as u32;
                Test::Scope(scopes.map(|scope| lies_in(&model.scopes.path(scope, &model.names), path)).collect())
            }
            Term::Exact(Whole::Name, text) => {
                Test::Name((0..model.names.len() as u32).map(|name| model.names.text(name) == *text).collect())
            }
            Term::Exact(Whole::Category, name) => Test::Category(Category::ALL.map(|category| category.name() == name)),
        }
    }
}

/// A filter that knows a model.
pub struct Prepared<'m> {
    model: &'m Model,
    positions: Positions,
    tests: Vec<Test>,
}

impl Prepared<'_> {
    /// True when all terms hold.
    pub fn lets(&self, allocation: &Allocation) -> bool {
        self.tests.iter().all(|test| self.holds(test, allocation))
    }

    fn holds(&self, test: &Test, allocation: &Allocation) -> bool {
        let at = |found: &[bool], number: u32| found.get(number as usize).copied().unwrap_or(false);
        match test {
            Test::Text { names, scopes, categories, origins } => {
                at(names, allocation.name)
                    || at(names, allocation.function)
                    || at(scopes, allocation.scope)
                    || categories[allocation.category as usize]
                    || origins[allocation.origin as usize]
            }
            Test::Above(bytes) => allocation.requested > *bytes,
            Test::Below(bytes) => allocation.requested < *bytes,
            Test::Step(number) => step_of(self.model, allocation) == Some(*number),
            Test::Category(found) => found[allocation.category as usize],
            Test::Scope(found) => at(found, allocation.scope),
            Test::Name(found) => at(found, label(allocation)),
            Test::Line(found) => at(found, allocation.stack),
            Test::Stream(stream) => self.model.streams.value(allocation.stream) == *stream,
            Test::Gpu(number) => self.positions.number(allocation).is_some_and(|shown| u64::from(shown) == *number),
            Test::Pid(pid) => self.model.processes[allocation.process as usize].info.pid == *pid,
        }
    }
}

/// The step in which an allocation was made.
pub fn step_of(model: &Model, allocation: &Allocation) -> Option<u64> {
    allocation.step.checked_sub(1).map(|position| model.steps.value(position))
}

/// What an allocation is called: its name, else its function.
pub fn label(allocation: &Allocation) -> u32 {
    if allocation.name != 0 { allocation.name } else { allocation.function }
}
