//! The session's facts in a line or two: what ran, on what, how long, what was the most.
//!
//! Owns: which facts. Refuses: what belongs to a moment.

use eframe::egui::{self, RichText, Ui};
use memscope_core::explorer::{Answer, Running};
use memscope_core::report::units;

use crate::theme::Theme;

/// Facts as words, and whether each is a warning.
fn facts(answer: &Answer) -> Vec<(String, bool)> {
    let session = &answer.session;
    let info = &session.info;
    let mut facts = vec![(info.command.join(" "), false)];
    let state = match (session.state, session.exit_status) {
        (Running::Live, _) if session.reading => "reading what was recorded".to_owned(),
        (Running::Live, _) => "running".to_owned(),
        (Running::Ended, Some(0)) => "ended well".to_owned(),
        (Running::Ended, Some(status)) => format!("ended with status {status}"),
        (Running::Ended, None) => "ended".to_owned(),
        (Running::Broken, _) => "recording broken off".to_owned(),
    };
    let bad = session.state == Running::Broken || session.exit_status.is_some_and(|status| status != 0);
    facts.push((format!("{state}, {}", units::time(session.last_time.0 as f64 / 1e9)), bad));
    if session.reading && session.state != Running::Live {
        facts.push(("reading its allocations".to_owned(), true));
    }
    facts.extend(devices(answer).into_iter().map(|device| (device, false)));
    if let Some(simulated) = &info.simulated {
        facts.push((format!("simulated: {}", units::simulated(simulated)), true));
    }
    if let Some(peak) = &answer.peak {
        let step = peak.state.step.map_or_else(String::new, |step| format!(", step {step}"));
        let live = units::bytes(peak.state.rows.live_bytes());
        let at = units::time(peak.state.time.0 as f64 / 1e9);
        facts.push((format!("peak of live {live} at {at}{step}"), false));
    }
    facts.push((units::count(session.allocations, "allocation made", "allocations made"), false));
    if session.dropped_events > 0 {
        facts.push((format!("{} events lost: figures are too low", units::grouped(session.dropped_events)), true));
    }
    facts
}

/// The devices; those that are alike as one.
fn devices(answer: &Answer) -> Vec<String> {
    let mut devices: Vec<(String, usize)> = Vec::new();
    for (position, device) in answer.devices.iter().enumerate() {
        let name = device.name.clone().unwrap_or_else(|| format!("GPU {}", answer.gpu(position)));
        let capacity = device.capacity.map_or_else(|| "capacity not known".to_owned(), units::bytes);
        let device = format!("{name}, {capacity}");
        match devices.iter_mut().find(|(known, _)| *known == device) {
            Some((_, count)) => *count += 1,
            None => devices.push((device, 1)),
        }
    }
    let line = |(device, count)| if count == 1 { device } else { format!("{count} × {device}") };
    devices.into_iter().map(line).collect()
}

/// Draws it.
pub fn ui(ui: &mut Ui, answer: &Answer, theme: &Theme) {
    line(ui, facts(answer), theme);
    for notice in &answer.session.notices {
        ui.label(RichText::new(notice).color(theme.warning()));
    }
}

/// The facts as text.
pub fn text(answer: &Answer) -> String {
    facts(answer).into_iter().map(|(fact, _)| fact).collect::<Vec<_>>().join("; ")
}

fn line(ui: &mut Ui, facts: Vec<(String, bool)>, theme: &Theme) {
    ui.horizontal_wrapped(|ui| {
        for (position, (fact, bad)) in facts.into_iter().enumerate() {
            if position > 0 {
                ui.label(RichText::new("·").color(theme.faint()));
            }
            let text = RichText::new(fact);
            let text = if position == 0 { text.strong() } else { text };
            ui.label(if bad { text.color(theme.warning()) } else { text });
        }
        ui.allocate_space(egui::Vec2::ZERO);
    });
}
