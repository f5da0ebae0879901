//! Host references of cu/pooling.cu.

use super::memory::{Memory, for_rows};
use crate::{Arguments, Launch};
use std::ops::Range;

/// The windows of a max pooling, as the kernels' parameters give them.
struct Windows {
    planes: usize,
    height: usize,
    width: usize,
    side: usize,
    stride: usize,
    padding: usize,
}

impl Windows {
    /// From the six parameters that begin with the fourth.
    fn new(arguments: &Arguments<'_>) -> Windows {
        let [planes, height, width, side, stride, padding] =
            [3, 4, 5, 6, 7, 8].map(|index| arguments.u32(index) as usize);
        Windows { planes, height, width, side, stride, padding }
    }

    /// How many windows there are along `size`.
    fn count(&self, size: usize) -> usize {
        (size + 2 * self.padding - self.side) / self.stride + 1
    }

    /// What window `index` covers along `size`.
    fn covered(&self, index: usize, size: usize) -> Range<usize> {
        let start = index * self.stride;
        start.saturating_sub(self.padding)..(start + self.side - self.padding).min(size)
    }
}

/// See cu/pooling.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn maxpool_forward(_: &Launch, arguments: &Arguments<'_>) {
    let output = Memory::<f32>::new(arguments.pointer(0));
    let indices = Memory::<i64>::new(arguments.pointer(1));
    let input = Memory::<f32>::new(arguments.pointer(2));
    let windows = Windows::new(arguments);
    let (pixels, out_width) = (windows.height * windows.width, windows.count(windows.width));
    let positions = windows.count(windows.height) * out_width;
    for_rows(windows.planes, positions, |plane| {
        // SAFETY: the caller's promise; each plane belongs to one call.
        let (input, output, indices) = unsafe {
            let range = plane * positions..(plane + 1) * positions;
            let input = input.read(plane * pixels..(plane + 1) * pixels);
            (input, output.write(range.clone()), indices.write(range))
        };
        for (position, (output, index)) in output.iter_mut().zip(indices).enumerate() {
            let rows = windows.covered(position / out_width, windows.height);
            let columns = windows.covered(position % out_width, windows.width);
            let mut at = rows.start * windows.width + columns.start;
            for y in rows {
                for x in columns.clone() {
                    if input[y * windows.width + x] > input[at] {
                        at = y * windows.width + x;
                    }
                }
            }
            *output = input[at];
            *index = at as i64;
        }
    });
}

/// See cu/pooling.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn maxpool_backward(_: &Launch, arguments: &Arguments<'_>) {
    let grad_input = Memory::<f32>::new(arguments.pointer(0));
    let grad_output = Memory::<f32>::new(arguments.pointer(1));
    let indices = Memory::<i64>::new(arguments.pointer(2));
    let windows = Windows::new(arguments);
    let pixels = windows.height * windows.width;
    let positions = windows.count(windows.height) * windows.count(windows.width);
    for_rows(windows.planes, pixels, |plane| {
        // SAFETY: the caller's promise; each plane belongs to one call.
        unsafe {
            let range = plane * positions..(plane + 1) * positions;
            let grad_input = grad_input.write(plane * pixels..(plane + 1) * pixels);
            grad_input.fill(0.0);
            for (grad, &index) in grad_output.read(range.clone()).iter().zip(indices.read(range)) {
                grad_input[index as usize] += grad;
            }
        }
    });
}

/// See cu/pooling.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn averagepool_forward(launch: &Launch, arguments: &Arguments<'_>) {
    let output = Memory::<f32>::new(arguments.pointer(0));
    let input = Memory::<f32>::new(arguments.pointer(1));
    let positions = arguments.u32(2) as usize;
    for_rows(launch.grid[0] as usize, positions, |plane| {
        // SAFETY: the caller's promise; each plane belongs to one call.
        unsafe {
            let sum: f32 = input.read(plane * positions..(plane + 1) * positions).iter().sum();
            *output.at(plane) = sum / positions as f32;
        }
    });
}

/// See cu/pooling.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn averagepool_backward(_: &Launch, arguments: &Arguments<'_>) {
    let grad_input = Memory::<f32>::new(arguments.pointer(0));
    let grad_output = Memory::<f32>::new(arguments.pointer(1));
    let (planes, positions) = (arguments.u32(2) as usize, arguments.u32(3) as usize);
    for_rows(planes, positions, |plane| {
        // SAFETY: the caller's promise; each plane belongs to one call.
        unsafe {
            grad_input
                .write(plane * positions..(plane + 1) * positions)
                .fill(*grad_output.at(plane) / positions as f32);
        }
    });
}
