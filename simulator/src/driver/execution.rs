//! Launches, function attributes and occupancy.

use super::{Out, given, store, store_if};
use crate::device::limits;
use crate::error::{CUresult, Status};
use crate::launch::launch;
use crate::module::{self, Function};
use crate::process::process;
use crate::registry::Handle;
use memscope_kernels::Launch;
use std::ffi::{c_char, c_int, c_uint, c_void};

type Parameters = *const *const c_void;

/// CUlaunchConfig.
#[repr(C)]
struct Configuration {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    stream: Handle,
    attributes: *const c_void,
    attribute_count: c_uint,
}

/// CUDA_LAUNCH_PARAMS.
#[repr(C)]
struct DeviceLaunch {
    function: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    stream: Handle,
    parameters: Parameters,
}

fn configured(configuration: Option<&Configuration>) -> Result<(Launch, Handle), CUresult> {
    let Configuration { grid, block, shared_bytes, stream, .. } = *given(configuration)?;
    Ok((Launch { grid, block, shared_bytes }, stream))
}

/// Blocks of `threads` threads and `shared` bytes of dynamic shared memory that fit on a multiprocessor.
fn resident_blocks(function: &Function, threads: c_int, shared: usize) -> Result<c_int, CUresult> {
    let limits = limits(process()?.state.device().compute_capability);
    if threads <= 0 {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    if threads > function.max_threads() as c_int {
        return Ok(0);
    }
    let warps = (threads as u32).next_multiple_of(32) as c_int;
    let shared = shared + function.entry.shared_bytes as usize + limits.reserved_shared as usize;
    let by_shared = (limits.shared_per_multiprocessor as usize).checked_div(shared).unwrap_or(usize::MAX);
    let by_threads = limits.threads_per_multiprocessor / warps;
    Ok(by_threads.min(limits.blocks_per_multiprocessor).min(c_int::try_from(by_shared).unwrap_or(c_int::MAX)))
}

type SharedOfBlock = Option<unsafe extern "C" fn(c_int) -> usize>;

/// The block size with most resident threads, and the grid that fills the device with it.
fn best_block(
    grid: Out<'_, c_int>,
    block: Out<'_, c_int>,
    function: Handle,
    shared_of: SharedOfBlock,
    shared: usize,
    limit: c_int,
) -> Status {
    let function = module::function(function)?;
    let most = function.max_threads() as c_int;
    let most = if limit > 0 { most.min(limit) } else { most };
    let (mut best, mut best_threads) = ((0, 0), 0);
    for threads in (1..=most).rev().filter(|threads| threads % 32 == 0 || *threads == most) {
        // SAFETY: the program's function, called as documented.
        let shared = shared_of.map_or(shared, |of| unsafe { of(threads) });
        let blocks = resident_blocks(&function, threads, shared)?;
        if blocks * threads > best_threads {
            (best, best_threads) = ((blocks, threads), blocks * threads);
        }
    }
    store(grid, best.0 * process()?.state.device().multiprocessors as c_int)?;
    store(block, best.1)
}

exports! {
    4000 fn cuLaunchKernel(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, shared_bytes: c_uint, stream: Handle, parameters: Parameters, extra: Parameters,
    ) also cuLaunchKernel_ptsz {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        // SAFETY: the program vouches for the parameters.
        unsafe { launch(function, Launch { grid, block, shared_bytes }, stream, parameters, extra) }
    }
    11060 fn cuLaunchKernelEx(
        configuration: Option<&Configuration>, function: Handle, parameters: Parameters, extra: Parameters,
    ) also cuLaunchKernelEx_ptsz {
        let (configuration, stream) = configured(configuration)?;
        // SAFETY: the program vouches for the parameters.
        unsafe { launch(function, configuration, stream, parameters, extra) }
    }
    9000 fn cuLaunchCooperativeKernel(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, shared_bytes: c_uint, stream: Handle, parameters: Parameters,
    ) also cuLaunchCooperativeKernel_ptsz {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let threads = block.iter().try_fold(1, |product: c_uint, size| product.checked_mul(*size));
        let threads = threads.and_then(|threads| c_int::try_from(threads).ok()).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        let resident = resident_blocks(&*module::function(function)?, threads, shared_bytes as usize)?;
        let room = u64::from(process()?.state.device().multiprocessors) * resident as u64;
        if grid.iter().map(|&size| u64::from(size)).product::<u64>() > room {
            return Err(CUresult::ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
        }
        // SAFETY: the program vouches for the parameters.
        unsafe { launch(function, Launch { grid, block, shared_bytes }, stream, parameters, std::ptr::null()) }
    }
    9000 fn cuLaunchCooperativeKernelMultiDevice(launches: *const DeviceLaunch, count: c_uint, _flags: c_uint) {
        if launches.is_null() || count == 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        // SAFETY: the program gives `count` launches.
        for one in unsafe { std::slice::from_raw_parts(launches, count as usize) } {
            let configuration = Launch { grid: one.grid, block: one.block, shared_bytes: one.shared_bytes };
            // SAFETY: the program vouches for the parameters.
            unsafe { launch(one.function, configuration, one.stream, one.parameters, std::ptr::null())? };
        }
        Ok(())
    }
    2020 fn cuFuncGetAttribute(value: Out<'_, c_int>, number: c_int, function: Handle) {
        store(value, module::function(function)?.attribute(number)?)
    }
    9000 fn cuFuncSetAttribute(function: Handle, number: c_int, value: c_int) {
        module::function(function)?.set_attribute(number, value)
    }
    3000 fn cuFuncSetCacheConfig(function: Handle, _configuration: c_int) { module::function(function).map(|_| ()) }
    4020 fn cuFuncSetSharedMemConfig(function: Handle, _configuration: c_int) { module::function(function).map(|_| ()) }
    11000 fn cuFuncGetModule(module: Out<'_, Handle>, function: Handle) {
        store(module, module::function(function)?.module)
    }
    12030 fn cuFuncGetName(name: Out<'_, *const c_char>, function: Handle) {
        // The function outlives the name: it stays in the registry until its module is unloaded, as documented.
        store(name, module::function(function)?.name.as_ptr())
    }
    12040 fn cuFuncGetParamInfo(function: Handle, index: usize, offset: Out<'_, usize>, size: Out<'_, usize>) {
        let function = module::function(function)?;
        let found = function.entry.parameters.get(index).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        store(offset, found.0)?;
        store_if(size, found.1);
        Ok(())
    }
    13000 fn cuFuncGetParamCount(function: Handle, count: Out<'_, usize>) {
        store(count, module::function(function)?.entry.parameters.len())
    }
    12040 fn cuFuncIsLoaded(state: Out<'_, c_int>, function: Handle) { module::function(function)?; store(state, 1) }
    12040 fn cuFuncLoad(function: Handle) { module::function(function).map(|_| ()) }
    6050 fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<'_, c_int>, function: Handle, threads: c_int, shared: usize,
    ) {
        store(blocks, resident_blocks(&*module::function(function)?, threads, shared)?)
    }
    7000 fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<'_, c_int>, function: Handle, threads: c_int, shared: usize, _flags: c_uint,
    ) {
        store(blocks, resident_blocks(&*module::function(function)?, threads, shared)?)
    }
    6050 fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<'_, c_int>, block: Out<'_, c_int>, function: Handle, shared_of: SharedOfBlock, shared: usize,
        limit: c_int,
    ) {
        best_block(grid, block, function, shared_of, shared, limit)
    }
    7000 fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<'_, c_int>, block: Out<'_, c_int>, function: Handle, shared_of: SharedOfBlock, shared: usize,
        limit: c_int, _flags: c_uint,
    ) {
        best_block(grid, block, function, shared_of, shared, limit)
    }
    10020 fn cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: Out<'_, usize>, function: Handle, blocks: c_int, _threads: c_int,
    ) {
        let function = module::function(function)?;
        let limits = limits(process()?.state.device().compute_capability);
        if blocks <= 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let taken = limits.reserved_shared + function.entry.shared_bytes as c_int;
        let share = limits.shared_per_multiprocessor / blocks - taken;
        store(bytes, share.clamp(0, limits.shared_per_block_optin) as usize)
    }
    11070 fn cuOccupancyMaxPotentialClusterSize(
        size: Out<'_, c_int>, function: Handle, configuration: Option<&Configuration>,
    ) {
        configured(configuration)?;
        module::function(function)?;
        store(size, 1)
    }
}
