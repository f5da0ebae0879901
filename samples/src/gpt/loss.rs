//! The cross-entropy of logits, and their gradient, in fp32 whatever the precision.
//!
//! Owns: what both allocate, of the whole batch or of a chunk of its rows. Refuses: the decoder.

use super::pass::Pass;
use crate::tensor::Element;
use crate::{Error, Tensor, operations};
use memscope_client::Category;

/// The sum over the targets that count of the cross-entropy, divided by how many the batch has (1), named `name`; and the
/// log-probabilities (rows, vocabulary), which are kept if the pass keeps. The logits are freed.
pub(super) fn forward(
    pass: &Pass<'_>,
    name: &str,
    logits: Tensor,
    targets: &Tensor,
    counted: u64,
) -> Result<[Tensor; 2], Error> {
    let vocabulary = pass.plan.configuration.vocabulary;
    let logits = if pass.plan.techniques.precision().casts_logits() { pass.in_stream(logits)? } else { logits };
    let log_probabilities = pass.statistic("loss.log_probabilities", &[targets.elements(), vocabulary])?;
    operations::log_softmax_forward(&log_probabilities, &logits, vocabulary)?;
    drop(logits);
    let loss = pass.exact_workspace(name, &[1])?;
    operations::nll_forward(&loss, &log_probabilities, targets, 1.0 / counted as f32)?;
    Ok([loss, log_probabilities])
}

/// The gradient of the logits (rows, vocabulary), as the decoder's backward reads it. As in PyTorch it takes two such
/// temporaries: the log-probabilities' too.
pub(super) fn backward(
    pass: &Pass<'_>,
    log_probabilities: Tensor,
    targets: &Tensor,
    counted: u64,
) -> Result<Tensor, Error> {
    let vocabulary = pass.plan.configuration.vocabulary;
    let shape = [targets.elements(), vocabulary];
    let grad_log_probabilities = pass.exact_workspace("loss.log_probabilities.grad", &shape)?;
    operations::nll_backward(&grad_log_probabilities, targets, pass.loss_scale / counted as f32)?;
    let casts = pass.plan.techniques.precision().casts_logits();
    let element = if casts { Element::Fp32 } else { pass.of_products() };
    let grad_logits = Tensor::of(pass.device, Category::Workspace, "logits.grad", element, &shape)?;
    operations::log_softmax_backward(&grad_logits, &grad_log_probabilities, &log_probabilities, vocabulary)?;
    drop((grad_log_probabilities, log_probabilities));
    Ok(pass.gradient_for_product(&grad_logits)?.unwrap_or(grad_logits))
}
