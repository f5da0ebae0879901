//! Attention whose matrix is never in memory (Dao et al. 2022): `--attention flash`.
//!
//! A tile of queries goes along the keys with a running softmax. Backward computes each tile of the matrix again from q, k and
//! the logarithms of the softmax's sums, one fp32 number a query and head. Activations:
//!
//! L · (4·b·a·s² - 4·b·a·s) bytes less, and no workspace of b·a·s² either: by arithmetic.
//!
//! In 16 bits (`--precision`) the matrix has 2 bytes an element; the number that replaces its row stays in fp32.
//!
//! What is kept is otherwise the same: backward reads the context, which the projection's backward reads anyway.

use crate::Error;
use crate::operations::WIDEST_HEAD;

/// How attention is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Attention {
    /// Written out: the matrix of probabilities is kept
    #[default]
    Math,
    /// Tile by tile: the matrix is never in memory
    Flash,
}

impl Attention {
    /// Checks that the kernels take heads of this width.
    pub(super) fn check(self, head_width: u64) -> Result<(), Error> {
        match self {
            Attention::Flash if head_width > WIDEST_HEAD => Err(Error::Arguments(format!(
                "--attention flash takes heads of at most {WIDEST_HEAD} and these have {head_width}; give more --heads"
            ))),
            _ => Ok(()),
        }
    }
}
