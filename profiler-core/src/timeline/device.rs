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
    /// The state before processes that end gave back the rest.
    before_exit: Option<State>,
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
        if allocation.is(flag::AT_EXIT) {
            self.before_exit.get_or_insert(self.now);
        }
        let at_exit = self.before_exit.filter(|_| allocation.is(flag::AT_EXIT));
        self.before(order, time, allocation);
        self.before_exit = at_exit;
        self.rows(allocation).leave(allocation);
        self.figures.series.include(&self.now.rows);
    }

    fn before(&mut self, order: u32, time: Nanoseconds, allocation: &Allocation) {
        self.figures.series.advance(time, &self.now.rows);
        self.before_exit = None;
        (self.now.order, self.now.time) = (order, time);
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

    pub fn step(&mut self, order: u32, time: Nanoseconds, number: u64) {
        self.mark(order, time);
        if self.now.step == Some(number) {
            return;
        }
        self.end_step();
        self.now.step = Some(number);
        let next = self.figures.steps.len();
        let position = *self.step_positions.entry(number).or_insert(next);
        self.step_now = Some(position);
        match self.figures.steps.get_mut(position) {
            Some(step) if self.now.rows.live_bytes() > step.peak.rows.live_bytes() => step.peak = self.now,
            Some(_) => {}
            None => self.figures.steps.push(StepFigures { number, begin: time, peak: self.now, end: None }),
        }
    }

    fn end_step(&mut self) {
        if let Some(step) = self.step_now.and_then(|position| self.figures.steps.get_mut(position)) {
            step.end = Some(self.now);
        }
    }

    pub fn phase(&mut self, order: u32, time: Nanoseconds, phase: u32) {
        self.mark(order, time);
        self.now.phase = phase;
    }

    fn mark(&mut self, order: u32, time: Nanoseconds) {
        self.before_exit = None;
        (self.now.order, self.now.time) = (order, time);
    }

    /// The state right after a change that moved no memory.
    pub fn state_at(&self, order: u32, time: Nanoseconds) -> State {
        State { order, time, ..self.now }
    }

    pub fn finish(mut self, last: Nanoseconds) -> DeviceFigures {
        self.figures.series.advance(last, &self.now.rows);
        self.figures.end = self.before_exit.unwrap_or(self.now);
        // What is said of a step that did not end before the session did would be said of half a step.
        if let Some(step) = self.step_now.and_then(|position| self.figures.steps.get_mut(position)) {
            step.end = None;
        }
        self.figures
    }
}
