//! Steps and phases as bands above the chart.
//!
//! Owns: which of them are wide enough to be named. Refuses: those that are narrower than a pixel; it says how many there are.

use eframe::egui::accesskit::Role;
use eframe::egui::{Align2, Color32, FontId, Painter, Rect, Sense, Stroke, StrokeKind, Ui, WidgetInfo, pos2, vec2};
use memscope_core::explorer::{Answer, PhaseSpan, StepSpan, Target, WindowView};
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::report::units;

use super::{Chart, small};
use crate::panels;
use crate::shared::Span;
use crate::view::ViewContext;

/// Least width of a time whose lists are whole.
const LEAST: f32 = 3.0;
/// Distance of the lines over a time whose lists are not whole.
const HATCH: f32 = 7.0;
/// Height of one band.
pub const HEIGHT: f32 = 17.0;
/// A band that is narrower than this is not named.
const NAMED: f32 = 26.0;

/// Draws both bands; a click on one puts the cursor or chooses its time.
pub fn ui(ui: &Ui, context: &mut ViewContext<'_>, chart: &Chart, top: f32) {
    let Some(window) = context.answer.window.clone() else {
        return marks(ui.painter(), context, chart, top);
    };
    let line = |row: f32| {
        Rect::from_min_max(
            pos2(chart.rect.left(), top + row * HEIGHT),
            pos2(chart.rect.right(), top + (row + 1.0) * HEIGHT - 2.0),
        )
    };
    steps(ui, context, chart, line(0.0), &window);
    phases(ui, context, chart, line(1.0), &window);
    lists(ui, context, chart, line(2.0));
}

/// How many bands there are: the last tells where lists are whole, of a session of which not all are.
pub fn count(answer: &Answer) -> usize {
    2 + usize::from(answer.session.listed.is_some())
}

/// Draws where lists are whole.
fn lists(ui: &Ui, context: &ViewContext<'_>, chart: &Chart, line: Rect) {
    let Some(listed) = &context.answer.session.listed else { return };
    let (theme, painter) = (&context.theme, ui.painter());
    let said = listed.whole();
    let response = ui.interact(line, ui.scope_id().with("lists"), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &said));
    response.on_hover_text(&said);
    let last = context.answer.session.last_time;
    for gap in gaps(context, chart) {
        hatch(painter, Rect::from_x_y_ranges(gap.x_range(), line.y_range()), theme.faint());
        let span = Span::between(chart.time(gap.left()), chart.time(gap.right()));
        band(painter, chart, line, span, Color32::TRANSPARENT, theme.text(), |_| "summed only".to_owned());
    }
    let spans = listed.times.iter().map(|time| time.span);
    for kept in spans.filter(|kept| kept.end.is_none_or(|end| end.0 >= chart.seen.begin)) {
        let (left, right) = (chart.x(kept.begin.0), chart.x(kept.end.unwrap_or(last).0));
        // A few steps of many hours are to be found too.
        let rect = Rect::from_x_y_ranges(left..=right.max(left + LEAST), line.y_range()).intersect(line);
        if rect.is_positive() {
            painter.rect_filled(rect, 0.0, theme.good().lerp_to_gamma(theme.ground(), 0.4));
            band(
                painter,
                chart,
                line,
                Span::between(kept.begin.0, kept.end.unwrap_or(last).0),
                Color32::TRANSPARENT,
                theme.text(),
                |_| "kept".to_owned(),
            );
        }
    }
}

/// The parts of what is seen whose lists are not whole.
fn gaps(context: &ViewContext<'_>, chart: &Chart) -> Vec<Rect> {
    let seen = chart.seen.from()..Nanoseconds(chart.seen.end.min(context.answer.session.last_time.0));
    let gaps = context.answer.session.listed.as_ref().map_or_else(Vec::new, |listed| listed.gaps(&seen));
    gaps.into_iter().map(|gap| chart.span(Span::between(gap.start.0, gap.end.0)).intersect(chart.rect)).collect()
}

/// Hatches the parts of a chart of allocations whose lists are not whole.
pub fn unlisted(painter: &Painter, context: &ViewContext<'_>, chart: &Chart) {
    for gap in gaps(context, chart) {
        hatch(painter, gap, context.theme.faint().gamma_multiply(0.45));
    }
}

/// Slanting lines.
fn hatch(painter: &Painter, rect: Rect, ink: Color32) {
    if !rect.is_positive() {
        return;
    }
    let painter = painter.with_clip_rect(rect.intersect(painter.clip_rect()));
    let mut x = rect.left() - rect.height();
    while x < rect.right() {
        painter.line_segment([pos2(x, rect.bottom()), pos2(x + rect.height(), rect.top())], Stroke::new(1.0, ink));
        x += HATCH;
    }
}

/// Draws steps alone into a line; a click on one puts the cursor, and chooses its time.
pub fn steps(ui: &Ui, context: &mut ViewContext<'_>, chart: &Chart, line: Rect, window: &WindowView) {
    let shades = [0.10, 0.20];
    for StepSpan { number, turn, begin, end } in &window.steps {
        let text = |width: f32| match width {
            120.0.. => format!("step {}", units::step(*number, *turn)),
            60.0.. => format!("step {number}"),
            _ => number.to_string(),
        };
        let colour = context.theme.text().gamma_multiply(shades[(*number % 2) as usize]);
        let span = Span::between(begin.0, end.map_or(context.answer.session.last_time.0, |end| end.0));
        let Some(rect) = band(ui.painter(), chart, line, span, colour, context.theme.faint(), text) else { continue };
        if clicked(ui, rect, line) {
            context.shared.cursor = context.answer.step(*number, *begin);
            context.shared.range = Some(span);
        }
    }
    hidden(ui.painter(), context, line, window.steps_hidden, ("step", "steps"));
}

fn phases(ui: &Ui, context: &mut ViewContext<'_>, chart: &Chart, line: Rect, window: &WindowView) {
    // Of several processes the one that is looked at, else the first.
    let process = match context.answer.target {
        Target::Process(process) => Some(process),
        _ => window.phases.iter().map(|phase| phase.process).min(),
    };
    for PhaseSpan { name, begin, end, .. } in window.phases.iter().filter(|phase| Some(phase.process) == process) {
        let colour = shade(context, name);
        let span = Span::between(begin.0, end.map_or(context.answer.session.last_time.0, |end| end.0));
        let text = |_| name.clone();
        let Some(rect) = band(ui.painter(), chart, line, span, colour, context.theme.text(), text) else { continue };
        if clicked(ui, rect, line) {
            context.shared.range = Some(span);
        }
    }
    hidden(ui.painter(), context, line, window.phases_hidden, ("phase", "phases"));
}

/// One colour a name, the same in every session: of a few that are no category's.
fn shade(context: &ViewContext<'_>, name: &str) -> Color32 {
    let theme = &context.theme;
    let number = name.bytes().fold(5381u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(byte));
    let colour = match name {
        "forward" => theme.accent(),
        "backward" => theme.warning(),
        "optimizer" => theme.good(),
        _ => theme.faint().lerp_to_gamma(theme.text(), (number % 4) as f32 / 6.0),
    };
    colour.lerp_to_gamma(theme.ground(), 0.62)
}

/// One band; `None` when nothing of it is seen.
fn band(
    painter: &Painter,
    chart: &Chart,
    line: Rect,
    span: Span,
    colour: Color32,
    ink: Color32,
    text: impl Fn(f32) -> String,
) -> Option<Rect> {
    let rect = Rect::from_x_y_ranges(chart.x(span.begin)..=chart.x(span.end), line.y_range()).intersect(line);
    if rect.width() <= 0.0 {
        return None;
    }
    painter.rect_filled(rect, 0.0, colour);
    if rect.width() > 3.0 {
        painter.rect_stroke(rect, 0.0, Stroke::new(0.5, ink.gamma_multiply(0.4)), StrokeKind::Inside);
    }
    if rect.width() > NAMED {
        let inside = painter.with_clip_rect(rect.shrink(2.0));
        inside.text(
            rect.left_center() + vec2(4.0, 0.0),
            Align2::LEFT_CENTER,
            text(rect.width()),
            FontId::proportional(11.0),
            ink,
        );
    }
    Some(rect)
}

fn clicked(ui: &Ui, rect: Rect, line: Rect) -> bool {
    // One look at the pointer, and no widget for each of thousands.
    let pointer = ui.input(|input| input.pointer.primary_clicked().then(|| input.pointer.interact_pos()).flatten());
    pointer.is_some_and(|pointer| rect.contains(pointer) && line.contains(pointer))
}

fn hidden(painter: &Painter, context: &ViewContext<'_>, line: Rect, count: usize, (one, many): (&str, &str)) {
    if count > 0 {
        let text = format!("{} too short to be seen: zoom in", units::count(count as u64, one, many));
        let galley = small(painter, text, context.theme.faint());
        let rect = Align2::RIGHT_CENTER.anchor_size(line.right_center() - vec2(4.0, 0.0), galley.size());
        painter.rect_filled(rect.expand(2.0), 2.0, context.theme.ground());
        painter.galley(rect.min, galley, context.theme.faint());
    }
}

/// Before the span is known: where steps began.
fn marks(painter: &Painter, context: &ViewContext<'_>, chart: &Chart, top: f32) {
    let band = Rect::from_min_max(pos2(chart.rect.left(), top), pos2(chart.rect.right(), top + HEIGHT - 2.0));
    let painter = painter.with_clip_rect(band);
    let mut lined = f32::NEG_INFINITY;
    for (begin, _) in context.answer.step_marks.iter().filter(|(time, _)| chart.seen.contains(time.0)) {
        let x = chart.x(begin.0);
        if x - lined > 3.0 {
            lined = x;
            painter.vline(x, band.y_range(), Stroke::new(1.0, context.theme.faint()));
        }
    }
}

/// Steps and phases under the pointer, in words.
pub fn under(window: &WindowView, time: u64) -> Vec<String> {
    let within = |begin: u64, end: Option<u64>| begin <= time && end.is_none_or(|end| time < end);
    let steps = window.steps.iter().filter(|step| within(step.begin.0, step.end.map(|end| end.0)));
    let named = window.phases.iter().filter(|phase| !phase.name.is_empty());
    let phases = named.filter(|phase| within(phase.begin.0, phase.end.map(|end| end.0)));
    let steps = steps.map(|step| format!("step {}", units::step(step.number, step.turn)));
    let length = |phase: &PhaseSpan| match phase.end {
        Some(end) => format!(", {}", panels::length(end.0 - phase.begin.0)),
        None => String::new(),
    };
    steps.chain(phases.map(|phase| format!("{}{}", phase.name, length(phase)))).collect()
}
