//! The ledger of the shown moment: one bar, and the rows with their figures.
//!
//! Owns: order and names of the rows. Refuses: to fill in what was not told. Device rows hold at a sample, and carry its time.

use memscope_core::explorer::{At, MomentView, STACKED, Target};
use memscope_core::report::units;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::App;
use crate::bar::{self, Part};
use crate::canvas::Canvas;
use crate::palette::Foreign;
use crate::words::columns;

/// A row: what its part of the bar looks like, its name, its figure.
struct Row {
    part: Part,
    name: &'static str,
    figure: Option<String>,
}

/// Draws heading, bar and rows.
pub(super) fn draw(app: &App, canvas: &mut Canvas, area: Rect) {
    if area.height < 2 {
        return;
    }
    let now = &app.answer.now;
    let at = match app.at {
        At::Peak => " at the peak of live bytes",
        At::Step(_) | At::StepFrom(_) => " at the step's peak of live bytes",
        At::Live | At::Time(_) | At::Refused(_) => "",
    };
    let sampled = now
        .device_rows()
        .map_or(String::new(), |rows| format!(", the device at {}", units::time(rows.time.0 as f64 / 1e9)));
    let title = format!("Ledger of {}{at}{sampled}", super::header::target(app));
    let reserved = units::bytes(now.state.rows.reserved);
    let whole = match now.capacity {
        Some(capacity) => format!("{reserved} of {} reserved", units::bytes(capacity)),
        None => format!("{reserved} reserved"),
    };
    canvas.heading(area, &title, &whole);
    let rows = rows(canvas, now);
    let place = (area.x + 1, area.y + 1, area.width.saturating_sub(2));
    draw_bar(canvas, now, &rows, place);
    if area.height > 2 {
        let figures = Rect { y: area.y + 2, height: area.height - 2, ..area };
        draw_rows(app, canvas, now, &rows, figures);
    }
}

fn foreign(canvas: &Canvas, what: Foreign, amount: u64) -> Part {
    let coarse = canvas.glyphs.ascii || canvas.palette.mono();
    let glyph = if coarse { canvas.glyphs.foreign[what as usize] } else { "█" };
    Part { amount, glyph, style: canvas.palette.foreign(what) }
}

/// The rows beside the categories.
fn rows(canvas: &Canvas, now: &MomentView) -> Vec<Row> {
    let idle = |amount| {
        let coarse = canvas.glyphs.ascii || canvas.palette.mono();
        Part { amount, glyph: if coarse { canvas.glyphs.idle } else { "█" }, style: canvas.palette.idle() }
    };
    let event = &now.state.rows;
    let mut rows = vec![
        Row { part: idle(event.rounding), name: "rounding", figure: Some(units::bytes(event.rounding)) },
        Row { part: idle(event.cached), name: "cached", figure: Some(units::bytes(event.cached)) },
    ];
    if event.pools > 0 {
        // A part of what is cached, which has its share of the bar.
        rows.push(Row { part: idle(0), name: "  pools' reserve", figure: Some(units::bytes(event.pools)) });
    }
    let Some(device) = now.device_rows() else { return rows };
    let signed = |value: Option<i64>| value.map(units::signed_bytes);
    let known = |value: Option<i64>| value.map_or(0, |value| value.max(0) as u64);
    rows.push(Row {
        part: foreign(canvas, Foreign::Unexplained, known(device.unexplained)),
        name: "unexplained",
        figure: signed(device.unexplained),
    });
    rows.push(Row {
        part: foreign(canvas, Foreign::Others, device.other_processes.unwrap_or(0)),
        name: "other processes",
        figure: device.other_processes.map(units::bytes),
    });
    rows.push(Row {
        part: foreign(canvas, Foreign::Firmware, device.firmware_reserved.unwrap_or(0)),
        name: "firmware",
        figure: device.firmware_reserved.map(units::bytes),
    });
    rows.push(Row {
        part: foreign(canvas, Foreign::Unowned, known(device.unowned)),
        name: "unowned",
        figure: signed(device.unowned),
    });
    rows
}

fn draw_bar(canvas: &mut Canvas, now: &MomentView, rows: &[Row], (x, y, width): (u16, u16, u16)) {
    let mut parts: Vec<Part> = Vec::with_capacity(16);
    for category in STACKED {
        let (glyph, style) = canvas.ink(category);
        parts.push(Part { amount: now.state.rows.live[category as usize], glyph, style });
    }
    parts.extend(rows.iter().map(|row| row.part));
    let sum = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.amount));
    let whole = now.capacity.unwrap_or(0).max(sum);
    let faint = canvas.palette.faint();
    for column in x..x + width {
        canvas.glyph(column, y, if canvas.glyphs.ascii { "." } else { "·" }, faint);
    }
    bar::draw(canvas, (x, y, width), &parts, whole);
}

/// The figures, as many on a line as fit.
fn draw_rows(app: &App, canvas: &mut Canvas, now: &MomentView, rows: &[Row], area: Rect) {
    let (plain, faint) = (Style::new(), canvas.palette.faint());
    let live = units::bytes(now.state.rows.live_bytes());
    // Mark, name, figure.
    let mut items: Vec<(&str, Style, String, String)> = Vec::with_capacity(rows.len() + 6);
    items.push((" ", plain, "live".to_owned(), live));
    if let (Some(capacity), Some(device)) = (now.capacity, now.device_rows()) {
        items.push((" ", plain, "free".to_owned(), units::bytes(capacity.saturating_sub(device.device_used))));
    }
    for row in rows {
        let figure = row.figure.clone().unwrap_or_else(|| "not told".to_owned());
        items.push((row.part.glyph, row.part.style, row.name.to_owned(), figure));
    }
    if now.state.managed.reserved > 0 {
        items.push((" ", plain, "managed, apart".to_owned(), units::bytes(now.state.managed.reserved)));
    }
    if now.host.reserved > 0 {
        items.push((" ", plain, "host memory".to_owned(), units::bytes(now.host.reserved)));
    }
    if now.device_rows().is_none() && !app.answer.of_host {
        let why = match app.target {
            Target::All if app.answer.devices.len() > 1 => "of one GPU only (Tab)",
            Target::Process(_) => "of one GPU only (Tab)",
            _ if now.device.is_some() => "sampled only at other reserved memory",
            _ => "no exact telemetry sample",
        };
        items.push((" ", plain, "device rows".to_owned(), why.to_owned()));
    }
    let (mut x, mut y) = (area.x, area.y);
    for (mark, style, name, figure) in items {
        let long = (3 + columns(&name) + usize::from(!figure.is_empty()) + columns(&figure)) as u16;
        if x > area.x && x + long >= area.right() {
            (x, y) = (area.x, y + 1);
        }
        if y >= area.bottom() {
            return;
        }
        if mark != " " {
            canvas.text(x + 1, y, 1, mark, style);
        }
        let offset = if mark == " " { 1 } else { 3 };
        let end = canvas.text(x + offset, y, area.right().saturating_sub(x + offset), &name, faint);
        x = canvas.text(end + 1, y, area.right().saturating_sub(end + 1), &figure, plain) + 1;
    }
}
