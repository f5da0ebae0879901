//! Live allocations counted together where their names differ only in numbers: the layers of a model.
//!
//! Owns: the rule by which names are alike. Refuses: to hide a name that stands alone.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;

use memscope_wire::Category;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::allocation::{Allocation, Stacks};
use crate::findings::{ByHolder, Holder, held_by_all};

use super::snapshot::{TOP, Words};
use super::units;

/// Live allocations of one category whose names (else scopes) differ at most in numbers. Those with neither go together by
/// the driver's function and their size.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Name, else scope, where several are counted together with `*` for their numbers; else the driver's function, with the
    /// size of each where there are several: `cuMemAlloc_v2 from train, 64.00 MiB each`.
    pub name: String,
    /// What they are for.
    pub category: String,
    /// Live bytes.
    pub bytes: u64,
    /// How many.
    pub allocations: u64,
    /// The program's line that made most of these bytes, where that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// The scope in which most of these bytes were made, with `*` for numbers where several are alike; `null` outside all scopes,
    /// and where scopes were not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Who needs most of these bytes; `null` where that was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// How that is known of most of these: tagged, hooked, inferred or none; `null` likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Where the program keeps them: how many whole steps it has kept that of them which it has kept longest; `null` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_steps: Option<u64>,
}

impl Group {
    /// What to call it: of what has neither name nor scope the line that made most of it, where that is known. The size of each is all
    /// that tells several of one line apart.
    pub fn title(&self) -> Cow<'_, str> {
        match (&self.line, self.name.strip_prefix(OUTSIDE)) {
            (Some(line), Some("")) => Cow::Borrowed(line),
            (Some(line), Some(each)) => Cow::Owned(format!("{line}{each}")),
            _ => Cow::Borrowed(&self.name),
        }
    }

    /// Who needs them, in words; `None` where that was not looked at.
    pub fn held_by(&self) -> Option<String> {
        let (holder, origin) = (self.holder?, self.origin.as_ref()?);
        Some(held_by_all(holder, origin, self.kept_steps.unwrap_or(0), self.allocations))
    }
}

/// Collects allocations by name, else scope, else function and size.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    sums: HashMap<(Label, Category), (u64, u64)>,
    /// Bytes by where they were made, as far as that is known.
    sites: HashMap<(Label, Category, u32), u64>,
    /// Sums by scope and by holder, where those are looked at.
    made: HashMap<(Label, Category, u32), ByHolder>,
}

/// The name of what has neither name, nor scope, nor function.
const OUTSIDE: &str = "(outside all scopes)";

/// What an allocation goes by, a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Label {
    Name(u32),
    Scope(u32),
    /// All that tells these apart is their size.
    Function(u32, u64),
}

/// What is counted together apart from its text: its category, and the size of each where that matters.
type Alike = (Category, Option<u64>);

/// Bytes and how many; and the name, where there is one and no other.
type Sums = (u64, u64, Option<Label>);

/// What [`Groups`] counts together.
#[derive(Debug)]
pub(crate) struct Together {
    /// As in [`Group::name`].
    pub label: String,
    pub category: Category,
    pub bytes: u64,
    pub allocations: u64,
    /// The name that all of them have; `None` where names differ, or where there is none.
    pub name: Option<String>,
    /// The site where most of the bytes were made.
    pub site: Option<u32>,
    /// What it is counted together by.
    key: (String, Alike),
}

impl Label {
    fn of((name, scope, function): (u32, u32, u32), bytes: u64) -> Label {
        match (name, scope) {
            (0, 0) => Label::Function(function, bytes),
            (0, scope) => Label::Scope(scope),
            (name, _) => Label::Name(name),
        }
    }

    /// Its text, and the size of each where that is what tells it apart.
    fn text(self, words: &impl Words) -> (String, Option<u64>) {
        match self {
            Label::Name(number) => (words.name(number), None),
            Label::Scope(node) => (words.scope(node), None),
            // A block of an allocator has no function.
            Label::Function(0, each) => (OUTSIDE.to_owned(), Some(each)),
            Label::Function(number, each) => (words.name(number), Some(each)),
        }
    }
}

impl Groups {
    /// Takes in one allocation: the numbers of its name, scope and function, and its bytes.
    pub fn add(&mut self, labels: (u32, u32, u32), category: Category, bytes: u64) {
        let label = Label::of(labels, bytes);
        let sum = self.sums.entry((label, category)).or_default();
        *sum = (sum.0.wrapping_add(bytes), sum.1 + 1);
    }

    /// The same allocation was made at a site, a node of the tree of stacks.
    pub fn made_at(&mut self, labels: (u32, u32, u32), (category, bytes): (Category, u64), site: u32) {
        if site != Stacks::NOWHERE {
            let sum = self.sites.entry((Label::of(labels, bytes), category, site)).or_default();
            *sum = sum.wrapping_add(bytes);
        }
    }

    /// The same allocation, of which scope and holder are looked at too; it has outlived so many whole steps.
    pub fn held(&mut self, allocation: &Allocation, outlived: u64) {
        let label = Label::of((allocation.name, allocation.scope, allocation.function), allocation.requested);
        self.made.entry((label, allocation.category, allocation.scope)).or_default().enter(allocation, outlived);
    }

    /// Of what is counted together, by pattern: the scope, or scopes that are alike, where most bytes were made, and all sums.
    fn most_made(&self, words: &impl Words) -> HashMap<(String, Alike), (String, ByHolder)> {
        let mut numbers: HashMap<(String, Alike), usize> = HashMap::new();
        let scopes = self.made.iter().map(|((label, category, scope), sums)| {
            let (text, each) = label.text(words);
            let next = numbers.len();
            (words.scope(*scope), *numbers.entry((pattern(&text), (*category, each))).or_insert(next), *sums)
        });
        let scopes: Vec<(String, usize, ByHolder)> = together(scopes, ByHolder::and).collect();
        let mut most: Vec<(u64, String, ByHolder)> = vec![Default::default(); numbers.len()];
        for (path, number, sums) in scopes {
            let (known, other, all) = &mut most[number];
            *all = all.and(sums);
            let bytes = sums.all().bytes();
            // Of equal ones the first in the alphabet, whatever the order of a hash table.
            if bytes > *known || (bytes == *known && path < *other) {
                (*known, *other) = (bytes, path);
            }
        }
        let made = |number: usize| (most[number].1.clone(), most[number].2);
        numbers.into_iter().map(|(key, number)| (key, made(number))).collect()
    }

    /// Of what is counted together, by pattern: the site where most bytes were made.
    fn largest_sites(&self, words: &impl Words) -> HashMap<(String, Alike), u32> {
        let mut sums: HashMap<(String, Alike), HashMap<u32, u64>> = HashMap::new();
        for ((label, category, site), bytes) in &self.sites {
            let (text, each) = label.text(words);
            let sum = sums.entry((pattern(&text), (*category, each))).or_default().entry(*site).or_default();
            *sum = sum.wrapping_add(*bytes);
        }
        let largest = |sites: HashMap<u32, u64>| {
            sites.into_iter().max_by_key(|(site, bytes)| (*bytes, std::cmp::Reverse(*site))).map(|(site, _)| site)
        };
        sums.into_iter().filter_map(|(key, sites)| Some((key, largest(sites)?))).collect()
    }

    /// The groups that hold most.
    pub fn largest(&self, words: &impl Words) -> Vec<Group> {
        let mut made = self.most_made(words);
        let mut groups: Vec<Group> = self
            .every(words)
            .map(|held| {
                let category = held.category.name().to_owned();
                let line = held.site.map(|site| words.line(site));
                let Together { label: name, bytes, allocations, .. } = held;
                let plain = Group { name, category, bytes, allocations, line, ..Group::default() };
                let Some((scope, sums)) = made.remove(&held.key) else { return plain };
                let (kept, origin) = sums.most();
                Group {
                    scope: Some(scope).filter(|path| !path.is_empty()),
                    holder: Some(Holder::of(held.category, origin, kept)),
                    origin: Some(origin.name().to_owned()),
                    kept_steps: Some(kept).filter(|kept| *kept > 0),
                    ..plain
                }
            })
            .collect();
        groups.sort_by(|a, b| (b.bytes, &a.name, &a.category).cmp(&(a.bytes, &b.name, &b.category)));
        groups.truncate(TOP);
        groups
    }

    /// All groups, in no order.
    pub fn every(&self, words: &impl Words) -> impl Iterator<Item = Together> {
        let texts = self.sums.iter().map(|((label, category), sum)| {
            let (text, each) = label.text(words);
            let named = matches!(label, Label::Name(_));
            (text, (*category, each), (sum.0, sum.1, named.then_some(*label)))
        });
        // Of several names none is the one.
        let add = |sum: Sums, more: Sums| {
            (sum.0.wrapping_add(more.0), sum.1 + more.1, sum.2.filter(|one| more.2 == Some(*one)))
        };
        let sites = self.largest_sites(words);
        together(texts, add).map(move |(text, (category, each), (bytes, allocations, one))| {
            // What stands alone has its own name, which has the pattern of its group.
            let key = (pattern(&text), (category, each));
            let site = sites.get(&key).copied();
            let each = each.filter(|_| allocations > 1);
            let label = each.map_or_else(|| text.clone(), |each| format!("{text}, {} each", units::bytes(each)));
            Together { label, category, bytes, allocations, name: one.map(|_| text), site, key }
        })
    }
}

/// Adds up what has alike texts and the same key. A text that stands alone stays as it is.
pub(crate) fn together<K: Copy + Eq + Hash, V: Copy>(
    items: impl Iterator<Item = (String, K, V)>,
    add: impl Fn(V, V) -> V,
) -> impl Iterator<Item = (String, K, V)> {
    let mut merged: HashMap<(String, K), (Option<String>, V)> = HashMap::new();
    for (text, key, value) in items {
        merged
            .entry((pattern(&text), key))
            .and_modify(|(alone, sum)| {
                if alone.as_ref().is_some_and(|alone| *alone != text) {
                    *alone = None;
                }
                *sum = add(*sum, value);
            })
            .or_insert((Some(text), value));
    }
    merged.into_iter().map(|((pattern, key), (alone, sum))| (alone.unwrap_or(pattern), key, sum))
}

/// A text with `*` for each number that ends a word: `h.11.attn` and `block12/out` count layers, `conv2d` does not.
pub(crate) fn pattern(text: &str) -> String {
    // A name whose text never came is shown by its hash.
    if text.starts_with('#') {
        return text.to_owned();
    }
    let mut pattern = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|char: char| char.is_ascii_digit()) {
        let digits = rest[start..].find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len() - start);
        let end = start + digits;
        pattern.push_str(&rest[..start]);
        if rest[end..].starts_with(char::is_alphanumeric) {
            pattern.push_str(&rest[start..end]);
        } else {
            pattern.push('*');
        }
        rest = &rest[end..];
    }
    pattern.push_str(rest);
    pattern
}

/// True for a scope that is at a path, or inside it. `*` in the path stands for a number that ends a word, as where scopes that
/// are alike are told together: all of those are meant.
pub fn lies_in(scope: &str, path: &str) -> bool {
    let (mut scope, mut path) = (scope, path);
    while let Some(next) = path.chars().next() {
        let digits = scope.find(|char: char| !char.is_ascii_digit()).unwrap_or(scope.len());
        let ends_a_word = digits > 0 && !scope[digits..].starts_with(char::is_alphanumeric);
        let met = match next {
            '*' if ends_a_word => digits,
            next if scope.starts_with(next) => next.len_utf8(),
            _ => return false,
        };
        (scope, path) = (&scope[met..], &path[next.len_utf8()..]);
    }
    scope.is_empty() || scope.starts_with('/')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_that_end_a_word_are_replaced() {
        for (text, expected) in [
            ("transformer.h.11.attn.probabilities", "transformer.h.*.attn.probabilities"),
            ("transformer/h.3/attn", "transformer/h.*/attn"),
            ("block12/out[7]", "block*/out[*]"),
            ("layer_3_of_12", "layer_*_of_*"),
            ("conv2d.weight", "conv2d.weight"),
            ("7b model", "7b model"),
            ("größe9", "größe*"),
            ("9é", "9é"),
            ("#0123456789abcdef01", "#0123456789abcdef01"),
            ("", ""),
            ("42", "*"),
        ] {
            assert_eq!(pattern(text), expected);
        }
    }

    #[test]
    fn only_texts_that_differ_lose_their_numbers() {
        let items = [("h.1.out", 'a', 1), ("h.2.out", 'a', 2), ("h.2.out", 'b', 4), ("cuMemAlloc_v2", 'a', 8)];
        let items = items.into_iter().chain([("cuMemAlloc_v2", 'a', 16)]);
        let items = items.map(|(text, key, value)| (text.to_owned(), key, value));
        let mut merged: Vec<_> = together(items, |sum: i32, more| sum + more).collect();
        merged.sort();
        let expected = [("cuMemAlloc_v2", 'a', 24), ("h.*.out", 'a', 3), ("h.2.out", 'b', 4)];
        assert_eq!(merged, expected.map(|(text, key, value)| (text.to_owned(), key, value)));
    }

    #[test]
    fn a_path_with_stars_takes_in_all_that_are_alike() {
        for (scope, path, expected) in [
            ("model/h.0", "model/h.*", true),
            ("model/h.11/attn", "model/h.*", true),
            ("model/h.1", "model/h.1", true),
            ("model/h.11", "model/h.1", false),
            ("model/h.1", "model", true),
            ("models/h.1", "model", false),
            ("model", "model/h.*", false),
            ("model/h.", "model/h.*", false),
            ("model/h.1b", "model/h.*", false),
            ("layer_3_of_12/out", "layer_*_of_*", true),
            ("a*b/c", "a*b", true),
            ("größe9/x", "größe*", true),
            ("conv2d/w", "conv2d", true),
            ("", "", true),
            ("a", "", false),
        ] {
            assert_eq!(lies_in(scope, path), expected, "{scope} in {path}");
        }
    }

    proptest! {
        #[test]
        fn what_is_told_together_lies_in_its_pattern(scope in "[a-c0-9/._é]{0,12}", inner in "[a-c0-9/*]{0,6}") {
            prop_assert!(lies_in(&scope, &pattern(&scope)));
            let inside = format!("{scope}/{inner}");
            prop_assert!(lies_in(&inside, &pattern(&scope)) && lies_in(&inside, &scope));
        }

        #[test]
        fn what_lies_in_a_pattern_has_it(scope in "[ab12/]{0,8}", other in "[ab12/]{0,8}") {
            let path = pattern(&other);
            let starts = pattern(&scope).strip_prefix(&*path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            prop_assert_eq!(lies_in(&scope, &path), starts);
        }
    }
}
