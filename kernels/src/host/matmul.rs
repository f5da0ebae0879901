//! Host references of cu/matmul.cu.

use super::memory::{Memory, for_each};
use crate::{Arguments, Launch};

/// Multiplications of a band: about a tenth of a millisecond.
const BAND_PRODUCTS: usize = 6 << 20;
const MOST_BANDS: usize = 16;

/// See cu/matmul.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn matmul(_: &Launch, arguments: &Arguments<'_>) {
    let output = Memory::<f32>::new(arguments.pointer(0));
    let (a, b) = (Memory::<f32>::new(arguments.pointer(1)), Memory::<f32>::new(arguments.pointer(2)));
    let bias = Memory::<f32>::new(arguments.pointer(3));
    let size = |index: usize| arguments.u32(index) as usize;
    let (m, n, k, batches) = (size(4), size(5), size(6), size(7));
    let stride = |index: usize| arguments.u64(index) as usize;
    let (a_row, a_column, a_batch) = (stride(8), stride(9), stride(10));
    let (b_row, b_column, b_batch) = (stride(11), stride(12), stride(13));
    let (output_row, output_batch) = (stride(14), stride(15));
    let (alpha, beta) = (arguments.f32(16), arguments.f32(17));

    // Bands of rows: enough to share, few enough that packing b for each costs little.
    let bands = (m * n * k).div_ceil(BAND_PRODUCTS).clamp(1, MOST_BANDS);
    let band = m.div_ceil(bands).next_multiple_of(16).min(m.max(1));
    let bands = m.div_ceil(band);
    let together = (BAND_PRODUCTS / (band * n * k).max(1)).max(1);
    for_each(batches * bands, together, |task| {
        let (batch, first) = (task / bands, task % bands * band);
        let rows = band.min(m - first);
        let target = output.at(batch * output_batch + first * output_row);
        // SAFETY: the caller's promise; each band of rows of the output belongs to one call.
        unsafe {
            matrixmultiply::sgemm(
                rows,
                k,
                n,
                alpha,
                a.at(batch * a_batch + first * a_row),
                a_row as isize,
                a_column as isize,
                b.at(batch * b_batch),
                b_row as isize,
                b_column as isize,
                beta,
                target,
                output_row as isize,
                1,
            );
            if !bias.is_null() {
                let bias = bias.read(0..n);
                for row in 0..rows {
                    let row = Memory::new(target).write(row * output_row..row * output_row + n);
                    row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
                }
            }
        }
    });
}

/// See cu/matmul.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn bias_backward(_: &Launch, arguments: &Arguments<'_>) {
    let grad_bias = Memory::<f32>::new(arguments.pointer(0));
    let grad_output = Memory::<f32>::new(arguments.pointer(1));
    let (rows, width) = (arguments.u32(2) as usize, arguments.u32(3) as usize);
    let accumulate = arguments.u32(4) != 0;
    const COLUMNS: usize = 64;
    for_each(width.div_ceil(COLUMNS), 1, |part| {
        let (first, end) = (part * COLUMNS, width.min((part + 1) * COLUMNS));
        // SAFETY: the caller's promise; these columns belong to this call.
        unsafe {
            let sum = grad_bias.write(first..end);
            if !accumulate {
                sum.fill(0.0);
            }
            for row in 0..rows {
                let grad = grad_output.read(row * width + first..row * width + end);
                sum.iter_mut().zip(grad).for_each(|(sum, grad)| *sum += grad);
            }
        }
    });
}
