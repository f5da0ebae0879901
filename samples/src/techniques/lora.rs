//! Low-rank adaptation (Hu et al. 2021): `--lora R`.
//!
//! Every matrix W (m, n) of the blocks, that of q, k and v, the projection and the two of the MLP, gets an adapter:
//! output = x·Wᵀ + bias + (x·Aᵀ)·Bᵀ, with A (R, n) random and B (m, R) zero at first, and a scale of 1. All else is frozen:
//! embeddings, norms, biases and the head too.
//!
//! Gradients 4·Σ R·(m + n) and optimizer state 8·Σ R·(m + n) bytes (AdamW), which is R·16·h a layer, instead of 4·P and 8·P.
//! Weights 4·(P + Σ R·(m + n)). Activations stay: A's gradient needs the input that W's needed, and x·Aᵀ is computed again in
//! backward, 4·n·R bytes of workspace. By arithmetic.
//!
//! The trainer has no pre-trained weights, and so adapts random ones: it shows the memory, not the method's quality.

use crate::Error;

/// Checks the rank.
pub(super) fn check(rank: Option<u64>, width: u64) -> Result<(), Error> {
    match rank {
        Some(rank) if !(1..=width).contains(&rank) => Err(Error::Arguments(format!(
            "--lora {rank} is out of range: a rank is at least 1 and at most the --width {width}"
        ))),
        _ => Ok(()),
    }
}
