//! Which rows of a long list are seen.
//!
//! Owns: the first of them, and how much of it is above the edge, in 64 bits: ten million rows are moved by a tenth of a pixel
//! and stay where they are. Refuses: what rows say.

use std::ops::Range;

use eframe::egui::accesskit::Role;
use eframe::egui::{Id, Rect, Sense, Ui, WidgetInfo, pos2, vec2};

use super::ROW;
use crate::theme::Theme;

/// The shortest thumb.
const THUMB: f32 = 18.0;

/// The rows that are seen.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Scroll {
    /// The first one, with the part of it that is above the edge.
    pub first: f64,
    total: usize,
    /// Rows that have room.
    room: f64,
}

impl Scroll {
    /// Fits a list of so many rows into room for so many.
    pub fn fit(&mut self, total: usize, room: f64) {
        (self.total, self.room) = (total, room.max(1.0));
        self.to(self.first);
    }

    fn last(&self) -> f64 {
        (self.total as f64 - self.room).max(0.0)
    }

    fn to(&mut self, first: f64) {
        self.first = first.clamp(0.0, self.last());
    }

    /// Rows of which something is seen.
    pub fn seen(&self) -> Range<usize> {
        let end = (self.first + self.room).ceil() as usize;
        self.first as usize..end.min(self.total)
    }

    /// Rows of a screen, less one that stays in sight.
    pub fn page(&self) -> usize {
        (self.room as usize).saturating_sub(1).max(1)
    }

    /// How many rows there are above a row, of those that have room.
    pub fn above(&self, row: usize) -> f64 {
        row as f64 - self.first
    }

    /// Moves as little as brings a row into sight.
    pub fn bring(&mut self, row: usize) {
        self.to(self.first.clamp(row as f64 + 1.0 - self.room, row as f64));
    }

    /// Puts a row in the middle, unless it is seen whole.
    pub fn centre(&mut self, row: usize) {
        let above = self.above(row);
        if above < 0.0 || above + 1.0 > self.room {
            self.to(row as f64 - (self.room - 1.0) / 2.0);
        }
    }

    /// The wheel, while the pointer is over the list.
    pub fn wheel(&mut self, ui: &Ui, list: Rect) {
        if ui.rect_contains_pointer(list) {
            let by = ui.input(|input| input.smooth_scroll_delta().y);
            self.to(self.first - f64::from(by / ROW));
        }
    }

    /// The bar beside the list: a drag or a click moves it.
    pub fn bar(&mut self, ui: &Ui, rect: Rect, (id, name): (Id, &str), theme: &Theme) {
        if self.last() <= 0.0 {
            return;
        }
        let thumb =
            (rect.height() * (self.room / self.total as f64) as f32).clamp(THUMB.min(rect.height()), rect.height());
        let way = f64::from((rect.height() - thumb).max(1.0));
        let response = ui.interact(rect, id, Sense::DRAG | Sense::CLICK);
        let at = format!("Scroll {name}");
        response.widget_info(|| WidgetInfo::labeled(Role::ScrollBar, true, at.as_str()));
        if let Some(pointer) = response.interact_pointer_pos() {
            let top = rect.top() + (self.first / self.last() * way) as f32;
            // Beside the thumb the middle of it comes to the pointer; on it, it moves along.
            match response.dragged() && !response.drag_started() {
                true => self.to(self.first + f64::from(response.drag_delta().y) / way * self.last()),
                false if (top..=top + thumb).contains(&pointer.y) => {}
                false => self.to(f64::from(pointer.y - rect.top() - thumb / 2.0) / way * self.last()),
            }
        }
        let top = rect.top() + (self.first / self.last() * way) as f32;
        let thumb = Rect::from_min_size(pos2(rect.left() + 3.0, top), vec2(rect.width() - 4.0, thumb));
        let ink = if response.hovered() || response.dragged() { theme.text() } else { theme.faint() };
        ui.painter().rect_filled(thumb, 3.0, ink.gamma_multiply(0.6));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_million_rows_move_by_a_tenth_of_a_pixel() {
        let mut scroll = Scroll::default();
        scroll.fit(10_000_000, 20.0);
        scroll.to(9_000_000.0);
        for _ in 0..180 {
            let before = scroll.above(9_000_005);
            scroll.to(scroll.first + 0.1 / f64::from(ROW));
            let moved = (before - scroll.above(9_000_005)) * f64::from(ROW);
            assert!((moved - 0.1).abs() < 1e-6, "{moved}");
        }
        assert_eq!(scroll.seen(), 9_000_000..9_000_021);
    }

    #[test]
    fn a_row_is_brought_into_sight_and_no_further() {
        let mut scroll = Scroll::default();
        scroll.fit(100, 10.0);
        scroll.bring(30);
        assert_eq!(scroll.seen(), 21..31);
        scroll.bring(25);
        assert_eq!(scroll.first, 21.0);
        scroll.bring(3);
        assert_eq!(scroll.first, 3.0);
        scroll.centre(5);
        assert_eq!(scroll.first, 3.0, "it is seen");
        scroll.centre(90);
        assert_eq!(scroll.first, 85.5);
        scroll.centre(99);
        assert_eq!(scroll.first, 90.0);
        scroll.fit(4, 10.0);
        assert_eq!(scroll.seen(), 0..4);
        scroll.fit(0, 10.0);
        assert_eq!(scroll.seen(), 0..0);
    }
}
