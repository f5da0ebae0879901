//! The table of categories.
//!
//! Owns: its columns. Refuses: to show a change where no step came before.

use memscope_core::ledger::CATEGORIES;
use memscope_core::report::units;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::App;
use crate::canvas::Canvas;
use crate::table::{self, Column};
use memscope_core::explorer::STACKED;

const CATEGORY_COLUMNS: [Column; 5] = [
    Column::words("category", 13, 1, 0),
    Column::figures("now", 10, 0),
    Column::figures("live peak", 10, 1),
    Column::figures("share", 7, 3),
    Column::figures("step", 10, 2),
];

/// Now, at the peak of live bytes, share, and what has changed since the step before.
pub(super) fn draw(app: &App, canvas: &mut Canvas, area: Rect) {
    let answer = &app.answer;
    let now = &answer.now.state.rows.live;
    let live = answer.now.state.rows.live_bytes();
    canvas.heading(area, "Categories", &format!("{} live", units::bytes(live)));
    let columns = {
        let mut columns = CATEGORY_COLUMNS;
        if area.width >= 66 {
            columns[4] = Column::figures("since last step", 15, 2);
            columns[2] = Column::figures("at live peak", 12, 1);
        } else {
            columns[4].title = "in step";
        }
        columns
    };
    let placed = table::place(&columns, area.x + 1, area.width.saturating_sub(2));
    table::titles(canvas, &columns, &placed, area.y + 1, None);
    let room = usize::from(area.height - 2);
    let mut shown: Vec<_> = STACKED.to_vec();
    if room < CATEGORIES {
        let peak = answer.peak.as_ref().map(|peak| &peak.state.rows.live);
        let held = |category: &memscope_core::Category| {
            let index = *category as usize;
            now[index].max(peak.map_or(0, |live| live[index]))
        };
        shown.sort_by_key(|category| std::cmp::Reverse(held(category)));
        shown.truncate(room);
    }
    for (row, category) in shown.into_iter().enumerate() {
        let (y, index) = (area.y + 2 + row as u16, category as usize);
        let (glyph, ink) = canvas.ink(category);
        for column in &placed {
            let (text, style) = match column.index {
                0 => {
                    canvas.text(column.x, y, 1, glyph, ink);
                    canvas.text(column.x + 2, y, column.width - 2, category.name(), ink);
                    continue;
                }
                1 => (units::bytes(now[index]), figure_style(app, now[index])),
                2 => match &answer.peak {
                    Some(peak) => {
                        let bytes = peak.state.rows.live[index];
                        (units::bytes(bytes), figure_style(app, bytes))
                    }
                    None => (String::new(), Style::new()),
                },
                3 => (format!("{:.1} %", units::share(now[index], live)), figure_style(app, now[index])),
                _ => match &answer.step_before {
                    Some(before) => change(app, now[index], before[index]),
                    None => (String::new(), Style::new()),
                },
            };
            table::cell(canvas, &columns, column, y, &text, style);
        }
    }
}

/// Nothing is said quietly.
fn figure_style(app: &App, bytes: u64) -> Style {
    if bytes == 0 { app.palette.faint() } else { Style::new() }
}

fn change(app: &App, now: u64, before: u64) -> (String, Style) {
    let difference = i128::from(now) - i128::from(before);
    let text = units::signed_bytes(difference.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64);
    match difference {
        0 => (text, app.palette.faint()),
        1.. => (format!("+{text}"), Style::new()),
        _ => (text, Style::new()),
    }
}
