//! Marks to click: peak, out of memory, refusals, findings.
//!
//! Owns: where they are and what they are called. Refuses: more marks than can be told apart.

use eframe::egui::accesskit::Role;
use eframe::egui::{Align2, Color32, FontId, Painter, Pos2, Rect, Sense, Shape, Stroke, Ui, WidgetInfo, pos2, vec2};
use memscope_core::explorer::{Answer, At};
use memscope_core::findings::{Detail, Finding};
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::report::{nanoseconds, units};

use super::Chart;
use crate::panels::findings::{self, Shown};
use crate::view::ViewContext;

/// What a mark says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Where most was live.
    Peak,
    /// Memory ran out.
    Oom,
    /// The driver refused an allocation, and the program went on.
    Refused,
    /// Something else that was found.
    Finding,
}

/// A mark.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// When, nanoseconds.
    pub time: u64,
    /// What it says.
    pub kind: Kind,
    /// In words.
    pub label: String,
    /// Where a click leads.
    pub leads: Shown,
}

/// So many refusals are marked; the rest are too close to be told apart.
const REFUSALS: usize = 200;

/// All marks of the part that is looked at, in the order of time.
pub fn of(answer: &Answer) -> Vec<Mark> {
    let here = |at| Shown { at, target: answer.target, selection: Default::default(), range: None };
    let mut marks = Vec::new();
    if let Some(peak) = &answer.peak {
        let label = format!("Peak: {} live", units::bytes(peak.state.rows.live_bytes()));
        marks.push(Mark { time: peak.state.time.0, kind: Kind::Peak, label, leads: here(At::Peak) });
    }
    marks.extend(answer.findings.iter().filter_map(|finding| of_finding(answer, finding)));
    let told: Vec<u64> = marks.iter().filter(|mark| mark.kind == Kind::Oom).map(|mark| mark.time).collect();
    let refusals = answer.refusals.iter().filter(|time| !told.contains(&time.0)).take(REFUSALS);
    marks.extend(refusals.map(|time| Mark {
        time: time.0,
        kind: Kind::Refused,
        label: "Allocation refused".to_owned(),
        leads: here(At::Refused(*time)),
    }));
    marks.sort_by_key(|mark| mark.time);
    marks
}

fn of_finding(answer: &Answer, finding: &Finding) -> Option<Mark> {
    let leads = findings::place(answer, finding)?;
    match &finding.detail {
        Detail::Oom(oom) => {
            let label = format!("Out of memory: {} asked for", units::bytes(oom.requested));
            Some(Mark { time: nanoseconds(oom.time_s).0, kind: Kind::Oom, label, leads })
        }
        Detail::ThresholdPassed(passed) => {
            let label = format!("More than {} used", passed.threshold);
            Some(Mark { time: nanoseconds(passed.time_s).0, kind: Kind::Finding, label, leads })
        }
        Detail::StepGrowth(growth) => {
            let begin = answer.step_marks.iter().find(|(_, number)| *number == growth.first_step);
            let label = format!("Grows by {} a step", units::bytes(growth.bytes_per_step));
            begin.map(|(Nanoseconds(time), _)| Mark { time: *time, kind: Kind::Finding, label, leads })
        }
        _ => None,
    }
}

/// Lines on which marks stand, one below another, and their height.
const LINES: usize = 3;
const LINE: f32 = 18.0;

/// Draws them and puts the cursor where one is clicked.
pub fn ui(ui: &mut Ui, context: &mut ViewContext<'_>, chart: &Chart, whole: Rect) {
    let mut leads = None;
    let mut lines = [f32::NEG_INFINITY; LINES];
    let mut last = f32::NEG_INFINITY;
    for (position, mark) in of(context.answer).into_iter().enumerate() {
        let x = chart.x(mark.time);
        let minor = mark.kind == Kind::Refused;
        if !chart.seen.contains(mark.time) || (minor && x - last < 4.0) {
            continue;
        }
        last = x;
        let colour = match mark.kind {
            Kind::Peak => context.theme.accent(),
            Kind::Oom => context.theme.error(),
            Kind::Refused | Kind::Finding => context.theme.warning(),
        };
        // What is minor is named where the pointer is.
        let label = if minor { String::new() } else { mark.label.clone() };
        let label = ui.painter().layout_no_wrap(label, FontId::proportional(11.0), colour);
        let (line, right) = place(&mut lines, x, label.size().x, chart.rect.right());
        let symbol = pos2(x, chart.rect.top() + 7.0 + line as f32 * LINE);
        let rect = Rect::from_center_size(symbol, vec2(14.0, 14.0)).intersect(whole);
        let response = ui.interact(rect, ui.scope_id().with(("mark", position)), Sense::click());
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, mark.label.as_str()));
        let width = if mark.kind == Kind::Oom { 2.0 } else { 1.0 };
        ui.painter().vline(x, chart.rect.y_range(), Stroke::new(width, colour.gamma_multiply(0.8)));
        if !minor {
            let align = if right { Align2::LEFT_CENTER } else { Align2::RIGHT_CENTER };
            let beside = if right { vec2(10.0, 0.0) } else { vec2(-10.0, 0.0) };
            super::label(ui.painter(), symbol + beside, align, label, (colour, context.theme.ground()));
        }
        draw(ui.painter(), mark.kind, symbol, colour);
        if response.clicked() {
            leads = Some(mark.leads.clone());
        }
        response.on_hover_text(mark.label);
    }
    if let Some(leads) = leads {
        let now = ui.input(|input| input.time);
        findings::show(context.answer, context.shared, leads, now);
    }
}

/// The line on which a mark has room, and whether its label is at its right. `lines` says how far each is taken.
fn place(lines: &mut [f32; LINES], x: f32, width: f32, edge: f32) -> (usize, bool) {
    let right = x + 12.0 + width < edge;
    let (from, to) = if right { (x - 8.0, x + 14.0 + width) } else { (x - 14.0 - width, x + 8.0) };
    let line = lines.iter().position(|taken| *taken <= from).unwrap_or(LINES - 1);
    lines[line] = lines[line].max(to);
    (line, right)
}

fn draw(painter: &Painter, kind: Kind, centre: Pos2, colour: Color32) {
    match kind {
        Kind::Peak => {
            let points = [vec2(0.0, 6.0), vec2(-6.0, -4.0), vec2(6.0, -4.0)].map(|corner| centre + corner);
            painter.add(Shape::convex_polygon(points.to_vec(), colour, Stroke::NONE));
        }
        Kind::Oom => {
            for corner in [vec2(5.0, 5.0), vec2(5.0, -5.0)] {
                painter.line_segment([centre - corner, centre + corner], Stroke::new(2.5, colour));
            }
        }
        Kind::Refused => {
            painter.circle_stroke(centre, 4.0, Stroke::new(1.5, colour));
        }
        Kind::Finding => {
            painter.circle_filled(centre, 4.0, colour);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stand_below_each_other_where_they_would_meet() {
        let mut lines = [f32::NEG_INFINITY; LINES];
        let mut at = |x: f32| place(&mut lines, x, 100.0, 500.0);
        assert_eq!([at(10.0), at(50.0), at(60.0)], [(0, true), (1, true), (2, true)]);
        assert_eq!(at(200.0), (0, true), "there is room again");
        // At the right edge the label is at the left, where others may be.
        assert_eq!(at(480.0), (0, false));
        assert_eq!(at(490.0), (1, false));
    }
}
