//! Puts two sides together.
//!
//! Owns: which rows are one. Refuses: figures of its own: each is one side's.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::explorer::{At, STACKED};
use crate::ledger::EventRows;
use crate::report::{Instant, seconds, together};

use super::{Change, Diff, Held, SCHEMA_VERSION, Side, SideReport, StepChange};

/// Bytes and allocations of the two sides.
type Pair = (Option<(u64, u64)>, Option<(u64, u64)>);

impl Diff {
    /// What the second holds less what the first holds, each with its name.
    pub fn of((first, before): (&str, &Side), (second, after): (&str, &Side)) -> Diff {
        let live = |side: &Side| side.rows().live_bytes();
        let summed = before.summed || after.summed;
        let mut by_category: Vec<Change> = STACKED
            .iter()
            .map(|category| {
                let bytes = |side: &Side| Some(side.rows().live[*category as usize]);
                Change::of_bytes(category.name(), bytes(before), bytes(after))
            })
            .collect();
        sort(&mut by_category);
        let row = |name: &str, of: fn(&EventRows) -> u64| {
            Change::of_bytes(name, Some(of(before.rows())), Some(of(after.rows())))
        };
        let steps = steps(&before.steps, &after.steps);
        let count = |has: fn(&StepChange) -> bool| steps.iter().filter(|step| has(step)).count() as u64;
        Diff {
            schema_version: SCHEMA_VERSION,
            memscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            before: SideReport::of(first, before),
            after: SideReport::of(second, after),
            live: Change::of_bytes("live", Some(live(before)), Some(live(after))),
            by_category,
            ledger: vec![
                row("rounding", |rows| rows.rounding),
                row("cached", |rows| rows.cached),
                row("reserved", |rows| rows.reserved),
            ],
            by_scope: if summed { Vec::new() } else { alike(&before.scopes, &after.scopes) },
            by_line: if summed { None } else { lines(before, after) },
            steps_in_both: count(|step| step.before.is_some() && step.after.is_some()),
            steps_only_before: count(|step| step.after.is_none()),
            steps_only_after: count(|step| step.before.is_none()),
            steps,
        }
    }
}

impl SideReport {
    fn of(name: &str, side: &Side) -> SideReport {
        SideReport {
            name: name.to_owned(),
            asked: Instant::from(side.at).to_string(),
            ran_out: matches!(side.at, At::Refused(_)),
            exists: side.exists,
            time_s: seconds(side.state.time),
            step: side.state.step,
            phase: Some(side.phase.clone()).filter(|phase| !phase.is_empty()),
            lines: side.sites.is_some(),
            host: side.of_host,
            summed: side.summed,
        }
    }
}

impl Change {
    fn of_bytes(name: &str, before: Option<u64>, after: Option<u64>) -> Change {
        let count = |bytes: Option<u64>| bytes.map(|bytes| (bytes, 0));
        let change = Change::of(name.to_owned(), (count(before), count(after)));
        Change { allocations_before: None, allocations_after: None, ..change }
    }

    fn of(name: String, (before, after): Pair) -> Change {
        let bytes = |side: Option<(u64, u64)>| side.map(|(bytes, _)| bytes);
        let count = |side: Option<(u64, u64)>| side.map(|(_, count)| count);
        Change {
            name,
            before: bytes(before),
            after: bytes(after),
            difference: difference(bytes(before), bytes(after)),
            allocations_before: count(before),
            allocations_after: count(after),
        }
    }
}

/// It wraps as all sums do: a damaged profile may hold any number.
fn difference(before: Option<u64>, after: Option<u64>) -> i64 {
    after.unwrap_or(0).wrapping_sub(before.unwrap_or(0)) as i64
}

fn sort(rows: &mut [Change]) {
    rows.sort_by(|row, other| {
        let key = |row: &Change| (Reverse(row.difference.unsigned_abs()), Reverse(row.before.max(row.after)));
        key(row).cmp(&key(other)).then_with(|| row.name.cmp(&other.name))
    });
}

fn add(one: Pair, other: Pair) -> Pair {
    let sum = |one: Option<(u64, u64)>, other: Option<(u64, u64)>| match (one, other) {
        (Some((bytes, count)), Some((more, others))) => Some((bytes.wrapping_add(more), count.wrapping_add(others))),
        (one, other) => one.or(other),
    };
    (sum(one.0, other.0), sum(one.1, other.1))
}

fn pairs<'s>(before: &'s [Held], after: &'s [Held]) -> impl Iterator<Item = (String, Pair)> + 's {
    let amount = |held: &Held| Some((held.bytes, held.allocations));
    let first = before.iter().map(move |held| (held.name.clone(), (amount(held), None)));
    first.chain(after.iter().map(move |held| (held.name.clone(), (None, amount(held)))))
}

/// Names that differ only in numbers as one, on both sides together: a model of twelve layers and one of twenty-four are compared
/// layer with layer.
fn alike(before: &[Held], after: &[Held]) -> Vec<Change> {
    let texts = pairs(before, after).map(|(name, pair)| (name, (), pair));
    let mut rows: Vec<Change> = together(texts, add).map(|(name, (), pair)| Change::of(name, pair)).collect();
    sort(&mut rows);
    rows
}

/// Lines by their text. A side without lines holds everything where none was recorded.
fn lines(before: &Side, after: &Side) -> Option<Vec<Change>> {
    if before.sites.is_none() && after.sites.is_none() {
        return None;
    }
    let of = |side: &Side| match &side.sites {
        Some(sites) => sites.clone(),
        None => {
            let sum = |sum: Held, held: &Held| Held {
                name: String::new(),
                bytes: sum.bytes.wrapping_add(held.bytes),
                allocations: sum.allocations.wrapping_add(held.allocations),
            };
            let all = side.scopes.iter().fold(Held::default(), sum);
            Some(all).filter(|all| all.allocations > 0).into_iter().collect()
        }
    };
    let mut rows: BTreeMap<String, Pair> = BTreeMap::new();
    for (name, pair) in pairs(&of(before), &of(after)) {
        let known = rows.entry(name).or_default();
        *known = add(*known, pair);
    }
    let mut rows: Vec<Change> = rows.into_iter().map(|(name, pair)| Change::of(name, pair)).collect();
    sort(&mut rows);
    Some(rows)
}

/// Steps by number; of one that began several times the largest.
fn steps(before: &[(u64, u64)], after: &[(u64, u64)]) -> Vec<StepChange> {
    let mut steps: BTreeMap<u64, (Option<u64>, Option<u64>)> = BTreeMap::new();
    for (number, peak) in before {
        let known = &mut steps.entry(*number).or_default().0;
        *known = (*known).max(Some(*peak));
    }
    for (number, peak) in after {
        let known = &mut steps.entry(*number).or_default().1;
        *known = (*known).max(Some(*peak));
    }
    steps
        .into_iter()
        .map(|(step, (before, after))| StepChange {
            step,
            before,
            after,
            difference: before.and(after).map(|_| difference(before, after)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ledger::CATEGORIES;

    fn held(name: &str, bytes: u64) -> Held {
        Held { name: name.to_owned(), bytes, allocations: 1 }
    }

    #[test]
    fn layers_are_alike_across_sides() {
        let before = [held("model/h.0", 5), held("loss", 7), held("old", 1)];
        let after = [held("model/h.0", 6), held("model/h.1", 4), held("loss", 7), held("new", 2)];
        let rows = alike(&before, &after);
        let rows: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.before, row.after, row.difference)).collect();
        let expected = [
            ("model/h.*", Some(5), Some(10), 5),
            ("new", None, Some(2), 2),
            ("old", Some(1), None, -1),
            ("loss", Some(7), Some(7), 0),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn steps_are_matched_by_number() {
        let steps = steps(&[(1, 10), (2, 20)], &[(2, 25), (3, 30)]);
        let expected = [(1, Some(10), None, None), (2, Some(20), Some(25), Some(5)), (3, None, Some(30), None)];
        let steps: Vec<_> = steps.iter().map(|step| (step.step, step.before, step.after, step.difference)).collect();
        assert_eq!(steps, expected);
    }

    #[test]
    fn where_a_side_is_summed_only_figures_are_compared_and_lists_are_not() {
        let mut whole = Side { exists: true, scopes: vec![held("model", 7)], ..Side::default() };
        whole.sites = Some(vec![held("train.py:1", 7)]);
        whole.state.rows.live[1] = 7;
        let summed = Side { scopes: Vec::new(), sites: None, summed: true, ..whole.clone() };
        for (before, after, which) in [(&whole, &summed, "after"), (&summed, &whole, "before")] {
            let diff = Diff::of(("before", before), ("after", after));
            assert_eq!((diff.live.before, diff.live.after), (Some(7), Some(7)));
            assert_eq!((diff.by_scope.len(), diff.by_line.is_some()), (0, false));
            let text = super::super::text(&diff);
            assert!(text.contains(&format!("{which} is summed only at that moment (--keep)")), "{text}");
            assert!(!text.contains("By scope") && !text.contains("lines of the program were recorded"), "{text}");
        }
    }

    fn side() -> impl Strategy<Value = Side> {
        let one = ("[a-c](/h\\.[0-9]){0,2}", 0u64..1 << 40, 0usize..CATEGORIES, "(train.py:[1-4])?");
        (proptest::collection::vec(one, 0..12), any::<bool>()).prop_map(|(allocations, lines)| {
            let mut side = Side { exists: true, ..Side::default() };
            let mut sites = Vec::new();
            for (scope, bytes, category, line) in allocations {
                side.state.rows.live[category] += bytes;
                side.state.rows.reserved += bytes;
                side.scopes.push(held(&scope, bytes));
                sites.push(held(&line, bytes));
            }
            side.sites = lines.then_some(sites);
            side
        })
    }

    proptest! {
        #[test]
        fn each_list_adds_up_to_its_sides(before in side(), after in side()) {
            let diff = Diff::of(("a", &before), ("b", &after));
            let (first, second) = (before.rows().live_bytes(), after.rows().live_bytes());
            prop_assert_eq!((diff.live.before, diff.live.after), (Some(first), Some(second)));
            for rows in [Some(&diff.by_category), Some(&diff.by_scope), diff.by_line.as_ref()].into_iter().flatten() {
                prop_assert_eq!(rows.iter().map(|row| row.before.unwrap_or(0)).sum::<u64>(), first);
                prop_assert_eq!(rows.iter().map(|row| row.after.unwrap_or(0)).sum::<u64>(), second);
                prop_assert_eq!(rows.iter().map(|row| row.difference).sum::<i64>(), second as i64 - first as i64);
                for row in rows {
                    prop_assert_eq!(row.before.unwrap_or(0) as i64 + row.difference, row.after.unwrap_or(0) as i64);
                }
                let sizes: Vec<u64> = rows.iter().map(|row| row.difference.unsigned_abs()).collect();
                prop_assert!(sizes.is_sorted_by(|one, next| one >= next), "{:?}", sizes);
            }
            prop_assert_eq!(diff.by_line.is_some(), before.sites.is_some() || after.sites.is_some());
        }
    }
}
