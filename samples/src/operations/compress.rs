//! Launchers of the kernels of compression to 8 bits.

use super::launch;
use crate::{Error, Tensor};
use memscope_kernels::geometry;

/// Codes and absmaxes, in this order, of the input.
pub(crate) fn compress([codes, absmaxes]: [&Tensor; 2], input: &Tensor) -> Result<(), Error> {
    let elements = input.elements();
    assert_eq!((codes.elements(), absmaxes.elements()), (elements, elements.div_ceil(256)), "{}", input.name());
    let arguments = [codes.into(), absmaxes.into(), input.into(), elements.into()];
    launch(input, "compress", geometry::elementwise(elements), &arguments)
}

/// The output from codes and absmaxes, in this order.
pub(crate) fn decompress(output: &Tensor, [codes, absmaxes]: [&Tensor; 2]) -> Result<(), Error> {
    let elements = output.elements();
    assert_eq!((codes.elements(), absmaxes.elements()), (elements, elements.div_ceil(256)), "{}", output.name());
    let arguments = [output.into(), codes.into(), absmaxes.into(), elements.into()];
    launch(output, "decompress", geometry::elementwise(elements), &arguments)
}
