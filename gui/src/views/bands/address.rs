//! In the order of addresses: containers behind the bands, and lines where addresses are left out.
//!
//! Owns: the axis of addresses. Refuses: what lies in a container (those are bands).

use eframe::egui::{Align2, FontId, Mesh, Painter, Rect, Shape, Stroke, pos2};
use memscope_core::explorer::{AddressSpan, SegmentBand};
use memscope_core::journal::entry::Nanoseconds;

use super::plot::Plot;
use crate::shared::{Selection, Shared};
use crate::theme::Theme;
use crate::views::timeline::MARGIN;

/// Least distance of two lines.
const LINES: f32 = 5.0;
/// Least distance of two addresses at the axis.
const DISTANCE: f32 = 13.0;

/// Draws what lies behind the bands.
pub fn behind(painter: &Painter, plot: &Plot<'_>, theme: &Theme) {
    let mut mesh = Mesh::default();
    for segment in &plot.view.segments {
        if let Some(rect) = place(plot, segment) {
            mesh.add_colored_rect(rect, theme.cached().lerp_to_gamma(theme.ground(), 0.35));
        }
    }
    painter.add(Shape::mesh(mesh));
    for y in gaps(plot) {
        painter.hline(plot.chart.rect.x_range(), y, Stroke::new(1.5, theme.ground()));
    }
}

/// Where addresses are left out, as far as there is room for lines.
fn gaps(plot: &Plot<'_>) -> Vec<f32> {
    let mut lines: Vec<f32> = Vec::new();
    for span in plot.view.axis.iter().skip(1) {
        let y = plot.y(span.offset);
        let within = plot.chart.rect.y_range().contains(y);
        if within && lines.last().is_none_or(|last| last - y >= LINES) {
            lines.push(y);
        }
    }
    lines
}

/// Draws what lies over them.
pub fn over(painter: &Painter, plot: &Plot<'_>, theme: &Theme, shared: &Shared) {
    let chart = plot.chart.rect;
    for y in gaps(plot) {
        painter.hline(chart.left() - 5.0..=chart.left(), y, Stroke::new(1.0, theme.faint()));
    }
    let mut labelled = f32::INFINITY;
    let (low, high) = (plot.part.low as u64, plot.part.high as u64);
    let seen = |span: &&AddressSpan| span.offset < high && low < span.offset.saturating_add(span.bytes);
    for span in plot.view.axis.iter().filter(seen) {
        let offset = span.offset.max(low);
        let y = plot.y(offset);
        let beside = (y - 6.0).max(chart.top() + 6.0);
        if labelled - beside >= DISTANCE {
            labelled = beside;
            let room = Rect::from_x_y_ranges(chart.left() - MARGIN..=chart.left(), chart.y_range()).expand(8.0);
            let at = pos2(chart.left() - 4.0, beside);
            let text = format!("{:#x}", span.address.saturating_add(offset - span.offset));
            let painter = painter.with_clip_rect(room);
            painter.text(at, Align2::RIGHT_CENTER, text, FontId::proportional(9.5), theme.faint());
        }
    }
    let chosen = |segment: &&SegmentBand| shared.selection == Selection::Allocation(segment.pick);
    for segment in plot.view.segments.iter().filter(chosen) {
        if let Some(rect) = place(plot, segment) {
            painter.rect_stroke(rect, 0.0, Stroke::new(2.0, theme.accent()), eframe::egui::StrokeKind::Inside);
        }
    }
}

/// Where a container is; `None` where it is not seen.
fn place(plot: &Plot<'_>, segment: &SegmentBand) -> Option<Rect> {
    let (left, right) = (plot.left(segment.begin), plot.right(segment.end));
    let (top, bottom) = (plot.y(segment.offset.saturating_add(segment.bytes)), plot.y(segment.offset));
    (left < right && top < bottom).then(|| Rect::from_min_max(pos2(left, top), pos2(right, bottom)))
}

/// The container at a moment and a place of the axis.
pub fn hit<'a>(plot: &'a Plot<'_>, time: u64, offset: u64) -> Option<&'a SegmentBand> {
    let lives = |segment: &&SegmentBand| (segment.begin..segment.end).contains(&Nanoseconds(time));
    let lies =
        |segment: &&SegmentBand| (segment.offset..segment.offset.saturating_add(segment.bytes)).contains(&offset);
    plot.view.segments.iter().filter(lives).find(lies)
}

/// The address at a place of the axis.
pub fn at(plot: &Plot<'_>, offset: u64) -> Option<u64> {
    let after = plot.view.axis.partition_point(|span| span.offset <= offset);
    let span = plot.view.axis.get(after.checked_sub(1)?)?;
    Some(span.address.saturating_add(offset - span.offset))
}
