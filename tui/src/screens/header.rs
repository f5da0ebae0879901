//! The two lines at the top of every screen.
//!
//! Owns: what must be seen wherever one is: that figures are wrong or simulated, which moment and which part is shown, and
//! whether the program still runs. Refuses: everything else.

use memscope_core::explorer::{Answer, At, Running, Target};
use memscope_core::findings::Detail;
use memscope_core::report::units;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::Parts;
use crate::app::{App, Screen, Typing};
use crate::canvas::Canvas;
use crate::words::columns;

/// Draws both lines.
pub(super) fn draw(app: &App, canvas: &mut Canvas, parts: &Parts) {
    let Rect { x, y, width, .. } = parts.header;
    let palette = canvas.palette;
    let mut end = canvas.text(x, y, width, " memscope ", palette.accent());
    for (text, style) in flags(app) {
        end = canvas.text(
            end,
            y,
            width.saturating_sub(end),
            &format!(" {text} "),
            style.add_modifier(Modifier::REVERSED),
        ) + 1;
    }
    let moment = moment(app);
    let taken = columns(&moment.0) as u16;
    let right = (x + width).saturating_sub(taken + 1).max(end);
    canvas.text(right, y, width - right, &moment.0, moment.1);
    let command = command(app);
    let state = state(app);
    let room = right.saturating_sub(end + 2);
    let state_room = columns(&state.0) as u16 + 2;
    let end = canvas.begin_of(end, y, room.saturating_sub(state_room), &command, palette.strong());
    if room >= state_room {
        canvas.text(end + 2, y, state_room, &state.0, state.1);
    }
    draw_tabs(app, canvas, parts.tabs);
}

/// What is wrong with, or said of, all figures.
fn flags(app: &App) -> Vec<(String, Style)> {
    let session = &app.answer.session;
    let palette = app.palette;
    // What is said must be seen, however narrow the terminal is.
    let narrow = app.area.width < 70;
    let mut flags = Vec::new();
    if session.dropped_events > 0 {
        let lost = session.dropped_events;
        let count = if narrow { units::grouped(lost) } else { units::count(lost, "EVENT", "EVENTS") };
        flags.push((format!("{count} DROPPED"), palette.error()));
    }
    flags.extend(alerts(&app.answer, narrow).map(|alert| (alert, palette.error())));
    if let Some(device) = &session.info.simulated {
        let device = crate::words::fit(&units::simulated(device), 16, app.glyphs);
        let text = if narrow { "SIMULATED".to_owned() } else { format!("SIMULATED {device}") };
        flags.push((text, palette.warning()));
    }
    if app.typing == Typing::On {
        flags.push(("TYPING".to_owned(), palette.good()));
    }
    if app.paused.is_some() {
        flags.push(("PAUSED".to_owned(), palette.warning()));
    }
    flags
}

/// The thresholds that a device's use has passed, in as few words as there are.
fn alerts(answer: &Answer, narrow: bool) -> impl Iterator<Item = String> {
    answer.findings.iter().filter_map(move |finding| {
        let Detail::ThresholdPassed(passed) = &finding.detail else { return None };
        let device = if narrow { String::new() } else { format!("{} ", answer.sentence(&passed.device)) };
        Some(format!("{device}> {}", passed.threshold))
    })
}

/// The program without the folders that it lies in, and its arguments.
fn command(app: &App) -> String {
    let mut words = app.answer.session.info.command.iter().map(String::as_str);
    let program = words.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or(program);
    std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
}

/// What the session is doing.
fn state(app: &App) -> (String, Style) {
    let session = &app.answer.session;
    let status = app.program.flatten().or(session.exit_status);
    let palette = app.palette;
    match (session.state, status) {
        (_, Some(0)) => ("ended, status 0".to_owned(), palette.good()),
        (_, Some(status)) => (format!("ended, status {status}"), palette.error()),
        (Running::Live, None) if session.reading => ("reading what was recorded".to_owned(), palette.warning()),
        (Running::Live, None) if app.stopped => ("stopped".to_owned(), palette.warning()),
        (Running::Live, None) => ("running".to_owned(), palette.good()),
        (Running::Ended, None) => ("ended".to_owned(), palette.faint()),
        (Running::Broken, None) => ("recording broke off".to_owned(), palette.error()),
    }
}

/// Which moment is shown.
fn moment(app: &App) -> (String, Style) {
    let now = &app.answer.now;
    let time = units::time(now.state.time.0 as f64 / 1e9);
    let (name, style) = match app.at {
        At::Live if app.paused.is_some() => ("AT", app.palette.warning()),
        At::Live if app.answer.session.reading => ("READING", app.palette.warning()),
        At::Live if app.answer.session.state == Running::Live => ("LIVE", app.palette.good()),
        At::Live => ("END", app.palette.strong()),
        At::Peak => ("PEAK OF LIVE", app.palette.accent()),
        At::Time(_) | At::Refused(_) => ("AT", app.palette.accent()),
        At::Step(_) | At::StepFrom(_) => ("STEP'S LIVE PEAK", app.palette.accent()),
    };
    let mut text = format!("{name} {time}");
    if let Some(step) = now.state.step {
        text.push_str(&format!(", step {step}"));
    }
    if !now.phase.is_empty() {
        text.push_str(&format!(", {}", crate::words::fit(&now.phase, 16, app.glyphs)));
    }
    (text, style)
}

/// Where the tabs are. On a narrow terminal only the shown screen's name is spelled out.
pub(super) fn tabs(line: Rect, shown: Screen) -> Vec<(Screen, Rect)> {
    let wide = line.width >= 90;
    let mut x = line.x + 1;
    let mut places = Vec::with_capacity(Screen::ALL.len());
    for screen in Screen::ALL {
        let width = if wide || screen == shown || line.width >= 78 { 4 + screen.name().len() as u16 } else { 3 };
        let width = if wide { width } else { width.saturating_sub(1) };
        places.push((screen, Rect::new(x, line.y, width.min(line.right().saturating_sub(x)), 1)));
        x = (x + width).min(line.right());
    }
    places
}

fn draw_tabs(app: &App, canvas: &mut Canvas, line: Rect) {
    let palette = canvas.palette;
    for (screen, place) in tabs(line, app.screen) {
        let letter = crate::keys::screen_letter(screen).to_string();
        canvas.text(place.x + 1, place.y, 1, &letter, palette.accent());
        let style = if screen == app.screen { palette.strong() } else { palette.faint() };
        canvas.text(place.x + 3, place.y, place.width.saturating_sub(3), screen.name(), style);
        if screen == app.screen {
            let marked = Rect { width: place.width.min(screen.name().len() as u16 + 4), ..place };
            canvas.dress(marked, palette.selected());
        }
    }
    let end = tabs(line, app.screen).last().map_or(line.x, |(_, place)| place.right());
    let room = line.right().saturating_sub(end + 2);
    let target = target(app);
    canvas.right(end + 1, line.y, room, &crate::words::fit(&target, usize::from(room), app.glyphs), palette.strong());
}

/// Which part of the session is shown.
pub(super) fn target(app: &App) -> String {
    let answer = &app.answer;
    match app.target {
        _ if answer.of_host => "host memory".to_owned(),
        Target::All => match (answer.devices.len(), answer.processes.len()) {
            (0 | 1, 0 | 1) => "total".to_owned(),
            (0 | 1, processes) => format!("all {processes} processes"),
            (devices, _) => format!("{devices} GPUs in use"),
        },
        Target::Host => "host memory".to_owned(),
        Target::Device(device) => format!("GPU {}", answer.gpu(device.into())),
        Target::Process(process) => match answer.processes.get(process as usize) {
            None => format!("process {process}"),
            Some(view) => match view.called(answer.session.info.called()) {
                Some(called) => format!("{called}, pid {}", view.pid),
                None => format!("pid {}", view.pid),
            },
        },
    }
}
