//! Host references of cu/half_flash_attention.cu.
//!
//! Owns: how large each array is. Refuses: conversions (half.rs) and formulas (flash_attention.rs).

use super::flash_attention;
use super::half::{Element, input, output, widened};
use crate::{Arguments, Launch};

/// Elements of q, k, v and what is as large; sequence and width of a head are arguments from `first` on.
fn elements(launch: &Launch, arguments: &Arguments<'_>, first: usize) -> usize {
    let (sequence, head_width) = (arguments.u32(first) as usize, arguments.u32(first + 1) as usize);
    // There is a block for every 16 queries of a head.
    launch.grid[0] as usize / sequence.div_ceil(16) * sequence * head_width
}

/// See cu/flash_attention.cuh.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_flash_forward(launch: &Launch, arguments: &Arguments<'_>) {
    let (n, kind) = (elements(launch, arguments, 6), Element::from(arguments.u32(10)));
    let extents = [output(0, n, kind), input(2, n, kind), input(3, n, kind), input(4, n, kind)];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, flash_attention::flash_forward, 10, &extents) };
}

/// See cu/flash_attention.cuh.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_flash_inner(launch: &Launch, arguments: &Arguments<'_>) {
    let n = (3..7).map(|index| arguments.u32(index) as usize).product();
    let kind = Element::from(arguments.u32(7));
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, flash_attention::flash_inner, 7, &[input(1, n, kind), input(2, n, kind)]) };
}

/// See cu/flash_attention.cuh.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_flash_backward_queries(launch: &Launch, arguments: &Arguments<'_>) {
    let (n, kind) = (elements(launch, arguments, 8), Element::from(arguments.u32(12)));
    let inputs = [1, 2, 3, 4].map(|index| input(index, n, kind));
    let extents: Vec<_> = [output(0, n, kind)].into_iter().chain(inputs).collect();
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, flash_attention::flash_backward_queries, 12, &extents) };
}

/// See cu/flash_attention.cuh.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_flash_backward_keys(launch: &Launch, arguments: &Arguments<'_>) {
    let (n, kind) = (elements(launch, arguments, 9), Element::from(arguments.u32(13)));
    let inputs = [2, 3, 4, 5].map(|index| input(index, n, kind));
    let extents: Vec<_> = [output(0, n, kind), output(1, n, kind)].into_iter().chain(inputs).collect();
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, flash_attention::flash_backward_keys, 13, &extents) };
}
