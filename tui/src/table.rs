//! Columns of lists: which fit, where they stand, and how rows are laid into them.
//!
//! Owns: widths; the least important column goes first. Refuses: what rows say.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::canvas::Canvas;

/// A column as it is wished for.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Over it.
    pub title: &'static str,
    /// The least width that is worth drawing.
    pub width: u16,
    /// Its share of what is left over, in parts of all such shares; 0 stays as narrow as it may be.
    pub grow: u16,
    /// 0 is drawn always; of the others the highest goes first.
    pub rank: u8,
    /// Figures stand at the right.
    pub figures: bool,
}

impl Column {
    /// A column of figures.
    pub const fn figures(title: &'static str, width: u16, rank: u8) -> Column {
        Column { title, width, grow: 0, rank, figures: true }
    }

    /// A column of words that takes its share of what is left over.
    pub const fn words(title: &'static str, width: u16, grow: u16, rank: u8) -> Column {
        Column { title, width, grow, rank, figures: false }
    }
}

/// A column in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Position among those wished for.
    pub index: usize,
    /// Its first column of cells.
    pub x: u16,
    /// Its width.
    pub width: u16,
}

/// Cells between two columns.
const GAP: u16 = 2;

/// The columns that fit, in the order in which they are wished for, from `x` on.
pub fn place(columns: &[Column], x: u16, width: u16) -> Vec<Placed> {
    let mut chosen: Vec<usize> = (0..columns.len()).collect();
    let needed = |chosen: &[usize]| -> u16 {
        chosen.iter().map(|index| columns[*index].width + GAP).sum::<u16>().saturating_sub(GAP)
    };
    while needed(&chosen) > width {
        let least = chosen.iter().copied().max_by_key(|index| columns[*index].rank);
        match least.filter(|index| columns[*index].rank > 0) {
            Some(least) => chosen.retain(|index| *index != least),
            None => break,
        }
    }
    let spare = width.saturating_sub(needed(&chosen));
    let parts: u16 = chosen.iter().map(|index| columns[*index].grow).sum();
    let (mut x, end) = (x, x.saturating_add(width));
    let (mut given, mut seen) = (0, 0);
    let mut placed = Vec::with_capacity(chosen.len());
    for index in chosen {
        let column = &columns[index];
        seen += column.grow;
        // Rounded so that all parts together are exactly what is left over.
        let until = (u32::from(spare) * u32::from(seen)).checked_div(u32::from(parts)).unwrap_or(0) as u16;
        let wide = (column.width + until - given).min(end.saturating_sub(x));
        given = until;
        placed.push(Placed { index, x, width: wide });
        x = x.saturating_add(wide + GAP).min(end);
    }
    placed
}

/// Draws the titles; the sorted column's has a mark.
pub fn titles(canvas: &mut Canvas, columns: &[Column], placed: &[Placed], y: u16, sorted: Option<(usize, bool)>) {
    let style = canvas.palette.faint();
    for column in placed {
        let wished = &columns[column.index];
        let (mut title, mut style) = (wished.title.to_owned(), style);
        if let Some((_, descending)) = sorted.filter(|(index, _)| *index == column.index) {
            let mark = if descending { canvas.glyphs.descending } else { canvas.glyphs.ascending };
            title = format!("{title} {mark}");
            style = canvas.palette.accent();
        }
        cell(canvas, columns, column, y, &title, style);
    }
}

/// Writes into one cell of a row.
pub fn cell(canvas: &mut Canvas, columns: &[Column], column: &Placed, y: u16, text: &str, style: Style) {
    if columns[column.index].figures {
        canvas.right(column.x, y, column.width, text, style);
    } else {
        canvas.fitted(column.x, y, column.width, text, style);
    }
}

/// Shows at the right edge which part of a list is seen; draws nothing when all of it is.
pub fn thumb(canvas: &mut Canvas, area: Rect, first: usize, total: usize) {
    let height = area.height as usize;
    if height == 0 || area.width == 0 || total <= height {
        return;
    }
    let long = (height * height / total).max(1);
    let room = height - long;
    let at = (first * room).div_ceil((total - height).max(1)).min(room);
    let style = canvas.palette.faint();
    for row in at..at + long {
        canvas.glyph(area.right() - 1, area.y + row as u16, canvas.glyphs.thumb, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::figures("size", 10, 0),
        Column::words("name", 8, 1, 1),
        Column::words("scope", 8, 3, 2),
        Column::figures("age", 6, 3),
    ];

    #[test]
    fn the_least_important_column_goes_first() {
        let shown = |width| place(&COLUMNS, 0, width).iter().map(|column| column.index).collect::<Vec<_>>();
        // 10 + 8 + 8 + 6 and three gaps of 2.
        assert_eq!(shown(38), [0, 1, 2, 3]);
        assert_eq!(shown(37), [0, 1, 2]);
        assert_eq!(shown(20), [0, 1]);
        assert_eq!(shown(3), [0]);
    }

    #[test]
    fn what_is_left_over_goes_to_words() {
        let placed = place(&COLUMNS, 5, 38 + 8);
        let widths: Vec<u16> = placed.iter().map(|column| column.width).collect();
        assert_eq!(widths, [10, 10, 14, 6]);
        let last = placed.last().expect("four columns");
        assert_eq!(last.x + last.width, 5 + 46, "the last column ends at the edge");
    }
}
