//! The adapters of low-rank adaptation, beside a frozen matrix (techniques/lora.rs).
//!
//! Owns: what they add, forward and backward. Refuses: the matrix itself.

use super::network::Adapter;
use super::parameter::Parameter;
use super::pass::Pass;
use crate::operations::{self, Matrix, Product};
use crate::{Error, Tensor};

/// Adds the adapter's part to the output (rows, outputs).
pub(super) fn forward(
    pass: &Pass<'_>,
    adapter: &Adapter<Parameter>,
    input: &Tensor,
    output: &Tensor,
) -> Result<(), Error> {
    let low = low(pass, adapter, input)?;
    let (rows, rank) = (pass.rows(), low.elements() / pass.rows());
    let up = pass.in_product(&adapter.up)?;
    let by_up = Matrix::new(&up, output.elements() / rows, rank).transposed();
    operations::matmul(&Product { accumulate: true, ..Product::new(output, Matrix::new(&low, rows, rank), by_up) })?;
    pass.keep_cast(&adapter.down);
    pass.keep_cast(&adapter.up);
    Ok(())
}

/// The input with `rank` columns (rows, rank).
fn low(pass: &Pass<'_>, adapter: &Adapter<Parameter>, input: &Tensor) -> Result<Tensor, Error> {
    let (rows, down) = (pass.rows(), pass.in_product(&adapter.down)?);
    let inputs = input.elements() / rows;
    let rank = down.elements() / inputs;
    let low = pass.product_workspace(&format!("{}.output", adapter.down.name()), &[rows, rank])?;
    let by_down = Matrix::new(&down, rank, inputs).transposed();
    operations::matmul(&Product::new(&low, Matrix::new(input, rows, inputs), by_down))?;
    Ok(low)
}

/// Adds the adapter's part to the gradient of the input, and writes those of its two matrices.
pub(super) fn backward(
    pass: &Pass<'_>,
    adapter: &mut Adapter<Parameter>,
    input: &Tensor,
    grad_output: &Tensor,
    grad_input: &Tensor,
) -> Result<(), Error> {
    let low = low(pass, adapter, input)?;
    let rows = pass.rows();
    let (inputs, rank, outputs) = (input.elements() / rows, low.elements() / rows, grad_output.elements() / rows);
    let grad = Matrix::new(grad_output, rows, outputs);

    let grad_low = pass.product_workspace(&format!("{}.output.grad", adapter.down.name()), &[rows, rank])?;
    {
        let up = pass.in_product(&adapter.up)?;
        operations::matmul(&Product::new(&grad_low, grad, Matrix::new(&up, outputs, rank)))?;
    }
    adapter.up.release_cast();
    adapter.up.in_gradient(pass.of_products(), &mut |grad_up, accumulate| {
        let by_low = Product::new(grad_up, grad.transposed(), Matrix::new(&low, rows, rank));
        operations::matmul(&Product { accumulate, ..by_low })
    })?;
    pass.added(&mut adapter.up)?;
    drop(low);

    let by_low = Matrix::new(&grad_low, rows, rank);
    {
        let down = pass.in_product(&adapter.down)?;
        let onward = Product::new(grad_input, by_low, Matrix::new(&down, rank, inputs));
        operations::matmul(&Product { accumulate: true, ..onward })?;
    }
    adapter.down.release_cast();
    adapter.down.in_gradient(pass.of_products(), &mut |grad_down, accumulate| {
        let by_input = Product::new(grad_down, by_low.transposed(), Matrix::new(input, rows, inputs));
        operations::matmul(&Product { accumulate, ..by_input })
    })?;
    pass.added(&mut adapter.down)
}
