//! A container, or a part of one, as equal slices to draw.
//!
//! Owns: which bytes of a block are in which slice. Refuses: pixels.

use crate::ledger::CATEGORIES;

use super::Block;

/// Where slice `number` of `slices` begins.
fn edge(bytes: u64, slices: usize, number: usize) -> u64 {
    (u128::from(bytes) * number as u128 / slices as u128) as u64
}

/// Adds a block's bytes to the slices that it lies in.
pub(super) fn draw((address, bytes): (u64, u64), block: &Block, slices: &mut [[u64; CATEGORIES]]) {
    let count = slices.len();
    let begin = block.address.saturating_sub(address);
    let end = begin.saturating_add(block.bytes).min(bytes);
    if begin >= end {
        return;
    }
    // The slice that holds the first byte, or one before it: edges are rounded down.
    let mut number = (u128::from(begin) * count as u128 / u128::from(bytes)) as usize;
    while number < count && edge(bytes, count, number) < end {
        let from = edge(bytes, count, number).max(begin);
        let until = edge(bytes, count, number + 1).min(end);
        let sum = &mut slices[number][block.category as usize];
        *sum = sum.wrapping_add(until.saturating_sub(from));
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_block_is_in_one_slice() {
        for (bytes, slices) in [(1000u64, 7usize), (10, 64), (1 << 40, 3), (3, 3)] {
            for begin in [0, 1, bytes / 3, bytes - 1] {
                let length = (bytes - begin).div_ceil(2);
                let block = Block { address: 5000 + begin, bytes: length, ..Block::default() };
                let mut drawn = vec![[0; CATEGORIES]; slices];
                draw((5000, bytes), &block, &mut drawn);
                assert_eq!(drawn.iter().map(|slice| slice[0]).sum::<u64>(), length, "{bytes} {slices} {begin}");
                for (number, slice) in drawn.iter().enumerate() {
                    assert!(slice[0] <= edge(bytes, slices, number + 1) - edge(bytes, slices, number));
                }
            }
        }
    }
}
