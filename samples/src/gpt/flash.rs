//! Attention without its matrix, between q, k, v and the merged context (techniques/flash_attention.rs).
//!
//! Owns: what it allocates. Refuses: the projections around it.

use super::attention::score_scale;
use super::model::Family;
use super::pass::Pass;
use crate::operations::{self, Flash};
use crate::{Error, Tensor};

/// The merged context (rows, width), and for backward the logarithms of the softmax's sums (B, H, T).
pub(super) fn forward(pass: &Pass<'_>, name: &str, qkv: [&Tensor; 3]) -> Result<[Tensor; 2], Error> {
    let merged = pass.product_activation(&format!("{name}.merged"), &[pass.rows(), pass.width()])?;
    let [batch, heads, sequence, _] = pass.shape_of_heads();
    let log_sums = pass.statistic(&format!("{name}.log_sums"), &[batch, heads, sequence])?;
    operations::flash_forward(&merged, &log_sums, qkv, how(pass))?;
    Ok([merged, log_sums])
}

/// The gradients of q, k and v (B, H, T, D) from that of the merged context.
pub(super) fn backward(
    pass: &Pass<'_>,
    name: &str,
    grad_merged: Tensor,
    merged: Tensor,
    (q, k, v): (Tensor, Option<Tensor>, Tensor),
    log_sums: Tensor,
) -> Result<[Tensor; 3], Error> {
    let [batch, heads, sequence, _] = pass.shape_of_heads();
    let inner = pass.exact_workspace(&format!("{name}.inner"), &[batch, heads, sequence])?;
    operations::flash_inner(&inner, &merged, &grad_merged, pass.heads())?;
    drop(merged);
    let of_heads = |what: &str| pass.product_workspace(&format!("{name}.{what}.grad"), &pass.shape_of_heads());
    let gradients = [of_heads("q")?, of_heads("k")?, of_heads("v")?];
    let qkv = [&q, k.as_ref().unwrap_or(&q), &v];
    operations::flash_backward(gradients.each_ref(), &grad_merged, qkv, [&log_sums, &inner], how(pass))?;
    Ok(gradients)
}

fn how(pass: &Pass<'_>) -> Flash {
    let heads = pass.heads();
    let causal = pass.plan.configuration.family == Family::Gpt2;
    Flash { heads, causal, scale: score_scale(heads.head_width) }
}
