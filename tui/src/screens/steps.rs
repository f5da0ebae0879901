//! A row a step.
//!
//! Owns: its columns; steps in which memory leaks stand out. Refuses: to call growth a leak: a finding does.

use memscope_core::Category;
use memscope_core::explorer::StepView;
use memscope_core::report::units;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::allocations::shares;
use crate::app::App;
use crate::canvas::Canvas;
use crate::table::{self, Column};

const COLUMNS: [Column; 16] = [
    Column::figures("step", 8, 0),
    Column::figures("live peak", 10, 0),
    Column::words("at its peak", 12, 3, 2),
    Column::figures("growth", 11, 1),
    Column::words("within", 10, 1, 3),
    Column::figures("duration", 9, 4),
    Column::figures("begin", 9, 6),
    Column::figures("count", 8, 5),
    Column::figures("activations", 11, 7),
    Column::figures("gradients", 10, 8),
    Column::figures("weights", 10, 9),
    Column::figures("optimizer", 10, 10),
    Column::figures("workspace", 10, 11),
    Column::figures("inputs", 10, 12),
    Column::figures("unknown", 10, 13),
    Column { title: "", width: 5, grow: 0, rank: 1, figures: false },
];

/// Width of the first column where numbers came again: `12 (34th time)`.
const REPEATED: u16 = 14;

/// Where its parts are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    heading: Rect,
    titles: Rect,
    /// The list.
    pub rows: Rect,
}

/// Divides the screen.
pub(crate) fn layout(body: Rect) -> Layout {
    let row = |offset, height| super::band(body, offset, height);
    Layout { heading: row(0, 1), titles: row(1, 1), rows: row(2, body.height.saturating_sub(2)) }
}

/// Draws the screen.
pub(super) fn draw(app: &App, canvas: &mut Canvas, body: Rect) {
    let parts = layout(body);
    let answer = &app.answer;
    canvas.heading(parts.heading, "Steps", &units::count(answer.steps_total as u64, "step", "steps"));
    if answer.steps_total == 0 {
        let text = "The program has not said where its steps begin (memscope_step, or the PyTorch hook).";
        canvas.text(parts.titles.x + 1, parts.titles.y, parts.titles.width - 1, text, canvas.palette.faint());
        return;
    }
    let mut columns = COLUMNS;
    if answer.steps_repeat {
        columns[0].width = REPEATED;
    }
    let placed = table::place(&columns, parts.titles.x + 1, parts.titles.width.saturating_sub(3));
    table::titles(canvas, &COLUMNS, &placed, parts.titles.y, None);
    // All bars and shapes have the same scale, so that rows can be compared.
    let most = answer.steps.iter().map(|step| step.peak).max().unwrap_or(0);
    for line in 0..parts.rows.height {
        let position = app.steps.first + usize::from(line);
        if position >= answer.steps_total {
            break;
        }
        let y = parts.rows.y + line;
        match position.checked_sub(answer.steps_first).and_then(|row| answer.steps.get(row)) {
            Some(step) => row(app, canvas, &placed, y, step, most),
            None => drop(canvas.text(placed[0].x, y, 8, canvas.glyphs.gap, canvas.palette.faint())),
        }
        if position == app.steps.selected {
            canvas.select(Rect::new(parts.rows.x, y, parts.rows.width - 1, 1));
        }
    }
    table::thumb(canvas, parts.rows, app.steps.first, answer.steps_total);
}

fn row(app: &App, canvas: &mut Canvas, placed: &[table::Placed], y: u16, step: &StepView, most: u64) {
    let (plain, faint) = (Style::new(), canvas.palette.faint());
    let seconds = |nanoseconds: u64| units::time(nanoseconds as f64 / 1e9);
    for column in placed {
        let (text, style) = match column.index {
            0 => {
                let current = app.answer.is_step_now(app.answer.at, step.number, step.begin, step.end);
                (step.name(), if current { canvas.palette.accent() } else { plain })
            }
            1 => (units::bytes(step.peak), plain),
            2 => {
                shares(canvas, (column.x, y, column.width), &step.at_peak, most);
                continue;
            }
            3 => growth(canvas, step),
            4 => {
                shape(canvas, (column.x, y, column.width), step, most);
                continue;
            }
            5 => match step.end {
                Some(end) => (seconds(end.0.saturating_sub(step.begin.0)), plain),
                None => ("open".to_owned(), faint),
            },
            6 => (seconds(step.begin.0), faint),
            7 => (units::grouped(step.allocations), plain),
            15 if step.leaks => ("LEAK".to_owned(), canvas.palette.error()),
            15 => (String::new(), plain),
            index => {
                let name = COLUMNS[index].title;
                let category = Category::ALL.into_iter().find(|category| category.name() == name).unwrap_or_default();
                let bytes = step.at_peak[category as usize];
                (units::bytes(bytes), if bytes == 0 { faint } else { canvas.palette.category_text(category) })
            }
        };
        table::cell(canvas, &COLUMNS, column, y, &text, style);
    }
}

fn growth(canvas: &Canvas, step: &StepView) -> (String, Style) {
    match step.growth {
        None => (String::new(), Style::new()),
        Some(0) => (units::bytes(0), canvas.palette.faint()),
        Some(growth) => {
            let sign = if growth > 0 { "+" } else { "" };
            let style = match (growth > 0, step.leaks) {
                (true, true) => canvas.palette.error(),
                (true, false) => canvas.palette.warning(),
                (false, _) => canvas.palette.good(),
            };
            (format!("{sign}{}", units::signed_bytes(growth)), style)
        }
    }
}

/// Live bytes within the step, in one line.
fn shape(canvas: &mut Canvas, (x, y, width): (u16, u16, u16), step: &StepView, most: u64) {
    if step.shape.is_empty() || most == 0 {
        return;
    }
    let style = canvas.palette.accent();
    for cell in 0..usize::from(width) {
        let part = cell * step.shape.len() / usize::from(width);
        let value = step.shape[part];
        let eighths = ((u128::from(value) * 16 + u128::from(most)) / (2 * u128::from(most))).min(8) as usize;
        let glyph = if canvas.glyphs.ascii {
            [".", ".", "-", "-", "=", "=", "#", "#", "#"][eighths]
        } else {
            canvas.glyphs.rising[eighths]
        };
        canvas.glyph(x + cell as u16, y, glyph, style);
    }
}
