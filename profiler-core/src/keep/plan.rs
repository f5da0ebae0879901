//! Which moments of what is summed stay, allocation by allocation.
//!
//! Owns: following steps and peaks as far as that decides. Refuses: to drop anything.

use std::collections::HashMap;

use crate::allocation::{Model, StepMark};
use crate::journal::entry::Nanoseconds;
use crate::timeline::{DeviceTrack, State, Walk};

use super::asked::Keep;
use super::carried::KeptSpan;

/// A change: its position, and when it was.
type Point = (u32, Nanoseconds);

/// From a change to another, both included; `None` for an end that has not come.
type Between = (Point, Option<Point>);

/// Follows a session.
#[derive(Debug)]
pub(crate) struct Plan {
    keep: Keep,
    /// By process: the step that it is in, and where that began.
    steps: HashMap<u32, (u64, Point)>,
    /// Markers until this position were seen.
    seen: u32,
    /// The steps that are wanted, of [`Keep::Steps`].
    wanted: Vec<Between>,
    /// By position of the device, `None` for host memory: position of the peak, and where its step begins and ends.
    peaks: HashMap<Option<usize>, (u32, Between)>,
}

impl Plan {
    /// Nothing was seen yet.
    pub fn new(keep: Keep) -> Plan {
        Plan { keep, steps: HashMap::new(), seen: 0, wanted: Vec::new(), peaks: HashMap::new() }
    }

    /// Looks at what was walked since the last time, and says what stays, in order: at last, all that comes.
    pub fn spans(&mut self, model: &Model, walk: &Walk) -> Vec<KeptSpan> {
        self.note_steps(model, walk);
        let mut spans = match self.keep {
            Keep::Last(_) => Vec::new(),
            Keep::Steps(..) => self.wanted.clone(),
            Keep::Peaks => {
                self.note_peaks(model, walk);
                // The step that runs may come to be the last one, or that of a peak.
                let running = self.steps.values().map(|(_, begin)| *begin).min().map(|begin| (begin, None));
                self.peaks.values().map(|(_, span)| *span).chain(running).collect()
            }
        };
        let last = walk.walked.order;
        spans.push(((last, walk.clock.time_of(last)), None));
        spans.sort_unstable_by_key(|(from, _)| *from);
        united(spans)
    }

    fn note_steps(&mut self, model: &Model, walk: &Walk) {
        for (point, StepMark { process, number, .. }) in step_marks(model, walk, self.seen) {
            let before = self.steps.get(&process).map(|(number, _)| *number);
            if before != Some(number) {
                self.steps.insert(process, (number, point));
                self.note_wanted(point);
            }
        }
        self.seen = walk.walked.order;
        let ended = |process: &u32| model.processes[*process as usize].counters.ended;
        self.steps.retain(|process, _| !ended(process));
        self.note_wanted((self.seen, walk.clock.time_of(self.seen)));
    }

    /// Begins or ends a span of wanted steps: it lasts while any process is in one.
    fn note_wanted(&mut self, here: Point) {
        let within = self.steps.values().any(|(number, _)| self.keep.wants(*number));
        match self.wanted.last_mut() {
            Some((_, end @ None)) if !within => *end = Some(here),
            Some((_, None)) => {}
            _ if within => self.wanted.push((here, None)),
            _ => {}
        }
    }

    fn note_peaks(&mut self, model: &Model, walk: &Walk) {
        let tracks = walk.devices.iter().enumerate().map(|(device, track)| (Some(device), track));
        for (place, track) in tracks.chain([(None, &walk.host)]) {
            let Some(peak) = track.figures.live else { continue };
            let known = self.peaks.get(&place).filter(|(order, _)| *order == peak.order).map(|(_, (from, _))| *from);
            let from = known.unwrap_or_else(|| begin_of(model, walk, &peak));
            self.peaks.insert(place, (peak.order, (from, end_of(track, &peak))));
        }
    }
}

/// Where the step of a peak began, as far as markers are kept; without a step, the peak itself.
fn begin_of(model: &Model, walk: &Walk, peak: &State) -> Point {
    let of_step = |(point, mark): &(Point, StepMark)| point.0 <= peak.order && Some(mark.number) == peak.step;
    let begin = step_marks(model, walk, 0).find(of_step);
    begin.map_or((peak.order, peak.time), |(point, _)| point)
}

/// Where it ends; `None` while it runs.
fn end_of(track: &DeviceTrack, peak: &State) -> Option<Point> {
    let Some(step) = peak.step else { return Some((peak.order, peak.time)) };
    if track.now.step == Some(step) {
        return None;
    }
    let (_, figures) = track.step_named(step)?;
    figures.end.map(|end| (end.order, end.time).max((peak.order, peak.time)))
}

/// Beginnings of steps after a position.
fn step_marks<'m>(model: &'m Model, walk: &'m Walk, after: u32) -> impl Iterator<Item = (Point, StepMark)> + use<'m> {
    let first = walk.markers.partition_point(|moment| moment.order <= after);
    let mark = |marker: u32| model.step_mark(&model.markers[marker as usize]);
    walk.markers[first..].iter().filter_map(move |moment| Some(((moment.order, moment.time), mark(moment.marker)?)))
}

/// Spans that meet become one. They are sorted by where they begin.
fn united(spans: Vec<Between>) -> Vec<KeptSpan> {
    let mut united: Vec<Between> = Vec::new();
    for (from, until) in spans {
        match united.last_mut() {
            Some((_, last)) if last.is_none_or(|last| from.0 <= last.0.saturating_add(1)) => {
                *last = last.zip(until).map(|(one, other)| one.max(other));
            }
            _ => united.push((from, until)),
        }
    }
    let span = |((from, begin), until): Between| KeptSpan {
        from,
        until: until.map_or(u32::MAX, |(until, _)| until),
        begin,
        end: until.map(|(_, end)| end),
    };
    united.into_iter().map(span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_meet_are_one() {
        let at = |order: u32| (order, Nanoseconds(u64::from(order) * 10));
        let spans = [(1, Some(4)), (2, Some(3)), (5, Some(6)), (8, None), (9, Some(10))];
        let spans = spans.map(|(from, until)| (at(from), until.map(at))).to_vec();
        let span = |from, until, begin, end| KeptSpan { from, until, begin: Nanoseconds(begin), end };
        assert_eq!(united(spans), [span(1, 6, 10, Some(Nanoseconds(60))), span(8, u32::MAX, 80, None)]);
        assert_eq!(united(Vec::new()), []);
    }
}
