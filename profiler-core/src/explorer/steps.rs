//! Steps of a target as a view shows them.
//!
//! Owns: growth, shape, and the marks on the chart. Refuses: which growth is a leak (`findings`).

use std::ops::Range;

use crate::findings::{Detail, Finding};
use crate::journal::entry::Nanoseconds;
use crate::ledger::CATEGORIES;
use crate::timeline::{DeviceTrack, State, StepFigures};

use super::answer::StepView;

/// Most marks of steps that are given; the ends of more are too close to be drawn.
const MARKS: usize = 1024;

/// The steps of a window, and the position of the first.
pub(super) fn window(
    track: &DeviceTrack,
    window: &Range<usize>,
    findings: &[Finding],
    device: Option<&str>,
) -> (usize, Vec<StepView>) {
    let steps = &track.figures.steps;
    let first = window.start.min(steps.len());
    let end = window.end.clamp(first, steps.len());
    let grew: Vec<(u64, u64)> = findings
        .iter()
        .filter_map(|finding| match &finding.detail {
            Detail::StepGrowth(growth) if device.is_none_or(|device| growth.device == device) => {
                Some((growth.first_step, growth.last_step))
            }
            _ => None,
        })
        .collect();
    let view = |position: usize| {
        let before = position.checked_sub(1).map(|before| &steps[before]);
        let leaks = |step: &StepFigures| grew.iter().any(|(first, last)| (first + 1..=*last).contains(&step.number));
        StepView { leaks: leaks(&steps[position]), ..step(&steps[position], before) }
    };
    (first, (first..end).map(view).collect())
}

fn step(step: &StepFigures, before: Option<&StepFigures>) -> StepView {
    let live = |state: State| state.rows.live_bytes();
    let growth = step.end.zip(before.and_then(|before| before.end));
    StepView {
        number: step.number,
        turn: step.turn,
        begin: step.begin,
        end: step.end.map(|state| state.time),
        peak: live(step.peak),
        at_peak: step.peak.rows.live,
        allocations: step.births,
        at_end: step.end.map(live),
        growth: growth.map(|(end, before)| live(end).wrapping_sub(live(before)) as i64),
        shape: step.shape.parts().to_vec(),
        leaks: false,
    }
}

/// Live bytes by category at the end of the step before this one.
pub(super) fn before(track: &DeviceTrack, now: &State) -> Option<[u64; CATEGORIES]> {
    let position = track.figures.step_at(now.step?, now.time)?;
    let before = track.figures.steps.get(position.checked_sub(1)?)?;
    before.end.map(|state| state.rows.live)
}

/// When steps began; of many, the first and the last, and every second, fourth, … one, always the same ones.
pub(super) fn marks(track: &DeviceTrack) -> Vec<(Nanoseconds, u64)> {
    thinned(track.figures.steps.iter().map(|step| (step.begin, step.number)), track.steps_forgotten)
}

/// The same of beginnings, before which so many were forgotten.
pub(super) fn thinned(
    begins: impl ExactSizeIterator<Item = (Nanoseconds, u64)>,
    forgotten: usize,
) -> Vec<(Nanoseconds, u64)> {
    let stride = begins.len().div_ceil(MARKS).next_power_of_two();
    let last = begins.len().saturating_sub(1);
    let kept = |position: usize| position == 0 || position == last || (forgotten + position).is_multiple_of(stride);
    begins.enumerate().filter(|(position, _)| kept(*position)).map(|(_, begin)| begin).collect()
}

/// The step after the one that is seen at a moment, or before it, given what is known of them; `None` where there is none. Numbers
/// of steps follow one another where marks were thinned out.
pub(super) fn beside(marks: &[(Nanoseconds, u64)], total: usize, now: Option<u64>, forward: bool) -> Option<u64> {
    let number = |mark: &(Nanoseconds, u64)| mark.1;
    let Some(now) = now else {
        return marks.first().map(number).filter(|_| forward);
    };
    if marks.len() == total {
        let here = marks.iter().position(|mark| mark.1 == now)?;
        let there = if forward { here.checked_add(1) } else { here.checked_sub(1) };
        return there.and_then(|there| marks.get(there)).map(number);
    }
    let known = marks.first()?.1..=marks.last()?.1;
    let there = if forward { now.checked_add(1) } else { now.checked_sub(1) };
    there.filter(|there| known.contains(there))
}

/// When the step begins that follows the one in which a time lies, or that comes before it, among those that are marked.
pub(super) fn beside_time(marks: &[(Nanoseconds, u64)], now: Nanoseconds, forward: bool) -> Option<Nanoseconds> {
    let begun = marks.partition_point(|(begin, _)| *begin <= now);
    let there = if forward { begun } else { begun.checked_sub(2)? };
    marks.get(there).map(|(begin, _)| *begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_numbers_come_again_one_goes_by_time() {
        let marks = [(10, 0), (20, 1), (30, 0), (40, 1)].map(|(begin, number)| (Nanoseconds(begin), number));
        let beside = |now, forward| beside_time(&marks, Nanoseconds(now), forward).map(|begin| begin.0);
        for (now, before, after) in [
            (5, None, Some(10)),
            (10, None, Some(20)),
            (25, Some(10), Some(30)),
            (30, Some(20), Some(40)),
            (99, Some(30), None),
        ] {
            assert_eq!((beside(now, false), beside(now, true)), (before, after), "{now}");
        }
    }

    #[test]
    fn one_goes_from_the_first_step_to_the_last_and_back() {
        for (total, forgotten) in [(0, 0), (1, 0), (1000, 3), (1457, 0), (5001, 13)] {
            let begins = (0..total).map(|step| (Nanoseconds(10 * step as u64), step as u64 + 7));
            let marks = thinned(begins.clone(), forgotten);
            assert!(marks.len() <= MARKS + 2, "{}", marks.len());
            let walk = |forward: bool, from: Option<u64>| -> Vec<u64> {
                std::iter::successors(beside(&marks, total, from, forward), |now| {
                    beside(&marks, total, Some(*now), forward)
                })
                .collect()
            };
            let all: Vec<u64> = begins.map(|(_, number)| number).collect();
            assert_eq!(walk(true, None), all);
            assert_eq!(walk(false, None), Vec::<u64>::new());
            let back: Vec<u64> = all.iter().rev().skip(1).copied().collect();
            assert_eq!(walk(false, all.last().copied()), back);
        }
    }
}
