//! Gradient accumulation (`--accumulate N`): a batch is cut into N micro-batches, whose gradients are summed before the one
//! update.
//!
//! Activations, workspace and inputs: those of batch/N. Gradients: 4·P bytes, which stay alive in the forward pass of every
//! micro-batch but the first. By arithmetic. The sum is the batch's gradient, up to the order of additions.

use crate::gpt::Batch;

/// A batch as `count` micro-batches; `count` divides its sequences. The loss of each is its share of the batch's: `counted`
/// stays that of the whole.
pub(crate) fn micro_batches(batch: &Batch, count: u64) -> Vec<Batch> {
    let rows = batch.tokens.len() / count as usize;
    let parts = batch.tokens.chunks(rows).zip(batch.targets.chunks(rows));
    parts
        .map(|(tokens, targets)| Batch { tokens: tokens.to_vec(), targets: targets.to_vec(), counted: batch.counted })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_batch_in_its_order() {
        let whole = Batch { tokens: (0..12).collect(), targets: (1..13).collect(), counted: 12 };
        assert_eq!(micro_batches(&whole, 1), std::slice::from_ref(&whole));
        let parts = micro_batches(&whole, 3);
        assert_eq!(
            (parts.len(), &parts[1].tokens[..], &parts[2].targets[..]),
            (3, &[4, 5, 6, 7][..], &[9, 10, 11, 12][..])
        );
        assert!(parts.iter().all(|part| part.counted == 12));
    }
}
