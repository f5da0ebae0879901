//! What lies over a screen: the help, the findings, the question how to leave.
//!
//! Owns: their texts and their place. Refuses: keys; they come from the table.

use memscope_core::findings::{Detail, Severity};
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::{App, Dialog};
use crate::canvas::Canvas;
use crate::keys::{BINDINGS, MOUSE, Place};
use crate::palette::Palette;
use crate::program::End;
use crate::refusal::{self, Line};
use crate::words::{columns, wrap};

/// Where the dialog's frame is.
fn area(app: &App) -> Rect {
    let whole = app.area;
    let (width, height) = match app.dialog {
        Some(Dialog::Leaving(_)) => (64, 8),
        Some(Dialog::Help(_)) => (100, whole.height.saturating_sub(2)),
        _ => (110, whole.height.saturating_sub(4)),
    };
    let (width, height) = (width.min(whole.width.saturating_sub(2)), height.min(whole.height));
    Rect::new(whole.x + (whole.width - width) / 2, whole.y + (whole.height - height) / 2, width, height)
}

/// Rows of text that the dialog shows at once.
pub(crate) fn text_height(app: &App) -> usize {
    usize::from(area(app).height.saturating_sub(2))
}

/// The furthest that the dialog's text can be scrolled.
pub(crate) fn last_line(app: &App) -> usize {
    if app.dialog.is_none() {
        return 0;
    }
    lines(app, usize::from(area(app).width.saturating_sub(4))).len().saturating_sub(text_height(app))
}

/// Draws the dialog, if there is one.
pub(crate) fn draw(app: &App, canvas: &mut Canvas) {
    let Some(dialog) = app.dialog else { return };
    let area = area(app);
    if area.width < 10 || area.height < 3 {
        return;
    }
    let (title, first) = match dialog {
        Dialog::Help(first) => ("Keys", first),
        Dialog::Findings(first) => ("Findings", first),
        Dialog::Leaving(_) => ("Leave?", 0),
    };
    let lines = lines(app, usize::from(area.width.saturating_sub(4)));
    canvas.clear(Rect { x: area.x.saturating_sub(1), width: area.width + 2, ..area });
    let height = usize::from(area.height.saturating_sub(2));
    let first = first.min(lines.len().saturating_sub(height));
    let seen = if lines.len() > height {
        format!("{} to {} of {}", first + 1, (first + height).min(lines.len()), lines.len())
    } else {
        String::new()
    };
    canvas.heading(area, title, &seen);
    for (row, line) in lines.iter().skip(first).take(height).enumerate() {
        let mut x = area.x + 2;
        for (text, style) in line {
            x = canvas.text(x, area.y + 1 + row as u16, (area.right() - 1).saturating_sub(x), text, *style);
        }
    }
    let rule = Rect { y: area.bottom() - 1, height: 1, ..area };
    for x in rule.left()..rule.right() {
        canvas.glyph(x, rule.y, canvas.glyphs.rule, app.palette.faint());
    }
}

fn lines(app: &App, width: usize) -> Vec<Line> {
    match app.dialog {
        None => Vec::new(),
        Some(Dialog::Help(_)) => help(app, width),
        Some(Dialog::Findings(_)) => findings(app, width),
        Some(Dialog::Leaving(sent)) => leaving(app, sent, width),
    }
}

/// Every binding, by place.
fn help(app: &App, width: usize) -> Vec<Line> {
    let (accent, plain, strong) = (app.palette.accent(), Style::new(), app.palette.strong());
    let mut lines = Vec::new();
    let mut entry = |keys: String, help: &str| {
        const KEYS: usize = 20;
        for (row, part) in wrap(help, width.saturating_sub(KEYS + 2)).into_iter().enumerate() {
            let keys = if row == 0 { keys.as_str() } else { "" };
            let pad = KEYS.saturating_sub(columns(keys));
            lines.push(vec![(format!("{keys}{} ", " ".repeat(pad)), accent), (part, plain)]);
        }
    };
    let mut headings = Vec::new();
    let mut at = 0;
    for place in Place::ALL {
        headings.push((at, place.title()));
        for binding in BINDINGS.iter().filter(|row| row.place == place) {
            entry(binding.names(app.glyphs.ascii), binding.help);
            at += wrap(binding.help, width.saturating_sub(22)).len();
        }
    }
    headings.push((at, "mouse"));
    for (gesture, what) in MOUSE {
        entry((*gesture).to_owned(), what);
    }
    // From the last to the first, so that positions stay true.
    for (at, title) in headings.into_iter().rev() {
        lines.insert(at, vec![(title.to_owned(), strong)]);
        if at > 0 {
            lines.insert(at, Vec::new());
        }
    }
    lines
}

/// A severity's name and style.
pub(crate) fn severity(palette: &Palette, severity: Severity) -> (&'static str, Style) {
    match severity {
        Severity::Error => ("ERROR", palette.error()),
        Severity::Warning => ("WARNING", palette.warning()),
        Severity::Note => ("NOTE", palette.accent()),
    }
}

fn findings(app: &App, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for notice in &app.answer.session.notices {
        lines.extend(wrap(notice, width).into_iter().map(|line| vec![(line, app.palette.warning())]));
        lines.push(Vec::new());
    }
    for finding in app.answer.findings.iter() {
        let (name, style) = severity(&app.palette, finding.severity);
        lines.push(vec![(name.to_owned(), style), (format!("  {}", finding.detail.kind()), app.palette.faint())]);
        let message = wrap(&format!("{}.", app.answer.sentence(&finding.message)), width.saturating_sub(2));
        lines.extend(message.into_iter().map(|line| vec![(format!("  {line}"), app.palette.strong())]));
        for sentence in finding.particulars() {
            let more = wrap(&app.answer.sentence(&sentence), width.saturating_sub(2));
            lines.extend(more.into_iter().map(|line| vec![(format!("  {line}"), Style::new())]));
        }
        let advice = wrap(&format!("To do: {}.", app.answer.sentence(&finding.advice)), width.saturating_sub(2));
        lines.extend(advice.into_iter().map(|line| vec![(format!("  {line}"), Style::new())]));
        // Behind what to do: the list may be longer than the screen.
        if let Detail::Oom(oom) = &finding.detail {
            let indented = |mut line: Line| {
                line.insert(0, ("  ".to_owned(), Style::new()));
                line
            };
            lines.extend(refusal::full(app, oom, width.saturating_sub(2)).into_iter().map(indented));
        }
        lines.push(Vec::new());
    }
    if lines.is_empty() {
        lines.push(vec![("There is nothing to say about this session so far.".to_owned(), Style::new())]);
    }
    lines
}

fn leaving(app: &App, sent: Option<End>, width: usize) -> Vec<Line> {
    let (accent, plain) = (app.palette.accent(), Style::new());
    let said = match sent {
        None => "The program is still running.",
        Some(End::Interrupt) => "SIGINT was sent; the program is still running.",
        Some(End::Terminate) => "SIGTERM was sent; the program is still running.",
        Some(End::Kill) => "SIGKILL was sent; the program is being ended.",
    };
    let mut lines: Vec<Line> = wrap(said, width).into_iter().map(|line| vec![(line, app.palette.strong())]).collect();
    lines.push(Vec::new());
    for binding in BINDINGS.iter().filter(|row| row.place == Place::Leaving) {
        let key = binding.keys[0].name(app.glyphs.ascii);
        lines.push(vec![(format!("{key:<5}"), accent), (binding.help.to_owned(), plain)]);
    }
    lines
}
