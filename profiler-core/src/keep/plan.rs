//! Which moments of what is summed stay, allocation by allocation.
//!
//! Owns: following steps and peaks as far as that decides. Refuses: to drop anything.

use std::collections::HashMap;

use crate::allocation::{Model, StepMark};
use crate::journal::entry::Nanoseconds;
use crate::timeline::{LAST, State, Walk};

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
    steps: Steps,
    /// Markers until this position were seen.
    seen: u32,
    /// The steps that are wanted, of [`Keep::Steps`].
    wanted: Vec<Between>,
    /// By position of the device, `None` for host memory.
    peaks: HashMap<Option<usize>, Peak>,
}

/// By process: the step that it is in, and where that began.
type Steps = HashMap<u32, (u64, Point)>;

/// A peak, and the step around it: from where the first process began it until the last has left it. Its number may come again.
#[derive(Debug)]
struct Peak {
    /// Where it is: of a peak in no step, that alone.
    here: Point,
    step: Option<u64>,
    /// Processes that are in it still.
    within: Vec<u32>,
    from: Point,
    until: Option<Point>,
}

impl Plan {
    /// Nothing was seen yet.
    pub fn new(keep: Keep) -> Plan {
        Plan { keep, steps: HashMap::new(), seen: 0, wanted: Vec::new(), peaks: HashMap::new() }
    }

    /// Looks at what was walked since the last time, and says what stays, in order: at last, all that comes.
    pub fn spans(&mut self, model: &Model, walk: &Walk) -> Vec<KeptSpan> {
        let (seen, before) = (self.seen, self.steps.clone());
        self.note_steps(model, walk);
        let mut spans = match self.keep {
            Keep::Last(_) => Vec::new(),
            Keep::Steps(..) => self.wanted.clone(),
            Keep::Peaks => {
                self.note_peaks(model, walk, seen, &before);
                // The step that runs may come to be the last one, or that of a peak.
                let running = self.steps.values().map(|(_, begin)| *begin).min().map(|begin| (begin, None));
                self.peaks.values().map(|peak| (peak.from, peak.until)).chain(running).collect()
            }
        };
        let last = walk.walked.order;
        if let Some(since) = walk.stands_since {
            // What begins from now on can be told from nothing else; what has begun is kept no longer than that.
            spans.retain(|(from, _)| from.0 < LAST - 2);
            spans.iter_mut().for_each(|(_, until)| *until = until.or(Some((LAST - 2, since))));
        }
        spans.push(((last, walk.clock.time_of(last)), None));
        spans.sort_unstable_by_key(|(from, _)| *from);
        united(spans)
    }

    fn note_steps(&mut self, model: &Model, walk: &Walk) {
        for (point, mark) in step_marks(model, walk, self.seen) {
            if enter(&mut self.steps, point, &mark) {
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

    /// `before` are the steps at the position `seen`, up to which peaks were followed.
    fn note_peaks(&mut self, model: &Model, walk: &Walk, seen: u32, before: &Steps) {
        let tracks = walk.devices.iter().enumerate().map(|(device, track)| (Some(device), track));
        for (place, track) in tracks.chain([(None, &walk.host)]) {
            let Some(state) = track.figures.live else { continue };
            let peak = self.peaks.entry(place).or_insert_with(|| Peak::new(model, walk, &state, seen, before));
            if peak.here.0 != state.order {
                *peak = Peak::new(model, walk, &state, seen, before);
            }
            peak.follow(model, walk, seen);
        }
    }
}

impl Peak {
    fn new(model: &Model, walk: &Walk, state: &State, seen: u32, before: &Steps) -> Peak {
        let mut steps = before.clone();
        for (point, mark) in step_marks(model, walk, seen).take_while(|(point, _)| point.0 <= state.order) {
            enter(&mut steps, point, &mark);
        }
        steps.retain(|_, (number, _)| Some(*number) == state.step);
        let here = (state.order, state.time);
        let from = steps.values().map(|(_, begin)| *begin).min().unwrap_or(here);
        Peak { here, step: state.step, within: steps.into_keys().collect(), from, until: None }
    }

    /// Looks for the end of its step among the markers after a position.
    fn follow(&mut self, model: &Model, walk: &Walk, seen: u32) {
        if self.until.is_some() {
            return;
        }
        let mut last = self.here;
        for (point, mark) in step_marks(model, walk, seen.max(self.here.0)) {
            let within = self.within.len();
            self.within.retain(|process| *process != mark.process || Some(mark.number) == self.step);
            if self.within.len() < within {
                last = point;
            }
        }
        let within = self.within.len();
        self.within.retain(|process| !model.processes[*process as usize].counters.ended);
        if self.within.len() < within {
            last = (walk.walked.order, walk.clock.time_of(walk.walked.order));
        }
        self.until = self.within.is_empty().then_some(last);
    }
}

/// A process begins a step; false when it was in one of that number already.
fn enter(steps: &mut Steps, point: Point, mark: &StepMark) -> bool {
    let new = steps.get(&mark.process).is_none_or(|(number, _)| *number != mark.number);
    if new {
        steps.insert(mark.process, (mark.number, point));
    }
    new
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
