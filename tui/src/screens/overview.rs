//! The first screen: devices, ledger, chart, categories, scopes, findings. It answers "why out of memory" in a minute.
//!
//! Owns: how much room each part gets; what failed stands on top. Refuses: figures.

use memscope_core::findings::{Detail, Finding, Severity};
use memscope_core::ledger::CATEGORIES;
use memscope_core::report::units;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{categories, gpus, ledger};
use crate::app::App;
use crate::canvas::Canvas;
use crate::chart;
use crate::dialog::severity;
use crate::refusal::{self, Line};
use crate::words::{columns, wrap};
use memscope_core::explorer::STACKED;

/// Where its parts are; an empty one is not drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Layout {
    /// What failed, in full.
    pub failures: Rect,
    /// A line a GPU.
    pub gpus: Rect,
    /// Bar and figures.
    pub ledger: Rect,
    /// Heading over the chart.
    pub title: Rect,
    /// The chart.
    pub chart: Rect,
    /// Table of categories.
    pub categories: Rect,
    /// Scopes that hold most.
    pub scopes: Rect,
    /// All findings but those on top.
    pub findings: Rect,
}

/// Divides the screen.
pub(crate) fn layout(app: &App, body: Rect) -> Layout {
    let mut left = body.height;
    let take = |left: &mut u16, wanted: u16| {
        let taken = wanted.min(*left);
        *left -= taken;
        taken
    };
    let width = usize::from(body.width.saturating_sub(2));
    let most = (body.height / 3).max(2);
    let failures = failure_lines(app, width, most.into()).len();
    let failures = take(&mut left, (failures as u16).min(most));
    let gpus = take(&mut left, gpus::height(app, (body.height * 3 / 7).max(2)));
    let ledger = take(
        &mut left,
        match (body.height, body.width) {
            (0..16, _) => 2,
            (0..30, _) if gpus > 4 || failures > 4 => 3,
            (_, 150..) => 3,
            (_, _) => 4,
        },
    );
    let others = app.answer.findings.iter().filter(|finding| finding.severity != Severity::Error).count();
    // On a narrow terminal the other findings have a line of their own, elsewhere a part of the bottom.
    let narrow = body.width < 110;
    let line = take(&mut left, u16::from(narrow && others > 0));
    let tables = CATEGORIES as u16 + 2;
    let wanted = match left {
        0..=7 => 0,
        8 if failures <= 4 => 0,
        // What failed has taken its part: the tables still say what the memory is.
        8..=17 if failures > 4 => (left - 4).min(tables),
        9..=17 => (left - 6).min(tables),
        left => tables.max(left / 3),
    };
    let bottom = take(&mut left, wanted);
    let title = u16::from(left > 3);
    let chart = left - title;
    let row = |offset: u16, height: u16| Rect { y: body.y + offset, height, ..body };
    let mut at = 0;
    let mut next = |height: u16| {
        at += height;
        row(at - height, height)
    };
    let (failures, gpus, ledger) = (next(failures), next(gpus), next(ledger));
    let (title, chart, bottom, line) = (next(title), next(chart), next(bottom), next(line));
    let part = |from: u16, to: u16| Rect { x: bottom.x + from, width: to.saturating_sub(from), ..bottom };
    let (first, second) = match body.width {
        0..110 => (52.min(body.width), body.width),
        110..160 => (61, body.width),
        _ => (68, 68 + (body.width - 68) * 2 / 5),
    };
    let mut scopes = part(first + 1, second);
    let mut findings = if narrow { line } else { part(second + 1, body.width) };
    if (110..160).contains(&body.width) {
        // Side by side both would be too narrow.
        findings = Rect { y: scopes.y + scopes.height / 2, height: scopes.height.div_ceil(2), ..scopes };
        scopes.height /= 2;
    }
    Layout { failures, gpus, ledger, title, chart, categories: part(0, first), scopes, findings }
}

/// Draws the screen.
pub(super) fn draw(app: &App, canvas: &mut Canvas, body: Rect) {
    let parts = layout(app, body);
    failures(app, canvas, parts.failures);
    gpus::draw(app, canvas, parts.gpus);
    ledger::draw(app, canvas, parts.ledger);
    if parts.title.height > 0 {
        chart_title(app, canvas, parts.title);
    }
    chart::draw(app, canvas, parts.chart);
    if parts.categories.height > 1 {
        categories::draw(app, canvas, parts.categories);
        scopes(app, canvas, parts.scopes);
    }
    match parts.findings.height {
        0 => {}
        1 => finding_line(app, canvas, parts.findings),
        _ => findings(app, canvas, parts.findings),
    }
}

fn chart_title(app: &App, canvas: &mut Canvas, line: Rect) {
    let peak = app.answer.peak.as_ref().map_or(String::new(), |peak| {
        let step = peak.state.step.map_or(String::new(), |step| format!(", step {step}"));
        let live = units::bytes(peak.state.rows.live_bytes());
        format!("peak of live {live} at {}{step}", units::time(peak.state.time.0 as f64 / 1e9))
    });
    let title = match (line.width, canvas.glyphs.ascii || canvas.palette.mono()) {
        (0..100, _) => "Live bytes by category".to_owned(),
        (_, true) => format!("Live bytes by category; {} reserved", canvas.glyphs.idle),
        (_, false) => "Live bytes by category; grey: reserved".to_owned(),
    };
    canvas.heading(line, &title, &peak);
}

/// What failed: each failure's sentence and what to do; of the rest of `room`, where memory was refused and what held most.
fn failure_lines(app: &App, width: usize, room: usize) -> Vec<Line> {
    let errors = app.answer.findings.iter().filter(|finding| finding.severity == Severity::Error);
    let mut parts: Vec<[Vec<Line>; 3]> = errors
        .map(|finding| {
            let lines = |text: String, style| wrap(&text, width).into_iter().map(|line| vec![(line, style)]).collect();
            let short = match &finding.detail {
                Detail::Oom(oom) => refusal::short(app, oom, width),
                _ => Vec::new(),
            };
            let message = lines(format!("ERROR {}.", app.answer.sentence(&finding.message)), app.palette.error());
            [message, short, lines(format!("To do: {}.", app.answer.sentence(&finding.advice)), Style::new())]
        })
        .collect();
    let needed: usize = parts.iter().map(|[message, _, advice]| message.len() + advice.len()).sum();
    let mut room = room.saturating_sub(needed);
    for [_, short, _] in &mut parts {
        short.truncate(room);
        room -= short.len();
    }
    parts.into_iter().flatten().flatten().collect()
}

fn failures(app: &App, canvas: &mut Canvas, area: Rect) {
    let height = usize::from(area.height);
    let lines = failure_lines(app, usize::from(area.width.saturating_sub(2)), height);
    let cut = lines.len() > height;
    for (row, line) in lines.iter().take(height).enumerate() {
        let mut x = area.x + 1;
        for (text, style) in line {
            x = canvas.text(x, area.y + row as u16, area.right().saturating_sub(x), text, *style);
        }
    }
    if cut && height > 0 {
        let text = " more: f ";
        canvas.right(area.x, area.bottom() - 1, area.width - 1, text, app.palette.selected());
    }
}

/// One line for all other findings: the gravest, and how many there are.
fn finding_line(app: &App, canvas: &mut Canvas, line: Rect) {
    let mut others = app.answer.findings.iter().filter(|finding| finding.severity != Severity::Error);
    let Some(first) = others.next() else { return };
    let more = others.count();
    let (name, style) = severity(&app.palette, first.severity);
    let end = canvas.text(line.x + 1, line.y, line.width, name, style);
    let tail = if more > 0 { format!("  f: {more} more") } else { "  f: what to do".to_owned() };
    let room = line.right().saturating_sub(end + 2 + columns(&tail) as u16);
    let end = canvas.fitted(end + 1, line.y, room, &app.answer.sentence(&first.message), Style::new());
    canvas.text(end, line.y, line.right().saturating_sub(end), &tail, app.palette.faint());
}

/// The findings that are not on top, with what to do, as far as there is room.
fn findings(app: &App, canvas: &mut Canvas, area: Rect) {
    let others: Vec<&Finding> =
        app.answer.findings.iter().filter(|finding| finding.severity != Severity::Error).collect();
    canvas.heading(area, "Findings", &if others.is_empty() { String::new() } else { "f: all".to_owned() });
    let mut y = area.y + 1;
    if others.is_empty() {
        let text = if app.answer.findings.is_empty() { "none so far" } else { "none but those on top" };
        canvas.text(area.x + 1, y, area.width.saturating_sub(1), text, app.palette.faint());
    }
    for finding in others {
        let (name, style) = severity(&app.palette, finding.severity);
        let width = usize::from(area.width.saturating_sub(2));
        let message = wrap(&format!("{name} {}.", app.answer.sentence(&finding.message)), width);
        let advice = wrap(&format!("{}.", finding.advice), width.saturating_sub(2));
        for (row, line) in message.iter().enumerate() {
            if y < area.bottom() {
                canvas.text(area.x + 1, y, area.width - 1, line, Style::new());
                if row == 0 {
                    canvas.text(area.x + 1, y, area.width - 1, name, style);
                }
            }
            y += 1;
        }
        for line in advice {
            if y < area.bottom() {
                canvas.text(area.x + 3, y, area.width.saturating_sub(3), &line, app.palette.faint());
            }
            y += 1;
        }
    }
}

/// The scopes that hold most themselves.
fn scopes(app: &App, canvas: &mut Canvas, area: Rect) {
    if area.width < 20 {
        return;
    }
    // Of a session with many scopes they are summed up less often than the ledger is.
    let as_of =
        app.answer.top_scopes_as_of.map_or(String::new(), |time| format!("at {}", units::time(time.0 as f64 / 1e9)));
    let partial = app.answer.top_scopes_partial;
    canvas.heading(area, "Top scopes", &partial.map_or(as_of, |partial| partial.covers()));
    let live = app.answer.top_scopes_bytes;
    let room = usize::from(area.height - 1);
    if app.answer.top_scopes.is_empty() {
        let why = if partial.is_some() { "nothing of this moment is kept" } else { "nothing is live in a scope" };
        canvas.text(area.x + 1, area.y + 1, area.width - 1, why, app.palette.faint());
    }
    for (row, scope) in app.answer.top_scopes.iter().take(room).enumerate() {
        let y = area.y + 1 + row as u16;
        let bytes = scope.live.iter().sum::<u64>();
        let figure = match area.width {
            0..36 => units::bytes(bytes),
            _ => format!("{} {:>5.1} %", units::bytes(bytes), units::share(bytes, live)),
        };
        let path = if scope.path.is_empty() { "(no scope)" } else { &scope.path };
        let most = STACKED.into_iter().max_by_key(|category| scope.live[*category as usize]);
        let (glyph, ink) = canvas.ink(most.unwrap_or_default());
        let taken = columns(&figure) as u16 + 1;
        canvas.text(area.x + 1, y, 1, glyph, ink);
        canvas.end_of(area.x + 3, y, area.width.saturating_sub(taken + 4), path, Style::new());
        canvas.right(area.x, y, area.width - 1, &figure, Style::new());
    }
}
