//! What is live: a row an allocation, or a row a group of them.
//!
//! Owns: columns. Refuses: order and filter: they are the query's.

use memscope_core::explorer::{AllocationRow, Column as By, GroupRow, Grouping, Row, RowsView, STACKED, Told};
use memscope_core::report::units;
use memscope_core::{Category, MemoryKind, Origin};
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use crate::app::App;
use crate::bar::{self, Part};
use crate::canvas::Canvas;
use crate::table::{self, Column};

/// By what rows can be sorted: the first columns of [`SINGLE`].
pub(crate) const SORTED: [By; 8] =
    [By::Size, By::Category, By::Origin, By::Name, By::Scope, By::Age, By::Step, By::Stream];

/// Columns of single allocations.
const SINGLE: [Column; 10] = [
    Column::figures("size", 10, 0),
    Column { title: "category", width: 13, grow: 0, rank: 1, figures: false },
    Column { title: "known", width: 8, grow: 0, rank: 5, figures: false },
    Column::words("name", 24, 3, 0),
    Column::words("scope", 22, 4, 2),
    Column::figures("age", 9, 3),
    Column::figures("step", 6, 4),
    Column::figures("stream", 8, 6),
    Column { title: "memory", width: 7, grow: 0, rank: 7, figures: false },
    Column { title: "GPU", width: 4, grow: 0, rank: 8, figures: false },
];

const GROUPS: [Column; 5] = [
    Column::figures("size", 10, 0),
    Column::figures("share", 7, 2),
    Column::figures("count", 9, 1),
    Column::words("by category", 12, 1, 3),
    Column::words("group", 16, 2, 0),
];

/// Where its parts are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    heading: Rect,
    /// The columns' titles.
    pub titles: Rect,
    /// The list.
    pub rows: Rect,
    /// The selected row in full.
    detail: Rect,
}

/// Lines of a stack that are shown of the selected row, where there is room.
const STACK_LINES: u16 = 8;

/// Divides the screen; `stacks` says whether lines of the program are known.
pub(crate) fn layout(body: Rect, stacks: bool) -> Layout {
    let detail = match body.height {
        0..12 => 0,
        24.. if stacks => 3 + STACK_LINES,
        _ if stacks => 4,
        _ => 3,
    };
    let rows = body.height.saturating_sub(2 + detail);
    let row = |offset, height| super::band(body, offset, height);
    Layout { heading: row(0, 1), titles: row(1, 1), rows: row(2, rows), detail: row(2 + rows, detail) }
}

/// The sort column whose title is there.
pub(crate) fn title_at(app: &App, at: Position) -> Option<By> {
    let titles = layout(super::parts(app).body, app.answer.session.stacks).titles;
    if !titles.contains(at) || app.allocations.group.is_some() {
        return None;
    }
    let placed = table::place(&SINGLE, titles.x + 1, titles.width.saturating_sub(3));
    let hit = placed.iter().find(|column| (column.x..column.x + column.width + 1).contains(&at.x))?;
    SORTED.get(hit.index).copied()
}

/// Draws the screen.
pub(super) fn draw(app: &App, canvas: &mut Canvas, body: Rect) {
    let parts = layout(body, app.answer.session.stacks);
    let Some(rows) = &app.answer.rows else {
        canvas.heading(parts.heading, "Live allocations", "");
        return;
    };
    heading(app, canvas, parts.heading, rows);
    let width = parts.titles.width.saturating_sub(3);
    let list = &app.allocations.list;
    // By what the answer holds: it may be the one to an earlier question.
    let grouped = match rows.rows.first() {
        Some(row) => matches!(row, Row::Group(_)),
        None => app.allocations.group.is_some(),
    };
    let columns: &[Column] = if grouped { &GROUPS } else { &SINGLE };
    let placed = table::place(columns, parts.titles.x + 1, width);
    let by = if grouped {
        // Groups stand in the order of their bytes, or of what they have in common.
        let by_label = matches!(
            (app.allocations.group, app.allocations.sort),
            (Some(Grouping::Name), By::Name)
                | (Some(Grouping::Scope | Grouping::Line), By::Scope | By::Name)
                | (Some(Grouping::Category), By::Category)
        );
        let column = if by_label { 4 } else { 0 };
        Some((column, app.allocations.descending))
    } else {
        SORTED.iter().position(|by| *by == app.allocations.sort).map(|index| (index, app.allocations.descending))
    };
    table::titles(canvas, columns, &placed, parts.titles.y, by);
    for line in 0..parts.rows.height {
        let position = list.first + usize::from(line);
        if position >= rows.matching {
            break;
        }
        let y = parts.rows.y + line;
        match position.checked_sub(rows.first).and_then(|row| rows.rows.get(row)) {
            Some(Row::Allocation(row)) => single(app, canvas, &placed, y, row),
            Some(Row::Group(row)) => group(canvas, (&placed, y), row, rows.shares_of, app.allocations.group),
            // It has been asked for.
            None => drop(canvas.text(placed[0].x, y, width, canvas.glyphs.gap, canvas.palette.faint())),
        }
        if position == list.selected {
            canvas.select(Rect::new(parts.rows.x, y, parts.rows.width - 1, 1));
        }
    }
    table::thumb(canvas, parts.rows, list.first, rows.matching);
    if rows.matching == 0 {
        let text = match (rows.total, app.answer.now.partial) {
            (0, None) => "Nothing is live at this moment.",
            (0, Some(_)) => "No allocation of this moment is kept.",
            _ => "The filter lets nothing through.",
        };
        canvas.text(parts.rows.x + 1, parts.rows.y, parts.rows.width, text, canvas.palette.faint());
    }
    let selected = list.selected.checked_sub(rows.first).and_then(|row| rows.rows.get(row));
    if let (Some(row), true) = (selected, parts.detail.height > 0) {
        detail(canvas, parts.detail, row);
    }
}

fn heading(app: &App, canvas: &mut Canvas, line: Rect, rows: &RowsView) {
    let mut title = match app.allocations.group {
        None => "Live allocations".to_owned(),
        Some(Grouping::Name) => "Live allocations by name".to_owned(),
        Some(Grouping::Scope) => "Live allocations by scope".to_owned(),
        Some(Grouping::Line) => "Live allocations by line".to_owned(),
        Some(Grouping::Size) => "Live allocations by size".to_owned(),
        Some(Grouping::Category) => "Live allocations by category".to_owned(),
    };
    if !app.allocations.filter.is_empty() {
        title.push_str(&format!(" / {}", app.allocations.filter));
    }
    if rows.filter_error.is_some() {
        title.push_str(" (not understood)");
    }
    let mut bytes = units::bytes(rows.matching_bytes);
    if app.answer.now.partial.is_some() {
        bytes.push_str(&format!(" of {}", units::bytes(app.answer.now.whole(rows.total_bytes))));
    }
    let whole = match (app.allocations.group, rows.matching == rows.total) {
        (Some(_), _) => format!("{}, {bytes}", units::count(rows.matching as u64, "group", "groups")),
        (None, true) => format!("{}, {bytes}", units::count(rows.total as u64, "allocation", "allocations")),
        (None, false) => {
            format!("{} of {}, {bytes}", units::grouped(rows.matching as u64), units::grouped(rows.total as u64))
        }
    };
    canvas.heading(line, &title, &whole);
}

/// How long something has lived, in few characters.
fn age(app: &App, row: &AllocationRow) -> String {
    let now = app.answer.rows.as_ref().map_or(0, |rows| rows.as_of.0);
    units::time(now.saturating_sub(row.birth.0) as f64 / 1e9)
}

/// Its name, else the driver's function that made it.
fn name(row: &AllocationRow) -> &str {
    if row.name.is_empty() { &row.function } else { &row.name }
}

fn stream(row: &AllocationRow) -> String {
    match row.stream {
        0 => "default".to_owned(),
        stream if stream < 1000 => stream.to_string(),
        stream => format!("..{:05x}", stream & 0xf_ffff),
    }
}

fn single(app: &App, canvas: &mut Canvas, placed: &[table::Placed], y: u16, row: &AllocationRow) {
    let (plain, faint) = (Style::new(), canvas.palette.faint());
    let (glyph, ink) = canvas.ink(row.category);
    for column in placed {
        let (text, style) = match column.index {
            0 => (units::bytes(row.bytes), plain),
            1 => {
                canvas.text(column.x, y, 1, glyph, ink);
                canvas.text(column.x + 2, y, column.width.saturating_sub(2), row.category.name(), ink);
                continue;
            }
            2 if row.origin == Origin::None => (String::new(), faint),
            2 => (row.origin.name().to_owned(), faint),
            3 => {
                let style = if row.name.is_empty() { faint } else { plain };
                canvas.end_of(column.x, y, column.width, name(row), style);
                continue;
            }
            4 => {
                canvas.end_of(column.x, y, column.width, &row.scope, plain);
                continue;
            }
            5 => (age(app, row), plain),
            6 => (row.step.map_or(String::new(), |step| step.to_string()), plain),
            7 => (stream(row), faint),
            8 => (row.memory.name().to_owned(), faint),
            _ => {
                let number = |device: u16| app.answer.gpu(device.into()).to_string();
                (row.device.map_or("host".to_owned(), number), faint)
            }
        };
        table::cell(canvas, &SINGLE, column, y, &text, style);
    }
}

fn group(
    canvas: &mut Canvas,
    (placed, y): (&[table::Placed], u16),
    row: &GroupRow,
    whole: u64,
    grouping: Option<Grouping>,
) {
    let bytes = row.live.iter().sum::<u64>();
    for column in placed {
        let text = match column.index {
            0 => units::bytes(bytes),
            1 => format!("{:.1} %", units::share(bytes, whole)),
            2 => units::grouped(row.allocations),
            3 => {
                shares(canvas, (column.x, y, column.width), &row.live, whole);
                continue;
            }
            _ => {
                let nothing = if grouping == Some(Grouping::Line) { "(no line is known)" } else { "(no scope)" };
                let label = if row.label.is_empty() { nothing } else { &row.label };
                canvas.end_of(column.x, y, column.width, label, Style::new());
                continue;
            }
        };
        table::cell(canvas, &GROUPS, column, y, &text, Style::new());
    }
}

/// A small bar of categories.
pub(super) fn shares(canvas: &mut Canvas, place: (u16, u16, u16), live: &[u64; 7], whole: u64) {
    let parts: [Part; 7] = STACKED.map(|category| {
        let (glyph, style) = canvas.ink(category);
        Part { amount: live[category as usize], glyph, style }
    });
    bar::draw(canvas, place, &parts, whole);
}

/// All that is known of the selected row.
fn detail(canvas: &mut Canvas, area: Rect, row: &Row) {
    let (faint, plain) = (canvas.palette.faint(), Style::new());
    canvas.heading(area, "Selected", "");
    let (first, second) = match row {
        Row::Group(group) => {
            let mut by: Vec<(Category, u64)> =
                STACKED.iter().map(|category| (*category, group.live[*category as usize])).collect();
            by.retain(|(_, bytes)| *bytes > 0);
            by.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
            let parts: Vec<String> =
                by.iter().map(|(category, bytes)| format!("{} {}", category.name(), units::bytes(*bytes))).collect();
            (group.label.clone(), parts)
        }
        Row::Allocation(row) => {
            let scope = if row.scope.is_empty() { "outside all scopes".to_owned() } else { row.scope.clone() };
            let mut facts = vec![units::exact(row.bytes)];
            if row.granted != row.bytes {
                facts.push(format!("granted {} B", units::grouped(row.granted)));
            }
            facts.push(format!("at {:#x}", row.address));
            facts.push(format!("pid {}", row.pid));
            if row.memory != MemoryKind::Device {
                facts.push(format!("{} memory", row.memory.name()));
            }
            if !row.function.is_empty() {
                facts.push(row.function.clone());
            }
            facts.push(format!("since {}", units::time(row.birth.0 as f64 / 1e9)));
            (format!("{}  in {scope}", name(row)), facts)
        }
    };
    canvas.fitted(area.x + 1, area.y + 1, area.width - 2, &first, plain);
    canvas.facts(area.x + 1, area.y + 2, area.width - 2, &second, faint);
    if let Row::Allocation(row) = row {
        stack(canvas, super::band(area, 3, area.height - 3), row);
    }
}

/// The lines that led to an allocation: the program's own in plain, then those of libraries; where there is room for one, its site.
fn stack(canvas: &mut Canvas, area: Rect, row: &AllocationRow) {
    let (faint, plain) = (canvas.palette.faint(), Style::new());
    if area.height == 1 {
        canvas.fitted(area.x + 1, area.y, area.width - 2, &row.site, plain);
        return;
    }
    let Told { leading, others } = row.told();
    let lines = leading.into_iter().map(|line| (line, plain)).chain(others.into_iter().map(|line| (line, faint)));
    for (y, (line, style)) in (area.y..area.bottom()).zip(lines) {
        canvas.fitted(area.x + 1, y, area.width - 2, &line.text, style);
    }
}
