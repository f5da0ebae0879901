//! A line for each process.
//!
//! Owns: its columns, and the bar of what its memory is for. Refuses: order and filter (`rows`).

use memscope_core::Category;
use memscope_core::ledger::CATEGORIES;
use memscope_core::monitor::MonitorProcess;
use memscope_core::report::{Rows, units};
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::TopApp;
use super::devices::{ABSENT, brief, known};
use super::layout::Layout;
use super::rows::{self, Column as Sort};
use crate::bar::{self, Part};
use crate::canvas::Canvas;
use crate::table::{self, Column, Placed};
use memscope_core::explorer::STACKED;

/// In the order of [`Sort::ALL`].
const COLUMNS: [Column; 10] = [
    Column::figures("PID", 7, 0),
    Column::words("USER", 8, 0, 3),
    Column::words("GPU", 3, 0, 0),
    Column::words("TYPE", 4, 0, 6),
    Column::figures("GPU-MEM", 10, 0),
    Column::figures("MEM%", 5, 4),
    Column::words("CATEGORIES", 20, 1, 1),
    Column::figures("CPU%", 6, 2),
    Column::figures("HOST-MEM", 10, 5),
    Column::words("COMMAND", 11, 4, 0),
];
/// Where nobody runs under memscope.
const WITHOUT: [Column; 9] = {
    let [pid, user, gpu, kind, memory, share, _, cpu, host, command] = COLUMNS;
    [pid, user, gpu, kind, memory, share, cpu, host, command]
};

/// Cells of the bar of categories, and the columns that a figure behind it takes.
const BAR: u16 = 10;

/// The columns in their places, with what they show.
fn place(app: &TopApp, area: Rect) -> (&'static [Column], Vec<(Placed, Sort)>) {
    let with = app.has_ledgers();
    let columns: &'static [Column] = if with { &COLUMNS } else { &WITHOUT };
    // The last column of cells is for the mark that shows which part of the list is seen.
    let placed = table::place(columns, area.x, area.width.saturating_sub(1));
    let sort = |index: usize| Sort::ALL[if with || index < Sort::Categories.position() { index } else { index + 1 }];
    (columns, placed.into_iter().map(|column| (column, sort(column.index))).collect())
}

/// The column whose title stands there.
pub(super) fn column_at(app: &TopApp, x: u16) -> Option<Sort> {
    let (_, placed) = place(app, app.layout().titles);
    placed.iter().rev().find(|(column, _)| column.x.saturating_sub(1) <= x).map(|(_, sort)| *sort)
}

/// Titles, lines, and the line about the selected process.
pub(super) fn draw(app: &TopApp, canvas: &mut Canvas<'_>, layout: &Layout) {
    if layout.titles.is_empty() {
        return;
    }
    let (columns, placed) = place(app, layout.titles);
    let arrangement = &app.arrangement;
    let sorted = placed.iter().find(|(_, sort)| *sort == arrangement.sort);
    let sorted = sorted.map(|(column, _)| (column.index, arrangement.descending));
    let only: Vec<Placed> = placed.iter().map(|(column, _)| *column).collect();
    table::titles(canvas, columns, &only, layout.titles.y, sorted);
    let end = app.order.len().min(app.first + usize::from(layout.rows.height));
    for row in app.first..end {
        let Some(process) = app.process(row) else { continue };
        let y = layout.rows.y + (row - app.first) as u16;
        line(app, canvas, (columns, &placed), process, y);
        if row == app.row {
            canvas.dress(Rect::new(layout.rows.x, y, layout.rows.width, 1), canvas.palette.selected());
        }
    }
    if app.order.is_empty() && !layout.rows.is_empty() {
        let text = if app.view.round == 0 {
            "NVML is being asked"
        } else if app.view.processes.is_empty() {
            "no process uses a GPU"
        } else {
            "no process passes the filter"
        };
        canvas.text(layout.rows.x + 2, layout.rows.y, layout.rows.width, text, canvas.palette.faint());
    }
    table::thumb(canvas, layout.rows, app.first, app.order.len());
    if !layout.detail.is_empty() {
        detail(app, canvas, layout.detail);
    }
}

fn line(
    app: &TopApp,
    canvas: &mut Canvas<'_>,
    (columns, placed): (&[Column], &[(Placed, Sort)]),
    process: &MonitorProcess,
    y: u16,
) {
    for (column, sort) in placed {
        let text = match sort {
            Sort::Pid => process.pid.to_string(),
            Sort::Device => place_text(process),
            Sort::Memory => known(process.memory_used, units::bytes),
            Sort::Share => known(rows::share(&app.view, process), |share| format!("{share:.0}%")),
            Sort::Cpu => known(process.cpu_percent, |percent| format!("{percent:.1}")),
            Sort::HostMemory => known(process.host_memory, units::bytes),
            Sort::Categories => {
                if let Some(rows) = &process.ledger {
                    categories(canvas, column, y, rows);
                }
                continue;
            }
            // Texts that are there already are drawn as they are. Of a long command line its begin tells most.
            Sort::Command => {
                let text = process.command.as_deref().unwrap_or(ABSENT);
                canvas.text(column.x, y, column.width, text, Style::new());
                continue;
            }
            Sort::User | Sort::Kind => {
                let user = process.user.as_deref().unwrap_or(ABSENT);
                let text = if *sort == Sort::User { user } else { rows::kind(process.kind) };
                table::cell(canvas, columns, column, y, text, Style::new());
                continue;
            }
        };
        table::cell(canvas, columns, column, y, &text, Style::new());
    }
}

fn place_text(process: &MonitorProcess) -> String {
    match process.instance {
        Some(instance) => format!("{}:{instance}", process.device),
        None => process.device.to_string(),
    }
}

/// Live bytes by category number.
fn live(rows: &Rows) -> [u64; CATEGORIES] {
    let by = &rows.by_category;
    let mut live = [0; CATEGORIES];
    for (category, bytes) in [
        (Category::Unknown, by.unknown),
        (Category::Weights, by.weights),
        (Category::Gradients, by.gradients),
        (Category::Activations, by.activations),
        (Category::Optimizer, by.optimizer),
        (Category::Inputs, by.inputs),
        (Category::Workspace, by.workspace),
    ] {
        live[category as usize] = bytes;
    }
    live
}

/// A stacked bar, and behind it the figures of the largest categories, as many as fit.
fn categories(canvas: &mut Canvas<'_>, column: &Placed, y: u16, rows: &Rows) {
    let live = live(rows);
    let mut parts = [Part { amount: 0, glyph: " ", style: Style::new() }; CATEGORIES + 1];
    for (part, category) in parts.iter_mut().zip(STACKED) {
        let (glyph, style) = canvas.ink(category);
        *part = Part { amount: live[category as usize], glyph, style };
    }
    let idle = rows.cached.saturating_add(rows.rounding);
    parts[CATEGORIES] = Part { amount: idle, glyph: canvas.glyphs.idle, style: canvas.palette.idle() };
    bar::draw(canvas, (column.x, y, BAR), &parts, rows.reserved);
    let mut largest = STACKED;
    largest.sort_by_key(|category| std::cmp::Reverse(live[*category as usize]));
    let (mut x, end) = (column.x + BAR + 1, column.x + column.width);
    for category in largest.into_iter().filter(|category| live[*category as usize] > 0) {
        let text = format!("{:.3} {}", category.name(), brief(live[category as usize]));
        if x + text.len() as u16 > end {
            break;
        }
        x = canvas.text(x, y, end - x, &text, canvas.palette.category_text(category)) + 1;
    }
}

/// All categories of the selected process.
fn detail(app: &TopApp, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(process) = app.process(app.row) else { return };
    let faint = canvas.palette.faint();
    let Some(rows) = &process.ledger else {
        canvas.text(area.x, area.y, area.width, &format!("{} is not under memscope", process.pid), faint);
        return;
    };
    let live = live(rows);
    let mut x = canvas.text(area.x, area.y, area.width, &format!("{} ", process.pid), canvas.palette.strong());
    for category in STACKED.into_iter().filter(|category| live[*category as usize] > 0) {
        let text = format!(" {} {}", category.name(), brief(live[category as usize]));
        x = canvas.text(x, area.y, area.right().saturating_sub(x), &text, canvas.palette.category_text(category));
    }
    let text = format!("  cached {} of {}", brief(rows.cached), brief(rows.reserved));
    canvas.text(x, area.y, area.right().saturating_sub(x), &text, faint);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_by_which_is_sorted() {
        assert_eq!(COLUMNS.len(), Sort::ALL.len());
        let title = |sort: Sort| COLUMNS[sort.position()].title;
        assert_eq!(
            [Sort::Pid, Sort::Memory, Sort::Cpu, Sort::Command].map(title),
            ["PID", "GPU-MEM", "CPU%", "COMMAND"]
        );
        assert_eq!(WITHOUT[6].title, "CPU%");
    }
}
