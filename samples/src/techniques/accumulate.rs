//! Gradient accumulation (`--accumulate N`): a batch is cut into N micro-batches, whose gradients are summed before the one
//! update.
//!
//! Activations, workspace and inputs: those of batch/N. Gradients: 4·P bytes, which stay alive in the forward pass of every
//! micro-batch but the first. By arithmetic. The sum is the batch's gradient, up to the order of additions.

use crate::gpt::Batch;

/// A batch as `count` micro-batches; `count` divides its sequences. The loss of each is its share of the batch's: `counted`
/// stays that of the whole.
pub(crate) fn micro_batches(batch: &Batch, count: u64) -> Vec<Batch> {
    let parts = parts(&batch.tokens, count).zip(parts(&batch.targets, count));
    parts.map(|(tokens, targets)| Batch { tokens, targets, counted: batch.counted }).collect()
}

/// Values in `count` equal parts, in their order. Of no values each part has none.
pub(crate) fn parts<T: Clone>(values: &[T], count: u64) -> impl Iterator<Item = Vec<T>> {
    let each = values.len() / count as usize;
    (0..count as usize).map(move |part| values[part * each..(part + 1) * each].to_vec())
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
