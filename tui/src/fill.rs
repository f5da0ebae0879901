//! Stacked amounts in cells, finer than a cell: in eighths.
//!
//! Owns: the arithmetic of chart and bars. Refuses: directions and colours.
//!
//! A cell can show two parts, one behind the other, with the edge between them at an eighth of it. So the end of the whole stack
//! is never further from its true place than half an eighth, nor is any edge that is drawn. Where more than two parts meet in
//! one cell, the slivers between them give way to their neighbours; figures beside the picture tell what they hold.

/// Ends of stacked amounts, in eighths of a cell, each rounded by itself so that errors do not add up. `whole` takes up
/// `eighths`; what is beyond is cut off.
pub fn edges(amounts: &[u64], whole: u64, eighths: u32, out: &mut [u32]) {
    let whole = u128::from(whole.max(1));
    let mut sum = 0u128;
    for (amount, edge) in amounts.iter().zip(out) {
        sum += u128::from(*amount);
        let rounded = (sum * u128::from(eighths) * 2 + whole) / (2 * whole);
        *edge = rounded.min(u128::from(eighths)) as u32;
    }
}

/// What one cell shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// The part at its begin; `None` where nothing is.
    pub first: Option<usize>,
    /// The part behind it; `None` where nothing is.
    pub second: Option<usize>,
    /// How many eighths the first one takes: 1 to 8.
    pub eighths: u8,
}

/// The cell that begins so many eighths from the origin.
pub fn cell(edges: &[u32], begin: u32) -> Cell {
    let end = begin + 8;
    let filled = edges.last().copied().unwrap_or(0).clamp(begin, end) - begin;
    let mut previous = 0;
    // The two parts that take most of the cell.
    let (mut most, mut next) = ((0, 0), (0, 0));
    let mut count = 0;
    for (part, edge) in edges.iter().enumerate() {
        let inside = (*edge).clamp(begin, end) - previous.clamp(begin, end);
        previous = *edge;
        if inside == 0 {
            continue;
        }
        count += 1;
        if inside > most.0 {
            next = most;
            most = (inside, part);
        } else if inside > next.0 {
            next = (inside, part);
        }
    }
    match (count, filled) {
        (0, _) => Cell { first: None, second: None, eighths: 8 },
        (1, 8) => Cell { first: Some(most.1), second: None, eighths: 8 },
        // The end of the stack stands where it belongs, whatever is below it.
        (_, 1..=7) => Cell { first: Some(most.1), second: None, eighths: filled as u8 },
        _ => {
            let (low, high) = (most.1.min(next.1), most.1.max(next.1));
            // The edge of the larger one is the one that is shown.
            let edge = if low == most.1 { edges[low] } else { edges[high - 1] };
            Cell { first: Some(low), second: Some(high), eighths: (edge.clamp(begin + 1, end - 1) - begin) as u8 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rounded(amounts: &[u64], whole: u64, eighths: u32) -> Vec<u32> {
        let mut out = vec![0; amounts.len()];
        edges(amounts, whole, eighths, &mut out);
        out
    }

    #[test]
    fn amounts_become_eighths() {
        // Two cells for 16 bytes: one eighth a byte.
        assert_eq!(rounded(&[3, 0, 7], 16, 16), [3, 3, 10]);
        // A third each of one cell: 2.67, 5.33, 8.
        assert_eq!(rounded(&[1, 1, 1], 3, 8), [3, 5, 8]);
        assert_eq!(rounded(&[u64::MAX, u64::MAX], u64::MAX, 8), [8, 8], "what is too much is cut off");
        assert_eq!(rounded(&[0], 0, 8), [0]);
    }

    #[test]
    fn a_cell_shows_its_two_largest_parts() {
        let edges = [3, 3, 10];
        assert_eq!(cell(&edges, 0), Cell { first: Some(0), second: Some(2), eighths: 3 });
        assert_eq!(cell(&edges, 8), Cell { first: Some(2), second: None, eighths: 2 });
        assert_eq!(cell(&edges, 16), Cell { first: None, second: None, eighths: 8 });
        // 4, 1 and 3 eighths: the sliver gives way, the edge of the largest stays.
        assert_eq!(cell(&[4, 5, 8], 0), Cell { first: Some(0), second: Some(2), eighths: 4 });
        assert_eq!(cell(&[3, 4, 8], 0), Cell { first: Some(0), second: Some(2), eighths: 4 });
        // Below the end of the stack only the largest is shown.
        assert_eq!(cell(&[1, 6], 0), Cell { first: Some(1), second: None, eighths: 6 });
    }

    proptest! {
        #[test]
        fn nothing_lies_more_than_half_an_eighth(
            amounts in proptest::collection::vec(0u64..1000, 1..9),
            cells in 1u32..40,
        ) {
            let whole = amounts.iter().sum::<u64>().max(1) * 5 / 4 + 1;
            let edges = rounded(&amounts, whole, cells * 8);
            let mut sum = 0;
            for (amount, edge) in amounts.iter().zip(&edges) {
                sum += amount;
                let place = sum as f64 * f64::from(cells * 8) / whole as f64;
                prop_assert!((place - f64::from(*edge)).abs() <= 0.5 + 1e-9);
            }
            // The drawn stack is as long as its last edge says.
            let drawn: u32 = (0..cells).map(|index| match cell(&edges, index * 8) {
                Cell { first: None, .. } => 0,
                Cell { second: Some(_), .. } => 8,
                Cell { eighths, .. } => u32::from(eighths),
            }).sum();
            prop_assert_eq!(drawn, *edges.last().expect("at least one"));
            // Every edge that is drawn within a cell is an edge that there is.
            for index in 0..cells {
                if let Cell { second: Some(_), eighths, .. } = cell(&edges, index * 8) {
                    prop_assert!(edges.contains(&(index * 8 + u32::from(eighths))));
                }
            }
        }
    }
}
