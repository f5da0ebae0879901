//! Host references of cu/half_*.cu, save those of feature maps (half_maps.rs): arrays of 16 bits are widened to fp32, the fp32 reference computes, and what it wrote is
//! rounded.
//!
//! Owns: conversions, and how large each array of a kernel is. Refuses: formulas, which stand in the fp32 references.

use super::memory::{Memory, for_each, for_pieces};
use super::{attention, compress, elementwise, embedding, layernorm, loss, matmul};
use crate::{Arguments, HostReference, Launch};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// What an element is, as kernels take it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Element {
    Fp32,
    Fp16,
    Bf16,
}

impl Element {
    pub fn from(code: u32) -> Element {
        match code {
            0 => Element::Fp32,
            1 => Element::Fp16,
            _ => Element::Bf16,
        }
    }
}

/// An array on the device whose elements may have 16 bits.
#[derive(Clone, Copy)]
pub(super) struct Array {
    pointer: *mut u8,
    element: Element,
}

// SAFETY: as Memory: only an address.
unsafe impl Send for Array {}
// SAFETY: as above.
unsafe impl Sync for Array {}

impl Array {
    pub fn new(arguments: &Arguments<'_>, index: usize, element: Element) -> Array {
        Array { pointer: arguments.pointer(index), element }
    }

    /// Elements from `first` on, widened.
    ///
    /// # Safety
    /// They exist, and nothing writes them meanwhile.
    pub unsafe fn read(self, first: usize, into: &mut [f32]) {
        let count = into.len();
        // SAFETY: the caller's promise, for each kind of element.
        unsafe {
            match self.element {
                Element::Fp32 => {
                    into.copy_from_slice(Memory::new(self.pointer.cast::<f32>()).read(first..first + count))
                }
                Element::Fp16 => {
                    Memory::new(self.pointer.cast::<f16>()).read(first..first + count).convert_to_f32_slice(into);
                }
                Element::Bf16 => {
                    Memory::new(self.pointer.cast::<bf16>()).read(first..first + count).convert_to_f32_slice(into);
                }
            }
        }
    }

    /// Replaces elements from `first` on, rounded to the nearest.
    ///
    /// # Safety
    /// They exist, and nothing else reads or writes them meanwhile.
    pub unsafe fn write(self, first: usize, from: &[f32]) {
        let range = first..first + from.len();
        // SAFETY: the caller's promise, for each kind of element.
        unsafe {
            match self.element {
                Element::Fp32 => Memory::new(self.pointer.cast::<f32>()).write(range).copy_from_slice(from),
                Element::Fp16 => Memory::new(self.pointer.cast::<f16>()).write(range).convert_from_f32_slice(from),
                Element::Bf16 => Memory::new(self.pointer.cast::<bf16>()).write(range).convert_from_f32_slice(from),
            }
        }
    }
}

/// An argument of a kernel that is an array: its index, how many elements the kernel may touch, and of which kind they are.
pub(super) struct Extent {
    index: usize,
    elements: usize,
    element: Element,
    /// The kernel writes it, so that it is rounded back.
    written: bool,
    /// What is there matters: it is read, or stays where the kernel does not write.
    read: bool,
}

pub(super) fn input(index: usize, elements: usize, element: Element) -> Extent {
    Extent { index, elements, element, written: false, read: true }
}

/// An output of which every element is written.
pub(super) fn output(index: usize, elements: usize, element: Element) -> Extent {
    Extent { index, elements, element, written: true, read: false }
}

/// An output that is added to, or written in part.
pub(super) fn updated(index: usize, elements: usize, element: Element) -> Extent {
    Extent { index, elements, element, written: true, read: true }
}

/// Runs an fp32 reference on the arguments, whose first `of_fp32` are its own, over widened copies of these arrays.
///
/// # Safety
/// As [`crate::HostReference`], and the extents are those of the kernel.
pub(super) unsafe fn widened(
    launch: &Launch,
    arguments: &Arguments<'_>,
    fp32: HostReference,
    of_fp32: usize,
    extents: &[Extent],
) {
    let mut cells: Vec<u64> = (0..of_fp32).map(|index| arguments.u64(index)).collect();
    let mut copies: Vec<Vec<f32>> = Vec::new();
    for extent in extents {
        let mut copy = Vec::new();
        if cells[extent.index] != 0 && extent.element != Element::Fp32 {
            copy.resize(extent.elements, 0.0);
            if extent.read {
                let (array, target) =
                    (Array::new(arguments, extent.index, extent.element), Memory::new(copy.as_mut_ptr()));
                // SAFETY: the caller's promise; the ranges are disjoint, and the copy is as long.
                for_pieces(extent.elements, |range| unsafe { array.read(range.start, target.write(range)) });
            }
            cells[extent.index] = copy.as_mut_ptr() as u64;
        }
        copies.push(copy);
    }
    // SAFETY: the caller's promise, with copies in the place of arrays.
    unsafe { fp32(launch, &Arguments::new(&cells)) };
    for (extent, copy) in extents.iter().zip(&mut copies) {
        if extent.written && !copy.is_empty() {
            let (array, source) = (Array::new(arguments, extent.index, extent.element), Memory::new(copy.as_mut_ptr()));
            // SAFETY: the caller's promise; the ranges are disjoint, and the copy is as long.
            for_pieces(extent.elements, |range| unsafe { array.write(range.start, source.read(range)) });
        }
    }
}

/// See cu/half_elementwise.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn cast(_: &Launch, arguments: &Arguments<'_>) {
    let kind = |index: usize| Element::from(arguments.u32(index));
    let (output, input) = (Array::new(arguments, 0, kind(3)), Array::new(arguments, 1, kind(4)));
    let accumulate = arguments.u32(5) != 0;
    for_pieces(arguments.u64(2) as usize, |range| {
        let (mut values, mut before) = (vec![0.0; range.len()], vec![0.0; range.len()]);
        // SAFETY: the caller's promise; the ranges are disjoint.
        unsafe {
            input.read(range.start, &mut values);
            if accumulate {
                output.read(range.start, &mut before);
                values.iter_mut().zip(before).for_each(|(value, before)| *value += before);
            }
            output.write(range.start, &values);
        }
    });
}

/// See cu/half_elementwise.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_fill(_: &Launch, arguments: &Arguments<'_>) {
    let output = Array::new(arguments, 0, Element::from(arguments.u32(3)));
    let value = arguments.f32(2);
    // SAFETY: the caller's promise; the ranges are disjoint.
    for_pieces(arguments.u64(1) as usize, |range| unsafe { output.write(range.start, &vec![value; range.len()]) });
}

/// See cu/half_elementwise.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_add(launch: &Launch, arguments: &Arguments<'_>) {
    let (n, kind) = (arguments.u64(3) as usize, Element::from(arguments.u32(4)));
    let extents = [output(0, n, kind), input(1, n, kind), input(2, n, Element::from(arguments.u32(5)))];
    // SAFETY: the caller's promise; all have as many elements.
    unsafe { widened(launch, arguments, elementwise::add, 4, &extents) };
}

/// See cu/half_elementwise.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_gelu_forward(launch: &Launch, arguments: &Arguments<'_>) {
    let (n, kind) = (arguments.u64(2) as usize, Element::from(arguments.u32(3)));
    // SAFETY: the caller's promise; all have as many elements.
    unsafe { widened(launch, arguments, elementwise::gelu_forward, 3, &[output(0, n, kind), input(1, n, kind)]) };
}

/// See cu/half_elementwise.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_gelu_backward(launch: &Launch, arguments: &Arguments<'_>) {
    let (n, kind) = (arguments.u64(3) as usize, Element::from(arguments.u32(4)));
    let extents = [output(0, n, kind), input(1, n, kind), input(2, n, kind)];
    // SAFETY: the caller's promise; all have as many elements.
    unsafe { widened(launch, arguments, elementwise::gelu_backward, 4, &extents) };
}

/// The largest offset into an operand, and one.
fn span(sizes: [usize; 3], strides: [usize; 3]) -> usize {
    sizes.iter().zip(strides).map(|(size, stride)| (size - 1) * stride).sum::<usize>() + 1
}

/// See cu/half_matmul.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_matmul(launch: &Launch, arguments: &Arguments<'_>) {
    let size = |index: usize| arguments.u32(index) as usize;
    let (m, n, k, batches) = (size(4), size(5), size(6), size(7));
    let strides = |index: usize| [0, 1, 2].map(|offset| arguments.u64(index + offset) as usize);
    let [a_strides, b_strides] = [strides(8), strides(11)];
    let (row, batch) = (arguments.u64(14) as usize, arguments.u64(15) as usize);
    let kind = Element::from(arguments.u32(18));
    let of = |[row, column, batch]: [usize; 3], rows, columns| span([rows, columns, batches], [row, column, batch]);
    let target = span([m, n, batches], [row, 1, batch]);
    let whole = arguments.f32(17) == 0.0 && target == m * n * batches;
    let extents = [
        Extent { read: !whole, ..output(0, target, kind) },
        input(1, of(a_strides, m, k), kind),
        input(2, of(b_strides, k, n), kind),
        input(3, n, kind),
    ];
    // SAFETY: the caller's promise, with the extents that sizes and strides give.
    unsafe { widened(launch, arguments, matmul::matmul, 18, &extents) };
}

/// See cu/half_matmul.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_bias_backward(launch: &Launch, arguments: &Arguments<'_>) {
    let (rows, width) = (arguments.u32(2) as usize, arguments.u32(3) as usize);
    let kind = Element::from(arguments.u32(5));
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe {
        widened(launch, arguments, matmul::bias_backward, 5, &[updated(0, width, kind), input(1, rows * width, kind)]);
    }
}

/// The product of four sizes from `first` on.
fn product(arguments: &Arguments<'_>, first: usize) -> usize {
    (first..first + 4).map(|index| arguments.u32(index) as usize).product()
}

/// See cu/half_attention.cu. Widening fp16 and rounding it back changes nothing but the payload of a NaN; bf16 not even that.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_split_qkv(launch: &Launch, arguments: &Arguments<'_>) {
    let (n, kind) = (product(arguments, 4), Element::Bf16);
    let extents = [output(0, n, kind), output(1, n, kind), output(2, n, kind), input(3, 3 * n, kind)];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, attention::split_qkv, 8, &extents) };
}

/// See cu/half_attention.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_split_qkv_backward(launch: &Launch, arguments: &Arguments<'_>) {
    let (n, kind) = (product(arguments, 4), Element::Bf16);
    let extents = [output(0, 3 * n, kind), input(1, n, kind), input(2, n, kind), input(3, n, kind)];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, attention::split_qkv_backward, 8, &extents) };
}

/// See cu/half_attention.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_merge_heads(launch: &Launch, arguments: &Arguments<'_>) {
    let (n, kind) = (product(arguments, 2), Element::Bf16);
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, attention::merge_heads, 6, &[output(0, n, kind), input(1, n, kind)]) };
}

/// See cu/half_attention.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_merge_heads_backward(launch: &Launch, arguments: &Arguments<'_>) {
    let (n, kind) = (product(arguments, 2), Element::Bf16);
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, attention::merge_heads_backward, 6, &[output(0, n, kind), input(1, n, kind)]) };
}

/// See cu/half_attention.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_softmax_forward(launch: &Launch, arguments: &Arguments<'_>) {
    let n = launch.grid[0] as usize * arguments.u32(2) as usize;
    let kind = |index: usize| Element::from(arguments.u32(index));
    let extents = [output(0, n, kind(4)), input(1, n, kind(5))];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, attention::softmax_forward, 4, &extents) };
}

/// See cu/half_attention.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_softmax_backward(launch: &Launch, arguments: &Arguments<'_>) {
    let n = launch.grid[0] as usize * arguments.u32(3) as usize;
    let kind = |index: usize| Element::from(arguments.u32(index));
    let extents = [output(0, n, kind(4)), input(1, n, kind(5)), input(2, n, kind(5))];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, attention::softmax_backward, 4, &extents) };
}

/// See cu/half_layernorm.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_layernorm_forward(launch: &Launch, arguments: &Arguments<'_>) {
    let (width, kind) = (arguments.u32(6) as usize, Element::from(arguments.u32(8)));
    let n = launch.grid[0] as usize * width;
    let extents = [output(0, n, kind), input(3, n, kind), input(4, width, kind), input(5, width, kind)];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, layernorm::layernorm_forward, 8, &extents) };
}

/// See cu/half_layernorm.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_layernorm_backward_input(launch: &Launch, arguments: &Arguments<'_>) {
    let (width, kind) = (arguments.u32(6) as usize, Element::from(arguments.u32(7)));
    let n = launch.grid[0] as usize * width;
    let extents = [output(0, n, kind), input(1, n, kind), input(2, n, kind), input(3, width, kind)];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, layernorm::layernorm_backward_input, 7, &extents) };
}

/// See cu/half_layernorm.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_layernorm_backward_parameters(launch: &Launch, arguments: &Arguments<'_>) {
    let (rows, width) = (arguments.u32(6) as usize, arguments.u32(7) as usize);
    let kind = Element::from(arguments.u32(9));
    let extents =
        [updated(0, width, kind), updated(1, width, kind), input(2, rows * width, kind), input(3, rows * width, kind)];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, layernorm::layernorm_backward_parameters, 9, &extents) };
}

/// See cu/half_embedding.cu. The tables' lengths are not among the arguments: only the rows that are named are widened.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_embedding_forward(_: &Launch, arguments: &Arguments<'_>) {
    let (rows, sequence, width) = (arguments.u32(6) as usize, arguments.u32(7) as usize, arguments.u32(8) as usize);
    let kind = Element::from(arguments.u32(9));
    let array = |index: usize| Array::new(arguments, index, kind);
    let (output, tokens, positions, kinds) = (array(0), array(2), array(3), array(5));
    let (token, types) = (Memory::<i64>::new(arguments.pointer(1)), Memory::<i64>::new(arguments.pointer(4)));
    for_each(rows, 16, |row| {
        let (mut sum, mut term) = (vec![0.0; width], vec![0.0; width]);
        // SAFETY: the caller's promise; each row of the output belongs to one call.
        unsafe {
            tokens.read(*token.at(row) as usize * width, &mut sum);
            positions.read(row % sequence * width, &mut term);
            sum.iter_mut().zip(&term).for_each(|(sum, term)| *sum += term);
            if !types.is_null() {
                kinds.read(*types.at(row) as usize * width, &mut term);
                sum.iter_mut().zip(&term).for_each(|(sum, term)| *sum += term);
            }
            output.write(row * width, &sum);
        }
    });
}

/// See cu/half_embedding.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_embedding_backward_table(_: &Launch, arguments: &Arguments<'_>) {
    let (rows, width) = (arguments.u32(3) as usize, arguments.u32(4) as usize);
    let kind = Element::from(arguments.u32(5));
    let (table, grads) = (Array::new(arguments, 0, kind), Array::new(arguments, 1, kind));
    // SAFETY: the caller's promise; nothing writes the indices.
    let indices = unsafe { Memory::<i64>::new(arguments.pointer(2)).read(0..rows) };
    for_each(rows, 16, |row| {
        if indices[..row].contains(&indices[row]) {
            return;
        }
        let cell = indices[row] as usize * width;
        let (mut sum, mut grad) = (vec![0.0; width], vec![0.0; width]);
        // SAFETY: the caller's promise; an entry belongs to the call of the first row that names it.
        unsafe {
            table.read(cell, &mut sum);
            for other in (row..rows).filter(|&other| indices[other] == indices[row]) {
                grads.read(other * width, &mut grad);
                sum.iter_mut().zip(&grad).for_each(|(sum, grad)| *sum += grad);
            }
            table.write(cell, &sum);
        }
    });
}

/// See cu/half_embedding.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_embedding_backward_position(launch: &Launch, arguments: &Arguments<'_>) {
    let (rows, positions) = (arguments.u32(2) as usize, arguments.u32(4) as usize);
    let (width, kind) = (arguments.u32(5) as usize, Element::from(arguments.u32(7)));
    let extents = [updated(0, positions * width, kind), input(1, rows * width, kind)];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, embedding::embedding_backward_position, 7, &extents) };
}

/// See cu/half_loss.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_log_softmax_forward(launch: &Launch, arguments: &Arguments<'_>) {
    let n = launch.grid[0] as usize * arguments.u32(2) as usize;
    let extents = [input(1, n, Element::from(arguments.u32(3)))];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, loss::log_softmax_forward, 3, &extents) };
}

/// See cu/half_loss.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_log_softmax_backward(launch: &Launch, arguments: &Arguments<'_>) {
    let n = launch.grid[0] as usize * arguments.u32(3) as usize;
    let extents = [output(0, n, Element::from(arguments.u32(4)))];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, loss::log_softmax_backward, 4, &extents) };
}

/// See cu/half_compress.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_compress(launch: &Launch, arguments: &Arguments<'_>) {
    let extents = [input(2, arguments.u64(3) as usize, Element::from(arguments.u32(4)))];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, compress::compress, 4, &extents) };
}

/// See cu/half_compress.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn half_decompress(launch: &Launch, arguments: &Arguments<'_>) {
    let extents = [output(0, arguments.u64(3) as usize, Element::from(arguments.u32(4)))];
    // SAFETY: the caller's promise, with the kernel's shapes.
    unsafe { widened(launch, arguments, compress::decompress, 4, &extents) };
}
