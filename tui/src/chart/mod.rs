//! Live bytes by category over time, stacked, its edges at eighths of a cell.
//!
//! Owns: scale, axes and marks. Refuses: the choice of the span and of the cursor (`app`).
//!
//! A column shows the moment of its span at which most was live, so that no peak is lost however much time a column stands for.

mod marks;

use std::ops::Range;

use memscope_core::ledger::CATEGORIES;
use memscope_core::report::units;
use memscope_core::timeline::{Bucket, Series};
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::{App, column_of};
use crate::canvas::Canvas;
use crate::fill;
use memscope_core::explorer::STACKED;

/// Cells of the labels at the left.
const GUTTER: u16 = 9;
/// Categories, and what is reserved beyond what is live.
const PARTS: usize = CATEGORIES + 1;

/// Where its parts are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The columns.
    pub plot: Rect,
    /// Marks of steps and of the peak; empty where there is no room for a line of their own.
    pub marks: Rect,
    /// Where lists are whole; empty where there is no room, and where all are.
    pub lists: Rect,
    /// Times.
    pub axis: Rect,
}

/// Divides an area; `lists` says whether there are times that are only summed.
pub fn layout(area: Rect, lists: bool) -> Layout {
    let gutter = if area.width > 4 * GUTTER { GUTTER } else { 0 };
    let below = match area.height {
        0 | 1 => 0,
        2..=5 => 1,
        6.. if lists => 3,
        _ => 2,
    };
    let plot = Rect::new(area.x + gutter, area.y, area.width - gutter, area.height - below);
    let line = |offset: u16, height: u16| Rect::new(plot.x, plot.bottom() + offset, plot.width, height);
    let (marks, lists) = (line(0, u16::from(below > 1)), line(1, u16::from(below > 2)));
    Layout { plot, marks, lists, axis: line(below.saturating_sub(1), u16::from(below > 0)) }
}

/// Draws the chart of the app's answer.
pub fn draw(app: &App, canvas: &mut Canvas, area: Rect) {
    let answer = &*app.answer;
    let listed = answer.session.listed.as_ref();
    let Layout { plot, marks, lists, axis } = layout(area, listed.is_some());
    if plot.is_empty() {
        return;
    }
    let span = app.span();
    let columns: Vec<Option<Bucket>> =
        (0..plot.width).map(|column| bucket(&answer.series, &span, column, plot.width)).collect();
    let most = columns.iter().flatten().map(tallest).max().unwrap_or(0);
    let (top, limit) = scale(most, answer.now.capacity);
    labels(canvas, plot, axis, top);
    for (column, bucket) in columns.iter().enumerate() {
        if let Some(bucket) = bucket {
            stack(canvas, plot, column as u16, bucket, top);
        }
    }
    if let Some(limit) = limit {
        marks::limit_line(canvas, plot, limit, top, &columns);
    }
    marks::refusals(canvas, plot, answer, &span);
    if let Some(cursor) = app.cursor().filter(|cursor| span.contains(cursor)) {
        marks::cursor_line(canvas, plot, column_of(cursor, &span, plot.width.into()) as u16);
    }
    // What is drawn first stays.
    marks::peak(canvas, if marks.is_empty() { axis } else { marks }, answer, &span);
    if !marks.is_empty() {
        marks::steps(canvas, marks, answer, &span);
    }
    marks::times(canvas, axis, &span);
    if let Some(listed) = listed {
        marks::lists(canvas, if lists.is_empty() { axis } else { lists }, listed, &span);
    }
}

/// What a column shows: of the buckets that it covers, the one with most live bytes, and the most that was reserved.
fn bucket(series: &Series, span: &Range<u64>, column: u16, columns: u16) -> Option<Bucket> {
    let width = series.width_ns.max(1);
    let long = u128::from(span.end - span.start);
    let at = |column: u16| (u128::from(span.start) + long * u128::from(column) / u128::from(columns.max(1))) as u64;
    let (begin, end) = (at(column), at(column + 1).max(at(column) + 1));
    let first = (begin / width) as usize;
    let last = (end.div_ceil(width) as usize).max(first + 1);
    // Nothing has changed since the last bucket.
    let Some(covered) = series.buckets.get(first..last.min(series.buckets.len()).max(first)) else {
        return series.buckets.last().copied();
    };
    if covered.is_empty() {
        return series.buckets.last().copied();
    }
    let mut shown = *covered.iter().max_by_key(|bucket| sum(bucket))?;
    shown.reserved = covered.iter().map(|bucket| bucket.reserved).max()?;
    Some(shown)
}

fn sum(bucket: &Bucket) -> u64 {
    bucket.live.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

fn tallest(bucket: &Bucket) -> u64 {
    sum(bucket).max(bucket.reserved)
}

/// The value at the top, and the limit to draw: the capacity, when at least half of it is in use.
pub fn scale(most: u64, capacity: Option<u64>) -> (u64, Option<u64>) {
    match capacity {
        Some(capacity) if most >= capacity / 2 && capacity > 0 => (round(capacity.max(most)), Some(capacity)),
        _ => (round(most), None),
    }
}

/// The next number that reads well on an axis.
fn round(value: u64) -> u64 {
    const STEPS: [u64; 14] = [4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 56, 64];
    let mut unit = 1u64;
    loop {
        // A quarter of the unit, so that 1.25 and 1.5 are among them.
        if let Some(step) = STEPS.iter().find(|step| (u128::from(**step) * u128::from(unit) / 4) >= u128::from(value)) {
            return (u128::from(*step) * u128::from(unit) / 4).clamp(1, u128::from(u64::MAX)) as u64;
        }
        match unit.checked_mul(2) {
            Some(next) => unit = next,
            None => return u64::MAX,
        }
    }
}

/// A size without decimals that say nothing.
fn short(bytes: u64) -> String {
    let text = units::bytes(bytes);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

fn labels(canvas: &mut Canvas, plot: Rect, axis: Rect, top: u64) {
    if plot.x < GUTTER {
        return;
    }
    let style = canvas.palette.faint();
    let (x, width) = (plot.x - GUTTER, GUTTER - 1);
    let parts = match plot.height {
        0..4 => 1,
        4..12 => 2,
        _ => 4,
    };
    for part in 1..=parts {
        // A label stands on the line whose upper edge is nearest to its value.
        let lines = (2 * plot.height * part + parts) / (2 * parts);
        let value = (u128::from(top) * u128::from(part) / u128::from(parts)) as u64;
        canvas.right(x, plot.bottom() - lines, width, &short(value), style);
    }
    if !axis.is_empty() {
        let y = plot.bottom();
        canvas.right(x, y, width, "0 B", style);
    }
}

/// One column: parts from the bottom up.
fn stack(canvas: &mut Canvas, plot: Rect, column: u16, bucket: &Bucket, top: u64) {
    let mut amounts = [0; PARTS];
    for (amount, category) in amounts.iter_mut().zip(STACKED) {
        *amount = bucket.live[category as usize];
    }
    amounts[CATEGORIES] = bucket.reserved.saturating_sub(sum(bucket));
    let mut edges = [0; PARTS];
    fill::edges(&amounts, top, u32::from(plot.height) * 8, &mut edges);
    let coarse = canvas.glyphs.ascii || canvas.palette.mono();
    for row in 0..plot.height {
        let cell = fill::cell(&edges, u32::from(row) * 8);
        let Some(first) = cell.first else { break };
        let (x, y) = (plot.x + column, plot.bottom() - 1 - row);
        let (glyph, style) = match cell.second {
            _ if coarse && cell.eighths >= 4 => ink(canvas, first),
            Some(second) if coarse => ink(canvas, second),
            None if coarse => continue,
            _ if cell.eighths == 8 => ink(canvas, first),
            Some(second) => {
                let behind = ink(canvas, second).1.fg.unwrap_or_default();
                (canvas.glyphs.rising[usize::from(cell.eighths)], ink(canvas, first).1.bg(behind))
            }
            None => (canvas.glyphs.rising[usize::from(cell.eighths)], ink(canvas, first).1),
        };
        canvas.glyph(x, y, glyph, style);
    }
}

fn ink(canvas: &Canvas, part: usize) -> (&'static str, Style) {
    match STACKED.get(part) {
        Some(category) => canvas.ink(*category),
        None if canvas.glyphs.ascii || canvas.palette.mono() => (canvas.glyphs.idle, canvas.palette.idle()),
        None => ("█", canvas.palette.idle()),
    }
}

#[cfg(test)]
mod tests;
