//! Attention, forward and backward, between the norm before it and the sum with the residual stream.
//!
//! Owns: what it allocates where its matrix is written out, and what it keeps of the matrix. Refuses: attention without a matrix
//! (flash.rs), and one projection of queries and keys (shared_qk.rs).

use super::model::Family;
use super::network::Block;
use super::parameter::Parameter;
use super::pass::{Pass, SavedAttention, SavedMatrix};
use super::{backward, flash, forward, shared_qk};
use crate::operations::{self, Matrix, Product};
use crate::techniques::{Attention, Checkpoint, Keeping};
use crate::{Error, Tensor};
use memscope_client as memscope;
use std::rc::Rc;

/// The attention's output before it is added to the residual stream, (rows, width), a temporary.
pub(super) fn forward(
    pass: &Pass<'_>,
    name: &str,
    block: &Block<Parameter>,
    input: Rc<Tensor>,
) -> Result<(Tensor, SavedAttention), Error> {
    let _scope = memscope::scope("attn");
    let (rows, width) = (pass.rows(), pass.width());
    let input = pass.kept_for_product(input)?;

    let name = format!("{name}.attn");
    let (q, k, v) = if pass.plan.techniques.sharing.share_qk {
        let [q, v] = shared_qk::forward(pass, &name, &block.qkv, &input)?;
        (q, None, v)
    } else {
        let qkv = pass.product_workspace(&format!("{name}.qkv"), &[rows, 3 * width])?;
        forward::linear(pass, &block.qkv, &input, &qkv)?;
        let apart = |which| pass.product_activation(&format!("{name}.{which}"), &pass.shape_of_heads());
        let (q, k, v) = (apart("q")?, apart("k")?, apart("v")?);
        operations::split_qkv([&q, &k, &v], &qkv, pass.heads())?;
        (q, Some(k), v)
    };

    let qkv = [&q, k.as_ref().unwrap_or(&q), &v];
    let (merged, matrix) = match pass.plan.techniques.activations.attention {
        Attention::Math => context(pass, &name, qkv)?,
        Attention::Flash => {
            let [merged, log_sums] = flash::forward(pass, &name, qkv)?;
            (merged, SavedMatrix::LogSums(log_sums))
        }
    };
    let output = pass.product_workspace(&format!("{name}.output"), &[rows, width])?;
    forward::linear(pass, &block.projection, &merged, &output)?;
    Ok((output, SavedAttention { input, q, k, v, matrix, merged }))
}

/// softmax(scale · q · kᵀ) · v with its heads merged (rows, width), and what is kept of the matrix.
fn context(pass: &Pass<'_>, name: &str, [q, k, v]: [&Tensor; 3]) -> Result<(Tensor, SavedMatrix), Error> {
    let heads = pass.heads();
    let (t, d) = (heads.sequence, heads.head_width);
    let selective = pass.plan.techniques.activations.checkpoint == Checkpoint::Selective;
    let kept = if selective { pass.keeping(Keeping::Dropped { output: false }) } else { *pass };
    let probabilities = probabilities(&kept, name, q, k)?;
    let context = pass.product_workspace(&format!("{name}.context"), &pass.shape_of_heads())?;
    operations::matmul(&Product::new(&context, Matrix::new(&probabilities, t, t), Matrix::new(v, t, d)))?;
    let merged = pass.product_activation(&format!("{name}.merged"), &[pass.rows(), pass.width()])?;
    operations::merge_heads(&merged, &context, heads)?;
    Ok((merged, if selective { SavedMatrix::Again } else { SavedMatrix::Probabilities(probabilities) }))
}

/// softmax(scale · q · kᵀ) (B, H, T, T).
fn probabilities(pass: &Pass<'_>, name: &str, q: &Tensor, k: &Tensor) -> Result<Tensor, Error> {
    let heads = pass.heads();
    let (t, d) = (heads.sequence, heads.head_width);
    let scores = pass.product_workspace(&format!("{name}.scores"), &pass.shape_of_scores())?;
    let (a, b) = (Matrix::new(q, t, d), Matrix::new(k, t, d).transposed());
    operations::matmul(&Product { alpha: score_scale(d), ..Product::new(&scores, a, b) })?;
    let probabilities = pass.product_activation(&format!("{name}.probabilities"), &pass.shape_of_scores())?;
    let causal = pass.plan.configuration.family == Family::Gpt2;
    operations::softmax_forward(&probabilities, &scores, t, causal)?;
    Ok(probabilities)
}

/// Scores are divided by √(width of a head).
pub(super) fn score_scale(head_width: u64) -> f32 {
    1.0 / (head_width as f32).sqrt()
}

/// The gradient of the input (rows, width) from that of the output.
pub(super) fn backward(
    pass: &Pass<'_>,
    name: &str,
    block: &mut Block<Parameter>,
    grad_output: &Tensor,
    saved: SavedAttention,
) -> Result<Tensor, Error> {
    let _scope = memscope::scope("attn");
    let SavedAttention { input, q, k, v, matrix, merged } = saved;
    let name = format!("{name}.attn");
    let heads = pass.heads();

    let low = pass.gradient_for_product(grad_output)?;
    let grad_output = low.as_ref().unwrap_or(grad_output);
    let grad_merged =
        backward::linear(pass, &mut block.projection, &merged, grad_output, &format!("{name}.merged.grad"))?;
    drop(low);
    let [grad_q, grad_k, grad_v] = match matrix {
        SavedMatrix::LogSums(log_sums) => flash::backward(pass, &name, grad_merged, merged, (q, k, v), log_sums)?,
        SavedMatrix::Probabilities(probabilities) => {
            drop(merged);
            let grad_context = apart(pass, &name, grad_merged)?;
            dot_product_attention(pass, &name, grad_context, (q, k, v), probabilities)?
        }
        SavedMatrix::Again => {
            drop(merged);
            let grad_context = apart(pass, &name, grad_merged)?;
            let probabilities = {
                let _scope = memscope::scope("recompute");
                probabilities(&pass.keeping(Keeping::Again), &name, &q, k.as_ref().unwrap_or(&q))?
            };
            dot_product_attention(pass, &name, grad_context, (q, k, v), probabilities)?
        }
    };
    if pass.plan.techniques.sharing.share_qk {
        return shared_qk::backward(pass, &name, &mut block.qkv, &input, [grad_q, grad_k, grad_v]);
    }
    let grad_qkv = pass.product_workspace(&format!("{name}.qkv.grad"), &[pass.rows(), 3 * pass.width()])?;
    operations::split_qkv_backward(&grad_qkv, [&grad_q, &grad_k, &grad_v], heads)?;
    drop((grad_q, grad_k, grad_v));
    let grad = backward::linear(pass, &mut block.qkv, &input, &grad_qkv, &format!("{name}.input.grad"))?;
    drop(grad_qkv);
    pass.in_stream(grad)
}

/// The gradient of the context (B, H, T, D) from that of the merged one.
fn apart(pass: &Pass<'_>, name: &str, grad_merged: Tensor) -> Result<Tensor, Error> {
    let grad_context = pass.product_workspace(&format!("{name}.context.grad"), &pass.shape_of_heads())?;
    operations::merge_heads_backward(&grad_context, &grad_merged, pass.heads())?;
    Ok(grad_context)
}

/// The gradients of q, k and v (B, H, T, D) from that of the context = softmax(scale · q · kᵀ) · v.
fn dot_product_attention(
    pass: &Pass<'_>,
    name: &str,
    grad_context: Tensor,
    (q, k, v): (Tensor, Option<Tensor>, Tensor),
    probabilities: Tensor,
) -> Result<[Tensor; 3], Error> {
    let heads = pass.heads();
    let (t, d) = (heads.sequence, heads.head_width);
    let of_heads = |what: &str| pass.product_workspace(&format!("{name}.{what}.grad"), &pass.shape_of_heads());
    let of_scores = |what: &str| pass.product_workspace(&format!("{name}.{what}.grad"), &pass.shape_of_scores());

    let grad_probabilities = of_scores("probabilities")?;
    let by_v = Matrix::new(&v, t, d).transposed();
    operations::matmul(&Product::new(&grad_probabilities, Matrix::new(&grad_context, t, d), by_v))?;
    let grad_v = of_heads("v")?;
    let by_probabilities = Matrix::new(&probabilities, t, t).transposed();
    operations::matmul(&Product::new(&grad_v, by_probabilities, Matrix::new(&grad_context, t, d)))?;
    drop((grad_context, v));

    let grad_scores = of_scores("scores")?;
    operations::softmax_backward(&grad_scores, &grad_probabilities, &probabilities, t)?;
    drop((grad_probabilities, probabilities));

    let (alpha, scores) = (score_scale(d), Matrix::new(&grad_scores, t, t));
    let grad_q = of_heads("q")?;
    operations::matmul(&Product {
        alpha,
        ..Product::new(&grad_q, scores, Matrix::new(k.as_ref().unwrap_or(&q), t, d))
    })?;
    let grad_k = of_heads("k")?;
    operations::matmul(&Product { alpha, ..Product::new(&grad_k, scores.transposed(), Matrix::new(&q, t, d)) })?;
    Ok([grad_q, grad_k, grad_v])
}
