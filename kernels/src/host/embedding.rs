//! Host references of cu/embedding.cu.

use super::memory::{Memory, for_each, for_rows};
use crate::{Arguments, Launch};

/// See cu/embedding.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn embedding_forward(_: &Launch, arguments: &Arguments<'_>) {
    let output = Memory::<f32>::new(arguments.pointer(0));
    let tokens = Memory::<i64>::new(arguments.pointer(1));
    let token_table = Memory::<f32>::new(arguments.pointer(2));
    let position_table = Memory::<f32>::new(arguments.pointer(3));
    let types = Memory::<i64>::new(arguments.pointer(4));
    let type_table = Memory::<f32>::new(arguments.pointer(5));
    let (rows, sequence) = (arguments.u32(6) as usize, arguments.u32(7) as usize);
    let width = arguments.u32(8) as usize;
    let entry = |index: usize| index * width..(index + 1) * width;
    for_rows(rows, width, |row| {
        // SAFETY: the caller's promise; each row of the output belongs to one call.
        unsafe {
            let output = output.write(entry(row));
            let token = token_table.read(entry(*tokens.at(row) as usize));
            let position = position_table.read(entry(row % sequence));
            for ((output, token), position) in output.iter_mut().zip(token).zip(position) {
                *output = token + position;
            }
            if !type_table.is_null() {
                let kind = type_table.read(entry(*types.at(row) as usize));
                output.iter_mut().zip(kind).for_each(|(output, kind)| *output += kind);
            }
        }
    });
}

/// See cu/embedding.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn embedding_backward_table(_: &Launch, arguments: &Arguments<'_>) {
    let grad_table = Memory::<f32>::new(arguments.pointer(0));
    let grad_output = Memory::<f32>::new(arguments.pointer(1));
    let indices = Memory::<i64>::new(arguments.pointer(2));
    let (rows, width) = (arguments.u32(3) as usize, arguments.u32(4) as usize);
    // Rows may share an entry, so cores share the columns instead.
    const COLUMNS: usize = 64;
    for_each(width.div_ceil(COLUMNS), 1, |part| {
        let (first, end) = (part * COLUMNS, width.min((part + 1) * COLUMNS));
        for row in 0..rows {
            // SAFETY: the caller's promise; the columns first..end of all entries belong to this call.
            unsafe {
                let entry = *indices.at(row) as usize * width;
                let sum = grad_table.write(entry + first..entry + end);
                let grad = grad_output.read(row * width + first..row * width + end);
                sum.iter_mut().zip(grad).for_each(|(sum, grad)| *sum += grad);
            }
        }
    });
}

/// See cu/embedding.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn embedding_backward_position(_: &Launch, arguments: &Arguments<'_>) {
    let grad_table = Memory::<f32>::new(arguments.pointer(0));
    let grad_output = Memory::<f32>::new(arguments.pointer(1));
    let (rows, sequence) = (arguments.u32(2) as usize, arguments.u32(3) as usize);
    let (positions, width) = (arguments.u32(4) as usize, arguments.u32(5) as usize);
    let accumulate = arguments.u32(6) != 0;
    let entry = |index: usize| index * width..(index + 1) * width;
    for_rows(positions, width, |position| {
        // SAFETY: the caller's promise; each entry of the table belongs to one call.
        unsafe {
            let sum = grad_table.write(entry(position));
            if !accumulate {
                sum.fill(0.0);
            }
            let rows_here = if position < sequence { position..rows } else { 0..0 };
            for row in rows_here.step_by(sequence) {
                sum.iter_mut().zip(grad_output.read(entry(row))).for_each(|(sum, grad)| *sum += grad);
            }
        }
    });
}
