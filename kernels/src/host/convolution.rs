//! Host references of cu/convolution.cu: the columns of one piece of one image at a time, and products by the GEMM crate.
//!
//! The columns are scratch of the host, not memory of the device: there the kernel takes none either.

use super::memory::{Memory, for_each};
use crate::{Arguments, Launch};
use std::ops::Range;

/// Floats of scratch for one task, about: enough for a product to be worth its packing, few enough to stay in a cache.
const SCRATCH: usize = 1 << 18;

/// The sizes of a convolution, as the kernels' parameters give them.
struct Shape {
    images: usize,
    channels: usize,
    height: usize,
    width: usize,
    filters: usize,
    side: usize,
    stride: usize,
    padding: usize,
}

impl Shape {
    /// From the eight parameters that begin with the third.
    fn new(arguments: &Arguments<'_>) -> Shape {
        let [images, channels, height, width, filters, side, stride, padding] =
            [3, 4, 5, 6, 7, 8, 9, 10].map(|index| arguments.u32(index) as usize);
        Shape { images, channels, height, width, filters, side, stride, padding }
    }

    fn convolved(&self, size: usize) -> usize {
        (size + 2 * self.padding - self.side) / self.stride + 1
    }

    fn out_height(&self) -> usize {
        self.convolved(self.height)
    }

    fn out_width(&self) -> usize {
        self.convolved(self.width)
    }

    /// Elements of a plane of the output.
    fn positions(&self) -> usize {
        self.out_height() * self.out_width()
    }

    /// Elements of a filter in one channel.
    fn area(&self) -> usize {
        self.side * self.side
    }

    /// Rows of the output in bands whose columns for `channels` channels fit the scratch.
    fn bands(&self, channels: usize) -> Vec<Range<usize>> {
        let rows = (SCRATCH / (channels * self.area() * self.out_width())).max(1);
        (0..self.out_height()).step_by(rows).map(|first| first..self.out_height().min(first + rows)).collect()
    }

    /// Writes the columns of some channels and output rows of an image: (channels·side·side, positions in the rows).
    ///
    /// # Safety
    /// The input is as large as the shape says, and nothing writes it.
    unsafe fn gather(
        &self,
        input: Memory<f32>,
        image: usize,
        channels: &Range<usize>,
        rows: &Range<usize>,
        columns: &mut [f32],
    ) {
        let (out_width, area) = (self.out_width(), self.area());
        for (index, line) in columns.chunks_mut(rows.len() * out_width).enumerate() {
            let (channel, place) = (channels.start + index / area, index % area);
            for (row, target) in rows.clone().zip(line.chunks_mut(out_width)) {
                // Left of or above the input it wraps around to a number beyond it.
                let y = (row * self.stride + place / self.side).wrapping_sub(self.padding);
                if y >= self.height {
                    target.fill(0.0);
                    continue;
                }
                let start = ((image * self.channels + channel) * self.height + y) * self.width;
                // SAFETY: the caller's promise.
                let source = unsafe { input.read(start..start + self.width) };
                for (column, target) in target.iter_mut().enumerate() {
                    let x = (column * self.stride + place % self.side).wrapping_sub(self.padding);
                    *target = source.get(x).copied().unwrap_or(0.0);
                }
            }
        }
    }

    /// Adds columns of some channels and all positions to the places of one image that they came from, `planes`.
    fn scatter(&self, columns: &[f32], planes: &mut [f32]) {
        let (out_width, area) = (self.out_width(), self.area());
        for (index, line) in columns.chunks(self.positions()).enumerate() {
            let (channel, place) = (index / area, index % area);
            for (row, source) in line.chunks(out_width).enumerate() {
                let y = (row * self.stride + place / self.side).wrapping_sub(self.padding);
                if y >= self.height {
                    continue;
                }
                let target = &mut planes[(channel * self.height + y) * self.width..][..self.width];
                for (column, source) in source.iter().enumerate() {
                    let x = (column * self.stride + place % self.side).wrapping_sub(self.padding);
                    if let Some(target) = target.get_mut(x) {
                        *target += source;
                    }
                }
            }
        }
    }
}

/// See cu/convolution.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn convolution_forward(_: &Launch, arguments: &Arguments<'_>) {
    let output = Memory::<f32>::new(arguments.pointer(0));
    let (input, weight) = (Memory::<f32>::new(arguments.pointer(1)), Memory::<f32>::new(arguments.pointer(2)));
    let shape = Shape::new(arguments);
    let (depths, positions) = (shape.channels * shape.area(), shape.positions());
    let bands = shape.bands(shape.channels);
    for_each(shape.images * bands.len(), 1, |task| {
        let (image, rows) = (task / bands.len(), &bands[task % bands.len()]);
        let count = rows.len() * shape.out_width();
        let mut columns = vec![0.0; depths * count];
        let target = output.at(image * shape.filters * positions + rows.start * shape.out_width());
        // SAFETY: the caller's promise; these rows of this image's output belong to this call.
        unsafe {
            shape.gather(input, image, &(0..shape.channels), rows, &mut columns);
            matrixmultiply::sgemm(
                shape.filters,
                depths,
                count,
                1.0,
                weight.at(0),
                depths as isize,
                1,
                columns.as_ptr(),
                count as isize,
                1,
                0.0,
                target,
                positions as isize,
                1,
            );
        }
    });
}

/// See cu/convolution.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn convolution_backward_input(_: &Launch, arguments: &Arguments<'_>) {
    let grad_input = Memory::<f32>::new(arguments.pointer(0));
    let (grad_output, weight) = (Memory::<f32>::new(arguments.pointer(1)), Memory::<f32>::new(arguments.pointer(2)));
    let shape = Shape::new(arguments);
    let (area, positions, pixels) = (shape.area(), shape.positions(), shape.height * shape.width);
    let together = (SCRATCH / (area * positions)).clamp(1, shape.channels);
    let groups = shape.channels.div_ceil(together);
    for_each(shape.images * groups, 1, |task| {
        let (image, first) = (task / groups, task % groups * together);
        let channels = together.min(shape.channels - first);
        let mut columns = vec![0.0; channels * area * positions];
        let start = (image * shape.channels + first) * pixels;
        // SAFETY: the caller's promise; these channels of this image's gradient belong to this call.
        unsafe {
            // columns = weightᵀ · grad_output, for the rows of these channels.
            matrixmultiply::sgemm(
                channels * area,
                shape.filters,
                positions,
                1.0,
                weight.at(first * area),
                1,
                (shape.channels * area) as isize,
                grad_output.at(image * shape.filters * positions),
                positions as isize,
                1,
                0.0,
                columns.as_mut_ptr(),
                positions as isize,
                1,
            );
            let planes = grad_input.write(start..start + channels * pixels);
            planes.fill(0.0);
            shape.scatter(&columns, planes);
        }
    });
}

/// See cu/convolution.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn convolution_backward_weight(_: &Launch, arguments: &Arguments<'_>) {
    let grad_weight = Memory::<f32>::new(arguments.pointer(0));
    let (grad_output, input) = (Memory::<f32>::new(arguments.pointer(1)), Memory::<f32>::new(arguments.pointer(2)));
    let shape = Shape::new(arguments);
    let accumulate = arguments.u32(11) != 0;
    let (area, positions) = (shape.area(), shape.positions());
    // Eight groups of channels, each summed over the images in their order by one task.
    let together = shape.channels.div_ceil(8);
    let bands = shape.bands(together);
    for_each(shape.channels.div_ceil(together), 1, |group| {
        let channels = group * together..shape.channels.min((group + 1) * together);
        let weights = channels.len() * area;
        let mut columns = Vec::new();
        let mut beta = if accumulate { 1.0 } else { 0.0 };
        for (image, rows) in (0..shape.images).flat_map(|image| bands.iter().map(move |rows| (image, rows))) {
            let count = rows.len() * shape.out_width();
            columns.resize(weights * count, 0.0);
            // SAFETY: the caller's promise; the weights of these channels belong to this call.
            unsafe {
                shape.gather(input, image, &channels, rows, &mut columns);
                // grad_weight (filters, weights) += grad_output (filters, count) · columnsᵀ (count, weights).
                matrixmultiply::sgemm(
                    shape.filters,
                    count,
                    weights,
                    1.0,
                    grad_output.at(image * shape.filters * positions + rows.start * shape.out_width()),
                    positions as isize,
                    1,
                    columns.as_ptr(),
                    1,
                    count as isize,
                    beta,
                    grad_weight.at(channels.start * area),
                    (shape.channels * area) as isize,
                    1,
                );
            }
            beta = 1.0;
        }
    });
}
