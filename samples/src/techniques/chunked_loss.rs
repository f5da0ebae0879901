//! The head and the loss in chunks of rows: `--chunked-loss C`.
//!
//! Logits, log-probabilities and their gradients exist for ⌈n/C⌉ rows at a time: backward through the head is done in the loss,
//! chunk by chunk, and leaves the gradient of the head's input (n, h) and that of its weight, to which every chunk adds.
//!
//! Activations: 4·n·V bytes less. Workspace in the loss: 3 · 4·⌈n/C⌉·V and 4·n·h, instead of 2 · 4·n·V at the start of
//! backward: by arithmetic. Nothing is computed twice. The head's weight has its gradient from the loss on.
//! With 16-bit products a logit and its gradient have 2 bytes: 4 + 4 + 2 instead of 3 · 4, but for amp-bf16, which casts logits.

use crate::Error;

/// Checks that there is a row for each chunk.
pub(super) fn check(chunks: Option<u64>, rows: u64) -> Result<(), Error> {
    match chunks {
        Some(chunks) if !(1..=rows).contains(&chunks) => Err(Error::Arguments(format!(
            "--chunked-loss {chunks} is out of range: a batch has {rows} rows (sequences × tokens), so it must be 1 to {rows}"
        ))),
        _ => Ok(()),
    }
}
