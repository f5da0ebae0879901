//! Queries and keys from one projection (techniques/sharing.rs): its weight has the rows of q, which is k, and of v.
//!
//! Owns: the projection, forward and backward. Refuses: attention itself, which reads q as k.

use super::autocast::write_in;
use super::network::Linear;
use super::parameter::Parameter;
use super::pass::Pass;
use crate::operations::{self, Matrix, Product};
use crate::{Error, Tensor};

/// q and v (B, H, T, D) from the input (rows, width).
pub(super) fn forward(
    pass: &Pass<'_>,
    name: &str,
    projection: &Linear<Parameter>,
    input: &Tensor,
) -> Result<[Tensor; 2], Error> {
    let (rows, width) = (pass.rows(), pass.width());
    let (all_weights, all_biases) = (pass.in_product(&projection.weight)?, pass.in_product(&projection.bias)?);
    let one = |index: u64, which: &str| {
        let flat = pass.product_workspace(&format!("{name}.{which}.together"), &[rows, width])?;
        let weight = all_weights.part(index * width * width, width * width);
        let bias = all_biases.part(index * width, width);
        let (a, b) = (Matrix::new(input, rows, width), Matrix::new(&weight, width, width).transposed());
        operations::matmul(&Product { bias: Some(&*bias), ..Product::new(&flat, a, b) })?;
        let apart = pass.product_activation(&format!("{name}.{which}"), &pass.shape_of_heads())?;
        operations::merge_heads_backward(&apart, &flat, pass.heads())?;
        Ok::<_, Error>(apart)
    };
    let both = [one(0, "q")?, one(1, "v")?];
    pass.keep_cast(&projection.weight);
    Ok(both)
}

/// The gradient of the input (rows, width) from those of q, of k, which are added, and of v.
pub(super) fn backward(
    pass: &Pass<'_>,
    name: &str,
    projection: &mut Linear<Parameter>,
    input: &Tensor,
    [grad_q, grad_k, grad_v]: [Tensor; 3],
) -> Result<Tensor, Error> {
    let (rows, width) = (pass.rows(), pass.width());
    operations::add(&grad_q, &grad_q, &grad_k)?;
    drop(grad_k);
    let Linear { weight, bias, .. } = projection;
    let (_, accumulate) = weight.reach_gradient()?;
    bias.reach_gradient()?;
    let grad_input = pass.product_workspace(&format!("{name}.input.grad"), &[rows, width])?;
    for (index, grad) in [grad_q, grad_v].into_iter().enumerate() {
        let flat = pass.product_workspace(&format!("{name}.together.grad"), &[rows, width])?;
        operations::merge_heads(&flat, &grad, pass.heads())?;
        drop(grad);
        let (first, size) = (index as u64 * width * width, width * width);
        {
            let all = pass.in_product(weight)?;
            let part = all.part(first, size);
            let onward = Product::new(&grad_input, Matrix::new(&flat, rows, width), Matrix::new(&part, width, width));
            operations::matmul(&Product { accumulate: index > 0, ..onward })?;
        }
        if index > 0 {
            weight.release_cast();
        }
        let grad_weight = weight.gradient().expect("reached above").part(first, size);
        write_in(pass.of_products(), (&grad_weight, accumulate), &mut |grad_weight, accumulate| {
            let by_input = Matrix::new(input, rows, width);
            let by_input = Product::new(grad_weight, Matrix::new(&flat, rows, width).transposed(), by_input);
            operations::matmul(&Product { accumulate, ..by_input })
        })?;
        let grad_bias = bias.gradient().expect("reached above").part(index as u64 * width, width);
        write_in(pass.of_products(), (&grad_bias, accumulate), &mut |grad_bias, accumulate| {
            operations::bias_backward(grad_bias, &flat, accumulate)
        })?;
    }
    pass.added(weight)?;
    pass.added(bias)?;
    pass.in_stream(grad_input)
}
