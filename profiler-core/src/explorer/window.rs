//! A span of time, as finely as it is drawn: from hours to single nanoseconds.
//!
//! Owns: the largest state within each part of the span, and what happened in it. Refuses: pixels.

use std::collections::HashMap;
use std::ops::Range;

use crate::allocation::{EXIT, MarkerKind, Model};
use crate::findings;
use crate::journal::entry::Nanoseconds;
use crate::ledger::{CATEGORIES, EventRows};
use crate::timeline::{Bucket, Series, Walk};

use super::history::{History, Peak, Source, Sums};
use super::listed::Listed;
use super::part::{Part, Positions};
use super::query::WindowQuery;

/// Most buckets, spans and marks of each kind that are told.
const MOST: usize = 1 << 14;

/// A span of time of the target.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WindowView {
    /// The moment until which changes are in it: a large session that runs is arranged less often than the rest.
    pub as_of: Nanoseconds,
    /// The span that was asked for.
    pub range: Range<Nanoseconds>,
    /// Its parts, in the order of time.
    pub buckets: Vec<WindowBucket>,
    /// Steps of the target that run within the span, at least a bucket long.
    pub steps: Vec<StepSpan>,
    /// How many more there are, shorter ones.
    pub steps_hidden: usize,
    /// Phases of the target's processes, at least a bucket long.
    pub phases: Vec<PhaseSpan>,
    /// How many more there are, shorter ones.
    pub phases_hidden: usize,
    /// When the driver refused the target's processes an allocation within the span.
    pub refusals: Vec<RefusalMark>,
    /// How many more there are.
    pub refusals_hidden: usize,
}

/// One part of the span.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WindowBucket {
    /// When it begins; it lasts until the next one begins.
    pub begin: Nanoseconds,
    /// Where live bytes were largest in it: its beginning, or right after a change.
    pub time: Nanoseconds,
    /// The ledger of device memory at that moment: of several devices the sums.
    pub rows: EventRows,
    /// How many allocations were live at that moment; `None` where not all are listed.
    pub allocations: Option<u64>,
    /// Largest reserved bytes in it, maybe at another moment.
    pub reserved: u64,
    /// Host memory by category, where it was largest in this bucket. Only for all processes together.
    pub host: [u64; CATEGORIES],
}

/// A step in the span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepSpan {
    /// Its number.
    pub number: u64,
    /// Which time it is that the number comes, from 1.
    pub turn: u32,
    /// When it began.
    pub begin: Nanoseconds,
    /// When it ended, or the interpreters of its processes began to end in it; `None` while it runs, or when the session ended in it.
    pub end: Option<Nanoseconds>,
}

/// A phase in the span.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhaseSpan {
    /// Its name.
    pub name: String,
    /// Position of its process among the answer's.
    pub process: u32,
    /// When it began.
    pub begin: Nanoseconds,
    /// When the next phase of this process began; `None` for the last one.
    pub end: Option<Nanoseconds>,
}

/// A refused allocation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusalMark {
    /// When.
    pub time: Nanoseconds,
    /// Process id.
    pub pid: u32,
    /// Position of its device among the answer's; `None` for host memory.
    pub device: Option<u16>,
    /// Bytes asked for.
    pub requested: u64,
    /// Who was refused: the driver's function, or the allocator's by which it says so.
    pub function: String,
    /// True when the program was told that memory is out; false where an allocator could still help itself, and where the
    /// driver refused for another reason.
    pub out_of_memory: bool,
}

/// Equal parts of a range.
#[derive(Clone)]
pub(super) struct Ruler {
    start: u64,
    length: u64,
    parts: u64,
}

impl Ruler {
    pub fn of(range: &Range<Nanoseconds>, parts: usize) -> Ruler {
        let length = range.end.0.saturating_sub(range.start.0);
        Ruler { start: range.start.0, length, parts: (parts.clamp(1, MOST) as u64).min(length) }
    }

    pub fn parts(&self) -> usize {
        self.parts as usize
    }

    /// Where a part begins; that behind the last one at the end.
    pub fn begin(&self, part: usize) -> Nanoseconds {
        let offset = u128::from(self.length) * part as u128 / u128::from(self.parts.max(1));
        Nanoseconds(self.start + offset as u64)
    }

    /// The part in which a time of the range is.
    pub fn part(&self, time: Nanoseconds) -> usize {
        let offset = u128::from(time.0.saturating_sub(self.start)) * u128::from(self.parts);
        let mut part = (offset / u128::from(self.length.max(1))) as usize;
        // The beginnings are rounded down.
        while self.begin(part + 1) <= time {
            part += 1;
        }
        part
    }
}

/// The largest state within each part of a range. `range.start` is before `range.end`.
pub(super) fn peaks(
    history: &History,
    source: Source<'_>,
    sums: &Sums,
    range: &Range<Nanoseconds>,
    ruler: &Ruler,
) -> Vec<Peak> {
    let mut chunk = history.chunk_of(range.start);
    let before = sums.chunk(chunk);
    let mut now = Peak::at(history.last_before_chunk(chunk), range.start, before.before);
    let mut peaks: Vec<Peak> = Vec::with_capacity(ruler.parts());
    let open = |peaks: &mut Vec<Peak>, until: usize, now: &Peak| {
        while peaks.len() < until {
            peaks.push(Peak::at(now.order, ruler.begin(peaks.len()), now.ledger));
        }
    };
    while let Some(begin) = history.begin_of(chunk).filter(|begin| *begin < range.end) {
        let next = history.begin_of(chunk + 1);
        if begin >= range.start
            && let Some(next) = next.filter(|next| *next < range.end)
            && ruler.part(begin) == ruler.part(next)
        {
            open(&mut peaks, ruler.part(begin) + 1, &now);
            let last = peaks.len() - 1;
            peaks[last].include(&sums.chunk(chunk).peak);
            now.ledger = sums.chunk(chunk + 1).before;
            now.order = history.last_of(chunk);
            chunk += 1;
            continue;
        }
        let mut next_part = ruler.begin(peaks.len());
        for turn in history.turns(source, chunk) {
            let allocation = source.allocation(turn.id);
            if turn.time >= range.end {
                break;
            }
            // Most changes are in the part of the one before.
            if turn.time >= next_part {
                open(&mut peaks, ruler.part(turn.time) + 1, &now);
                next_part = ruler.begin(peaks.len());
            }
            if sums.part.counts(source.model, allocation) {
                now.ledger.turn(allocation, turn.ends);
                now.order = turn.order;
                if let Some(last) = peaks.last_mut() {
                    last.include(&Peak::at(turn.order, turn.time, now.ledger));
                }
            }
        }
        chunk += 1;
    }
    open(&mut peaks, ruler.parts(), &now);
    peaks
}

/// What the series knows of the parts of a range whose lists are not whole.
pub(super) struct Remembered<'a> {
    pub listed: &'a Listed,
    pub series: &'a Series,
}

impl Remembered<'_> {
    /// The largest state of a part; `None` where its lists are whole, or nothing is known of it.
    pub fn largest(&self, ruler: &Ruler, part: usize) -> Option<EventRows> {
        let range = ruler.begin(part)..ruler.begin(part + 1);
        // What ended at the very moment from which on all is listed is not.
        if self.listed.has_all(&(Nanoseconds(range.start.0.saturating_sub(1))..range.end)) {
            return None;
        }
        let width = self.series.width_ns.max(1);
        let last = self.series.buckets.len().checked_sub(1)?;
        let first = ((range.start.0 / width) as usize).min(last);
        let until = ((range.end.0.saturating_sub(1) / width) as usize).clamp(first, last);
        let buckets = &self.series.buckets[first..=until];
        let largest = buckets.iter().max_by_key(|bucket| bucket.live_bytes())?;
        let reserved = buckets.iter().map(|bucket| bucket.reserved).max()?;
        Some(Bucket { live: largest.live, reserved }.rows())
    }
}

/// Makes the view; steps, phases and refusals are put in by [`marks`].
pub(super) fn view(
    history: &mut History,
    source: Source<'_>,
    (part, listed): (Part, Option<&Listed>),
    query: &WindowQuery,
) -> WindowView {
    let range = query.range.clone();
    let ruler = Ruler::of(&range, query.buckets);
    let mut view = WindowView { range: range.clone(), ..WindowView::default() };
    if ruler.parts() == 0 {
        return view;
    }
    let sums = history.sums(source, part);
    let found = peaks(history, source, &sums, &range, &ruler);
    let bucket = |(number, peak): (usize, &Peak)| WindowBucket {
        begin: ruler.begin(number),
        time: peak.time,
        rows: peak.ledger.rows,
        allocations: Some(peak.ledger.allocations),
        reserved: peak.reserved,
        host: [0; CATEGORIES],
    };
    view.buckets = found.iter().enumerate().map(bucket).collect();
    let remembered = |part: Part| Some(Remembered { listed: listed?, series: part.track(source.walk)?.series() });
    let told = |part: Part, number: usize| remembered(part)?.largest(&ruler, number);
    for (number, bucket) in view.buckets.iter_mut().enumerate() {
        if let Some(rows) = told(part, number) {
            *bucket = WindowBucket { time: bucket.begin, rows, reserved: rows.reserved, allocations: None, ..*bucket };
        }
    }
    if part == Part::All {
        let sums = history.sums(source, Part::Host);
        let host = peaks(history, source, &sums, &range, &ruler);
        for (number, (bucket, peak)) in view.buckets.iter_mut().zip(host).enumerate() {
            bucket.host = told(Part::Host, number).unwrap_or(peak.ledger.rows).live;
        }
    }
    view
}

/// What happened within the span.
pub(super) fn marks(view: &mut WindowView, source: Source<'_>, positions: &Positions, part: Part, query: &WindowQuery) {
    let Source { model, walk } = source;
    let range = &query.range;
    let width = range.end.0.saturating_sub(range.start.0) / query.buckets.max(1) as u64;
    let shows =
        |begin: Nanoseconds, end: Option<Nanoseconds>| begin < range.end && end.is_none_or(|end| end > range.start);
    let wide =
        |begin: Nanoseconds, end: Option<Nanoseconds>| end.is_none_or(|end| end.0.saturating_sub(begin.0) >= width);
    if let Some(track) = part.track(walk) {
        let left = left(source, part);
        for step in &track.figures.steps {
            let end = step.end.map(|state| state.time);
            let left = left.filter(|left| step.begin <= *left && end.is_none_or(|end| *left < end));
            let span = StepSpan { number: step.number, turn: step.turn, begin: step.begin, end: left.or(end) };
            if !shows(span.begin, span.end) {
                continue;
            }
            match wide(span.begin, span.end) && view.steps.len() < MOST {
                true => view.steps.push(span),
                false => view.steps_hidden += 1,
            }
        }
    }
    phases(source, part, |name, process, begin, end| {
        if !shows(begin, end) {
            return;
        }
        match wide(begin, end) && view.phases.len() < MOST {
            true => view.phases.push(PhaseSpan { name: model.names.text(name), process, begin, end }),
            false => view.phases_hidden += 1,
        }
    });
    view.phases.sort_by_key(|span| (span.begin, span.process));
    refusals(view, model, walk, positions, part);
}

/// When the interpreter of the last of a part's processes that take steps began to end; `None` where one of them goes on.
fn left(source: Source<'_>, part: Part) -> Option<Nanoseconds> {
    let Source { model, walk } = source;
    let mut stepping: HashMap<u32, Option<Nanoseconds>> = HashMap::new();
    for moment in &walk.markers {
        let marker = &model.markers[moment.marker as usize];
        if !concerns(model, part, marker.process) {
            continue;
        }
        match (marker.phase(), &marker.kind) {
            (_, MarkerKind::Step(_)) => drop(stepping.insert(marker.process, None)),
            (Some(phase), _) if model.names.id(phase) == EXIT => {
                stepping.entry(marker.process).and_modify(|left| *left = Some(moment.time));
            }
            _ => {}
        }
    }
    stepping.into_values().try_fold(Nanoseconds(0), |last, left| Some(last.max(left?)))
}

/// Calls `tell` with each phase of a part: name, process, begin, end.
fn phases(source: Source<'_>, part: Part, mut tell: impl FnMut(u32, u32, Nanoseconds, Option<Nanoseconds>)) {
    let Source { model, walk } = source;
    let mut open: Vec<Option<(u32, Nanoseconds)>> = vec![None; model.processes.len()];
    for moment in &walk.markers {
        let marker = &model.markers[moment.marker as usize];
        let MarkerKind::Phase(name) = marker.kind else { continue };
        if !concerns(model, part, marker.process) {
            continue;
        }
        if let Some((was, begin)) = open[marker.process as usize].replace((name, moment.time)) {
            tell(was, marker.process, begin, Some(moment.time));
        }
    }
    for (process, last) in (0..).zip(open) {
        if let Some((name, begin)) = last {
            tell(name, process, begin, walk.exits.get(process as usize).copied().flatten());
        }
    }
}

/// True when a process's marks are a part's.
fn concerns(model: &Model, part: Part, process: u32) -> bool {
    match part {
        Part::All | Part::Host => true,
        Part::Process(own) => own == process,
        Part::Device(device) => {
            model.processes[process as usize].devices.values().any(|other| model.resolve(*other) == device)
        }
    }
}

fn refusals(view: &mut WindowView, model: &Model, walk: &Walk, positions: &Positions, part: Part) {
    for moment in walk.markers.iter().filter(|moment| view.range.contains(&moment.time)) {
        let marker = &model.markers[moment.marker as usize];
        let Some(failure) = marker.failure().filter(|_| concerns(model, part, marker.process)) else { continue };
        if view.refusals.len() >= MOST {
            view.refusals_hidden += 1;
            continue;
        }
        view.refusals.push(RefusalMark {
            time: moment.time,
            pid: model.processes[marker.process as usize].info.pid,
            device: moment.device.and_then(|device| positions.shown_device(device)),
            requested: failure.requested,
            function: model.names.text(failure.function),
            out_of_memory: findings::reaches(model, marker.process, failure),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_time_lies_in_the_part_that_begins_last_before_it(start in 0u64..1000, length in 1u64..5000, parts in 1usize..300, at in 0u64..5000) {
            let range = Nanoseconds(start)..Nanoseconds(start + length);
            let ruler = Ruler::of(&range, parts);
            let time = Nanoseconds(start + at % length);
            let last = (0..ruler.parts()).rev().find(|part| ruler.begin(*part) <= time).expect("the first begins at the start");
            prop_assert_eq!(ruler.part(time), last);
            prop_assert_eq!(ruler.begin(0), range.start);
            prop_assert_eq!(ruler.begin(ruler.parts()), range.end);
        }
    }
}
