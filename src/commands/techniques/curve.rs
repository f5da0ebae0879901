//! What is drawn of a profile: live bytes by category, and what is reserved, over its last steps.
//!
//! Owns: which moments a column shows. Refuses: to draw (picture.rs).
//!
//! Where nothing is computed, times are those of the allocations themselves and mean nothing: such a picture goes from one
//! change to the next, each as wide as the others, and is the same on every machine.

use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use memscope_core::Category;
use memscope_core::allocation::{Allocation, Model, flag};
use memscope_core::explorer::{Explorer, Query, Target};
use memscope_core::ledger::CATEGORIES;
use memscope_core::profile::Profile;
use memscope_core::timeline::{Bucket, Series};

/// Columns of a picture.
pub const COLUMNS: u64 = 240;
/// Steps that are shown: the last ones, when memory has found its shape.
const STEPS: usize = 2;

/// What is drawn of a profile.
pub struct Curve {
    /// Live bytes by category, a column each.
    pub columns: Vec<[u64; CATEGORIES]>,
    /// Most bytes that the driver had granted, a column each.
    pub reserved: Vec<u64>,
    /// Where steps begin: column and number.
    pub steps: Vec<(f64, u64)>,
    /// What the width stands for.
    pub span: Span,
}

/// What the width of a picture stands for.
pub enum Span {
    /// So many nanoseconds.
    Time(u64),
    /// So many allocations and frees.
    Changes(usize),
}

/// An allocation or a free: when, of what, how much is live and how much is reserved. A block changes what is live, and what holds
/// blocks what is reserved.
struct Change {
    ticks: u64,
    category: Category,
    live: i64,
    reserved: i64,
}

/// What is there.
#[derive(Clone, Copy, Default)]
struct Moment {
    live: [i64; CATEGORIES],
    reserved: i64,
}

impl Moment {
    fn apply(&mut self, change: &Change) {
        self.live[change.category as usize] += change.live;
        self.reserved += change.reserved;
    }
}

impl Curve {
    /// The last steps of a profile, on one device: over time if it computed, else from change to change.
    pub fn of(profile: &Path, device: &str, compute: bool) -> Result<Curve> {
        let profile = Profile::open(profile)?;
        if compute { Curve::over_time(&profile, device) } else { Ok(Curve::over_changes(&profile.model()?, device)) }
    }

    /// Step by step of one process; a device that has several is shown by its first.
    fn over_changes(model: &Model, device: &str) -> Curve {
        let position = model.device_of(device).unwrap_or_default();
        let own = |one: &&Allocation| one.device == position && !one.is(flag::OUTSIDE) && one.on_device();
        let allocations: Vec<_> = model.allocations().iter().filter(own).collect();
        let process = allocations.first().map_or(0, |first| first.process);
        let marks: Vec<_> = model.steps().filter(|mark| mark.process == process).collect();
        let marks = &marks[marks.len().saturating_sub(STEPS)..];
        let begin = marks.first().map_or(0, |mark| mark.ticks);

        let mut changes = Vec::with_capacity(2 * allocations.len());
        for one in &allocations {
            let live = if one.is_leaf() { one.requested as i64 } else { 0 };
            let reserved = if one.is(flag::BLOCK) { 0 } else { one.bytes as i64 };
            let change =
                |ticks, sign| Change { ticks, category: one.category, live: sign * live, reserved: sign * reserved };
            changes.push(change(one.birth_ticks, 1));
            if one.is(flag::DEAD) {
                changes.push(change(one.death_ticks, -1));
            }
        }
        changes.sort_by_key(|change| change.ticks);
        // After the last allocation, a free of what the steps did not make is the trainer's end.
        let last_birth = allocations.iter().map(|one| one.birth_ticks).max().unwrap_or(0);
        let lasting =
            |one: &&&Allocation| one.birth_ticks < begin && one.is(flag::DEAD) && one.death_ticks > last_birth;
        let end = allocations.iter().filter(lasting).map(|one| one.death_ticks).min().unwrap_or(u64::MAX);
        changes.retain(|change| change.ticks < end);
        let first = changes.partition_point(|change| change.ticks < begin);
        let (before, shown) = changes.split_at(first);
        let mut moment = Moment::default();
        before.iter().for_each(|change| moment.apply(change));
        let place = |ticks| shown.partition_point(|change| change.ticks < ticks) as f64 / shown.len().max(1) as f64;
        let (columns, reserved) =
            (0..COLUMNS as usize).map(|column| tallest_change(&mut moment, shown, column)).unzip();
        Curve {
            steps: marks.iter().map(|mark| (place(mark.ticks) * COLUMNS as f64, mark.number)).collect(),
            columns,
            reserved,
            span: Span::Changes(shown.len()),
        }
    }

    fn over_time(profile: &Profile, device: &str) -> Result<Curve> {
        let mut explorer = Explorer::of_profile(profile)?;
        let devices = explorer.answer(&Query::default()).devices;
        let position = devices.iter().position(|view| view.uuid == device).unwrap_or_default() as u16;
        let mut query = Query { target: Target::Device(position), ..Query::default() };
        let total = explorer.answer(&query).steps_total;
        query.steps = total.saturating_sub(STEPS)..total;
        let answer = explorer.answer(&query);
        let last = answer.session.last_time.0;
        let begin = answer.steps.first().map_or(0, |step| step.begin.0);
        let end = answer.steps.last().and_then(|step| step.end).map_or(last, |end| end.0);
        // Without the trainer's own end, in which memory is only given back.
        let end = end.min(answer.now.state.time.0);
        let span = begin..end.max(begin + 1);
        let steps = answer.steps.iter().map(|step| {
            let part = (step.begin.0 - span.start) as f64 / (span.end - span.start) as f64;
            (part * COLUMNS as f64, step.number)
        });
        let (columns, reserved) = (0..COLUMNS).map(|column| tallest(&answer.series, &span, column)).unzip();
        Ok(Curve { steps: steps.collect(), columns, reserved, span: Span::Time(span.end - span.start) })
    }

    /// The largest value in it.
    pub fn most(&self) -> u64 {
        self.most_live().max(if self.reserves() { self.most_reserved() } else { 0 })
    }

    fn most_live(&self) -> u64 {
        self.columns.iter().map(|live| live.iter().sum()).max().unwrap_or(0)
    }

    fn most_reserved(&self) -> u64 {
        self.reserved.iter().copied().max().unwrap_or(0)
    }

    /// True when more is reserved than what the driver rounds up.
    pub fn reserves(&self) -> bool {
        let live = self.most_live();
        self.most_reserved() > live + live / 50
    }
}

/// The moment of a column's span at which most was live; and the most that was reserved in it.
fn tallest(series: &Series, span: &Range<u64>, column: u64) -> ([u64; CATEGORIES], u64) {
    let width = series.width_ns.max(1);
    let long = u128::from(span.end - span.start);
    let at = |column: u64| span.start + (long * u128::from(column) / u128::from(COLUMNS)) as u64;
    let first = (at(column) / width) as usize;
    let last = (at(column + 1).div_ceil(width) as usize).max(first + 1).min(series.buckets.len());
    let covered = series.buckets.get(first..last.max(first)).unwrap_or_default();
    let sum = |bucket: &&Bucket| bucket.live.iter().sum::<u64>();
    let tallest = covered.iter().max_by_key(sum).or(series.buckets.last());
    let reserved = covered.iter().chain(tallest).map(|bucket| bucket.reserved).max();
    (tallest.map_or([0; CATEGORIES], |bucket| bucket.live), reserved.unwrap_or(0))
}

/// The moment of a column's changes at which most was live, and the most that was reserved, from the `moment` before them; that is
/// then the one after them.
fn tallest_change(moment: &mut Moment, changes: &[Change], column: usize) -> ([u64; CATEGORIES], u64) {
    let at = |column: usize| changes.len() * column / COLUMNS as usize;
    let mut tallest = None;
    let mut reserved = moment.reserved;
    for change in &changes[at(column)..at(column + 1)] {
        moment.apply(change);
        reserved = reserved.max(moment.reserved);
        let sum: i64 = moment.live.iter().sum();
        if tallest.is_none_or(|(most, _)| sum > most) {
            tallest = Some((sum, moment.live));
        }
    }
    let bytes = |bytes: i64| bytes.max(0) as u64;
    (tallest.map_or(moment.live, |(_, live)| live).map(bytes), bytes(reserved))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(bytes: &[u64]) -> Series {
        let bucket = |weights: &u64| Bucket { live: [0, *weights, 0, 0, 0, 0, 0], reserved: *weights };
        Series { width_ns: 10, buckets: bytes.iter().map(bucket).collect() }
    }

    #[test]
    fn a_column_keeps_its_peak() {
        // 480 buckets of 10 ns in 240 columns: two a column.
        let mut bytes = vec![1; 480];
        bytes[101] = 9;
        let series = series(&bytes);
        let columns: Vec<u64> = (0..COLUMNS).map(|column| tallest(&series, &(0..4800), column).0[1]).collect();
        assert_eq!(columns[50], 9);
        assert_eq!(columns.iter().filter(|bytes| **bytes == 1).count(), 239);
    }

    #[test]
    fn a_short_series_fills_all_columns() {
        let series = series(&[5, 7]);
        let columns: Vec<u64> = (0..COLUMNS).map(|column| tallest(&series, &(0..20), column).0[1]).collect();
        assert_eq!((columns[0], columns[119], columns[120], columns[239]), (5, 5, 7, 7));
        assert_eq!(tallest(&series, &(100..200), 3), ([0, 7, 0, 0, 0, 0, 0], 7), "nothing has changed since");
    }

    #[test]
    fn changes_are_as_wide_as_one_another() {
        // 480 changes in 240 columns, two each: 5 bytes come and go at once, once in the whole also 7.
        let change = |ticks: u64, live| Change { ticks, category: Category::Weights, live, reserved: 2 * live };
        let mut changes: Vec<_> =
            (0..480).map(|ticks| change(ticks * ticks, if ticks % 2 == 0 { 5 } else { -5 })).collect();
        changes[100] = change(100, 12);
        changes[101] = change(101, -12);
        let mut live = [0; CATEGORIES];
        live[Category::Weights as usize] = 1;
        let mut moment = Moment { live, reserved: 2 };
        let columns: Vec<_> =
            (0..COLUMNS as usize).map(|column| tallest_change(&mut moment, &changes, column)).collect();
        assert_eq!((columns[50].0[1], columns[50].1), (13, 26));
        assert_eq!(columns.iter().filter(|(live, reserved)| (live[1], *reserved) == (6, 12)).count(), 239);
        // Fewer changes than columns: what was live before goes on.
        assert_eq!(tallest_change(&mut moment, &changes[..1], 0).0[1], 1);
        assert_eq!(tallest_change(&mut moment, &changes[..1], 239).0[1], 6);
    }
}
