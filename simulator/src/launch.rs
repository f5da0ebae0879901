//! Launches of kernels.
//!
//! Owns: the checks of a launch configuration, the reading of parameters, and running the host reference. Refuses: a
//! kernel without host reference does nothing, is counted in the shared state, and named once when tracing.

use crate::copy::{Claim, side};
use crate::device::{BLOCK_DIMENSIONS, GRID_DIMENSIONS};
use crate::error::{CUresult, Status};
use crate::memory::MEMORY;
use crate::module::{self, Function};
use crate::process::{computes, process};
use crate::registry::Handle;
use crate::{context, stream, trace};
use memscope_kernels::{Arguments, Launch, ParameterType};
use std::ffi::c_void;
use std::sync::atomic::Ordering;

/// Marks of the `extra` list of cuLaunchKernel.
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;

/// Launches the function behind the work of a stream.
///
/// # Safety
/// `parameters` or `extra` must be as the CUDA documentation says for this kernel.
pub unsafe fn launch(
    handle: Handle,
    launch: Launch,
    stream: Handle,
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> Status {
    let process = process()?;
    if stream == 0 {
        context::current()?;
    }
    let function = module::function(handle)?;
    check(&function, &launch)?;
    stream::ordered(stream)?;
    // SAFETY: the caller vouches for the parameters.
    let cells = unsafe { read_parameters(&function, parameters, extra)? };
    if !computes() {
        if function.opaque {
            // It may have written anywhere.
            MEMORY.lock().side_table.clear();
        }
        return Ok(());
    }
    let Some(kernel) = function.kernel else {
        process.state.count_unknown_launch();
        if !function.reported.swap(true, Ordering::Relaxed) {
            trace::note(|| {
                format!("kernel {} has no host reference and does nothing", function.name.to_string_lossy())
            });
        }
        return Ok(());
    };
    if kernel.parameters.len() != cells.len() {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    for (parameter, &cell) in kernel.parameters.iter().zip(&cells) {
        if parameter.kind == ParameterType::Pointer && cell != 0 {
            side(cell, 1, Claim::Device).map_err(|_| CUresult::ERROR_ILLEGAL_ADDRESS)?;
        }
    }
    // SAFETY: every pointer lies in live memory of ours; that the sizes fit is what the program vouches for by
    // launching, as on a real device.
    unsafe { (kernel.host)(&launch, &Arguments::new(&cells)) };
    Ok(())
}

fn check(function: &Function, launch: &Launch) -> Status {
    let inside =
        |sizes: &[u32; 3], limits: &[u32; 3]| sizes.iter().zip(limits).all(|(size, limit)| (1..=*limit).contains(size));
    let threads: u64 = launch.block.iter().map(|&size| u64::from(size)).product();
    let fits = inside(&launch.grid, &GRID_DIMENSIONS)
        && inside(&launch.block, &BLOCK_DIMENSIONS)
        && threads <= u64::from(function.max_threads())
        && i64::from(launch.shared_bytes) <= i64::from(function.dynamic_shared.load(Ordering::Relaxed));
    if fits { Ok(()) } else { Err(CUresult::ERROR_INVALID_VALUE) }
}

/// The parameters' values as of now: the program may reuse their memory after the call. A parameter larger than a cell
/// (a struct) is cut, which no host reference takes.
///
/// # Safety
/// As [`launch`].
unsafe fn read_parameters(
    function: &Function,
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> Result<Vec<u64>, CUresult> {
    let sizes = &function.entry.parameters;
    let mut cells = vec![0_u64; sizes.len()];
    if sizes.is_empty() {
        return Ok(cells);
    }
    let buffer = match (parameters.is_null(), extra.is_null()) {
        (false, true) => None,
        // SAFETY: as the caller says.
        (true, false) => Some(unsafe { buffer_of(extra)? }),
        _ => return Err(CUresult::ERROR_INVALID_VALUE),
    };
    for (index, &(offset, size)) in sizes.iter().enumerate() {
        let source = match buffer {
            Some((start, length)) if offset + size <= length => start.wrapping_add(offset),
            Some(_) => return Err(CUresult::ERROR_INVALID_VALUE),
            // SAFETY: the list has one pointer a parameter.
            None => unsafe { *parameters.add(index) }.cast::<u8>(),
        };
        if source.is_null() {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        // SAFETY: a parameter points at as many bytes as the image declares; a cell takes at most eight.
        unsafe { std::ptr::copy_nonoverlapping(source, (&raw mut cells[index]).cast::<u8>(), size.min(8)) };
    }
    Ok(cells)
}

/// Start and size of the parameter buffer in an `extra` list.
///
/// # Safety
/// The list must end with CU_LAUNCH_PARAM_END.
unsafe fn buffer_of(extra: *const *const c_void) -> Result<(*const u8, usize), CUresult> {
    let (mut start, mut size) = (std::ptr::null(), None);
    for pair in (0..).step_by(2) {
        // SAFETY: the list ends with its mark, where the loop ends too.
        let (mark, value) = unsafe {
            match *extra.add(pair) as usize {
                0 => break,
                mark => (mark, *extra.add(pair + 1)),
            }
        };
        match mark {
            BUFFER_POINTER => start = value.cast::<u8>(),
            // SAFETY: the documentation makes this a pointer to a size.
            BUFFER_SIZE => size = unsafe { value.cast::<usize>().as_ref().copied() },
            _ => return Err(CUresult::ERROR_INVALID_VALUE),
        }
    }
    match size {
        Some(size) if !start.is_null() => Ok((start, size)),
        _ => Err(CUresult::ERROR_INVALID_VALUE),
    }
}
