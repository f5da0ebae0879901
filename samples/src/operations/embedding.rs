//! Launchers of the embedding kernels.

use super::{dimension, launch};
use crate::{Error, Tensor};
use memscope_kernels::geometry;

/// output (rows, width) = token table + position table (+ type table), each at its index. `types` are the indices and the
/// table of token types.
pub(crate) fn embedding_forward(
    output: &Tensor,
    tokens: &Tensor,
    token_table: &Tensor,
    position_table: &Tensor,
    types: Option<(&Tensor, &Tensor)>,
    sequence: u64,
) -> Result<(), Error> {
    let rows = tokens.elements();
    let width = output.elements() / rows;
    assert!(token_table.elements().is_multiple_of(width) && position_table.elements() >= sequence * width);
    let arguments = [
        output.into(),
        tokens.into(),
        token_table.into(),
        position_table.into(),
        types.map(|(indices, _)| indices).into(),
        types.map(|(_, table)| table).into(),
        dimension(rows).into(),
        dimension(sequence).into(),
        dimension(width).into(),
    ];
    launch(output, "embedding_forward", geometry::elementwise(output.elements()), &arguments)
}

/// Adds each row of grad_output to the entry of grad_table that `indices` names.
pub(crate) fn embedding_backward_table(
    grad_table: &Tensor,
    grad_output: &Tensor,
    indices: &Tensor,
) -> Result<(), Error> {
    let rows = indices.elements();
    let width = grad_output.elements() / rows;
    assert!(grad_table.elements().is_multiple_of(width), "{}", grad_table.name());
    let arguments =
        [grad_table.into(), grad_output.into(), indices.into(), dimension(rows).into(), dimension(width).into()];
    launch(grad_table, "embedding_backward_table", geometry::rows(rows), &arguments)
}

/// grad_table = the sum of the rows of grad_output at each position, added to what is there if `accumulate`.
pub(crate) fn embedding_backward_position(
    grad_table: &Tensor,
    grad_output: &Tensor,
    rows: u64,
    sequence: u64,
    accumulate: bool,
) -> Result<(), Error> {
    let width = grad_output.elements() / rows;
    let positions = grad_table.elements() / width;
    assert!(positions >= sequence, "{}", grad_table.name());
    let arguments = [
        grad_table.into(),
        grad_output.into(),
        dimension(rows).into(),
        dimension(sequence).into(),
        dimension(positions).into(),
        dimension(width).into(),
        u32::from(accumulate).into(),
    ];
    let shape = geometry::elementwise(grad_table.elements());
    launch(grad_table, "embedding_backward_position", shape, &arguments)
}
