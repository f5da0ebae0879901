//! Live bytes by category over time, stacked, its edges at eighths of a cell.
//!
//! Owns: scale, axes and marks. Refuses: the choice of the span and of the cursor (`app`).
//!
//! A column shows the moment of its span at which most was live, so that no peak is lost however much time a column stands for.

use std::ops::Range;

use memscope_core::explorer::Answer;
use memscope_core::ledger::CATEGORIES;
use memscope_core::report::units;
use memscope_core::timeline::{Bucket, Series};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use crate::app::{App, column_of};
use crate::canvas::{Canvas, STACKED};
use crate::fill;

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
    /// Times.
    pub axis: Rect,
}

/// Divides an area.
pub fn layout(area: Rect) -> Layout {
    let gutter = if area.width > 4 * GUTTER { GUTTER } else { 0 };
    let below = match area.height {
        0 | 1 => 0,
        2..=5 => 1,
        _ => 2,
    };
    let plot = Rect::new(area.x + gutter, area.y, area.width - gutter, area.height - below);
    let line = |offset: u16, height: u16| Rect::new(plot.x, plot.bottom() + offset, plot.width, height);
    match below {
        0 => Layout { plot, marks: line(0, 0), axis: line(0, 0) },
        1 => Layout { plot, marks: line(0, 0), axis: line(0, 1) },
        _ => Layout { plot, marks: line(0, 1), axis: line(1, 1) },
    }
}

/// Draws the chart of the app's answer.
pub fn draw(app: &App, canvas: &mut Canvas, area: Rect) {
    let Layout { plot, marks, axis } = layout(area);
    if plot.is_empty() {
        return;
    }
    let answer = &*app.answer;
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
        limit_line(canvas, plot, limit, top, &columns);
    }
    refusals(canvas, plot, answer, &span);
    if let Some(cursor) = app.cursor().filter(|cursor| span.contains(cursor)) {
        cursor_line(canvas, plot, column_of(cursor, &span, plot.width.into()) as u16);
    }
    // What is drawn first stays.
    peak(canvas, if marks.is_empty() { axis } else { marks }, answer, &span);
    if !marks.is_empty() {
        steps(canvas, marks, answer, &span);
    }
    times(canvas, axis, &span);
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

/// The capacity, wherever nothing stands in front of it.
fn limit_line(canvas: &mut Canvas, plot: Rect, limit: u64, top: u64, columns: &[Option<Bucket>]) {
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

fn refusals(canvas: &mut Canvas, plot: Rect, answer: &Answer, span: &Range<u64>) {
    let style = canvas.palette.error();
    for time in answer.refusals.iter().filter(|time| span.contains(&time.0)) {
        let column = column_of(time.0, span, plot.width.into()) as u16;
        canvas.glyph(plot.x + column, plot.y, canvas.glyphs.refusal, style.bg(Color::Reset));
    }
}

fn cursor_line(canvas: &mut Canvas, plot: Rect, column: u16) {
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

fn times(canvas: &mut Canvas, axis: Rect, span: &Range<u64>) {
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
fn free(canvas: &Canvas, line: Rect, mut cells: Range<u16>) -> bool {
    cells.all(|x| x >= line.width || canvas.buffer.cell((line.x + x, line.y)).is_some_and(|cell| cell.symbol() == " "))
}

/// Marks of steps with their numbers; so many are left out that the rest can be read.
fn steps(canvas: &mut Canvas, line: Rect, answer: &Answer, span: &Range<u64>) {
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

fn peak(canvas: &mut Canvas, line: Rect, answer: &Answer, span: &Range<u64>) {
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

#[cfg(test)]
mod tests {
    use memscope_core::explorer::At;
    use memscope_core::journal::entry::Nanoseconds;

    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn axes_end_at_numbers_that_read_well() {
        for (value, top) in [
            (3 * GIB, "3 GiB"),
            (3 * GIB + 1, "3.5 GiB"),
            (9 * GIB, "10 GiB"),
            (17 * GIB, "20 GiB"),
            (1100 << 20, "1.25 GiB"),
        ] {
            assert_eq!(short(round(value)), top);
        }
        assert_eq!(round(0), 1);
        assert_eq!(round(u64::MAX), u64::MAX);
    }

    #[test]
    fn the_capacity_is_drawn_when_it_is_near() {
        assert_eq!(scale(10 * GIB, Some(80 * GIB)), (10 * GIB, None));
        assert_eq!(scale(40 * GIB, Some(80 * GIB)), (80 * GIB, Some(80 * GIB)));
        assert_eq!(scale(90 * GIB, Some(80 * GIB)), (96 * GIB, Some(80 * GIB)));
        assert_eq!(scale(10 * GIB, None), (10 * GIB, None));
    }

    #[test]
    fn a_column_shows_the_largest_of_what_it_covers() {
        let bucket_of = |live: u64, reserved: u64| Bucket { live: [live, 0, 0, 0, 0, 0, 0], reserved };
        let buckets = vec![bucket_of(1, 9), bucket_of(5, 6), bucket_of(2, 2), bucket_of(3, 4)];
        let series = Series { width_ns: 10, buckets };
        let shown = |span, column, columns| bucket(&series, &span, column, columns).map(|b| (b.live[0], b.reserved));
        assert_eq!(shown(0..40, 0, 2), Some((5, 9)), "and the most reserved of them");
        assert_eq!(shown(0..40, 1, 2), Some((3, 4)));
        assert_eq!(shown(0..40, 7, 8), Some((3, 4)), "columns narrower than a bucket");
        assert_eq!(shown(0..80, 1, 2), Some((3, 4)), "after the last change all stays as it was");
        assert_eq!(bucket(&Series::default(), &(0..1), 0, 1), None);
    }

    /// A chart of an answer, cell by cell.
    fn drawn(answer: Answer, at: At, size: (u16, u16)) -> Vec<String> {
        use crate::glyphs::UNICODE;
        use crate::palette::{Depth, Palette, Scheme};
        let palette = Palette::new(Scheme::Default, Depth::True);
        let area = Rect::new(0, 0, size.0, size.1);
        let mut app = App::new(palette, &UNICODE, area, None, false);
        app.at = at;
        app.receive(std::sync::Arc::new(Answer { at, ..answer }));
        let mut buffer = ratatui::buffer::Buffer::empty(area);
        draw(&app, &mut Canvas { buffer: &mut buffer, glyphs: &UNICODE, palette }, area);
        let lines = buffer.content.chunks(size.0.into());
        lines.map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()).collect()
    }

    /// Eight buckets of 10 ns: weights grow by 2 bytes each, all of it reserved; what else there is comes from `with`.
    fn growing(with: impl FnOnce(&mut Answer)) -> Answer {
        let bucket = |index: u64| {
            let mut live = [0; CATEGORIES];
            live[1] = 2 * (index + 1);
            Bucket { live, reserved: 2 * (index + 1) }
        };
        let series = Series { width_ns: 10, buckets: (0..8).map(bucket).collect() };
        let mut answer = Answer { series: std::sync::Arc::new(series), ..Answer::default() };
        answer.session.last_time = Nanoseconds(80);
        with(&mut answer);
        answer
    }

    #[test]
    fn columns_are_as_high_as_their_bytes() {
        // One line, and the axis below it: 16 bytes are 8 eighths, so that each bucket has one more than the one before.
        let lines = drawn(growing(|_| {}), At::Live, (8, 2));
        assert_eq!(lines[0], "▁▂▃▄▅▆▇█");
        // Two lines: an eighth a byte.
        let lines = drawn(growing(|_| {}), At::Live, (16, 3));
        assert_eq!(lines[..2], ["        ▂▂▄▄▆▆██", "▂▂▄▄▆▆██████████"]);
    }

    #[test]
    fn marks_stand_at_their_times() {
        let with = |answer: &mut Answer| {
            answer.refusals = std::sync::Arc::new(vec![Nanoseconds(35)]);
            answer.step_marks = std::sync::Arc::new(vec![(Nanoseconds(0), 7), (Nanoseconds(40), 8)]);
            answer.now.state.time = Nanoseconds(65);
            let mut peak = memscope_core::explorer::MomentView::default();
            peak.state.time = Nanoseconds(75);
            answer.peak = Some(peak);
        };
        // Four lines of chart, steps, times; four columns for 10 ns.
        let lines = drawn(growing(with), At::Time(Nanoseconds(65)), (32, 6));
        assert_eq!(lines[0].chars().position(|char| char == '✖'), Some(14), "35 ns: column 14\n{}", lines.join("\n"));
        assert!(lines[..4].iter().all(|line| line.chars().nth(26) == Some('│')), "65 ns: column 26");
        assert_eq!(lines[4], "╵7              ╵8        peak▲", "0, 40 and 75 ns");
    }

    #[test]
    fn the_capacity_stands_where_nothing_reaches_it() {
        let lines = drawn(growing(|answer| answer.now.capacity = Some(16)), At::Live, (64, 5));
        assert!(lines[0].starts_with("    16 B ╌╌╌"), "{lines:?}");
        assert!(lines[0].ends_with("████"), "{lines:?}");
    }
}
