//! Memory over time: categories and ledger rows stacked, capacity, steps, and marks to click.
//!
//! Owns: the chart and what the pointer does in it. Refuses: single allocations.
//!
//! | file | what it draws |
//! | --- | --- |
//! | columns | nothing: it says which figures a column of pixels shows |
//! | area | the stacked area |
//! | axis | time above, bytes at the left |
//! | bands | steps and phases |
//! | tracks | lanes of devices and processes, telemetry |
//! | marks | peak, out of memory, refusals, findings |
//! | pointer | cursor, range, zoom and pan |

mod area;
pub(crate) mod axis;
pub(crate) mod bands;
mod columns;
mod marks;
pub(crate) mod pointer;
mod tracks;

use std::fmt::Write as _;
use std::sync::Arc;

use eframe::egui::accesskit::Role;
use eframe::egui::{
    Align2, Color32, FontId, Galley, Painter, Pos2, Rangef, Rect, Response, Sense, Stroke, Ui, WidgetInfo, pos2, vec2,
};
use memscope_core::explorer::{Answer, At, Query, Running, STACKED, TracksQuery, WindowQuery};
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::report::units;

use crate::panels;
use crate::shared::{Shared, Span};
use crate::view::{View, ViewContext};

pub use axis::Scale;
pub use columns::{Column, Source};

/// Height of the time axis.
pub(crate) const RULER: f32 = 20.0;
/// Rows of the table that is copied.
const PARTS: u32 = 64;
/// Width of the byte axis.
pub(crate) const MARGIN: f32 = 76.0;
/// Margin of the panel that views below lie in.
const PANEL: f32 = 8.0;

/// The sides of a chart below the timeline that is to its scale: it lies over the panel's margin.
pub(crate) fn sides(ui: &Ui, rect: Rect) -> Rangef {
    let clip = ui.clip_rect();
    Rangef::new((rect.left() - PANEL).max(clip.left()), (rect.right() + PANEL).min(clip.right()))
}

/// The timeline.
#[derive(Default)]
pub struct Timeline {
    /// Where a drag began, and what was seen then.
    drag: Option<pointer::Drag>,
    /// What is asked: a span, and its parts.
    wanted: (Option<Span>, usize),
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

    /// Where a part of time is.
    pub fn span(&self, span: Span) -> Rect {
        Rect::from_x_y_ranges(self.x(span.begin)..=self.x(span.end), self.rect.y_range())
    }

    /// The moment that a click means; beside the chart it is the nearest one.
    pub fn clicked(&self, response: &Response) -> Option<At> {
        let pointer = response.interact_pointer_pos().filter(|_| response.clicked())?;
        let x = pointer.x.clamp(self.rect.left(), self.rect.right());
        Some(At::Time(Nanoseconds(self.time(x))))
    }
}

/// The moment of the cursor in nanoseconds, as far as it is known.
pub fn cursor_time(context: &ViewContext<'_>) -> Option<u64> {
    let cursor = context.shared.cursor;
    let known = || (cursor == context.answer.at).then_some(context.answer.now.state.time);
    cursor.time().or_else(known).map(|time| time.0)
}

impl View for Timeline {
    fn title(&self) -> &'static str {
        "Timeline"
    }

    fn ask(&self, _shared: &Shared, query: &mut Query) {
        let (Some(span), parts) = self.wanted else { return };
        let range = span.from()..span.until();
        query.window = Some(WindowQuery { range: range.clone(), buckets: parts });
        query.tracks = Some(TracksQuery { range, parts });
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
        let tracks = tracks::Rows::of(context.answer.tracks.as_deref(), rect.height());
        let bands = bands::count(context.answer);
        let top = rect.top() + RULER + bands as f32 * bands::HEIGHT;
        let bottom = rect.bottom() - 8.0 - tracks.height();
        let inner = Rect::from_min_max(pos2(rect.left() + MARGIN, top), pos2(rect.right() - 8.0, bottom));
        if inner.width() < 20.0 || inner.height() < 20.0 {
            return;
        }
        let chart = Chart { rect: inner, seen: context.seen() };
        self.wanted = (Some(wanted(context)), inner.width().ceil() as usize);
        let runs = columns::runs(&Source::of(context.answer), &chart, ui.ctx().pixels_per_point());
        let scale = Scale::of(context, &runs);
        let label = pointer::label(&painter, context, &chart, rect);
        axis::time(&painter, &chart, rect.top(), label.map(|(place, _)| place.x_range()), &context.theme);
        axis::bytes(&painter, &chart, &scale, &context.theme);
        area::draw(&painter, context, &chart, &scale, &runs);
        capacity(&painter, context, &chart, &scale);
        for (row, name) in ["steps", "phases", "lists"].into_iter().take(bands).enumerate() {
            let at = pos2(inner.left() - 6.0, rect.top() + RULER + (row as f32 + 0.45) * bands::HEIGHT);
            painter.text(at, Align2::RIGHT_CENTER, name, FontId::proportional(11.0), context.theme.faint());
        }
        bands::ui(ui, context, &chart, rect.top() + RULER);
        tracks::ui(ui, context, &chart, &tracks, bottom + 4.0);
        pointer::draw(&painter, context, &chart, rect);
        marks::ui(ui, context, &chart, rect);
        self.drag = pointer::handle(ui, &response, context, &chart, self.drag.take());
    }

    fn text(&self, context: &ViewContext<'_>) -> String {
        let seen = context.seen();
        let mut text = format!("Timeline from {} to {}\n", panels::time(seen.begin), panels::time(seen.end));
        if let Some(listed) = &context.answer.session.listed {
            let _ = writeln!(text, "{}", listed.whole());
        }
        for mark in marks::of(context.answer) {
            text.push_str(&format!("{}: {}\n", panels::time(mark.time), mark.label));
        }
        text.push('\n');
        text.push_str(&table(context.answer, seen));
        text
    }
}

/// What is seen as a table of equal parts of time, for spreadsheets: of each part the moment with most live bytes.
fn table(answer: &Answer, seen: Span) -> String {
    let names: Vec<&str> = STACKED.iter().map(|category| category.name()).collect();
    let mut text = format!("from_s\t{}\trounding\tcached\treserved_most\n", names.join("\t"));
    let source = Source::of(answer);
    for part in 0..PARTS {
        let at = |part: u32| seen.at(f64::from(part) / f64::from(PARTS));
        let span = Span::between(at(part), at(part + 1));
        let Some(column) = source.column(span) else { continue };
        let rows = &column.rows;
        let live: Vec<String> = STACKED.iter().map(|category| rows.live[*category as usize].to_string()).collect();
        let begin = span.begin as f64 / 1e9;
        let _ =
            writeln!(text, "{begin:.9}\t{}\t{}\t{}\t{}", live.join("\t"), rows.rounding, rows.cached, column.reserved);
    }
    text
}

/// The span that is asked for: what is seen. While a session runs and all of it is seen, a little more, so that not every
/// answer is to a new question.
pub(crate) fn wanted(context: &ViewContext<'_>) -> Span {
    let seen = context.seen();
    if context.answer.session.state != Running::Live || !context.shared.zoom.is_whole() {
        return seen;
    }
    let grain = (seen.length() / 32).next_power_of_two();
    Span { begin: seen.begin, end: seen.end.next_multiple_of(grain) }
}

fn capacity(painter: &Painter, context: &ViewContext<'_>, chart: &Chart, scale: &Scale) {
    let Some(capacity) = context.answer.now.capacity else { return };
    let theme = &context.theme;
    let text = format!("capacity {}", units::bytes(capacity));
    let y = scale.y(chart, capacity as f64);
    if y >= chart.rect.top() - 0.5 {
        painter.hline(chart.rect.x_range(), y, Stroke::new(1.5, theme.error()));
        let at = pos2(chart.rect.left() + 4.0, y + 3.0);
        label(painter, at, Align2::LEFT_TOP, small(painter, text, theme.error()), (theme.error(), theme.ground()));
    } else {
        // Below the marks.
        let at = pos2(chart.rect.right() - 4.0, chart.rect.top() + 58.0);
        let text = small(painter, format!("{text}, above"), theme.faint());
        label(painter, at, Align2::RIGHT_TOP, text, (theme.faint(), theme.ground()));
    }
}

/// Small text in one line.
pub(super) fn small(painter: &Painter, text: String, ink: Color32) -> Arc<Galley> {
    painter.layout_no_wrap(text, FontId::proportional(11.0), ink)
}

/// Text that is read on whatever it lies.
pub(super) fn label(painter: &Painter, at: Pos2, align: Align2, text: Arc<Galley>, (ink, ground): (Color32, Color32)) {
    let rect = align.anchor_size(at, text.size());
    painter.rect_filled(rect.expand(2.0), 2.0, ground.gamma_multiply(0.8));
    painter.galley(rect.min, text, ink);
}
