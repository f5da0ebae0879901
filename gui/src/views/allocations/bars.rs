//! Small bars in cells: categories of a group, live bytes within a step.
//!
//! Owns: their pixels. Refuses: figures.

use eframe::egui::{Mesh, Rect, Shape};
use memscope_core::explorer::STACKED;
use memscope_core::ledger::CATEGORIES;

use crate::table::Cell;

/// Bytes by category as a bar, of which `whole` would fill the cell.
pub fn shares(cell: &Cell<'_>, live: &[u64; CATEGORIES], whole: u64) {
    let rect = cell.rect.shrink2(eframe::egui::vec2(0.0, 4.0));
    let mut mesh = Mesh::default();
    let x = |bytes: u64| rect.left() + (bytes as f64 / whole.max(1) as f64 * f64::from(rect.width())) as f32;
    let mut below = 0u64;
    for category in STACKED {
        let bytes = live[category as usize];
        if bytes > 0 {
            let (left, right) = (x(below), x(below.saturating_add(bytes)).min(rect.right()));
            mesh.add_colored_rect(Rect::from_x_y_ranges(left..=right, rect.y_range()), cell.theme.category(category));
        }
        below = below.saturating_add(bytes);
    }
    cell.painter.add(Shape::mesh(mesh));
}

/// Figures one beside the other, of which `most` is as high as the cell.
pub fn shape(cell: &Cell<'_>, parts: &[u64], most: u64) {
    let rect = cell.rect.shrink2(eframe::egui::vec2(0.0, 2.0));
    let width = rect.width() / parts.len().max(1) as f32;
    let mut mesh = Mesh::default();
    for (position, bytes) in parts.iter().enumerate() {
        let left = rect.left() + position as f32 * width;
        let height = (*bytes as f64 / most.max(1) as f64 * f64::from(rect.height())) as f32;
        let part = Rect::from_x_y_ranges(left..=left + width, rect.bottom() - height..=rect.bottom());
        mesh.add_colored_rect(part, cell.theme.accent());
    }
    cell.painter.add(Shape::mesh(mesh));
}
