//! Marks to click: peak, out of memory, refusals, findings.
//!
//! Owns: where they are and what they are called. Refuses: more marks than can be told apart.

use eframe::egui::{Align2, Color32, FontId, Rect, Sense, Stroke, Ui, WidgetInfo, accesskit::Role, pos2, vec2};
use memscope_core::explorer::{Answer, At};
use memscope_core::findings::{Detail, Finding};
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::report::units;

use super::Chart;
use crate::document::moment;
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
            Some(Mark { time: moment(oom).0, kind: Kind::Oom, label, leads })
        }
        Detail::StepGrowth(growth) => {
            let begin = answer.step_marks.iter().find(|(_, number)| *number == growth.first_step);
            let label = format!("Grows by {} a step", units::bytes(growth.bytes_per_step));
            begin.map(|(Nanoseconds(time), _)| Mark { time: *time, kind: Kind::Finding, label, leads })
        }
        _ => None,
    }
}

/// Draws them and puts the cursor where one is clicked.
pub fn ui(ui: &mut Ui, context: &mut ViewContext<'_>, chart: &Chart, whole: Rect) {
    let mut leads = None;
    let (mut last, mut written) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
    for (position, mark) in of(context.answer).into_iter().enumerate() {
        if !chart.seen.contains(mark.time) {
            continue;
        }
        let x = chart.x(mark.time);
        let minor = mark.kind == Kind::Refused;
        if minor && x - last < 4.0 {
            continue;
        }
        last = x;
        let colour = match mark.kind {
            Kind::Peak => context.theme.accent(),
            Kind::Oom => context.theme.error(),
            Kind::Refused | Kind::Finding => context.theme.warning(),
        };
        let rect = Rect::from_center_size(pos2(x, chart.rect.top() + 7.0), vec2(14.0, 14.0)).intersect(whole);
        let response = ui.interact(rect, ui.scope_id().with(("mark", position)), Sense::click());
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, mark.label.as_str()));
        draw(ui, chart, &mark, x, colour, &mut written);
        if response.clicked() {
            leads = Some(mark.leads.clone());
        }
        response.on_hover_text(mark.label);
    }
    if let Some(leads) = leads {
        findings::show(context.shared, leads);
    }
}

fn draw(ui: &Ui, chart: &Chart, mark: &Mark, x: f32, colour: Color32, written: &mut f32) {
    let painter = ui.painter();
    let top = chart.rect.top();
    let width = if mark.kind == Kind::Oom { 2.0 } else { 1.0 };
    painter.vline(x, top..=chart.rect.bottom(), Stroke::new(width, colour.gamma_multiply(0.8)));
    match mark.kind {
        Kind::Peak => triangle(painter, pos2(x, top + 12.0), 6.0, colour),
        Kind::Oom => {
            for (from, to) in [(vec2(-5.0, -5.0), vec2(5.0, 5.0)), (vec2(-5.0, 5.0), vec2(5.0, -5.0))] {
                let centre = pos2(x, top + 7.0);
                painter.line_segment([centre + from, centre + to], Stroke::new(2.5, colour));
            }
        }
        Kind::Refused => {
            painter.circle_stroke(pos2(x, top + 7.0), 4.0, Stroke::new(1.5, colour));
        }
        Kind::Finding => {
            painter.circle_filled(pos2(x, top + 7.0), 4.0, colour);
        }
    }
    if mark.kind == Kind::Refused {
        return;
    }
    let font = FontId::proportional(11.0);
    let galley = painter.layout_no_wrap(mark.label.clone(), font, colour);
    // On the side where there is room; below one that is already there.
    let right = x + 12.0 + galley.size().x < chart.rect.right();
    let line = if x < *written { 18.0 } else { 0.0 };
    *written = if right { x + 14.0 + galley.size().x } else { chart.rect.right() };
    let align = if right { Align2::LEFT_TOP } else { Align2::RIGHT_TOP };
    let rect = align.anchor_size(pos2(if right { x + 10.0 } else { x - 10.0 }, top + line), galley.size());
    painter.rect_filled(rect.expand(2.0), 2.0, ui.visuals().extreme_bg_color.gamma_multiply(0.8));
    painter.galley(rect.min, galley, colour);
}

fn triangle(painter: &eframe::egui::Painter, tip: eframe::egui::Pos2, size: f32, colour: Color32) {
    let points = vec![tip, tip + vec2(-size, -size * 1.6), tip + vec2(size, -size * 1.6)];
    painter.add(eframe::egui::Shape::convex_polygon(points, colour, Stroke::NONE));
}
