//! Which columns fit, and where they stand.
//!
//! Owns: widths; the least important column goes first. Refuses: what stands in them.

/// A column as it is wished for.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Over it.
    pub title: &'static str,
    /// What it tells.
    pub says: &'static str,
    /// The least width that is worth drawing, in points.
    pub width: f32,
    /// Its share of what is left over, in parts of all such shares; 0 stays as narrow as it may be.
    pub grow: f32,
    /// 0 is drawn always; of the others the highest goes first.
    pub rank: u8,
    /// Figures stand at the right.
    pub figures: bool,
}

impl Column {
    /// A column of figures.
    pub const fn figures(title: &'static str, width: f32, rank: u8, says: &'static str) -> Column {
        Column { title, says, width, grow: 0.0, rank, figures: true }
    }

    /// A column of words that takes its share of what is left over.
    pub const fn words(title: &'static str, width: f32, grow: f32, rank: u8, says: &'static str) -> Column {
        Column { title, says, width, grow, rank, figures: false }
    }
}

/// A column in its place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Placed {
    /// Position among those wished for.
    pub index: usize,
    /// Its left edge.
    pub left: f32,
    /// Its width.
    pub width: f32,
}

/// Between two columns.
const GAP: f32 = 10.0;

/// The columns that fit, in the order in which they are wished for, from `left` on; and how many do not.
pub fn place(columns: &[Column], left: f32, width: f32) -> (Vec<Placed>, usize) {
    let mut chosen: Vec<usize> = (0..columns.len()).collect();
    let needed =
        |chosen: &[usize]| chosen.iter().map(|index| columns[*index].width + GAP).sum::<f32>() - GAP.min(width);
    while needed(&chosen) > width {
        let least = chosen.iter().copied().max_by_key(|index| columns[*index].rank);
        match least.filter(|index| columns[*index].rank > 0) {
            Some(least) => chosen.retain(|index| *index != least),
            None => break,
        }
    }
    let spare = (width - needed(&chosen)).max(0.0);
    let parts: f32 = chosen.iter().map(|index| columns[*index].grow).sum();
    let mut left = left;
    let mut placed = Vec::with_capacity(chosen.len());
    for index in chosen {
        let column = &columns[index];
        let more = if parts > 0.0 { (spare * column.grow / parts).floor() } else { 0.0 };
        placed.push(Placed { index, left, width: column.width + more });
        left += column.width + more + GAP;
    }
    let hidden = columns.len() - placed.len();
    (placed, hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::figures("size", 60.0, 0, ""),
        Column::words("name", 50.0, 1.0, 1, ""),
        Column::words("scope", 50.0, 3.0, 2, ""),
        Column::figures("age", 40.0, 3, ""),
    ];

    #[test]
    fn the_least_important_column_goes_first() {
        let shown = |width| {
            let (placed, hidden) = place(&COLUMNS, 0.0, width);
            (placed.iter().map(|column| column.index).collect::<Vec<_>>(), hidden)
        };
        // 60 + 50 + 50 + 40 and three gaps of 10.
        assert_eq!(shown(230.0), (vec![0, 1, 2, 3], 0));
        assert_eq!(shown(229.0), (vec![0, 1, 2], 1));
        assert_eq!(shown(120.0), (vec![0, 1], 2));
        assert_eq!(shown(3.0), (vec![0], 3));
    }

    #[test]
    fn what_is_left_over_goes_to_words() {
        let (placed, _) = place(&COLUMNS, 5.0, 230.0 + 40.0);
        let widths: Vec<f32> = placed.iter().map(|column| column.width).collect();
        assert_eq!(widths, [60.0, 60.0, 80.0, 40.0]);
        assert_eq!(placed.last().map(|last| last.left + last.width), Some(275.0));
    }
}
