//! Fragmentation over time: a line from 0 to 100 %, above the bytes that are cached.
//!
//! Owns: the chart, below the timeline and to its scale. Refuses: to draw between two moments what is not known: steps, no slopes.

use eframe::egui::accesskit::Role;
use eframe::egui::{Align2, FontId, Mesh, Rect, Sense, Shape, Stroke, Ui, WidgetInfo, pos2, vec2};
use memscope_core::explorer::{FragmentationPoint, FragmentationView};
use memscope_core::report::units;

use crate::panels;
use crate::view::ViewContext;
use crate::views::timeline::{Chart, MARGIN, cursor_time};

pub const HEIGHT: f32 = 62.0;

/// The last point at or before a time.
fn at(view: &FragmentationView, time: u64) -> Option<&FragmentationPoint> {
    let after = view.points.partition_point(|point| point.time.0 <= time);
    view.points.get(after.checked_sub(1)?)
}

fn percent(point: &FragmentationPoint) -> String {
    point.fragmentation().map_or("nothing is free".to_owned(), |share| format!("fragmentation {:.0} %", share * 100.0))
}

/// Draws it; a click puts the cursor.
pub fn ui(ui: &mut Ui, context: &mut ViewContext<'_>, rect: Rect) {
    let response = ui.interact(rect, ui.scope_id().with("fragmentation"), Sense::click());
    let label = "Fragmentation of segments and cached bytes over time";
    response.widget_info(|| WidgetInfo { value: None, ..WidgetInfo::labeled(Role::Canvas, true, label) });
    let inner = Rect::from_min_max(rect.min + vec2(MARGIN, 4.0), rect.max - vec2(8.0, 2.0));
    if inner.width() < 20.0 || inner.height() < 12.0 {
        return;
    }
    let (theme, chart) = (context.theme, Chart { rect: inner, seen: context.seen() });
    let painter = ui.painter_at(rect);
    let font = FontId::proportional(11.0);
    for (y, text) in [(inner.top() + 5.0, "100 %"), (inner.bottom() - 5.0, "0 %")] {
        painter.text(pos2(inner.left() - 6.0, y), Align2::RIGHT_CENTER, text, font.clone(), theme.faint());
    }
    painter.hline(inner.x_range(), inner.bottom(), Stroke::new(1.0, theme.grid()));
    let Some(view) = context.answer.fragmentation.clone() else { return };
    let most = view.points.iter().map(FragmentationPoint::cached).max().unwrap_or(0);
    let inside = painter.with_clip_rect(inner.expand(1.0));
    let y = |share: f64| inner.bottom() - (share * f64::from(inner.height())) as f32;
    let mut mesh = Mesh::default();
    let mut line = Vec::new();
    let mut lines = Vec::new();
    for (number, point) in view.points.iter().enumerate() {
        let end = view.points.get(number + 1).map_or(view.range.end.0, |next| next.time.0);
        let (left, right) = (chart.x(point.time.0), chart.x(end));
        if most > 0 {
            let top = y(point.cached() as f64 / most as f64);
            mesh.add_colored_rect(Rect::from_min_max(pos2(left, top), pos2(right, inner.bottom())), theme.cached());
        }
        match point.fragmentation() {
            Some(share) => line.extend([pos2(left, y(share)), pos2(right, y(share))]),
            None => lines.push(std::mem::take(&mut line)),
        }
    }
    inside.add(Shape::mesh(mesh));
    lines.push(line);
    for line in lines.into_iter().filter(|line| line.len() > 1) {
        inside.add(Shape::line(line, Stroke::new(1.5, theme.accent())));
    }
    let cached = format!("fragmentation (line); cached (area), at most {}", units::bytes(most));
    inside.text(inner.left_top() + vec2(4.0, 0.0), Align2::LEFT_TOP, cached, font, theme.text());
    if let Some(range) = context.shared.range {
        inside.rect_filled(chart.span(range), 0.0, theme.accent().gamma_multiply(0.14));
    }
    if let Some(time) = cursor_time(context) {
        inside.vline(chart.x(time), inner.y_range(), Stroke::new(1.5, theme.text()));
    }
    if let Some(at) = chart.clicked(&response) {
        context.shared.cursor = at;
    }
    let Some(pointer) = response.hover_pos() else { return };
    let Some(point) = at(&view, chart.time(pointer.x)) else { return };
    response.on_hover_ui_at_pointer(|ui| {
        ui.label(panels::time(point.time.0));
        ui.label(percent(point));
        ui.label(format!(
            "{} cached in {}",
            units::bytes(point.cached()),
            units::count(point.segments as u64, "segment", "segments")
        ));
        ui.label(format!("largest hole {}", units::bytes(point.largest_hole)));
    });
}
