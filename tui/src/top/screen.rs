//! The screen as a whole.
//!
//! Owns: header and footer, and what lies over what. Refuses: to change anything: it is a function of the app.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::keys::{BINDINGS, Binding, Command};
use super::layout::Layout;
use super::{Mode, TopApp, devices, help, kill, processes};
use crate::canvas::Canvas;
use crate::words::columns;

/// Draws the app.
pub fn draw(app: &TopApp, frame: &mut Frame<'_>) {
    let mut canvas = Canvas { buffer: frame.buffer_mut(), glyphs: app.glyphs, palette: app.palette };
    let layout = app.layout();
    header(app, &mut canvas, &layout);
    devices::draw(app, &mut canvas, &layout);
    devices::draw_charts(app, &mut canvas, &layout);
    processes::draw(app, &mut canvas, &layout);
    footer(app, &mut canvas, &layout);
    match &app.mode {
        Mode::Screen | Mode::Filter => {}
        Mode::Kill(question) => kill::draw(app, question, &mut canvas),
        Mode::Help(scrolled) => help::draw(app, *scrolled, &mut canvas),
    }
}

fn header(app: &TopApp, canvas: &mut Canvas<'_>, layout: &Layout) {
    let area = layout.header;
    if area.is_empty() {
        return;
    }
    let view = &app.view;
    let faint = canvas.palette.faint();
    let mut x = canvas.text(area.x, area.y, area.width, "memscope top", canvas.palette.accent());
    let mut say = |canvas: &mut Canvas<'_>, text: &str, style: Style| {
        x = canvas.text(x + 2, area.y, area.right().saturating_sub(x + 2), text, style);
    };
    let count = |number: usize, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
    say(canvas, &count(view.devices.len(), "GPU", "GPUs"), Style::new());
    say(canvas, &count(view.processes.len(), "process", "processes"), Style::new());
    if let Some(driver) = &view.driver {
        say(canvas, &format!("driver {driver}"), faint);
    }
    say(canvas, &format!("every {} s", view.interval_ms as f64 / 1000.0), faint);
    if app.paused {
        say(canvas, "paused", canvas.palette.warning());
    }
    if !app.arrangement.filter.is_empty() && app.mode != Mode::Filter {
        let passing = format!("filter: {} ({} pass)", app.arrangement.filter, app.order.len());
        say(canvas, &passing, canvas.palette.warning());
    }
}

fn footer(app: &TopApp, canvas: &mut Canvas<'_>, layout: &Layout) {
    let area = layout.footer;
    if area.is_empty() {
        return;
    }
    let (accent, plain) = (canvas.palette.accent(), Style::new());
    if let (Some((text, failed)), Mode::Screen) = (&app.message, &app.mode) {
        let style = if *failed { canvas.palette.error() } else { canvas.palette.good() };
        canvas.text(area.x, area.y, area.width, text, style);
        return;
    }
    if app.mode == Mode::Filter {
        let x = parts(canvas, area, &[("filter: ", accent), (&app.arrangement.filter, plain)]);
        canvas.text(x, area.y, 1, " ", canvas.palette.strong().add_modifier(ratatui::style::Modifier::REVERSED));
        return;
    }
    for (x, binding) in hints(app) {
        let name = name(binding, canvas.glyphs.ascii);
        let place = Rect { x, width: area.right().saturating_sub(x), ..area };
        parts(canvas, place, &[(&name, accent), (" ", plain), (binding.hint, plain)]);
    }
}

/// Writes differently dressed parts one after the other into the first line of an area. Returns the column behind them.
pub(super) fn parts(canvas: &mut Canvas<'_>, area: Rect, parts: &[(&str, Style)]) -> u16 {
    let write = |x, (text, style): &(&str, Style)| canvas.text(x, area.y, area.right().saturating_sub(x), text, *style);
    parts.iter().fold(area.x, write)
}

/// The footer's keys, each with its column; those that fit.
fn hints(app: &TopApp) -> Vec<(u16, &'static Binding)> {
    let area = app.layout().footer;
    let mut x = area.x;
    let mut hints = Vec::new();
    for binding in BINDINGS.iter().filter(|binding| binding.place == app.place() && !binding.hint.is_empty()) {
        let width = (columns(&name(binding, app.glyphs.ascii)) + 1 + binding.hint.len()) as u16;
        if x + width > area.right() {
            break;
        }
        hints.push((x, binding));
        x += width + 2;
    }
    hints
}

fn name(binding: &Binding, ascii: bool) -> String {
    binding.keys.last().map_or_else(String::new, |key| key.name(ascii))
}

/// The command of the hint that stands in this column of the footer.
pub(super) fn command_at(app: &TopApp, x: u16) -> Option<Command> {
    if app.mode == Mode::Filter || app.message.is_some() {
        return None;
    }
    hints(app).iter().rev().find(|(begin, _)| *begin <= x).map(|(_, binding)| binding.command)
}
