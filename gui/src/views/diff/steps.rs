//! Peaks of steps of both sides, by number.
//!
//! Owns: the chart; a click on a step compares it. Refuses: to leave out what only one side has: it is counted in words.

use eframe::egui::accesskit::Role;
use eframe::egui::{Align2, Color32, FontId, Painter, Rect, Sense, Shape, Stroke, Ui, WidgetInfo, pos2, vec2};
use memscope_core::diff::{Diff, StepChange, difference};
use memscope_core::report::units;

use crate::view::ViewContext;
use crate::views::timeline::{MARGIN, label, small};

const HEIGHT: f32 = 56.0;

/// Which steps there are, in words.
fn words(diff: &Diff) -> String {
    format!("peaks of {}", diff.steps_text())
}

/// Draws it; the step that was clicked.
pub fn ui(ui: &mut Ui, context: &ViewContext<'_>, diff: &Diff) -> Option<u64> {
    let (first, last) = (diff.steps.first()?, diff.steps.last()?);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), HEIGHT), Sense::click());
    response.widget_info(|| {
        let label = format!("Peaks of steps before and after: {}", words(diff));
        WidgetInfo { value: None, ..WidgetInfo::labeled(Role::Canvas, true, label) }
    });
    let theme = &context.theme;
    let inner = Rect::from_min_max(rect.min + vec2(MARGIN - 8.0, 2.0), rect.max - vec2(0.0, 4.0));
    let painter = ui.painter_at(rect);
    painter.rect_filled(inner, 0.0, theme.ground());
    let most = diff.steps.iter().filter_map(|step| step.before.max(step.after)).max().unwrap_or(0).max(1);
    let most_at = inner.left_top() - vec2(6.0, 0.0);
    painter.text(most_at, Align2::RIGHT_TOP, units::bytes(most), FontId::proportional(11.0), theme.faint());
    let span = (last.step - first.step).max(1) as f64;
    let x =
        |step: u64| inner.left() + 4.0 + ((step - first.step) as f64 / span * f64::from(inner.width() - 8.0)) as f32;
    let y = |bytes: u64| inner.bottom() - (bytes as f64 / most as f64 * f64::from(inner.height() - 2.0)) as f32;
    for (of, colour) in [
        ((|step: &StepChange| step.before) as fn(&StepChange) -> Option<u64>, theme.faint()),
        (|step: &StepChange| step.after, theme.accent()),
    ] {
        curve(&painter, diff.steps.iter().filter_map(|step| Some(pos2(x(step.step), y(of(step)?)))), colour);
    }
    let at = inner.right_center() - vec2(6.0, 0.0);
    let text = small(&painter, words(diff), theme.text());
    label(&painter, at, Align2::RIGHT_CENTER, text, (theme.text(), theme.ground()));
    let nearest = |x: f32| {
        let share = f64::from((x - inner.left() - 4.0) / (inner.width() - 8.0)).clamp(0.0, 1.0);
        let wanted = first.step + (share * span).round() as u64;
        let after = diff.steps.partition_point(|step| step.step < wanted).min(diff.steps.len() - 1);
        diff.steps[after]
    };
    if let Some(pointer) = response.hover_pos() {
        let step = nearest(pointer.x);
        painter.vline(x(step.step), inner.y_range(), Stroke::new(1.0, theme.faint()));
        response.clone().on_hover_ui_at_pointer(|ui| {
            ui.label(format!("step {}", step.step));
            let bytes = |side: Option<u64>| side.map_or("no such step".to_owned(), units::bytes);
            ui.label(format!("before {}, after {}", bytes(step.before), bytes(step.after)));
            if let Some(change) = step.difference {
                ui.label(difference(change));
            }
        });
    }
    response.clicked().then(|| response.interact_pointer_pos()).flatten().map(|pointer| nearest(pointer.x).step)
}

/// Of several points on a column of pixels the highest stays.
fn curve(painter: &Painter, points: impl Iterator<Item = eframe::egui::Pos2>, colour: Color32) {
    let mut line: Vec<eframe::egui::Pos2> = Vec::new();
    for point in points {
        match line.last_mut() {
            Some(last) if point.x - last.x < 0.5 => last.y = last.y.min(point.y),
            _ => line.push(point),
        }
    }
    if let [only] = line[..] {
        painter.circle_filled(only, 2.0, colour);
    }
    painter.add(Shape::line(line, Stroke::new(1.5, colour)));
}
