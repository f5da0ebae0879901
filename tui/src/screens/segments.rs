//! The memory map: containers, what lies in them, and their holes.
//!
//! Owns: the map of slices. Refuses: to call a driver allocation that holds no blocks a container.

use memscope_core::explorer::{STACKED, Segment, SegmentsView};
use memscope_core::report::units;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::App;
use crate::canvas::Canvas;
use crate::table::{self, Column};

const COLUMNS: [Column; 9] = [
    Column::figures("size", 10, 0),
    Column::words("memory map", 16, 8, 0),
    Column::figures("used", 7, 1),
    Column::figures("largest hole", 12, 2),
    Column::figures("frag", 6, 3),
    Column::figures("holes", 6, 5),
    Column::figures("blocks", 7, 4),
    Column::figures("address", 14, 6),
    Column::figures("GPU", 4, 7),
];
const MAP: usize = 1;

/// Lines of the selected container's own map, on a screen of this height.
fn finer(body: Rect) -> u16 {
    (body.height / 4).clamp(4, 6)
}

/// Where its parts are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    heading: Rect,
    summary: Rect,
    /// What pools keep; of no height where they keep nothing.
    pools: Rect,
    titles: Rect,
    /// The list.
    pub rows: Rect,
    /// The selected container's own map.
    detail: Rect,
}

/// Divides the screen.
pub(crate) fn layout(app: &App, body: Rect) -> Layout {
    let pools = u16::from(app.answer.segments.as_ref().is_some_and(|view| !view.pools.is_empty()));
    let top = 3 + pools;
    let detail = if body.height >= 14 { finer(body) + 1 } else { 0 };
    let rows = body.height.saturating_sub(top + detail);
    let row = |offset, height| super::band(body, offset, height);
    Layout {
        heading: row(0, 1),
        summary: row(1, 1),
        pools: row(2, pools),
        titles: row(top - 1, 1),
        rows: row(top, rows),
        detail: row(top + rows, detail),
    }
}

fn columns(area: Rect) -> Vec<table::Placed> {
    table::place(&COLUMNS, area.x + 1, area.width.saturating_sub(3))
}

/// Slices to ask for: one for each cell of the selected container's own map.
pub(crate) fn slices(app: &App) -> usize {
    usize::from(app.area.width.saturating_sub(2).max(1)) * usize::from(finer(super::parts(app).body))
}

/// Draws the screen.
pub(super) fn draw(app: &App, canvas: &mut Canvas, body: Rect) {
    let parts = layout(app, body);
    let Some(view) = &app.answer.segments else {
        canvas.heading(parts.heading, "Segments", "");
        return;
    };
    let title = "Segments: containers in the order of size";
    if app.answer.now.partial.is_some() {
        canvas.heading(parts.heading, title, "not kept");
        let why = "Which parts of a segment were free at this moment is not kept.";
        canvas.text(parts.summary.x + 1, parts.summary.y, parts.summary.width - 1, why, canvas.palette.faint());
        return;
    }
    let whole = format!("{}, {}", units::count(view.total as u64, "container", "containers"), units::bytes(view.bytes));
    canvas.heading(parts.heading, title, &whole);
    summary(canvas, parts.summary, view);
    if let (Some(pools), true) = (view.pools_in_words(), parts.pools.height > 0) {
        canvas.facts(parts.pools.x + 1, parts.pools.y, parts.pools.width.saturating_sub(2), &[pools], Style::new());
    }
    if view.total == 0 {
        return;
    }
    let placed = columns(parts.titles);
    table::titles(canvas, &COLUMNS, &placed, parts.titles.y, None);
    for line in 0..parts.rows.height {
        let position = app.segments.first + usize::from(line);
        if position >= view.total {
            break;
        }
        let y = parts.rows.y + line;
        match position.checked_sub(view.first).and_then(|row| view.segments.get(row)) {
            Some(segment) => row(canvas, &placed, y, segment),
            None => drop(canvas.text(placed[0].x, y, 10, canvas.glyphs.gap, canvas.palette.faint())),
        }
        if position == app.segments.selected {
            for column in placed.iter().filter(|column| column.index != MAP) {
                canvas.select(Rect::new(column.x, y, column.width, 1));
            }
            canvas.glyph(parts.rows.x, y, canvas.glyphs.mark, canvas.palette.accent());
        }
    }
    table::thumb(canvas, parts.rows, app.segments.first, view.total);
    let selected = app.segments.selected.checked_sub(view.first).and_then(|row| view.segments.get(row));
    if let (Some(segment), true) = (selected, parts.detail.height > 0) {
        detail(canvas, parts.detail, segment);
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or("none".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// How much is free in all, and how badly it is scattered.
fn summary(canvas: &mut Canvas, line: Rect, view: &SegmentsView) {
    let leaves = units::count(view.leaves as u64, "driver allocation holds", "driver allocations hold");
    let free = view.bytes.saturating_sub(view.in_blocks);
    let facts = if view.total == 0 {
        let count = units::count(view.leaves as u64, "driver allocation is", "driver allocations are");
        vec!["No allocation holds blocks, so that there is no cache to map".to_owned(), format!("{count} used whole")]
    } else {
        vec![
            format!("in blocks {}", units::bytes(view.in_blocks)),
            format!("free {}", units::bytes(free)),
            format!("largest hole {}", units::bytes(view.largest_hole)),
            format!("fragmentation {}", percent(view.fragmentation())),
            format!("{leaves} no blocks"),
        ]
    };
    canvas.facts(line.x + 1, line.y, line.width.saturating_sub(2), &facts, Style::new());
}

fn row(canvas: &mut Canvas, placed: &[table::Placed], y: u16, segment: &Segment) {
    let fragmented = segment.fragmentation();
    for column in placed {
        let (text, style) = match column.index {
            0 => (units::bytes(segment.bytes), Style::new()),
            MAP => {
                map(canvas, (column.x, y, column.width), segment, 0..segment.slices.len());
                continue;
            }
            2 => (format!("{:.1} %", units::share(segment.in_blocks, segment.bytes)), Style::new()),
            3 => (units::bytes(segment.largest_hole), Style::new()),
            4 => {
                let style = match fragmented {
                    Some(share) if share >= 0.5 => canvas.palette.warning(),
                    Some(_) => Style::new(),
                    None => canvas.palette.faint(),
                };
                (percent(fragmented), style)
            }
            5 => (units::grouped(segment.holes), Style::new()),
            6 => (units::grouped(segment.blocks), Style::new()),
            7 => (format!("{:#x}", segment.address), canvas.palette.faint()),
            _ => (segment.device.map_or("host".to_owned(), |device| device.to_string()), canvas.palette.faint()),
        };
        table::cell(canvas, &COLUMNS, column, y, &text, style);
    }
}

/// Some slices as a line of cells. A cell's colour is the category that it holds most of, its height how much of it is in
/// blocks; what holds anything shows at least an eighth, and what is not full never looks full.
fn map(canvas: &mut Canvas, (x, y, width): (u16, u16, u16), segment: &Segment, slices: std::ops::Range<usize>) {
    let count = slices.len();
    if count == 0 || width == 0 {
        return;
    }
    // The bytes of one slice; they are equal parts.
    let long = segment.bytes as f64 / segment.slices.len() as f64;
    let coarse = canvas.glyphs.ascii || canvas.palette.mono();
    let faint = canvas.palette.faint();
    for cell in 0..usize::from(width) {
        let from = slices.start + cell * count / usize::from(width);
        let to = (slices.start + (cell + 1) * count / usize::from(width)).max(from + 1).min(segment.slices.len());
        let mut live = [0u64; 7];
        for slice in &segment.slices[from..to] {
            for (sum, bytes) in live.iter_mut().zip(slice) {
                *sum = sum.saturating_add(*bytes);
            }
        }
        let held = live.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes)) as f64;
        let share = held / (long * (to - from) as f64).max(1.0);
        let most = STACKED.into_iter().max_by_key(|category| live[*category as usize]).unwrap_or_default();
        let (glyph, ink) = canvas.ink(most);
        let x = x + cell as u16;
        let eighths = if share >= 0.999 { 8 } else { ((share * 8.0).round() as usize).clamp(1, 7) };
        match () {
            () if held == 0.0 => canvas.glyph(x, y, if canvas.glyphs.ascii { "." } else { "·" }, faint),
            () if coarse && eighths == 8 => canvas.glyph(x, y, glyph, ink),
            // A pattern of its category, but not a full one.
            () if coarse => canvas.glyph(x, y, &glyph.to_lowercase(), faint),
            () => canvas.glyph(x, y, canvas.glyphs.rising[eighths], ink),
        }
    }
}

/// The selected container over several lines.
fn detail(canvas: &mut Canvas, area: Rect, segment: &Segment) {
    let title = format!("{:#x}, {}", segment.address, units::bytes(segment.bytes));
    let facts = format!(
        "{} in {}, {} in {}",
        units::bytes(segment.in_blocks),
        units::count(segment.blocks, "block", "blocks"),
        units::bytes(segment.bytes.saturating_sub(segment.in_blocks)),
        units::count(segment.holes, "hole", "holes"),
    );
    canvas.heading(area, &title, &facts);
    let (lines, count) = (usize::from(area.height - 1), segment.slices.len());
    for line in 0..lines {
        let slices = line * count / lines..(line + 1) * count / lines;
        map(canvas, (area.x + 1, area.y + 1 + line as u16, area.width.saturating_sub(2)), segment, slices);
    }
}
