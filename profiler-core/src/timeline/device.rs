//! The figures of one part of the session (a device, a process, all together) while its changes are walked.
//!
//! Owns: maxima, steps, the end. Refuses: the order of changes (`merge`), and which change concerns which part (`walk`).

use std::collections::{HashMap, VecDeque};

use memscope_wire::MemoryKind;

use serde::{Deserialize, Serialize};

use crate::allocation::{Allocation, flag};
use crate::journal::entry::Nanoseconds;
use crate::ledger::{CATEGORIES, DeviceRows, EventRows};

use super::amend::Corrections;
use super::lives::Lives;
use super::passing::{Outside, Passings};
use super::samples::WINDOW_NS;
use super::series::Drawing;
use super::shape::Shape;
use super::{DeviceFigures, Extreme, SampleRows, State, StepFigures};

/// How many former maxima are kept, for one that turns out to have been none: see [`DeviceTrack::amend`].
const FORMER: usize = 8;

/// The running state of one part of the session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct DeviceTrack {
    pub now: State,
    /// All but `series` and `end`, which are made when they are asked for.
    pub figures: DeviceFigures,
    drawing: Drawing,
    /// Position of the last change of this part's memory; that of `now` may be a marker's.
    pub changed: u32,
    /// Time of the last call of the driver that changed this part's memory.
    pub driver_event: Option<Nanoseconds>,
    outside: Outside,
    /// By number of the step.
    #[serde(default)]
    numbers: HashMap<u64, Numbered>,
    /// By process: the position of the step that it began last. Of processes that had ended when another came, nothing.
    process_steps: HashMap<usize, usize>,
    /// The process of the last birth or marker.
    #[serde(default)]
    last_by: Option<usize>,
    /// True once a process came back to a number.
    steps_repeat: bool,
    step_now: Option<usize>,
    /// Steps that were forgotten.
    pub steps_forgotten: usize,
    /// True once a process began a step that others had left: then steps do not follow one another in the order of changes.
    steps_mixed: bool,
    /// Processes that said that they are in this step.
    step_processes: Vec<usize>,
    /// The state before processes that end gave back the rest.
    before_exit: Option<State>,
    /// The state since which memory was only given back.
    before_frees: Option<State>,
    /// Where live bytes were largest before they were larger: in all, and within the step that runs.
    former: VecDeque<State>,
    former_of_step: VecDeque<State>,
}

/// The steps of one number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Numbered {
    /// Their positions, those that were forgotten counted.
    positions: Vec<usize>,
    /// How often the number came.
    turns: u32,
    /// The processes that have taken part in the last one.
    takers: Vec<usize>,
}

impl DeviceTrack {
    pub fn new(last: Nanoseconds) -> DeviceTrack {
        DeviceTrack { drawing: Drawing::new(last), ..DeviceTrack::default() }
    }

    pub fn birth(&mut self, order: u32, time: Nanoseconds, allocation: &Allocation, lives: &Lives<'_>) {
        self.meet(allocation.process as usize, lives);
        (self.before_exit, self.before_frees) = (None, None);
        self.before(order, time, allocation);
        self.rows(allocation).enter(allocation);
        self.note_granted();
        self.drawing.include(&self.now.rows, order);
        let live = self.now.rows.live_bytes();
        if live > self.figures.live.map_or(0, |state| state.rows.live_bytes()) {
            self.new_peak(self.now);
        }
        if self.now.rows.reserved > self.figures.reserved.map_or(0, |state| state.rows.reserved) {
            self.figures.reserved = Some(self.now);
        }
        let own = self.now.rows.live[allocation.category as usize];
        let largest: &mut [Extreme; CATEGORIES] = &mut self.figures.categories;
        if own > largest[allocation.category as usize].bytes {
            largest[allocation.category as usize] = Extreme { bytes: own, time, step: self.now.step };
        }
        let now = self.now;
        if let Some(step) = self.running_step() {
            step.births += 1;
            step.shape.include(live);
            if live > step.peak.rows.live_bytes() {
                let former = std::mem::replace(&mut step.peak, now);
                remember(&mut self.former_of_step, former);
            }
        }
    }

    /// Something comes of a process. If it came after all had ended that were in a step, their step is over.
    fn meet(&mut self, process: usize, lives: &Lives<'_>) {
        if self.last_by.replace(process) == Some(process) || self.process_steps.contains_key(&process) {
            return;
        }
        if !self.process_steps.keys().all(|other| lives.came_after(process, *other)) {
            return;
        }
        let end = self.end();
        if let Some(step) = self.running_step().filter(|step| !step.with_process) {
            (step.end, step.with_process) = (Some(end), true);
        }
        self.process_steps.clear();
        (self.step_now, self.now.step) = (None, None);
    }

    fn new_peak(&mut self, state: State) {
        if let Some(former) = self.figures.live.replace(state) {
            remember(&mut self.former, former);
        }
    }

    pub fn death(&mut self, order: u32, time: Nanoseconds, allocation: &Allocation) {
        if !allocation.is(flag::AT_EXIT) {
            self.before_exit = None;
        } else if self.before_exit.is_none() {
            self.before_exit = Some(self.now);
        }
        if self.before_frees.is_none() {
            self.before_frees = Some(self.now);
        }
        self.before(order, time, allocation);
        // Nothing is larger after it, so the drawing stays as it is.
        self.rows(allocation).leave(allocation);
        self.note_granted();
    }

    fn before(&mut self, order: u32, time: Nanoseconds, allocation: &Allocation) {
        self.pass(time);
        (self.now.order, self.now.time) = (order, time);
        self.changed = order;
        if !allocation.is(flag::BLOCK) {
            self.driver_event = Some(time);
            self.outside.driver_event(time);
            for sample in self.figures.samples.iter_mut().rev() {
                if time.0.saturating_sub(sample.rows.time.0) > WINDOW_NS {
                    break;
                }
                sample.settled = false;
            }
        }
    }

    /// Takes in a threshold of the device, if it is new.
    pub fn watch(&mut self, new: Passings) {
        if self.figures.passings.iter().all(|known| known.threshold != new.threshold) {
            self.figures.passings.push(new);
        }
    }

    fn note_granted(&mut self) {
        if !self.figures.passings.is_empty() {
            let (now, used) = (self.now, self.now.rows.reserved.saturating_add(self.outside.bytes()));
            self.figures.passings.iter_mut().for_each(|passings| passings.note(used, &now));
        }
    }

    /// A look at NVML: `exact` if no driver event was near before it.
    pub fn sample(&mut self, rows: DeviceRows, exact: bool) {
        self.figures.samples.push(SampleRows { rows, step: self.now.step, settled: exact });
        if self.figures.device_used.is_none_or(|largest| rows.device_used > largest.bytes) {
            let step = self.now.step;
            self.figures.device_used = Some(Extreme { bytes: rows.device_used, time: rows.time, step });
        }
        if exact {
            self.outside.sampled(rows.time, rows.device_used.saturating_sub(rows.reserved));
        }
        if !self.figures.passings.is_empty() {
            let at = State { time: rows.time, ..self.now };
            self.figures.passings.iter_mut().for_each(|passings| passings.note(rows.device_used, &at));
        }
    }

    /// Says that until this time nothing changes.
    pub fn pass(&mut self, time: Nanoseconds) {
        self.drawing.advance(time, &self.now.rows, self.now.order);
        self.pass_step(time);
    }

    /// The same for the shape of the step that runs; one that ended with its process lasts no longer than that.
    fn pass_step(&mut self, time: Nanoseconds) {
        let live = self.now.rows.live_bytes();
        if let Some(step) = self.running_step().filter(|step| !step.with_process) {
            step.shape.advance(time.0.saturating_sub(step.begin.0), live);
        }
    }

    fn rows(&mut self, allocation: &Allocation) -> &mut EventRows {
        if allocation.memory == MemoryKind::Managed { &mut self.now.managed } else { &mut self.now.rows }
    }

    /// The step that runs.
    pub fn running_step(&mut self) -> Option<&mut StepFigures> {
        let position = self.step_now?.checked_sub(self.steps_forgotten)?;
        self.figures.steps.get_mut(position)
    }

    /// Of all the times that a number came the one in which most was live; of equal ones the first.
    pub fn step_named(&self, number: u64) -> Option<&StepFigures> {
        let positions = &self.numbers.get(&number)?.positions;
        let steps = positions.iter().filter_map(|at| self.figures.steps.get(at.checked_sub(self.steps_forgotten)?));
        largest_step(steps)
    }

    /// True when a number came again.
    pub fn steps_repeat(&self) -> bool {
        self.steps_repeat
    }

    pub fn step(&mut self, (order, time): (u32, Nanoseconds), process: usize, number: u64, lives: &Lives<'_>) {
        self.meet(process, lives);
        self.pass(time);
        self.mark(order, time);
        // Who comes back to a number that it has left is in another step, and so is who came after all who had been in it were
        // gone; who comes to it later than others is in theirs.
        let numbered = self.numbers.entry(number).or_default();
        let known = numbered.positions.last().copied();
        let left = |known: &usize| self.process_steps.get(&process).is_some_and(|last| last > known);
        let takes_part = numbered.takers.contains(&process);
        let is_over = || numbered.takers.iter().all(|other| lives.came_after(process, *other));
        let joined = known.filter(|known| !left(known) && (takes_part || !is_over()));
        let next = self.steps_forgotten + self.figures.steps.len();
        let comes_again = numbered.turns > 0 && joined.is_none();
        if joined.is_none() {
            numbered.turns = numbered.turns.saturating_add(1);
            numbered.positions.push(next);
            numbered.takers = vec![process];
        } else if !takes_part {
            numbered.takers.push(process);
        }
        let turn = numbered.turns;
        if joined.is_some() && joined == self.step_now && self.now.step == Some(number) {
            if !self.step_processes.contains(&process) {
                self.step_processes.push(process);
            }
            self.process_steps.extend(joined.map(|position| (process, position)));
            if let Some(step) = self.running_step() {
                step.with_process = false;
            }
            return;
        }
        self.end_step();
        self.former_of_step.clear();
        self.step_processes = vec![process];
        self.now.step = Some(number);
        self.steps_mixed |= joined.is_some();
        self.steps_repeat |= comes_again;
        let position = joined.unwrap_or(next);
        self.process_steps.insert(process, position);
        self.step_now = Some(position);
        let now = self.now;
        match self.running_step() {
            Some(step) => {
                step.with_process = false;
                if now.rows.live_bytes() > step.peak.rows.live_bytes() {
                    let former = std::mem::replace(&mut step.peak, now);
                    remember(&mut self.former_of_step, former);
                }
            }
            None => {
                let shape = Shape::new(now.rows.live_bytes());
                let (begin, end, with_process, births) = (time, None, false, 0);
                self.figures.steps.push(StepFigures {
                    number,
                    turn,
                    begin,
                    peak: now,
                    end,
                    with_process,
                    births,
                    shape,
                });
            }
        }
    }

    fn end_step(&mut self) {
        let now = self.now;
        if let Some(step) = self.running_step() {
            (step.end, step.with_process) = (Some(now), false);
        }
    }

    /// A process ended, and with it the step that it was in. Of several processes in one step the last one counts.
    pub fn end_process(&mut self, process: usize, exit: Nanoseconds) {
        let Some(position) = self.step_processes.iter().position(|other| *other == process) else { return };
        self.step_processes.swap_remove(position);
        self.pass_step(exit);
        let end = State { time: exit, ..self.end() };
        let last = self.step_processes.is_empty();
        if let Some(step) = self.running_step() {
            (step.end, step.with_process) = (Some(end), last);
        }
    }

    /// The last moment before memory was only given back: by processes that ended with memory, or, where the program left
    /// nothing to that, by its last frees.
    pub fn end(&self) -> State {
        let nothing_left = self.now.rows.reserved == 0 && self.now.managed.reserved == 0;
        self.before_exit.or(self.before_frees.filter(|_| nothing_left)).unwrap_or(self.now)
    }

    pub fn phase(&mut self, (order, time): (u32, Nanoseconds), process: usize, phase: u32, lives: &Lives<'_>) {
        self.meet(process, lives);
        self.mark(order, time);
        self.now.phase = phase;
    }

    fn mark(&mut self, order: u32, time: Nanoseconds) {
        (self.before_exit, self.before_frees) = (None, None);
        (self.now.order, self.now.time) = (order, time);
    }

    /// The state right after a change that moved no memory.
    pub fn state_at(&self, order: u32, time: Nanoseconds) -> State {
        State { order, time, ..self.now }
    }

    /// No more changes come: what is true of the whole, which ended well or did not.
    pub fn finish(&mut self, last: Nanoseconds, well: bool) {
        // What follows a step's last change may be no part of it: its program may have been gone.
        self.drawing.advance(last, &self.now.rows, self.now.order);
        self.figures.series = self.drawing.series.clone();
        self.figures.end = self.end();
        // What is said of a step that did not end before the session did would be said of half a step.
        if let Some(step) = self.running_step()
            && !step.with_process
        {
            step.end = None;
        }
        if !well {
            self.figures.steps.iter_mut().filter(|step| step.with_process).for_each(|step| step.end = None);
        }
    }

    /// The same part under another name: all that was walked, without the samples and thresholds, which are a device's own.
    pub fn without_samples(&self) -> DeviceTrack {
        let figures =
            DeviceFigures { samples: Vec::new(), device_used: None, passings: Vec::new(), ..self.figures.clone() };
        DeviceTrack { figures, ..self.clone() }
    }

    /// True when anything was ever counted in its sums.
    pub fn held_any(&self) -> bool {
        self.driver_event.is_some() || self.figures.live.is_some()
    }

    /// True when its parts fit together: of one that was read from a file that anyone may have written.
    pub fn is_sound(&self) -> bool {
        self.drawing.is_sound() && self.figures.steps.iter().all(|step| step.shape.is_sound())
    }

    /// The series as it is now.
    pub fn series(&self) -> &super::Series {
        &self.drawing.series
    }

    /// Keeps the latest steps and samples. Of samples, the newer half stays as it is, and of the older half every second one:
    /// what lies far back is told more coarsely, and the first one stays.
    pub fn keep(&mut self, steps: usize, samples: usize) {
        // In large parts, so that it is done rarely.
        if self.figures.steps.len() > steps.saturating_add(steps / 4 + 1) {
            let forgotten = self.figures.steps.len() - steps.max(1);
            self.figures.steps.drain(..forgotten);
            self.steps_forgotten += forgotten;
            // How often a number came is known for good.
            let first = self.steps_forgotten;
            self.numbers.retain(|_, numbered| {
                numbered.positions.retain(|position| *position >= first);
                !numbered.positions.is_empty() || numbered.turns > 1
            });
        }
        if self.figures.samples.len() > samples {
            thin(&mut self.figures.samples);
        }
    }

    /// Puts right what is kept of the past, after facts were learned late. Sums are then exact. A maximum is exact when the
    /// facts made sums smaller since some birth, and no more than [`FORMER`] maxima followed that birth, in the same step;
    /// otherwise a larger sum may have been between two of the moments that are kept.
    pub fn amend(&mut self, corrections: &Corrections) {
        let figures = &mut self.figures;
        corrections.apply(&mut self.now);
        let states = figures.live.iter_mut().chain(&mut figures.reserved);
        let states = states.chain(&mut self.before_exit).chain(&mut self.before_frees);
        let states = states.chain(&mut self.former).chain(&mut self.former_of_step);
        let states = states.chain(figures.passings.iter_mut().flat_map(Passings::states));
        states.for_each(|state| corrections.apply_past(state));
        // Of a long session usually only the last steps are concerned.
        let begin = corrections.begin();
        // Others may go on in a step whose processes have ended.
        let before = |step: &StepFigures| step.peak.order < begin && step.end.is_some_and(|end| end.order < begin);
        let first = if self.steps_mixed { None } else { figures.steps.iter().rposition(before) };
        let first = first.map_or(0, |before| before + 1);
        for step in &mut figures.steps[first..] {
            corrections.apply_past(&mut step.peak);
            step.end.iter_mut().for_each(|end| corrections.apply_past(end));
        }
        self.drawing.amend(corrections);
        let candidates: Vec<State> = self.former_of_step.iter().copied().chain([self.now]).collect();
        if let Some(step) = self.running_step() {
            step.peak = largest(candidates.into_iter().chain([step.peak])).unwrap_or(step.peak);
            let order = step.peak.order;
            self.former_of_step.retain(|state| state.order < order);
        }
        let steps = self.figures.steps.iter().map(|step| step.peak);
        let candidates =
            self.figures.live.into_iter().chain(self.former.iter().copied()).chain(steps).chain([self.now]);
        self.figures.live = largest(candidates).filter(|state| state.rows.live_bytes() > 0);
        self.former.retain(|state| self.figures.live.is_some_and(|live| state.order < live.order));
    }
}

/// The step in which most was live; of equal ones the first.
pub(super) fn largest_step<'s>(steps: impl Iterator<Item = &'s StepFigures>) -> Option<&'s StepFigures> {
    steps.max_by_key(|step| (step.peak.rows.live_bytes(), std::cmp::Reverse(step.begin)))
}

/// Of equal ones the earliest, as in a walk.
fn largest(states: impl Iterator<Item = State>) -> Option<State> {
    states.max_by_key(|state| (state.rows.live_bytes(), std::cmp::Reverse((state.order, state.time))))
}

fn remember(former: &mut VecDeque<State>, state: State) {
    if former.len() == FORMER {
        former.pop_front();
    }
    former.push_back(state);
}

/// Of the older half every second one goes.
fn thin(samples: &mut Vec<SampleRows>) {
    let half = samples.len() / 2;
    let mut position = 0;
    samples.retain(|_| {
        position += 1;
        position > half || position % 2 == 1
    });
}
