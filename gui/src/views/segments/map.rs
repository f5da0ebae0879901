//! The map: a row a container, blocks coloured by category, holes hatched.
//!
//! Owns: where a byte is, and what the pointer does. Refuses: rows that are not seen, and to lose a small block: it is a pixel wide.

use std::cmp::Reverse;
use std::ops::Range;

use eframe::egui::accesskit::Role;
use eframe::egui::{
    Align, Align2, Color32, FontId, Mesh, Rect, Response, ScrollArea, Sense, Shape, Stroke, StrokeKind, Ui, WidgetInfo,
    pos2, vec2,
};
use memscope_core::explorer::{STACKED, Segment, SegmentBlock, SegmentsView};
use memscope_core::report::units;

use super::Segments;
use crate::shared::{Selection, Shared};
use crate::theme::Theme;
use crate::view::ViewContext;

/// Height of a row, and of its bar.
const ROW: f32 = 24.0;
const BAR: f32 = 18.0;
/// Width of the words before it.
const WORDS: f32 = 196.0;
/// Blocks that have a name for whoever hears the window: the largest.
const NAMED: usize = 20;
/// Most bytes of a container that are looked at closely enough.
const CLOSEST: u64 = 64;

/// A row on the screen.
struct Row<'a> {
    segment: &'a Segment,
    bar: Rect,
}

impl Row<'_> {
    fn x(&self, offset: u64) -> f32 {
        let part = &self.segment.part;
        let share = (offset as f64 - part.start as f64) / (part.end - part.start).max(1) as f64;
        self.bar.left() + (share.clamp(0.0, 1.0) * f64::from(self.bar.width())) as f32
    }

    fn offset(&self, x: f32) -> u64 {
        let part = &self.segment.part;
        let share = f64::from((x - self.bar.left()) / self.bar.width().max(1.0)).clamp(0.0, 1.0);
        part.start + (share * (part.end - part.start) as f64) as u64
    }

    /// At least a pixel wide.
    fn rect(&self, block: &SegmentBlock) -> Rect {
        let (left, right) = (self.x(block.offset), self.x(block.offset.saturating_add(block.bytes)));
        Rect::from_x_y_ranges(left..=right.max(left + 1.0), self.bar.y_range())
    }

    fn block_at(&self, offset: u64) -> Option<&SegmentBlock> {
        let after = self.segment.shown.partition_point(|block| block.offset <= offset);
        let block = self.segment.shown.get(after.checked_sub(1)?)?;
        (offset < block.offset.saturating_add(block.bytes)).then_some(block)
    }

    /// The hole around an offset.
    fn hole_at(&self, offset: u64) -> Option<Range<u64>> {
        if self.segment.hidden > 0 {
            return None;
        }
        let after = self.segment.shown.partition_point(|block| block.offset <= offset);
        let begin = after.checked_sub(1).map_or(self.segment.part.start, |before| {
            let block = &self.segment.shown[before];
            block.offset.saturating_add(block.bytes)
        });
        let end = self.segment.shown.get(after).map_or(self.segment.part.end, |next| next.offset);
        (begin <= offset && offset < end).then_some(begin..end)
    }
}

impl Segments {
    /// Draws the rows that are seen, and acts on the pointer.
    pub(super) fn map(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>, view: &SegmentsView) {
        let shown = ui.available_height();
        ScrollArea::vertical().id_salt("segments").auto_shrink(false).show_viewport(ui, |ui, viewport| {
            ui.set_height(view.total as f32 * ROW);
            let origin = ui.min_rect().min;
            let first = (viewport.min.y / ROW).floor().max(0.0) as usize;
            let until = ((viewport.min.y + shown) / ROW).ceil() as usize + 1;
            self.rows = first.min(view.total)..until.min(view.total);
            let width = ui.available_width();
            self.columns = (width - WORDS).clamp(16.0, 4096.0) as usize;
            let place = |number: usize| Rect::from_min_size(origin + vec2(0.0, number as f32 * ROW), vec2(width, ROW));
            self.follow(ui, context.shared, view, place);
            let rows: Vec<Row<'_>> = (view.first..)
                .zip(&view.segments)
                .filter(|(number, _)| self.rows.contains(number))
                .map(|(number, segment)| {
                    let bar = Rect::from_min_size(place(number).min + vec2(WORDS, 3.0), vec2(width - WORDS - 4.0, BAR));
                    Row { segment, bar }
                })
                .collect();
            paint(ui, context, &rows);
            for row in &rows {
                self.act(ui, context, row);
            }
            name_largest(ui, context, &rows);
        });
    }

    /// Scrolls to what was selected elsewhere, once.
    fn follow(&mut self, ui: &Ui, shared: &Shared, view: &SegmentsView, place: impl Fn(usize) -> Rect) {
        if self.scrolled == shared.selection {
            return;
        }
        let Some(found) = view.found else { return };
        self.scrolled = shared.selection.clone();
        let within = self.rows.start < found && found + 2 < self.rows.end;
        if !within {
            ui.scroll_to_rect(place(found), Some(Align::Center));
        }
    }

    fn act(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>, row: &Row<'_>) {
        let segment = row.segment;
        let id = ui.scope_id().with(("segment", segment.pick));
        let words = Rect::from_min_max(
            pos2(row.bar.left() - WORDS, row.bar.top()),
            pos2(row.bar.left() - 4.0, row.bar.bottom()),
        );
        let label = ui.interact(words, id.with("words"), Sense::click());
        label.widget_info(|| WidgetInfo::labeled(Role::Button, true, format!("Segment {}", title(segment))));
        if label.clicked() {
            context.shared.toggle(Selection::Allocation(segment.pick));
        }
        label.on_hover_text(explained(segment));
        let response = ui.interact(row.bar, id, Sense::click_and_drag());
        if let Some(pointer) = response.hover_pos() {
            let zoom = ui.input(|input| f64::from(input.zoom_delta()));
            if (zoom - 1.0).abs() > 1e-6 {
                self.zoom(segment, row.offset(pointer.x), zoom);
            }
            hover(&response, row, row.offset(pointer.x), &context.theme);
        }
        if response.dragged() && self.part.as_ref().is_some_and(|(pick, _)| *pick == segment.pick) {
            let length = segment.part.end - segment.part.start;
            let by = -f64::from(response.drag_delta().x) / f64::from(row.bar.width()) * length as f64;
            let start = (segment.part.start as f64 + by).clamp(0.0, (segment.bytes - length) as f64) as u64;
            self.part = Some((segment.pick, start..start + length));
        }
        if response.double_clicked() {
            self.part = None;
        } else if response.clicked()
            && let Some(pointer) = response.interact_pointer_pos()
            && let Some(block) = row.block_at(row.offset(pointer.x))
        {
            context.shared.toggle(Selection::Allocation(block.pick));
        }
    }

    /// Looks closer at a container, or less closely; what is under the pointer stays there.
    fn zoom(&mut self, segment: &Segment, around: u64, factor: f64) {
        let part = &segment.part;
        let length = (part.end - part.start).max(1);
        let wanted = ((length as f64 / factor) as u64).clamp(CLOSEST.min(segment.bytes), segment.bytes);
        if wanted >= segment.bytes {
            self.part = None;
            return;
        }
        let share = (around - part.start) as f64 / length as f64;
        let start = (around as f64 - share * wanted as f64).clamp(0.0, (segment.bytes - wanted) as f64) as u64;
        self.part = Some((segment.pick, start..start + wanted));
    }
}

fn title(segment: &Segment) -> String {
    let share = units::share(segment.in_blocks, segment.bytes);
    let blocks = units::count(segment.blocks, "block", "blocks");
    format!("{:#x}: {}, {share:.0} % in {blocks}", segment.address, units::bytes(segment.bytes))
}

fn explained(segment: &Segment) -> String {
    let mut text = format!(
        "{}\n{} free in {}, the largest {}",
        title(segment),
        units::bytes(segment.bytes.saturating_sub(segment.in_blocks)),
        units::count(segment.holes, "hole", "holes"),
        units::bytes(segment.largest_hole),
    );
    if segment.pieces > 0 {
        let pieces = units::count(segment.pieces as u64, "mapped piece", "mapped pieces");
        text.push_str(&format!("\nexpandable: {pieces}, one behind another, given back one by one"));
    }
    let device = segment.device.map_or("host memory".to_owned(), |device| format!("device {device}"));
    text.push_str(&format!("\n{device}, process {}", segment.pid));
    text
}

/// A block in a line, for hover and for whoever hears the window.
fn block_text(block: &SegmentBlock) -> String {
    let name = if block.name.is_empty() { &block.scope } else { &block.name };
    let name = if name.is_empty() { "without a name" } else { &**name };
    format!("{name}, {}, {}", units::bytes(block.bytes), block.category.name())
}

fn hover(response: &Response, row: &Row<'_>, offset: u64, theme: &Theme) {
    let segment = row.segment;
    response.clone().on_hover_ui_at_pointer(|ui| {
        match (row.block_at(offset), row.hole_at(offset)) {
            (Some(block), _) => {
                ui.colored_label(theme.category(block.category), block_text(block));
                if !block.scope.is_empty() {
                    ui.label(format!("made in {}", block.scope));
                }
                ui.label(block.held_by());
                ui.label(format!(
                    "{} asked for, at {:#x}",
                    units::exact(block.requested),
                    segment.address + block.offset
                ));
            }
            (None, Some(hole)) => {
                ui.label(format!(
                    "hole of {} at {:#x}",
                    units::exact(hole.end - hole.start),
                    segment.address + hole.start
                ));
            }
            (None, None) => {
                ui.label(format!("{} smaller blocks are not told apart here: zoom in", units::grouped(segment.hidden)));
            }
        }
        ui.weak("Ctrl and wheel look closer; double click shows all of it");
    });
}

fn paint(ui: &Ui, context: &ViewContext<'_>, rows: &[Row<'_>]) {
    let (theme, shared, painter) = (&context.theme, &*context.shared, ui.painter());
    let colours = STACKED.map(|category| theme.category(category));
    let (mut hatch, mut blocks) = (Mesh::default(), Mesh::default());
    for row in rows {
        let (segment, bar) = (row.segment, row.bar);
        hatched(&mut hatch, bar, theme.cached());
        if segment.hidden > 0 {
            let width = bar.width() / segment.slices.len().max(1) as f32;
            for (number, slice) in segment.slices.iter().enumerate() {
                let most = STACKED.iter().zip(&colours).max_by_key(|(category, _)| slice[**category as usize]);
                let Some((category, colour)) = most.filter(|(category, _)| slice[**category as usize] > 0) else {
                    continue;
                };
                let left = bar.left() + number as f32 * width;
                let colour = if shared.dims(*category) { theme.dimmed(*colour) } else { *colour };
                blocks.add_colored_rect(Rect::from_x_y_ranges(left..=left + width, bar.y_range()), colour);
            }
        }
        for block in &segment.shown {
            let colour = theme.category(block.category);
            let lit = shared.lights(block.category, &block.scope);
            let colour = if lit { colour } else { theme.dimmed(colour) };
            let rect = row.rect(block);
            // A gap between neighbours, where there is room for one.
            let rect = if rect.width() > 4.0 { rect.with_max_x(rect.right() - 1.0) } else { rect };
            blocks.add_colored_rect(rect, colour);
        }
    }
    painter.add(Shape::mesh(hatch));
    painter.add(Shape::mesh(blocks));
    for row in rows {
        let (segment, bar) = (row.segment, row.bar);
        let chosen = |pick| shared.selection == Selection::Allocation(pick);
        let frame =
            if chosen(segment.pick) { Stroke::new(2.0, theme.accent()) } else { Stroke::new(1.0, theme.faint()) };
        painter.rect_stroke(bar, 0.0, frame, StrokeKind::Outside);
        for block in segment.shown.iter().filter(|block| chosen(block.pick)) {
            let rect = row.rect(block);
            let rect = Rect::from_center_size(rect.center(), vec2(rect.width().max(4.0), rect.height()));
            painter.rect_stroke(rect, 0.0, Stroke::new(2.0, theme.text()), StrokeKind::Outside);
        }
        let whole = segment.part == (0..segment.bytes);
        let words = match whole {
            true => {
                let share = units::share(segment.in_blocks, segment.bytes);
                let pieces = if segment.pieces > 1 { format!(", {} pieces", segment.pieces) } else { String::new() };
                format!("{} · {share:.0} % in {}{pieces}", units::bytes(segment.bytes), segment.blocks)
            }
            false => format!(
                "{} from {}",
                units::bytes(segment.part.end - segment.part.start),
                units::bytes(segment.part.start)
            ),
        };
        let at = pos2(bar.left() - 8.0, bar.center().y);
        let colour = if whole { theme.text() } else { theme.accent() };
        painter.text(at, Align2::RIGHT_CENTER, words, FontId::proportional(12.0), colour);
    }
}

/// Slanted lines over a bar.
fn hatched(mesh: &mut Mesh, bar: Rect, colour: Color32) {
    const DISTANCE: f32 = 7.0;
    let slant = bar.height() * 0.6;
    let mut x = bar.left();
    while x + slant + 1.0 < bar.right() {
        let first = mesh.vertices.len() as u32;
        let corners = [
            pos2(x, bar.bottom()),
            pos2(x + 1.0, bar.bottom()),
            pos2(x + slant, bar.top()),
            pos2(x + slant + 1.0, bar.top()),
        ];
        corners.into_iter().for_each(|corner| mesh.colored_vertex(corner, colour));
        mesh.add_triangle(first, first + 1, first + 2);
        mesh.add_triangle(first + 2, first + 1, first + 3);
        x += DISTANCE;
    }
}

/// Gives names to the largest blocks that are seen, and to the selected one.
fn name_largest(ui: &Ui, context: &mut ViewContext<'_>, rows: &[Row<'_>]) {
    let mut seen: Vec<(&Row<'_>, &SegmentBlock)> =
        rows.iter().flat_map(|row| row.segment.shown.iter().map(move |block| (row, block))).collect();
    let is = |block: &SegmentBlock| context.shared.selection == Selection::Allocation(block.pick);
    seen.sort_by_key(|(_, block)| (!is(block), Reverse(block.bytes), block.offset));
    for (row, block) in seen.into_iter().take(NAMED) {
        let rect = row.rect(block);
        let response = ui.interact(rect, ui.scope_id().with(("block", block.pick)), Sense::click());
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, block_text(block)));
        if response.clicked() {
            context.shared.toggle(Selection::Allocation(block.pick));
        }
        if let Some(pointer) = response.hover_pos() {
            hover(&response, row, row.offset(pointer.x), &context.theme);
        }
    }
}
