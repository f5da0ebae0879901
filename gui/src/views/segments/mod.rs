//! Containers of an allocator at the cursor: what lies where in each, what pins the mostly empty ones, and fragmentation over time.
//!
//! Owns: which rows are seen, and the part of one container that is looked at closely. Refuses: figures; they are core's.
//!
//! | file | what it draws |
//! | --- | --- |
//! | chart | fragmentation and cached bytes over time |
//! | map | a row a container |
//! | pinned | mostly empty containers with the blocks that keep them |

mod chart;
mod map;
mod pinned;

use std::fmt::Write as _;
use std::ops::Range;

use eframe::egui::{Rect, RichText, Ui, UiBuilder, pos2, vec2};
use memscope_core::explorer::{Answer, Pick, Query, SegmentOrder, SegmentsQuery, SegmentsView, WindowQuery};
use memscope_core::report::units;

use crate::panels;
use crate::shared::{Selection, Shared, Span};
use crate::view::{View, ViewContext};
use crate::views::timeline;

/// Most blocks of a container that are drawn one by one.
const BLOCKS: usize = 2000;
/// Most mostly empty containers in the list.
const PINNED: usize = 50;
/// Moments of the chart: one each so many points.
const STRIDE: f32 = 4.0;
/// Width of the list beside the map.
const BESIDE: f32 = 280.0;

/// The view.
#[derive(Default)]
pub struct Segments {
    order: SegmentOrder,
    /// Rows that are seen, and the width of a row.
    rows: Range<usize>,
    columns: usize,
    /// A part of one container.
    part: Option<(Pick, Range<u64>)>,
    /// Time that is seen, and moments of it.
    time: Option<(Span, usize)>,
    /// The selection to which the map was scrolled last.
    scrolled: Selection,
}

impl View for Segments {
    fn title(&self) -> &'static str {
        "Segments"
    }

    fn ask(&self, shared: &Shared, query: &mut Query) {
        let find = shared.selection.pick();
        query.segments = Some(SegmentsQuery {
            slices: self.columns.max(1),
            window: self.rows.clone(),
            order: self.order,
            blocks: BLOCKS,
            part: self.part.clone(),
            pinned: PINNED,
            find,
        });
        query.fragmentation =
            self.time.map(|(span, buckets)| WindowQuery { range: span.from()..span.until(), buckets });
    }

    fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        let rect = Rect::from_min_size(ui.cursor().min, ui.available_size().max(vec2(200.0, 120.0)));
        ui.painter().rect_filled(rect, 0.0, context.theme.ground());
        let height = chart::HEIGHT.min(rect.height() / 3.0);
        let seen = context.seen();
        self.time = Some((seen, (rect.width() / STRIDE).max(8.0) as usize));
        chart::ui(ui, context, Rect::from_x_y_ranges(timeline::sides(ui, rect), rect.top()..=rect.top() + height));
        let below = Rect::from_min_max(pos2(rect.left() + 6.0, rect.top() + height + 2.0), rect.max);
        let answer = context.answer.segments.clone();
        ui.scope_builder(UiBuilder::new().max_rect(below), |ui| {
            let Some(view) = answer.as_deref() else {
                ui.weak("…");
                self.rows = 0..1;
                return;
            };
            ui.horizontal_wrapped(|ui| {
                for (order, name) in [(SegmentOrder::Size, "By size"), (SegmentOrder::Address, "By address")] {
                    if ui.selectable_label(self.order == order, name).clicked() {
                        self.order = order;
                    }
                }
                if self.part.is_some() && ui.button("Whole segment").clicked() {
                    self.part = None;
                }
                if context.answer.now.partial.is_none() {
                    ui.label(summary(view));
                }
                if lost(context.shared, view) {
                    ui.label(RichText::new("what is selected lies in no segment here").color(context.theme.faint()));
                }
            });
            let partial = context.answer.now.partial;
            panels::partial::ui(ui, context, panels::partial::LIST, partial);
            if let Some(pools) = view.pools_in_words() {
                ui.label(pools);
            }
            if view.total == 0 {
                ui.label(without(context.answer, view));
                self.rows = 0..1;
                return;
            }
            let room = below.with_min_y(ui.cursor().top());
            let (map, list) = match room.width() > 2.3 * BESIDE {
                true => room.split_left_right_at_x(room.right() - BESIDE),
                false => room.split_top_bottom_at_y(room.center().y),
            };
            ui.scope_builder(UiBuilder::new().max_rect(map).id_salt("map"), |ui| self.map(ui, context, view));
            let list = list.shrink2(vec2(6.0, 0.0));
            ui.scope_builder(UiBuilder::new().max_rect(list).id_salt("pinned"), |ui| pinned::ui(ui, context, view));
        });
        ui.advance_cursor_after_rect(rect);
    }

    fn text(&self, context: &ViewContext<'_>) -> String {
        let Some(view) = &context.answer.segments else { return "Segments: not known yet\n".to_owned() };
        let mut text = view.pools_in_words().map(|pools| pools + "\n").unwrap_or_default();
        if view.total == 0 {
            return text + &without(context.answer, view) + "\n";
        }
        let _ = writeln!(text, "{}\naddress\tbytes\tin_blocks\tblocks\tholes\tlargest_hole\tprocess", summary(view));
        for segment in &view.segments {
            let _ = writeln!(
                text,
                "{:#x}\t{}\t{}\t{}\t{}\t{}\t{}",
                segment.address,
                segment.bytes,
                segment.in_blocks,
                segment.blocks,
                segment.holes,
                segment.largest_hole,
                segment.pid
            );
        }
        text.push_str(&pinned::text(view));
        text
    }
}

/// All containers in a line.
fn summary(view: &SegmentsView) -> String {
    let mut text = format!(
        "{}, {}, of that {} in blocks; largest hole {}",
        units::count(view.total as u64, "segment", "segments"),
        units::bytes(view.bytes),
        units::bytes(view.in_blocks),
        units::bytes(view.largest_hole),
    );
    if let Some(fragmentation) = view.fragmentation() {
        let _ = write!(text, "; fragmentation {:.0} %", fragmentation * 100.0);
    }
    text
}

/// Why there is nothing to see.
fn without(answer: &Answer, view: &SegmentsView) -> String {
    if answer.now.partial.is_some() {
        return "Which parts of a segment were free at this moment is not kept.".to_owned();
    }
    let driver = units::count(view.leaves as u64, "allocation", "allocations");
    format!(
        "No segments at this moment. The program has {driver} of the driver, and none of them holds blocks: either it uses no caching \
         allocator, or none that memscope can look into. There is nothing in between that could be fragmented."
    )
}

/// True when an allocation is selected that is in no container that lives.
fn lost(shared: &Shared, view: &SegmentsView) -> bool {
    matches!(shared.selection, Selection::Allocation(_)) && view.found.is_none()
}
