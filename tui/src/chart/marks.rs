//! What stands on the chart and below it: capacity, refusals, the time cursor, steps, the peak, times.
//!
//! Owns: their places; what is drawn first stays. Refuses: bytes.

use std::ops::Range;

use memscope_core::explorer::{Answer, Listed};
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::report::units;
use memscope_core::timeline::Bucket;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::{GUTTER, short, tallest};
use crate::app::column_of;
use crate::canvas::Canvas;

/// The capacity, wherever nothing stands in front of it.
pub(super) fn limit_line(canvas: &mut Canvas, plot: Rect, limit: u64, top: u64, columns: &[Option<Bucket>]) {
    let height = u128::from(plot.height);
    let line = ((u128::from(limit) * height / u128::from(top.max(1))) as u16).min(plot.height - 1);
    let y = plot.bottom() - 1 - line;
    let style = canvas.palette.error();
    for (column, bucket) in columns.iter().enumerate() {
        let reached = (u128::from(bucket.as_ref().map_or(0, tallest)) * height).div_ceil(u128::from(top.max(1)));
        if reached <= u128::from(line) {
            canvas.glyph(plot.x + column as u16, y, canvas.glyphs.limit, style);
        }
    }
    if plot.x >= GUTTER {
        let text = short(limit);
        canvas.text(plot.x - GUTTER, y, GUTTER - 1, &" ".repeat(usize::from(GUTTER - 1)), style);
        canvas.right(plot.x - GUTTER, y, GUTTER - 1, &text, style);
    }
}

pub(super) fn refusals(canvas: &mut Canvas, plot: Rect, answer: &Answer, span: &Range<u64>) {
    let style = canvas.palette.error();
    for time in answer.refusals.iter().filter(|time| span.contains(&time.0)) {
        let column = column_of(time.0, span, plot.width.into()) as u16;
        canvas.glyph(plot.x + column, plot.y, canvas.glyphs.refusal, style.bg(Color::Reset));
    }
}

pub(super) fn cursor_line(canvas: &mut Canvas, plot: Rect, column: u16) {
    let accent = canvas.palette.accent();
    for row in 0..plot.height {
        let (x, y) = (plot.x + column, plot.y + row);
        let Some(cell) = canvas.buffer.cell((x, y)) else { continue };
        let (symbol, behind) = (cell.symbol(), if cell.symbol() == "█" { cell.fg } else { cell.bg });
        if symbol == canvas.glyphs.refusal {
            continue;
        }
        let style = if behind == Color::Reset { accent } else { Style::new().fg(Color::White).bg(behind) };
        canvas.glyph(x, y, canvas.glyphs.upright, style.add_modifier(Modifier::BOLD));
    }
}

pub(super) fn times(canvas: &mut Canvas, axis: Rect, span: &Range<u64>) {
    if axis.is_empty() {
        return;
    }
    let style = canvas.palette.faint();
    let label = |time: u64| units::time(time as f64 / 1e9);
    let parts = (axis.width / 22).clamp(1, 8);
    for part in 0..=parts {
        let time =
            (u128::from(span.start) + u128::from(span.end - span.start) * u128::from(part) / u128::from(parts)) as u64;
        let text = label(time);
        let long = text.len() as u16;
        let centre = u32::from(axis.width.saturating_sub(1)) * u32::from(part) / u32::from(parts);
        let x = (centre as u16).saturating_sub(long / 2).min(axis.width.saturating_sub(long));
        if free(canvas, axis, x.saturating_sub(1)..x + long + 1) {
            canvas.text(axis.x + x, axis.y, long, &text, style);
        }
    }
}

/// True when nothing is drawn yet on these cells of a line, as far as they are on it.
pub(super) fn free(canvas: &Canvas, line: Rect, mut cells: Range<u16>) -> bool {
    cells.all(|x| x >= line.width || canvas.buffer.cell((line.x + x, line.y)).is_some_and(|cell| cell.symbol() == " "))
}

/// Marks of steps with their numbers; so many are left out that the rest can be read.
pub(super) fn steps(canvas: &mut Canvas, line: Rect, answer: &Answer, span: &Range<u64>) {
    let style = canvas.palette.faint();
    if line.x >= GUTTER {
        canvas.right(line.x - GUTTER, line.y, GUTTER - 1, "steps", style);
    }
    let seen = answer.step_marks.iter().filter(|(time, _)| span.contains(&time.0));
    let places: Vec<(u16, u64)> =
        seen.map(|(time, number)| (column_of(time.0, span, line.width.into()) as u16, *number)).collect();
    let widest = places.iter().map(|(_, number)| number.to_string().len()).max().unwrap_or(1) + 3;
    let room = (usize::from(line.width) / widest).max(1);
    let wanted = places.len().div_ceil(room);
    const STRIDES: [u64; 16] = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10_000, 100_000];
    let stride = STRIDES.into_iter().find(|stride| *stride >= wanted as u64).unwrap_or(1_000_000);
    let mut behind = 0;
    for (index, (column, number)) in places.iter().enumerate() {
        if number % stride != 0 || *column < behind {
            continue;
        }
        let text = format!("{}{number}", canvas.glyphs.step);
        let long = text.chars().count() as u16;
        let next = places.get(index + 1).map_or(line.width, |(next, _)| *next);
        let fits = column + long <= line.width && (stride > 1 || column + long <= next || places.len() < 2);
        let long = if fits && free(canvas, line, *column..column + long + 1) { long } else { 1 };
        if free(canvas, line, column.saturating_sub(1)..column + long) {
            canvas.text(line.x + column, line.y, long, &text, style);
            behind = column + long + u16::from(long > 1);
        }
    }
}

/// Where lists are whole, on the cells of a line that are free.
pub(super) fn lists(canvas: &mut Canvas, line: Rect, listed: &Listed, span: &Range<u64>) {
    const WORDS: &str = " summed only ";
    let time = |column: u16| {
        let offset = u128::from(span.end - span.start) * u128::from(column) / u128::from(line.width.max(1));
        Nanoseconds(span.start + offset as u64)
    };
    // How much of a column's time has whole lists: none, some, all.
    let state = |column: u16| {
        let begin = time(column);
        let range = begin..Nanoseconds(time(column + 1).0.max(begin.0 + 1));
        let missing: u64 = listed.gaps(&range).iter().map(|gap| gap.end.0 - gap.start.0).sum();
        match missing {
            0 => 2,
            missing if missing < range.end.0 - range.start.0 => 1,
            _ => 0,
        }
    };
    let states: Vec<u8> = (0..line.width).map(state).collect();
    let summed = states.chunk_by(|one, other| one == other).filter(|run| run[0] == 0);
    let widest = summed.map(<[u8]>::len).max();
    if line.x >= GUTTER && free(canvas, Rect { x: line.x - GUTTER, width: GUTTER - 1, ..line }, 0..GUTTER - 1) {
        canvas.right(line.x - GUTTER, line.y, GUTTER - 1, "lists", canvas.palette.faint());
    }
    // Texts that stand here keep a blank on each side.
    let open: Vec<bool> =
        (0..line.width).map(|column| free(canvas, line, column.saturating_sub(1)..column + 2)).collect();
    let mut column = 0;
    for run in states.chunk_by(|one, other| one == other) {
        let (glyph, style) = match run[0] {
            0 => (canvas.glyphs.summed, canvas.palette.faint()),
            1 => (canvas.glyphs.partly_listed, canvas.palette.good()),
            _ => (canvas.glyphs.listed, canvas.palette.good()),
        };
        let long = run.len() as u16;
        let here = &open[usize::from(column)..][..run.len()];
        for (x, _) in (line.x + column..).zip(here).filter(|(_, open)| **open) {
            canvas.glyph(x, line.y, glyph, style);
        }
        let named = run[0] == 0 && widest == Some(run.len()) && run.len() > WORDS.len() + 2;
        if named && here.iter().all(|open| *open) {
            canvas.text(line.x + column + (long - WORDS.len() as u16) / 2, line.y, long, WORDS, style);
        }
        column += long;
    }
}

pub(super) fn peak(canvas: &mut Canvas, line: Rect, answer: &Answer, span: &Range<u64>) {
    let Some(peak) = answer.peak.as_ref().filter(|peak| span.contains(&peak.state.time.0)) else { return };
    if line.is_empty() {
        return;
    }
    let column = column_of(peak.state.time.0, span, line.width.into()) as u16;
    let style = canvas.palette.accent();
    canvas.glyph(line.x + column, line.y, canvas.glyphs.peak, style);
    let word = if line.width > 60 { "live peak" } else { "peak" };
    let long = word.len() as u16 + 1;
    if column + long < line.width {
        canvas.text(line.x + column + 1, line.y, long, &format!("{word} "), style);
    } else if column >= long {
        canvas.text(line.x + column - long, line.y, long, &format!(" {word}"), style);
    }
}
