//! Launchers of the loss kernels.

use super::{dimension, launch};
use crate::{Error, Tensor};
use memscope_kernels::geometry;

/// log_probabilities = log softmax of logits (rows, vocabulary).
pub(crate) fn log_softmax_forward(log_probabilities: &Tensor, logits: &Tensor, vocabulary: u64) -> Result<(), Error> {
    assert_eq!(log_probabilities.elements(), logits.elements());
    let arguments = [log_probabilities.into(), logits.into(), dimension(vocabulary).into()];
    launch(logits, "log_softmax_forward", geometry::rows(logits.elements() / vocabulary), &arguments)
}

/// The gradient of the logits.
pub(crate) fn log_softmax_backward(
    grad_logits: &Tensor,
    grad_log_probabilities: &Tensor,
    log_probabilities: &Tensor,
    vocabulary: u64,
) -> Result<(), Error> {
    let elements = log_probabilities.elements();
    assert_eq!((grad_logits.elements(), grad_log_probabilities.elements()), (elements, elements));
    let arguments =
        [grad_logits.into(), grad_log_probabilities.into(), log_probabilities.into(), dimension(vocabulary).into()];
    let shape = geometry::rows(elements / vocabulary);
    launch(grad_logits, "log_softmax_backward", shape, &arguments)
}

/// loss (1) = -scale · the sum of the targets' log-probabilities; a negative target does not count.
pub(crate) fn nll_forward(
    loss: &Tensor,
    log_probabilities: &Tensor,
    targets: &Tensor,
    scale: f32,
) -> Result<(), Error> {
    let rows = targets.elements();
    let arguments = [
        loss.into(),
        log_probabilities.into(),
        targets.into(),
        dimension(rows).into(),
        dimension(log_probabilities.elements() / rows).into(),
        scale.into(),
    ];
    loss.device().launch("nll_forward", geometry::one_block(), &arguments)
}

/// The gradient of the log-probabilities.
pub(crate) fn nll_backward(grad_log_probabilities: &Tensor, targets: &Tensor, scale: f32) -> Result<(), Error> {
    let rows = targets.elements();
    let elements = grad_log_probabilities.elements();
    let arguments = [
        grad_log_probabilities.into(),
        targets.into(),
        dimension(rows).into(),
        dimension(elements / rows).into(),
        scale.into(),
    ];
    targets.device().launch("nll_backward", geometry::elementwise(elements), &arguments)
}
