//! The screens, one file each.
//!
//! Owns: how the terminal is divided between header, tabs, timeline, screen and footer. Refuses: state.

pub mod allocations;
mod footer;
mod gpus;
mod header;
mod ledger;
mod output;
pub mod overview;
pub mod scopes;
pub mod segments;
pub mod steps;

use ratatui::Frame;
use ratatui::layout::{Position, Rect};

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
    /// The screen.
    pub body: Rect,
    /// Keys.
    pub footer: Rect,
}

/// Divides the terminal.
pub(crate) fn parts(app: &App) -> Parts {
    let area = app.area;
    let timeline = match (app.screen, area.height) {
        (Screen::Overview | Screen::Output, _) | (_, 0..20) => 0,
        (_, 20..40) => 3,
        (_, _) => 6,
    };
    let line = |y: u16, height: u16| {
        let y = y.min(area.height);
        Rect::new(area.x, area.y + y, area.width, height.min(area.height - y))
    };
    let body = 2 + timeline;
    Parts {
        header: line(0, 1),
        tabs: line(1, 1),
        timeline: line(2, timeline),
        body: line(body, area.height.saturating_sub(body + 1)),
        footer: line(area.height.saturating_sub(1), 1),
    }
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
        for (row, line) in crate::canvas::wrap(&text, usize::from(area.width)).iter().enumerate() {
            canvas.text(area.x, area.y.saturating_add(row as u16), area.width, line, app.palette.warning());
        }
        return;
    }
    let parts = parts(app);
    header::draw(app, &mut canvas, &parts);
    if !parts.timeline.is_empty() {
        chart::draw(app, &mut canvas, parts.timeline);
    }
    let cursor = match app.screen {
        Screen::Output => output::draw(app, &mut canvas, parts.body),
        _ if nothing_yet(app) => {
            waiting(app, &mut canvas, parts.body);
            None
        }
        Screen::Overview => {
            overview::draw(app, &mut canvas, parts.body);
            None
        }
        Screen::Allocations => {
            allocations::draw(app, &mut canvas, parts.body);
            None
        }
        Screen::Scopes => {
            scopes::draw(app, &mut canvas, parts.body);
            None
        }
        Screen::Segments => {
            segments::draw(app, &mut canvas, parts.body);
            None
        }
        Screen::Steps => {
            steps::draw(app, &mut canvas, parts.body);
            None
        }
    };
    footer::draw(app, &mut canvas, parts.footer);
    dialog::draw(app, &mut canvas);
    if let Some(position) = cursor {
        frame.set_cursor_position(position);
    }
}

/// True while the session has nothing to show.
fn nothing_yet(app: &App) -> bool {
    app.answer.devices.is_empty() && app.answer.session.allocations == 0 && app.answer.findings.is_empty()
}

/// What a view says that has nothing to show.
fn waiting(app: &App, canvas: &mut Canvas, area: Rect) {
    use memscope_core::explorer::Running;
    let session = &app.answer.session;
    let mut lines = vec![match session.state {
        Running::Live => "Waiting for the program's first call of the CUDA driver.".to_owned(),
        Running::Ended => {
            "Nothing was captured: the program never called the CUDA driver where memscope could see it.".to_owned()
        }
        Running::Broken => "Nothing was captured before the recording broke off.".to_owned(),
    }];
    if let Some(obstacle) = &session.info.obstacle {
        lines.push(obstacle.clone());
    } else if session.state == Running::Ended {
        lines.push("`memscope doctor` checks what memscope needs on this machine.".to_owned());
    }
    lines.extend(session.notices.iter().cloned());
    let width = usize::from(area.width.saturating_sub(4).min(80));
    let mut y = area.y + area.height / 3;
    for line in lines {
        for part in crate::canvas::wrap(&line, width) {
            if y < area.bottom() {
                canvas.text(area.x + 2, y, area.width - 2, &part, app.palette.strong());
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
    let mut plot = chart::layout(area).plot;
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
        Screen::Allocations => allocations::layout(body).rows,
        Screen::Scopes => scopes::layout(body).rows,
        Screen::Segments => segments::layout(body).rows,
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
