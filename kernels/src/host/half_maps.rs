//! Host references of cu/half_convolution.cu, half_batchnorm.cu, half_relu.cu and half_pooling.cu: the fp32 references on
//! widened copies (half.rs).
//!
//! Owns: how large each array of these kernels is. Refuses: formulas.

use super::half::{Element, input, output, updated, widened};
use super::{batchnorm, convolution, pooling, relu};
use crate::{Arguments, Launch};

/// What an argument says of elements.
fn kind(arguments: &Arguments<'_>, index: usize) -> Element {
    Element::from(arguments.u32(index))
}

/// Elements of a convolution's input, output and weight, from its eight sizes.
fn elements(arguments: &Arguments<'_>) -> [usize; 3] {
    let [images, channels, height, width, filters, side, stride, padding] =
        [3, 4, 5, 6, 7, 8, 9, 10].map(|index| arguments.u32(index) as usize);
    let out = |size: usize| (size + 2 * padding - side) / stride + 1;
    let output = images * filters * out(height) * out(width);
    [images * channels * height * width, output, filters * channels * side * side]
}

/// Elements of a pooling over windows: of the whole, and of what it is pooled to.
fn pooled(arguments: &Arguments<'_>) -> [usize; 2] {
    let [planes, height, width, side, stride, padding] = [3, 4, 5, 6, 7, 8].map(|index| arguments.u32(index) as usize);
    let out = |size: usize| (size + 2 * padding - side) / stride + 1;
    [planes * height * width, planes * out(height) * out(width)]
}

/// See cu/half_convolution.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_convolution_forward(launch: &Launch, arguments: &Arguments<'_>) {
    let ([inputs, outputs, weights], kind) = (elements(arguments), kind(arguments, 11));
    let extents = [output(0, outputs, kind), input(1, inputs, kind), input(2, weights, kind)];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, convolution::convolution_forward, 11, &extents) };
}

/// See cu/half_convolution.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_convolution_backward_input(launch: &Launch, arguments: &Arguments<'_>) {
    let ([inputs, outputs, weights], kind) = (elements(arguments), kind(arguments, 11));
    let extents = [output(0, inputs, kind), input(1, outputs, kind), input(2, weights, kind)];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, convolution::convolution_backward_input, 11, &extents) };
}

/// See cu/half_convolution.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_convolution_backward_weight(launch: &Launch, arguments: &Arguments<'_>) {
    let ([inputs, outputs, weights], kind) = (elements(arguments), kind(arguments, 12));
    let extents = [updated(0, weights, kind), input(1, outputs, kind), input(2, inputs, kind)];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, convolution::convolution_backward_weight, 12, &extents) };
}

/// See cu/half_batchnorm.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_batchnorm_forward(launch: &Launch, arguments: &Arguments<'_>) {
    let channels = arguments.u32(9) as usize;
    let n = arguments.u32(8) as usize * channels * arguments.u32(10) as usize;
    let [of_maps, of_weight] = [13, 14].map(|index| kind(arguments, index));
    let extents =
        [output(0, n, of_maps), input(5, n, of_maps), input(6, channels, of_weight), input(7, channels, of_weight)];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, batchnorm::batchnorm_forward, 13, &extents) };
}

/// See cu/half_batchnorm.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_batchnorm_backward(launch: &Launch, arguments: &Arguments<'_>) {
    let channels = arguments.u32(9) as usize;
    let n = arguments.u32(8) as usize * channels * arguments.u32(10) as usize;
    let [of_maps, of_weight] = [12, 13].map(|index| kind(arguments, index));
    let extents = [
        output(0, n, of_maps),
        updated(1, channels, of_weight),
        updated(2, channels, of_weight),
        input(3, n, of_maps),
        input(4, n, of_maps),
        input(5, channels, of_weight),
    ];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, batchnorm::batchnorm_backward, 12, &extents) };
}

/// See cu/half_relu.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_relu_forward(launch: &Launch, arguments: &Arguments<'_>) {
    let (n, kind) = (arguments.u64(2) as usize, kind(arguments, 3));
    // SAFETY: the caller's promise; both have as many elements, and may be one array.
    unsafe { widened(launch, arguments, relu::relu_forward, 3, &[output(0, n, kind), input(1, n, kind)]) };
}

/// See cu/half_relu.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_relu_backward(launch: &Launch, arguments: &Arguments<'_>) {
    let (n, kind) = (arguments.u64(3) as usize, kind(arguments, 4));
    let extents = [output(0, n, kind), input(1, n, kind), input(2, n, kind)];
    // SAFETY: the caller's promise; all have as many elements.
    unsafe { widened(launch, arguments, relu::relu_backward, 4, &extents) };
}

/// See cu/half_pooling.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_maxpool_forward(launch: &Launch, arguments: &Arguments<'_>) {
    let ([whole, pooled], kind) = (pooled(arguments), kind(arguments, 9));
    let extents = [output(0, pooled, kind), input(2, whole, kind)];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, pooling::maxpool_forward, 9, &extents) };
}

/// See cu/half_pooling.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_maxpool_backward(launch: &Launch, arguments: &Arguments<'_>) {
    let ([whole, pooled], kind) = (pooled(arguments), kind(arguments, 9));
    let extents = [output(0, whole, kind), input(1, pooled, kind)];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, pooling::maxpool_backward, 9, &extents) };
}

/// See cu/half_pooling.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_averagepool_forward(launch: &Launch, arguments: &Arguments<'_>) {
    let (planes, kind) = (launch.grid[0] as usize, kind(arguments, 3));
    let extents = [output(0, planes, kind), input(1, planes * arguments.u32(2) as usize, kind)];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, pooling::averagepool_forward, 3, &extents) };
}

/// See cu/half_pooling.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_averagepool_backward(launch: &Launch, arguments: &Arguments<'_>) {
    let (planes, kind) = (arguments.u32(2) as usize, kind(arguments, 4));
    let extents = [output(0, planes * arguments.u32(3) as usize, kind), input(1, planes, kind)];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, pooling::averagepool_backward, 4, &extents) };
}
