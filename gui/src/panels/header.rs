//! The session's facts in a line or two: what ran, on what, how long, what was the most.
//!
//! Owns: which facts. Refuses: what belongs to a moment.

use std::time::Duration;

use eframe::egui::{self, ProgressBar, RichText, Ui, accesskit};
use memscope_core::explorer::{Answer, Running};
use memscope_core::report::units;

use crate::theme::Theme;

/// How often is looked how far the reading is.
const PACE: Duration = Duration::from_millis(100);

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
    facts.extend(info.called().map(|node| (format!("on {node}"), false)));
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

/// How far the reading of a profile's allocations is, in words.
fn progress(read: u64, of: u64) -> String {
    match read < of {
        true => format!("reading {} of {}", units::grouped(read), units::count(of, "allocation", "allocations")),
        false => format!("adding up {}", units::count(of, "allocation", "allocations")),
    }
}

/// Draws it; of a profile whose allocations are being read, with how many have been.
pub fn ui(ui: &mut Ui, answer: &Answer, read: Option<u64>, theme: &Theme) {
    line(ui, facts(answer), read.map(|read| (read, answer.session.to_read)), theme);
    for notice in &answer.session.notices {
        ui.label(RichText::new(notice).color(theme.warning()));
    }
}

/// The facts as text.
pub fn text(answer: &Answer) -> String {
    let being_read = answer.session.reading && answer.session.state != Running::Live;
    let being_read = being_read.then(|| "its allocations are being read".to_owned());
    facts(answer).into_iter().map(|(fact, _)| fact).chain(being_read).collect::<Vec<_>>().join("; ")
}

fn reading(ui: &mut Ui, read: u64, of: u64, theme: &Theme) {
    let share = read as f32 / of.max(1) as f32;
    ui.add(ProgressBar::new(share.min(1.0)).desired_width(80.0).desired_height(6.0));
    let said = ui.label(RichText::new(progress(read, of)).color(theme.warning()));
    // Whoever hears the window is told each time that it says something else.
    ui.ctx().accesskit_node_builder(said.id, |node| node.set_live(accesskit::Live::Polite));
    ui.ctx().request_repaint_after(PACE);
}

fn line(ui: &mut Ui, facts: Vec<(String, bool)>, read: Option<(u64, u64)>, theme: &Theme) {
    ui.horizontal_wrapped(|ui| {
        for (position, (fact, bad)) in facts.into_iter().enumerate() {
            if position > 0 {
                ui.label(RichText::new("·").color(theme.faint()));
            }
            let text = RichText::new(fact);
            let text = if position == 0 { text.strong() } else { text };
            ui.label(if bad { text.color(theme.warning()) } else { text });
        }
        if let Some((read, of)) = read {
            reading(ui, read, of, theme);
        }
        ui.allocate_space(egui::Vec2::ZERO);
    });
}
