//! A horizontal bar of stacked parts, its edges at eighths of a cell.
//!
//! Owns: cells of a bar. Refuses: figures.

use ratatui::style::Style;

use crate::canvas::Canvas;
use crate::fill;

/// A part: its amount, and what a cell full of it looks like.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// How much, in the unit of the whole.
    pub amount: u64,
    /// Character for a full cell.
    pub glyph: &'static str,
    /// Its colour.
    pub style: Style,
}

/// The most parts that a bar has.
const PARTS: usize = 16;

/// Draws the parts from `x` on, so that `whole` takes up `width` cells.
pub fn draw(canvas: &mut Canvas, (x, y, width): (u16, u16, u16), parts: &[Part], whole: u64) {
    let parts = &parts[..parts.len().min(PARTS)];
    let mut amounts = [0; PARTS];
    let mut edges = [0; PARTS];
    for (amount, part) in amounts.iter_mut().zip(parts) {
        *amount = part.amount;
    }
    let (amounts, edges) = (&amounts[..parts.len()], &mut edges[..parts.len()]);
    fill::edges(amounts, whole, u32::from(width) * 8, edges);
    // Patterns cannot be cut: a cell is what it holds most of.
    let coarse = canvas.glyphs.ascii || canvas.palette.mono();
    for column in 0..width {
        let cell = fill::cell(edges, u32::from(column) * 8);
        let Some(first) = cell.first else { continue };
        let (glyph, style) = match cell.second {
            _ if coarse && cell.eighths >= 4 => (parts[first].glyph, parts[first].style),
            Some(second) if coarse => (parts[second].glyph, parts[second].style),
            None if coarse => continue,
            _ if cell.eighths == 8 => (parts[first].glyph, parts[first].style),
            Some(second) => {
                let behind = parts[second].style.fg.unwrap_or_default();
                (canvas.glyphs.growing[usize::from(cell.eighths)], parts[first].style.bg(behind))
            }
            None => (canvas.glyphs.growing[usize::from(cell.eighths)], parts[first].style),
        };
        canvas.glyph(x + column, y, glyph, style);
    }
}
