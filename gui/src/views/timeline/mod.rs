//! Memory over time: categories and ledger rows stacked, capacity, steps, and marks to click.
//!
//! Owns: the chart and what the pointer does in it. Refuses: single allocations.
//!
//! | file | what it draws |
//! | --- | --- |
//! | area | the stacked area |
//! | axis | time above, bytes at the left |
//! | marks | peak, out of memory, refusals, findings |
//! | pointer | cursor, range, zoom and pan |

mod area;
mod axis;
mod marks;
mod pointer;

use eframe::egui::{Align2, FontId, Rect, Sense, Stroke, Ui, WidgetInfo, accesskit::Role, pos2, vec2};
use memscope_core::explorer::At;
use memscope_core::report::units;

use crate::panels;
use crate::shared::{Shared, Span};
use crate::view::{View, ViewContext};

pub use axis::Scale;

/// Height of the time axis.
const RULER: f32 = 20.0;
/// Height of the band of steps.
const STEPS: f32 = 18.0;
/// Width of the byte axis.
const MARGIN: f32 = 76.0;

/// The timeline.
#[derive(Default)]
pub struct Timeline {
    /// Where a drag began, and what was seen then.
    drag: Option<pointer::Drag>,
}

/// Where things are in a chart over time.
#[derive(Clone, Copy, Debug)]
pub struct Chart {
    /// The pixels.
    pub rect: Rect,
    /// The time from its left to its right edge.
    pub seen: Span,
}

impl Chart {
    /// Where a moment is; far outside it is just outside.
    pub fn x(&self, time: u64) -> f32 {
        let share = self.seen.share(time).clamp(-1.0, 2.0);
        self.rect.left() + (share * f64::from(self.rect.width())) as f32
    }

    /// Which moment is there.
    pub fn time(&self, x: f32) -> u64 {
        self.seen.at(f64::from(x - self.rect.left()) / f64::from(self.rect.width().max(1.0)))
    }
}

/// The moment of the cursor in nanoseconds, as far as it is known.
pub fn cursor_time(context: &ViewContext<'_>) -> Option<u64> {
    match context.shared.cursor {
        At::Time(time) | At::Refused(time) => Some(time.0),
        cursor if cursor == context.answer.at => Some(context.answer.now.state.time.0),
        _ => None,
    }
}

impl View for Timeline {
    fn title(&self) -> &'static str {
        "Timeline"
    }

    fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        let size = ui.available_size().max(vec2(160.0, 90.0));
        let (rect, response) = ui.allocate_exact_size(size, Sense::click_and_drag());
        response.widget_info(|| {
            let label = "Timeline: live bytes by category over time";
            WidgetInfo { value: None, ..WidgetInfo::labeled(Role::Canvas, true, label) }
        });
        let painter = ui.painter_at(rect);
        painter.rect_filled(rect, 0.0, context.theme.ground());
        let top = rect.top() + RULER + STEPS;
        let inner = Rect::from_min_max(pos2(rect.left() + MARGIN, top), rect.right_bottom() - vec2(8.0, 8.0));
        if inner.width() < 20.0 || inner.height() < 20.0 {
            return;
        }
        let chart = Chart { rect: inner, seen: context.seen() };
        let scale = Scale::of(context, &chart);
        axis::time(&painter, &chart, rect.top(), &context.theme);
        axis::bytes(&painter, &chart, &scale, &context.theme);
        steps(&painter, context, &chart, rect.top() + RULER);
        area::draw(&painter, context, &chart, &scale);
        capacity(&painter, context, &chart, &scale);
        pointer::draw(&painter, context, &chart, rect);
        marks::ui(ui, context, &chart, rect);
        self.drag = pointer::handle(ui, &response, context, &chart, self.drag.take());
    }

    fn text(&self, context: &ViewContext<'_>) -> String {
        let seen = context.seen();
        let mut text = format!("Timeline from {} to {}\n", panels::time(seen.begin), panels::time(seen.end));
        for mark in marks::of(context.answer) {
            text.push_str(&format!("{}: {}\n", panels::time(mark.time), mark.label));
        }
        text
    }
}

fn capacity(painter: &eframe::egui::Painter, context: &ViewContext<'_>, chart: &Chart, scale: &Scale) {
    let Some(capacity) = context.answer.now.capacity else { return };
    let theme = &context.theme;
    let label = format!("capacity {}", units::bytes(capacity));
    let y = scale.y(chart, capacity as f64);
    if y >= chart.rect.top() - 0.5 {
        painter.hline(chart.rect.x_range(), y, Stroke::new(1.5, theme.error()));
        let at = pos2(chart.rect.left() + 4.0, y + 2.0);
        painter.text(at, Align2::LEFT_TOP, label, FontId::proportional(11.0), theme.error());
    } else {
        let at = pos2(chart.rect.left() + 4.0, chart.rect.top() + 2.0);
        painter.text(at, Align2::LEFT_TOP, format!("{label}, above"), FontId::proportional(11.0), theme.faint());
    }
}

/// Steps as a band: as many numbers as fit.
fn steps(painter: &eframe::egui::Painter, context: &ViewContext<'_>, chart: &Chart, top: f32) {
    let theme = &context.theme;
    let marks = &context.answer.step_marks;
    let band = Rect::from_min_max(pos2(chart.rect.left(), top), pos2(chart.rect.right(), top + STEPS - 2.0));
    let painter = painter.with_clip_rect(band);
    let first = marks.partition_point(|(time, _)| time.0 < chart.seen.begin).saturating_sub(1);
    let (mut lined, mut named) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
    for (begin, number) in marks.iter().skip(first).take_while(|(time, _)| time.0 <= chart.seen.end) {
        let x = chart.x(begin.0).max(band.left());
        if x - lined < 3.0 {
            continue;
        }
        lined = x;
        painter.vline(x, band.y_range(), Stroke::new(1.0, theme.faint()));
        if x - named > 46.0 {
            named = x;
            let text = if *number == 0 && x > band.left() { "0".to_owned() } else { format!("step {number}") };
            painter.text(
                pos2(x + 3.0, band.center().y),
                Align2::LEFT_CENTER,
                text,
                FontId::proportional(11.0),
                theme.faint(),
            );
        }
    }
}

/// True when the shared state differs in what is seen: for tests.
pub fn is_zoomed(shared: &Shared) -> bool {
    !shared.zoom.is_whole()
}
