//! What the pointer does: a click sets the cursor, a drag chooses a range, the wheel zooms.
//!
//! Owns: cursor, range and hover. With Shift or another button a drag moves, and Shift and wheel move, too. Refuses: keys; they are
//! actions.

use std::sync::Arc;

use eframe::egui::{Align2, FontId, Galley, Painter, PointerButton, Rect, Response, Stroke, Ui, Vec2, pos2, vec2};
use memscope_core::report::units;

use super::columns::Source;
use super::{Chart, bands, cursor_time, small};
use crate::panels;
use crate::shared::Span;
use crate::view::ViewContext;

/// A drag that goes on.
#[derive(Clone, Copy, Debug)]
pub struct Drag {
    from: f32,
    seen: Span,
    moves: bool,
}

/// How much one notch of a wheel zooms.
pub const NOTCH: f64 = 0.0035;

/// Draws range and cursor.
pub fn draw(painter: &Painter, context: &ViewContext<'_>, chart: &Chart, whole: Rect) {
    let theme = &context.theme;
    let inside = painter.with_clip_rect(Rect::from_x_y_ranges(chart.rect.x_range(), whole.y_range()));
    if let Some(range) = context.shared.range {
        let rect = chart.span(range);
        inside.rect_filled(rect, 0.0, theme.accent().gamma_multiply(0.14));
        for x in [rect.left(), rect.right()] {
            inside.vline(x, rect.y_range(), Stroke::new(1.0, theme.accent()));
        }
        let length = format!("range {}", panels::length(range.length()));
        let at = pos2(rect.center().x, rect.bottom() - 4.0);
        inside.text(at, Align2::CENTER_BOTTOM, length, FontId::proportional(11.0), theme.accent());
    }
    if let Some(time) = cursor_time(context) {
        let x = chart.x(time);
        inside.vline(x, whole.top() + 14.0..=whole.bottom() - 4.0, Stroke::new(1.5, theme.text()));
    }
    if let Some((place, text)) = label(painter, context, chart, whole) {
        painter.rect_filled(place, 3.0, theme.text());
        painter.galley(place.min + LABEL, text, theme.ground());
    }
}

/// Room around the label of the cursor.
const LABEL: Vec2 = vec2(3.0, 1.0);

/// The label of the cursor on the axis of time, and its place; `None` where the cursor is out of sight.
pub fn label(painter: &Painter, context: &ViewContext<'_>, chart: &Chart, whole: Rect) -> Option<(Rect, Arc<Galley>)> {
    let time = cursor_time(context).filter(|time| chart.seen.contains(*time))?;
    let text = small(painter, written(time, chart.seen), context.theme.ground());
    let half = text.size().x / 2.0 + LABEL.x;
    let x = chart.x(time).clamp(chart.rect.left() + half, (chart.rect.right() - half).max(chart.rect.left() + half));
    let place = Align2::CENTER_TOP.anchor_size(pos2(x, whole.top() + LABEL.y), text.size());
    Some((place.expand2(LABEL), text))
}

/// A moment, to the nanosecond where little time is seen.
pub fn written(time: u64, seen: Span) -> String {
    const FINE: u64 = 10_000_000;
    if seen.length() < FINE { panels::exact_time(time) } else { panels::time(time) }
}

/// Acts on the pointer; the drag that goes on afterwards.
pub fn handle(
    ui: &Ui,
    response: &Response,
    context: &mut ViewContext<'_>,
    chart: &Chart,
    drag: Option<Drag>,
) -> Option<Drag> {
    if let Some(pointer) = response.hover_pos()
        && drag.is_none()
        && chart.rect.contains(pointer)
    {
        hover(ui, response, context, chart, pointer.x);
    }
    let drag = navigate(ui, response, context, chart, drag);
    if let Some(at) = chart.clicked(response)
        && response.interact_pointer_pos().is_some_and(|pointer| chart.rect.y_range().contains(pointer.y))
    {
        context.shared.cursor = at;
    }
    drag
}

/// Wheel and drag in a chart over time: what is seen, and the range. Gives the drag that goes on afterwards.
pub fn navigate(
    ui: &Ui,
    response: &Response,
    context: &mut ViewContext<'_>,
    chart: &Chart,
    mut drag: Option<Drag>,
) -> Option<Drag> {
    let whole = context.whole();
    let (now, shift, scroll, zoom) = ui.input(|input| {
        // With Alt the wheel is about something else than time.
        let scroll = if input.modifiers.alt { Vec2::ZERO } else { input.smooth_scroll_delta() };
        (input.time, input.modifiers.shift, scroll, f64::from(input.zoom_delta()))
    });
    if let Some(pointer) = response.hover_pos() {
        let share = f64::from((pointer.x - chart.rect.left()) / chart.rect.width()).clamp(0.0, 1.0);
        let factor = (-f64::from(scroll.y) * NOTCH).exp() / zoom;
        if (factor - 1.0).abs() > 1e-9 && !shift {
            context.shared.zoom.show(chart.seen.scaled(share, factor, whole), whole, now);
        }
        let sideways = scroll.x + if shift { scroll.y } else { 0.0 };
        if sideways != 0.0 {
            let moved = chart.seen.moved(-f64::from(sideways / chart.rect.width()), whole);
            context.shared.zoom.show(moved, whole, now);
        }
    }
    if response.drag_started()
        && let Some(origin) = ui.input(|input| input.pointer.press_origin())
    {
        let moves = shift || !response.drag_started_by(PointerButton::Primary) || origin.y < chart.rect.top();
        drag = Some(Drag { from: origin.x, seen: chart.seen, moves });
    }
    if let Some(Drag { from, seen, moves }) = drag
        && let Some(pointer) = response.interact_pointer_pos()
    {
        // From where the drag began, so that nothing adds up.
        if moves {
            let share = f64::from((from - pointer.x) / chart.rect.width());
            context.shared.zoom.show(seen.moved(share, whole), whole, now);
        } else {
            let time = |x: f32| chart.time(x.clamp(chart.rect.left(), chart.rect.right()));
            context.shared.range = Some(Span::between(time(from), time(pointer.x)));
        }
    }
    drag.filter(|_| response.dragged() && !response.drag_stopped())
}

/// Says what is under the pointer.
fn hover(ui: &Ui, response: &Response, context: &ViewContext<'_>, chart: &Chart, x: f32) {
    ui.painter().vline(x, chart.rect.y_range(), Stroke::new(1.0, context.theme.faint()));
    let span = Span::between(chart.time(x), chart.time(x + 1.0));
    let Some(column) = Source::of(context.answer).column(span) else { return };
    let live = &column.rows.live;
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.label(written(column.time.unwrap_or(span.begin), chart.seen));
        if let Some(window) = &context.answer.window {
            bands::under(window, span.begin).into_iter().for_each(|line| drop(ui.weak(line)));
        }
        panels::categories(ui, &context.theme, live);
        ui.label(format!("live {}", units::bytes(column.rows.live_bytes())));
        ui.label(format!("reserved {}", units::bytes(column.reserved)));
        ui.weak(format!("most live within {}", panels::length(span.length())));
    });
}
