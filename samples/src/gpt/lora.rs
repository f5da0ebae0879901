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
    let up = Matrix::new(adapter.up.weight(), output.elements() / rows, rank).transposed();
    operations::matmul(&Product { accumulate: true, ..Product::new(output, Matrix::new(&low, rows, rank), up) })
}

/// The input with `rank` columns (rows, rank).
fn low(pass: &Pass<'_>, adapter: &Adapter<Parameter>, input: &Tensor) -> Result<Tensor, Error> {
    let (rows, down) = (pass.rows(), adapter.down.weight());
    let inputs = input.elements() / rows;
    let rank = down.elements() / inputs;
    let low = pass.workspace(&format!("{}.output", adapter.down.name()), &[rows, rank])?;
    let down = Matrix::new(down, rank, inputs).transposed();
    operations::matmul(&Product::new(&low, Matrix::new(input, rows, inputs), down))?;
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

    let grad_low = pass.workspace(&format!("{}.output.grad", adapter.down.name()), &[rows, rank])?;
    operations::matmul(&Product::new(&grad_low, grad, Matrix::new(adapter.up.weight(), outputs, rank)))?;
    let (grad_up, accumulate) = adapter.up.reach_gradient()?;
    let by_low = Product::new(grad_up, grad.transposed(), Matrix::new(&low, rows, rank));
    operations::matmul(&Product { accumulate, ..by_low })?;
    pass.added(&mut adapter.up)?;
    drop(low);

    let by_low = Matrix::new(&grad_low, rows, rank);
    let onward = Product::new(grad_input, by_low, Matrix::new(adapter.down.weight(), rank, inputs));
    operations::matmul(&Product { accumulate: true, ..onward })?;
    let (grad_down, accumulate) = adapter.down.reach_gradient()?;
    let by_input = Product::new(grad_down, by_low.transposed(), Matrix::new(input, rows, inputs));
    operations::matmul(&Product { accumulate, ..by_input })?;
    pass.added(&mut adapter.down)
}
