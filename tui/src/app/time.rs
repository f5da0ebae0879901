//! The time cursor, and the span of time that the chart shows.
//!
//! Owns: moving both. Refuses: to know what was live when.

use std::ops::Range;

use memscope_core::explorer::At;
use memscope_core::journal::entry::Nanoseconds;

use super::App;
use crate::screens;

/// The most that the chart can be zoomed: 2 to this power.
const CLOSEST: u8 = 16;

/// The part of the session that the chart shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// The session's length is halved so many times.
    pub zoom: u8,
    /// Where it begins, as far as the cursor lets it.
    pub begin: u64,
}

impl Window {
    /// The span in nanoseconds, of a session of this length; it holds the cursor, or ends with the session when there is none.
    pub fn span(&self, whole: u64, cursor: Option<u64>) -> Range<u64> {
        let whole = whole.max(1);
        let long = (whole >> self.zoom).max(1);
        let last = whole - long;
        let begin = match cursor {
            None => last,
            Some(cursor) => self.begin.clamp((cursor + 1).saturating_sub(long), cursor).min(last),
        };
        begin..begin + long
    }
}

impl App {
    /// Length of the session as far as the view shows it.
    pub(crate) fn whole(&self) -> u64 {
        self.paused.unwrap_or(self.answer.session.last_time).0
    }

    /// Where the cursor stands; `None` at the live end.
    pub(crate) fn cursor(&self) -> Option<u64> {
        match self.at {
            At::Live => None,
            At::Time(time) | At::Refused(time) => Some(time.0),
            At::Peak | At::Step(_) | At::StepFrom(_) => {
                (self.answer.at == self.at).then_some(self.answer.now.state.time.0)
            }
        }
    }

    /// The span of time that the chart shows.
    pub(crate) fn span(&self) -> Range<u64> {
        self.window.span(self.whole(), self.cursor())
    }

    /// Moves the cursor by columns of the chart; over the right edge it is live again.
    pub(super) fn move_cursor(&mut self, by: i64) {
        let columns = u64::from(screens::plot(self).width.max(1));
        let (span, whole) = (self.span(), self.whole());
        let long = span.end - span.start;
        let column = match self.cursor() {
            Some(time) => column_of(time, &span, columns) as i64,
            None => columns as i64,
        };
        let to = column.saturating_add(by);
        // The middle of a column: rounding then never leaves it.
        let middle = |column: i64| {
            let offset = (i128::from(column) * 2 + 1) * i128::from(long) / (2 * i128::from(columns));
            (i128::from(span.start) + offset).max(0) as u64
        };
        let time = middle(to);
        if time >= whole {
            self.live();
        } else {
            self.set_cursor(time);
        }
    }

    /// Puts the cursor onto a column of the chart.
    pub(super) fn cursor_to_column(&mut self, column: u16) {
        let columns = u64::from(screens::plot(self).width.max(1));
        let span = self.span();
        let offset = (u128::from(column) * 2 + 1) * u128::from(span.end - span.start) / (2 * u128::from(columns));
        self.set_cursor(span.start + offset as u64);
    }

    /// To the end of what the view shows: of one that stands still, to where it was stopped.
    pub(super) fn live(&mut self) {
        self.at = At::Live;
    }

    /// To what is live now, which ends a pause.
    pub(super) fn live_now(&mut self) {
        if self.paused.is_some() {
            self.go_on();
            self.say("Live again: the pause has ended.");
        }
        self.live();
    }

    fn set_cursor(&mut self, time: u64) {
        self.go(At::Time(Nanoseconds(time)));
    }

    /// To a moment; what is seen of time stays, or moves so that the moment is seen.
    fn go(&mut self, at: At) {
        self.window.begin = self.span().start;
        self.at = at;
        self.window.begin = self.span().start;
    }

    /// To the peak of the step before the shown one, or after it.
    pub(super) fn move_step(&mut self, forward: bool) {
        match self.answer.step_beside(self.at, forward) {
            Some(step) => {
                self.window.begin = self.span().start;
                self.at = step;
            }
            None if self.answer.step_marks.is_empty() => self.say("The program has begun no step."),
            None if forward => self.say("This is the last step: there is none after it."),
            None => self.say("There is no step before this moment's."),
        }
    }

    /// To the next refused allocation, behind the last one to the first.
    pub(super) fn next_refusal(&mut self) {
        let whole = self.whole();
        let refusals: Vec<u64> = self.answer.refusals.iter().map(|time| time.0).filter(|time| *time <= whole).collect();
        let Some(first) = refusals.first() else {
            return self.say("The driver has refused no allocation so far.");
        };
        let after = |cursor: u64| refusals.iter().find(|time| **time > cursor);
        let time = *self.cursor().and_then(after).unwrap_or(first);
        self.go(At::Refused(Nanoseconds(time)));
        if refusals.len() > 1 {
            let number = refusals.iter().filter(|other| **other <= time).count();
            self.say(format!("Refused allocation {number} of {}.", refusals.len()));
        }
    }

    /// To the nearest moment whose lists are whole.
    pub(super) fn nearest_whole(&mut self) {
        match self.answer.nearest_listed() {
            Some(time) => self.go(At::Time(time)),
            None => self.say("The lists of this moment are whole."),
        }
    }

    /// To the peak; of a view that stands still, to the one that was known then, since a running session may come to another.
    pub(super) fn peak(&mut self) {
        self.window.begin = self.span().start;
        self.at = match (&self.answer.peak, self.paused) {
            (Some(peak), Some(_)) => At::Time(peak.state.time),
            _ => At::Peak,
        };
    }

    /// Shows half or twice as much time; the cursor stays where it is seen.
    pub(super) fn zoom(&mut self, closer: bool) {
        let before = self.span();
        let zoom = if closer { (self.window.zoom + 1).min(CLOSEST) } else { self.window.zoom.saturating_sub(1) };
        self.window.zoom = zoom;
        if let Some(cursor) = self.cursor() {
            let long = (self.whole() >> zoom).max(1);
            let share = u128::from(cursor.saturating_sub(before.start)) * u128::from(long)
                / u128::from((before.end - before.start).max(1));
            self.window.begin = cursor.saturating_sub(share as u64);
        }
    }
}

/// The column of the chart in which a time lies.
pub(crate) fn column_of(time: u64, span: &Range<u64>, columns: u64) -> u64 {
    let offset = u128::from(time.saturating_sub(span.start)) * u128::from(columns);
    ((offset / u128::from((span.end - span.start).max(1))) as u64).min(columns.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_holds_the_cursor() {
        let window = Window { zoom: 2, begin: 0 };
        assert_eq!(window.span(1000, None), 750..1000, "live: the end");
        assert_eq!(window.span(1000, Some(100)), 0..250);
        assert_eq!(window.span(1000, Some(250)), 1..251);
        assert_eq!(window.span(1000, Some(999)), 750..1000);
        assert_eq!(Window { zoom: 2, begin: 600 }.span(1000, Some(100)), 100..350);
        assert_eq!(Window::default().span(0, None), 0..1);
    }

    #[test]
    fn columns_are_equal_parts() {
        let span = 100..200;
        let columns: Vec<u64> = [100, 124, 125, 199, 200, 50].iter().map(|time| column_of(*time, &span, 4)).collect();
        assert_eq!(columns, [0, 0, 1, 3, 3, 0]);
    }
}
