//! The screens, one file each.
//!
//! Owns: how the terminal is divided between header, tabs, timeline, screen and footer. Refuses: state.

pub mod allocations;
mod categories;
mod footer;
mod gpus;
mod header;
mod ledger;
mod output;
pub mod overview;
pub mod scopes;
pub mod segments;
pub mod steps;

use memscope_core::explorer::Running;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use crate::app::{App, Screen};
use crate::canvas::Canvas;
use crate::{chart, dialog};

/// The smallest terminal that shows a screen.
const SMALLEST: (u16, u16) = (40, 10);

/// How the terminal is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parts {
    /// What the session is, and which moment is shown.
    pub header: Rect,
    /// The screens.
    pub tabs: Rect,
    /// A chart of few rows, on screens that have no other; empty where there is no room.
    pub timeline: Rect,
    /// What is said of lists that are not whole; empty where they are.
    pub note: Rect,
    /// The screen.
    pub body: Rect,
    /// Keys.
    pub footer: Rect,
}

/// The lines of an area from `offset` on, as many as there are of `height`.
fn band(area: Rect, offset: u16, height: u16) -> Rect {
    let offset = offset.min(area.height);
    Rect { y: area.y + offset, height: height.min(area.height - offset), ..area }
}

/// Divides the terminal.
pub(crate) fn parts(app: &App) -> Parts {
    let area = app.area;
    let timeline = match (app.screen, area.height) {
        (Screen::Overview | Screen::Output, _) | (_, 0..20) => 0,
        (_, 20..40) => 3,
        (_, _) => 6,
    };
    let line = |y, height| band(area, y, height);
    let note = (note(app).len() as u16).min(area.height.saturating_sub(SMALLEST.1) / 2);
    let body = 2 + timeline + note;
    Parts {
        header: line(0, 1),
        tabs: line(1, 1),
        timeline: line(2, timeline),
        note: line(2 + timeline, note),
        body: line(body, area.height.saturating_sub(body + 1)),
        footer: line(area.height.saturating_sub(1), 1),
    }
}

/// How much of what lived the lists of the screen cover, why, and what to do, where it is not all: in lines.
fn note(app: &App) -> Vec<String> {
    let answer = &app.answer;
    let peak = answer.peak.as_ref().and_then(|peak| peak.partial);
    let partial = match app.screen {
        Screen::Overview => answer.top_scopes_partial.map(|partial| ("Top scopes cover", partial)),
        Screen::Allocations | Screen::Segments => answer.now.partial.map(|partial| ("This list covers", partial)),
        Screen::Scopes => {
            let now = answer.now.partial.map(|partial| ("This list covers", partial));
            now.or(peak.map(|partial| ("The column of the live peak covers", partial)))
        }
        Screen::Steps | Screen::Output => None,
    };
    let Some((what, partial)) = partial else { return Vec::new() };
    let go = answer.nearest_listed().map_or(String::new(), |_| ". w goes to the nearest".to_owned());
    let text = format!("{what} {}{go}.", answer.covers(&partial));
    crate::words::wrap(&text, usize::from(app.area.width.saturating_sub(2)))
}

/// True when the terminal is too small for anything but a sentence.
fn too_small(area: Rect) -> bool {
    area.width < SMALLEST.0 || area.height < SMALLEST.1
}

/// Draws the dashboard.
pub fn draw(app: &App, frame: &mut Frame) {
    let area = frame.area();
    let mut canvas = Canvas { buffer: frame.buffer_mut(), glyphs: app.glyphs, palette: app.palette };
    if too_small(area) || too_small(app.area) {
        let text = format!(
            "memscope needs {}x{} cells; this terminal has {}x{}.",
            SMALLEST.0, SMALLEST.1, area.width, area.height
        );
        for (row, line) in crate::words::wrap(&text, usize::from(area.width)).iter().enumerate() {
            canvas.text(area.x, area.y.saturating_add(row as u16), area.width, line, app.palette.warning());
        }
        return;
    }
    let parts = parts(app);
    header::draw(app, &mut canvas, &parts);
    if !parts.timeline.is_empty() && !nothing_yet(app) {
        chart::draw(app, &mut canvas, parts.timeline);
    }
    if !nothing_yet(app) {
        for (row, text) in note(app).iter().take(parts.note.height.into()).enumerate() {
            let (x, y) = (parts.note.x + 1, parts.note.y + row as u16);
            canvas.text(x, y, parts.note.width.saturating_sub(1), text, app.palette.warning());
        }
    }
    let body = parts.body;
    let mut cursor = None;
    match app.screen {
        Screen::Output => cursor = output::draw(app, &mut canvas, body),
        _ if nothing_yet(app) => waiting(app, &mut canvas, body),
        Screen::Overview => overview::draw(app, &mut canvas, body),
        Screen::Allocations => allocations::draw(app, &mut canvas, body),
        Screen::Scopes => scopes::draw(app, &mut canvas, body),
        Screen::Segments => segments::draw(app, &mut canvas, body),
        Screen::Steps => steps::draw(app, &mut canvas, body),
    }
    footer::draw(app, &mut canvas, parts.footer);
    dialog::draw(app, &mut canvas);
    if let Some(position) = cursor {
        frame.set_cursor_position(position);
    }
}

/// True while the session has nothing to show.
fn nothing_yet(app: &App) -> bool {
    app.answer.devices.is_empty() && app.answer.session.allocations == 0
}

/// What a view says that has nothing to show: what it waits for, or why there is nothing.
fn waiting(app: &App, canvas: &mut Canvas, area: Rect) {
    let session = &app.answer.session;
    let (strong, plain, faint) = (app.palette.strong(), Style::new(), app.palette.faint());
    let mut texts = Vec::new();
    match session.state {
        // Nothing has been read of it yet.
        Running::Live if session.info.version.is_empty() => {
            texts.push(("Reading the session.".to_owned(), strong));
        }
        Running::Live => {
            texts.push(("Waiting for the program's first call of the CUDA driver.".to_owned(), strong));
            if let Some(obstacle) = &session.info.obstacle {
                texts.push((format!("It may never come: {obstacle}."), app.palette.warning()));
            }
        }
        Running::Ended | Running::Broken => {
            texts.push(("Nothing was captured.".to_owned(), strong));
            for finding in app.answer.findings.iter() {
                texts.push((format!("{}.", app.answer.sentence(&finding.message)), plain));
                texts.push((format!("To do: {}.", app.answer.sentence(&finding.advice)), faint));
            }
        }
    }
    texts.extend(session.notices.iter().map(|notice| (notice.clone(), app.palette.warning())));
    let width = usize::from(area.width.saturating_sub(4).min(90));
    let mut y = area.y + area.height / 4;
    for (text, style) in texts {
        for line in crate::words::wrap(&text, width) {
            if y < area.bottom() {
                canvas.text(area.x + 2, y, area.width.saturating_sub(2), &line, style);
            }
            y += 1;
        }
        y += 1;
    }
}

/// Where the columns of the chart are, on whatever screen; the width is at least 1.
pub(crate) fn plot(app: &App) -> Rect {
    let parts = parts(app);
    let area = if app.screen == Screen::Overview { overview::layout(app, parts.body).chart } else { parts.timeline };
    let mut plot = chart::layout(area, app.answer.session.listed.is_some()).plot;
    if plot.width == 0 {
        plot.width = 1;
    }
    plot
}

/// Where the rows of the shown list are; empty where there is none.
pub(crate) fn list_area(app: &App) -> Rect {
    let body = parts(app).body;
    match app.screen {
        Screen::Overview | Screen::Output => Rect::default(),
        Screen::Allocations => allocations::layout(body, app.answer.session.stacks).rows,
        Screen::Scopes => scopes::layout(body).rows,
        Screen::Segments => segments::layout(app, body).rows,
        Screen::Steps => steps::layout(body).rows,
    }
}

/// The screen whose tab is there.
pub(crate) fn tab_at(app: &App, at: Position) -> Option<Screen> {
    let tabs = parts(app).tabs;
    header::tabs(tabs, app.screen).into_iter().find(|(_, place)| place.contains(at)).map(|(screen, _)| screen)
}

/// Where the program's screen is drawn, whatever is shown now.
pub(crate) fn output_body(app: &App) -> Rect {
    output_body_of(app.area)
}

/// The same of a dashboard that is this large.
pub(crate) fn output_body_of(area: Rect) -> Rect {
    Rect::new(area.x, area.y + 2.min(area.height), area.width, area.height.saturating_sub(3))
}
