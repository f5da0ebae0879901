//! The launch configurations that the kernels expect, by the shape that their sources name.
//!
//! Owns: numbers of blocks and threads. Refuses: sizes that no launch can hold: the caller checks them, and each function
//! says which.

use crate::Launch;

/// Threads of a block in elementwise and row launches.
const THREADS: u32 = 256;

/// Most blocks in x, and in y or z.
const MAX_GRID_X: u64 = (1 << 31) - 1;
const MAX_GRID_YZ: u32 = 65_535;

/// Rows and columns of the output that one block of `matmul` computes.
const MATMUL_TILE: u32 = 64;

/// Columns that one block of a column sum covers.
const COLUMNS: u32 = 32;

const fn launch(grid: [u32; 3], block: [u32; 3]) -> Launch {
    Launch { grid, block, shared_bytes: 0 }
}

/// For kernels "launched elementwise": any number of elements, since such a kernel loops.
pub fn elementwise(elements: u64) -> Launch {
    let blocks = elements.div_ceil(THREADS.into()).clamp(1, MAX_GRID_X);
    launch([blocks as u32, 1, 1], [THREADS, 1, 1])
}

/// For kernels with one block a row; `rows` from 1 to 2³¹ - 1.
pub fn rows(rows: u64) -> Launch {
    debug_assert!((1..=MAX_GRID_X).contains(&rows), "{rows} rows do not fit in a grid");
    launch([rows as u32, 1, 1], [THREADS, 1, 1])
}

/// Queries, or keys, of one block of the kernels of flash attention.
const ATTENTION_TILE: u64 = 16;

/// For flash attention over `heads` heads of all sequences; heads · ⌈sequence / 16⌉ from 1 to 2³¹ - 1.
pub fn attention_tiles(heads: u64, sequence: u64) -> Launch {
    rows(heads * sequence.div_ceil(ATTENTION_TILE))
}

/// For kernels of a single block.
pub fn one_block() -> Launch {
    launch([1, 1, 1], [THREADS, 1, 1])
}

/// For sums over the rows of a matrix with `width` columns, at least 1.
pub fn columns(width: u32) -> Launch {
    launch([width.div_ceil(COLUMNS), 1, 1], [COLUMNS, COLUMNS, 1])
}

/// For `matmul` with an output of `batches` matrices of `m` rows and `n` columns; each at least 1, `n` at most 64 · 65,535.
pub fn matmul(m: u32, n: u32, batches: u32) -> Launch {
    debug_assert!(n.div_ceil(MATMUL_TILE) <= MAX_GRID_YZ, "{n} columns do not fit in a grid");
    launch([m.div_ceil(MATMUL_TILE), n.div_ceil(MATMUL_TILE), batches.min(MAX_GRID_YZ)], [256, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_a_thread_until_the_grid_is_full() {
        assert_eq!(elementwise(1).grid, [1, 1, 1]);
        assert_eq!(elementwise(256).grid, [1, 1, 1]);
        assert_eq!(elementwise(257).grid, [2, 1, 1]);
        assert_eq!(elementwise(u64::MAX).grid, [i32::MAX as u32, 1, 1]);
    }

    #[test]
    fn a_product_is_covered_by_tiles_and_batches_by_a_loop() {
        assert_eq!(matmul(4096, 50_257, 1).grid, [64, 786, 1]);
        assert_eq!(matmul(1, 65, 100_000).grid, [1, 2, 65_535]);
    }
}
