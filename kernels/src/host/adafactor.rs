//! Host references of cu/adafactor.cu.

use super::memory::{Memory, for_each, for_rows};
use crate::{Arguments, Launch};

/// The smallest mean and root that are divided by.
const TINY: f32 = f32::EPSILON;

fn scaled(gradient: f32, second_moment: f32) -> f32 {
    gradient / second_moment.max(TINY * TINY).sqrt()
}

/// See cu/adafactor.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn adafactor_rows(launch: &Launch, arguments: &Arguments<'_>) {
    let row_state = Memory::<f32>::new(arguments.pointer(0));
    let gradient = Memory::<f32>::new(arguments.pointer(1));
    let (columns, blend) = (arguments.u32(2) as usize, arguments.f32(3));
    for_rows(launch.grid[0] as usize, columns, |row| {
        // SAFETY: the caller's promise; each row belongs to one call.
        let (state, gradient) = unsafe { (&mut *row_state.at(row), gradient.read(row * columns..(row + 1) * columns)) };
        let mean = gradient.iter().map(|g| g * g).sum::<f32>() / columns as f32;
        *state += blend * (mean - *state);
    });
}

/// See cu/adafactor.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn adafactor_columns(_: &Launch, arguments: &Arguments<'_>) {
    let column_state = Memory::<f32>::new(arguments.pointer(0));
    let gradient = Memory::<f32>::new(arguments.pointer(1));
    let (rows, columns, blend) = (arguments.u32(2) as usize, arguments.u32(3) as usize, arguments.f32(4));
    const TOGETHER: usize = 64;
    for_each(columns.div_ceil(TOGETHER), 1, |part| {
        let (first, end) = (part * TOGETHER, columns.min((part + 1) * TOGETHER));
        let mut sums = [0.0_f32; TOGETHER];
        // SAFETY: the caller's promise; these columns belong to this call.
        unsafe {
            for row in 0..rows {
                let gradient = gradient.read(row * columns + first..row * columns + end);
                sums.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g * g);
            }
            for (state, sum) in column_state.write(first..end).iter_mut().zip(sums) {
                *state += blend * (sum / rows as f32 - *state);
            }
        }
    });
}

/// See cu/adafactor.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn adafactor_mean(_: &Launch, arguments: &Arguments<'_>) {
    let scalars = Memory::<f32>::new(arguments.pointer(0));
    let row_state = Memory::<f32>::new(arguments.pointer(1));
    let rows = arguments.u32(2) as usize;
    // SAFETY: the caller's promise.
    unsafe {
        let mean = row_state.read(0..rows).iter().sum::<f32>() / rows as f32;
        *scalars.at(0) = mean.max(TINY);
    }
}

/// See cu/adafactor.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn adafactor_partials(launch: &Launch, arguments: &Arguments<'_>) {
    let partials = Memory::<f32>::new(arguments.pointer(0));
    let weight = Memory::<f32>::new(arguments.pointer(1));
    let gradient = Memory::<f32>::new(arguments.pointer(2));
    let (row_state, column_state) =
        (Memory::<f32>::new(arguments.pointer(3)), Memory::<f32>::new(arguments.pointer(4)));
    let scalars = Memory::<f32>::new(arguments.pointer(5));
    let columns = arguments.u32(6) as usize;
    for_rows(launch.grid[0] as usize, columns, |row| {
        let range = row * columns..(row + 1) * columns;
        // SAFETY: the caller's promise; each row belongs to one call.
        unsafe {
            let of_row = *row_state.at(row) / *scalars.at(0);
            let (weight, gradient) = (weight.read(range.clone()), gradient.read(range));
            let (mut updates, mut weights) = (0.0, 0.0);
            for ((w, &g), column) in weight.iter().zip(gradient).zip(column_state.read(0..columns)) {
                let u = scaled(g, of_row * column);
                updates += u * u;
                weights += w * w;
            }
            *partials.at(2 * row) = updates;
            *partials.at(2 * row + 1) = weights;
        }
    });
}

/// See cu/adafactor.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn adafactor_step(_: &Launch, arguments: &Arguments<'_>) {
    let scalars = Memory::<f32>::new(arguments.pointer(0));
    let partials = Memory::<f32>::new(arguments.pointer(1));
    let (rows, elements) = (arguments.u32(2) as usize, arguments.u64(3));
    let (rate, floor) = (arguments.f32(4), arguments.f32(5));
    let (mut updates, mut weights) = (0.0_f32, 0.0_f32);
    // SAFETY: the caller's promise.
    unsafe {
        for partial in partials.read(0..2 * rows).chunks_exact(2) {
            updates += partial[0];
            weights += partial[1];
        }
        *scalars.at(1) = step(updates, weights, elements as f32, rate, floor);
    }
}

/// The factor of the scaled gradient, from the sums of u² and w².
fn step(updates: f32, weights: f32, elements: f32, rate: f32, floor: f32) -> f32 {
    floor.max((weights / elements).sqrt()) * rate / (updates / elements).sqrt().max(1.0)
}

/// See cu/adafactor.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn adafactor_apply(_: &Launch, arguments: &Arguments<'_>) {
    let weight = Memory::<f32>::new(arguments.pointer(0));
    let gradient = Memory::<f32>::new(arguments.pointer(1));
    let (row_state, column_state) =
        (Memory::<f32>::new(arguments.pointer(2)), Memory::<f32>::new(arguments.pointer(3)));
    let scalars = Memory::<f32>::new(arguments.pointer(4));
    let (rows, columns) = (arguments.u32(5) as usize, arguments.u32(6) as usize);
    for_rows(rows, columns, |row| {
        let range = row * columns..(row + 1) * columns;
        // SAFETY: the caller's promise; each row belongs to one call.
        unsafe {
            let (of_row, step) = (*row_state.at(row) / *scalars.at(0), *scalars.at(1));
            let (weight, gradient) = (weight.write(range.clone()), gradient.read(range));
            for ((w, &g), column) in weight.iter_mut().zip(gradient).zip(column_state.read(0..columns)) {
                *w -= step * scaled(g, of_row * column);
            }
        }
    });
}

/// See cu/adafactor.cu.
///
/// # Safety
/// As [`crate::HostReference`].
pub unsafe fn adafactor_vector(_: &Launch, arguments: &Arguments<'_>) {
    let weight = Memory::<f32>::new(arguments.pointer(0));
    let second_moment = Memory::<f32>::new(arguments.pointer(1));
    let gradient = Memory::<f32>::new(arguments.pointer(2));
    let elements = arguments.u32(3) as usize;
    let (blend, rate, floor) = (arguments.f32(4), arguments.f32(5), arguments.f32(6));
    // SAFETY: the caller's promise.
    let (weight, second_moment, gradient) =
        unsafe { (weight.write(0..elements), second_moment.write(0..elements), gradient.read(0..elements)) };
    let (mut updates, mut weights) = (0.0, 0.0);
    for ((w, v), &g) in weight.iter().zip(second_moment.iter_mut()).zip(gradient) {
        *v += blend * (g * g - *v);
        let u = scaled(g, *v);
        updates += u * u;
        weights += w * w;
    }
    let step = step(updates, weights, elements as f32, rate, floor);
    for ((w, &v), &g) in weight.iter_mut().zip(second_moment.iter()).zip(gradient) {
        *w -= step * scaled(g, v);
    }
}
