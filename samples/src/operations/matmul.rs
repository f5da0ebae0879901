//! Launchers of the matrix product and of the bias's gradient.

use super::{dimension, launch};
use crate::{Error, Tensor};
use memscope_kernels::geometry;

/// A matrix, or a batch of matrices, in a tensor: element (i, j) of matrix z is at z·batch + i·row + j·column.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    tensor: &'a Tensor,
    rows: u64,
    columns: u64,
    row: u64,
    column: u64,
    batch: u64,
}

impl<'a> Matrix<'a> {
    /// The tensor as contiguous matrices of `columns` columns, `rows` rows each.
    pub fn new(tensor: &'a Tensor, rows: u64, columns: u64) -> Self {
        assert!(tensor.elements().is_multiple_of(rows * columns), "{} as {rows} × {columns}", tensor.name());
        Matrix { tensor, rows, columns, row: columns, column: 1, batch: rows * columns }
    }

    /// The same matrices transposed; nothing moves.
    pub fn transposed(self) -> Self {
        Matrix { rows: self.columns, columns: self.rows, row: self.column, column: self.row, ..self }
    }
}

/// output = alpha · a · b + bias, added to what is there if `accumulate`.
pub(crate) struct Product<'a> {
    pub output: &'a Tensor,
    pub a: Matrix<'a>,
    pub b: Matrix<'a>,
    pub bias: Option<&'a Tensor>,
    pub alpha: f32,
    pub accumulate: bool,
}

impl<'a> Product<'a> {
    /// output = a · b.
    pub fn new(output: &'a Tensor, a: Matrix<'a>, b: Matrix<'a>) -> Self {
        Product { output, a, b, bias: None, alpha: 1.0, accumulate: false }
    }
}

/// Computes a product; the batches are as many matrices as the output holds.
pub(crate) fn matmul(product: &Product<'_>) -> Result<(), Error> {
    let Product { output, a, b, bias, alpha, accumulate } = *product;
    let (m, n, k) = (a.rows, b.columns, a.columns);
    let batches = output.elements() / (m * n);
    let kinds = [Some(a.tensor), Some(b.tensor), bias].map(|tensor| tensor.map_or(output.element(), Tensor::element));
    assert_eq!(kinds, [output.element(); 3], "{} · {}", a.tensor.name(), b.tensor.name());
    assert_eq!(b.rows, k, "{} · {}", a.tensor.name(), b.tensor.name());
    assert_eq!(output.elements(), batches * m * n, "{}", output.name());
    assert_eq!(a.tensor.elements(), batches * m * k, "{}", a.tensor.name());
    assert_eq!(b.tensor.elements(), batches * k * n, "{}", b.tensor.name());
    let (m, n, k, batches) = (dimension(m), dimension(n), dimension(k), dimension(batches));
    let arguments = [
        output.into(),
        a.tensor.into(),
        b.tensor.into(),
        bias.into(),
        m.into(),
        n.into(),
        k.into(),
        batches.into(),
        a.row.into(),
        a.column.into(),
        a.batch.into(),
        b.row.into(),
        b.column.into(),
        b.batch.into(),
        u64::from(n).into(),
        (u64::from(m) * u64::from(n)).into(),
        alpha.into(),
        if accumulate { 1.0_f32 } else { 0.0 }.into(),
    ];
    launch(output, "matmul", geometry::matmul(m, n, batches), &arguments)
}

/// grad_bias = the sum of the rows of grad_output, added to what is there if `accumulate`.
pub(crate) fn bias_backward(grad_bias: &Tensor, grad_output: &Tensor, accumulate: bool) -> Result<(), Error> {
    let width = grad_bias.elements();
    let rows = grad_output.elements() / width;
    let arguments = [
        grad_bias.into(),
        grad_output.into(),
        dimension(rows).into(),
        dimension(width).into(),
        u32::from(accumulate).into(),
    ];
    launch(grad_bias, "bias_backward", geometry::columns(dimension(width)), &arguments)
}
