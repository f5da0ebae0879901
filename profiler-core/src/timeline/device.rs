//! One device's figures while the session is replayed.
//!
//! Owns: maxima, steps, the end. Refuses: the order of changes (`merge`).

use std::collections::HashMap;

use memscope_wire::MemoryKind;

use crate::allocation::{Allocation, flag};
use crate::journal::entry::Nanoseconds;
use crate::ledger::{CATEGORIES, EventRows};

use super::samples::WINDOW_NS;
use super::series::Series;
use super::{DeviceFigures, Extreme, State, StepFigures};

/// The running state of one device.
#[derive(Debug, Default)]
pub(super) struct DeviceTrack {
    pub now: State,
    pub figures: DeviceFigures,
    /// Time of the last call of the driver that changed this device's memory.
    pub driver_event: Option<Nanoseconds>,
    step_positions: HashMap<u64, usize>,
    step_now: Option<usize>,
    /// Processes that said that they are in this step.
    step_processes: Vec<usize>,
    /// The state before processes that end gave back the rest.
    before_exit: Option<State>,
    /// The state since which memory was only given back.
    before_frees: Option<State>,
}

impl DeviceTrack {
    pub fn new(last: Nanoseconds) -> DeviceTrack {
        let figures = DeviceFigures { series: Series::new(last), ..DeviceFigures::default() };
        DeviceTrack { figures, ..DeviceTrack::default() }
    }

    pub fn birth(&mut self, order: u32, time: Nanoseconds, allocation: &Allocation) {
        self.before(order, time, allocation);
        self.rows(allocation).enter(allocation);
        self.figures.series.include(&self.now.rows);
        let live = self.now.rows.live_bytes();
        if live > self.figures.live.map_or(0, |state| state.rows.live_bytes()) {
            self.figures.live = Some(self.now);
        }
        if self.now.rows.reserved > self.figures.reserved.map_or(0, |state| state.rows.reserved) {
            self.figures.reserved = Some(self.now);
        }
        let own = self.now.rows.live[allocation.category as usize];
        let largest: &mut [Extreme; CATEGORIES] = &mut self.figures.categories;
        if own > largest[allocation.category as usize].bytes {
            largest[allocation.category as usize] = Extreme { bytes: own, time, step: self.now.step };
        }
        if let Some(step) = self.step_now.map(|position| &mut self.figures.steps[position])
            && live > step.peak.rows.live_bytes()
        {
            step.peak = self.now;
        }
    }

    pub fn death(&mut self, order: u32, time: Nanoseconds, allocation: &Allocation) {
        let before_exit = allocation.is(flag::AT_EXIT).then(|| self.before_exit.unwrap_or(self.now));
        let before_frees = self.before_frees.unwrap_or(self.now);
        self.before(order, time, allocation);
        (self.before_exit, self.before_frees) = (before_exit, Some(before_frees));
        self.rows(allocation).leave(allocation);
        self.figures.series.include(&self.now.rows);
    }

    fn before(&mut self, order: u32, time: Nanoseconds, allocation: &Allocation) {
        self.figures.series.advance(time, &self.now.rows);
        self.mark(order, time);
        if !allocation.is(flag::BLOCK) {
            self.driver_event = Some(time);
            for sample in self.figures.samples.iter_mut().rev() {
                if time.0.saturating_sub(sample.rows.time.0) > WINDOW_NS {
                    break;
                }
                sample.settled = false;
            }
        }
    }

    fn rows(&mut self, allocation: &Allocation) -> &mut EventRows {
        if allocation.memory == MemoryKind::Managed { &mut self.now.managed } else { &mut self.now.rows }
    }

    pub fn step(&mut self, order: u32, time: Nanoseconds, process: usize, number: u64) {
        self.mark(order, time);
        if self.now.step == Some(number) {
            if !self.step_processes.contains(&process) {
                self.step_processes.push(process);
            }
            if let Some(step) = self.step_now.and_then(|position| self.figures.steps.get_mut(position)) {
                step.with_process = false;
            }
            return;
        }
        self.end_step();
        self.step_processes = vec![process];
        self.now.step = Some(number);
        let next = self.figures.steps.len();
        let position = *self.step_positions.entry(number).or_insert(next);
        self.step_now = Some(position);
        match self.figures.steps.get_mut(position) {
            Some(step) if self.now.rows.live_bytes() > step.peak.rows.live_bytes() => step.peak = self.now,
            Some(_) => {}
            None => {
                let begun = StepFigures { number, begin: time, peak: self.now, end: None, with_process: false };
                self.figures.steps.push(begun);
            }
        }
    }

    fn end_step(&mut self) {
        if let Some(step) = self.step_now.and_then(|position| self.figures.steps.get_mut(position)) {
            (step.end, step.with_process) = (Some(self.now), false);
        }
    }

    /// A process ended well, and with it the step that it was in. Of several processes in one step the last one counts.
    pub fn end_process(&mut self, process: usize, exit: Nanoseconds) {
        let Some(position) = self.step_processes.iter().position(|other| *other == process) else { return };
        self.step_processes.swap_remove(position);
        let end = State { time: exit, ..self.end() };
        if let Some(step) = self.step_now.and_then(|position| self.figures.steps.get_mut(position)) {
            (step.end, step.with_process) = (Some(end), self.step_processes.is_empty());
        }
    }

    /// The last moment before memory was only given back: by processes that ended with memory, or, where the program left
    /// nothing to that, by its last frees.
    fn end(&self) -> State {
        let nothing_left = self.now.rows.reserved == 0 && self.now.managed.reserved == 0;
        self.before_exit.or(self.before_frees.filter(|_| nothing_left)).unwrap_or(self.now)
    }

    pub fn phase(&mut self, order: u32, time: Nanoseconds, phase: u32) {
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

    pub fn finish(mut self, last: Nanoseconds) -> DeviceFigures {
        self.figures.series.advance(last, &self.now.rows);
        self.figures.end = self.end();
        // What is said of a step that did not end before the session did would be said of half a step.
        if let Some(step) = self.step_now.and_then(|position| self.figures.steps.get_mut(position))
            && !step.with_process
        {
            step.end = None;
        }
        self.figures
    }
}
