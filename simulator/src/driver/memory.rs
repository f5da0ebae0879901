//! Allocating and freeing: device, managed and pinned memory.

use super::{Out, given, store, store_if};
use crate::error::{CUresult, Status};
use crate::memory::{Import, Kind, MEMORY, host};
use crate::process::process;
use crate::registry::Handle;
use crate::stream;
use crate::{capture, context, graph};
use std::ffi::{c_int, c_uint};
use std::sync::Arc;

/// Rows of pitched memory begin at multiples of this.
const PITCH: usize = 512;

/// The context of a stream: its own, or the thread's for a default stream.
pub(super) fn context_of(stream: Handle) -> Result<Arc<context::Context>, CUresult> {
    match stream::find(stream)?.context {
        0 => context::current(),
        handle => context::find(handle),
    }
}

/// Frees device memory; a null address is no memory, and freeing it does nothing.
fn free(address: u64) -> Status {
    let process = process()?;
    if address == 0 || graph::free(address) {
        return Ok(());
    }
    MEMORY.lock().free(process, address, |kind| {
        matches!(kind, Kind::Device | Kind::Pool(_) | Kind::Managed | Kind::Imported(Import::Pointer | Import::Buffer))
    })
}

/// Allocates from a pool, or from the current one of the stream's device; in a capturing stream that is a node of a graph.
fn allocate_in_order(address: Out<'_, u64>, bytes: u64, pool: Option<Handle>, stream: Handle) -> Status {
    let address = given(address)?;
    let (process, context) = (process()?, context_of(stream)?);
    let pool = {
        let mut memory = MEMORY.lock();
        match pool {
            Some(pool) if memory.pools.ordinal(pool)? != context.device.ordinal => {
                return Err(CUresult::ERROR_INVALID_VALUE);
            }
            Some(pool) => pool,
            None => memory.pools.current_of(context.device.ordinal, context.device.physical),
        }
    };
    let planned = capture::add(stream, |graph| graph::add_allocation(&context, graph, bytes))?;
    address.write(match planned {
        Some((_, planned)) => planned,
        None => {
            capture::refuse(stream, CUresult::NOT_SIMULATED)?;
            MEMORY.lock().allocate(process, &context, bytes, Kind::Pool(pool))?
        }
    });
    Ok(())
}

fn free_on_host(address: u64) -> Status {
    let process = process()?;
    if address == 0 {
        return Ok(());
    }
    stream::finish_all();
    MEMORY.lock().free(process, address, |kind| matches!(kind, Kind::Host(_)))
}

fn host_region(address: u64) -> Result<crate::memory::Allocation, CUresult> {
    let region = MEMORY.lock().region(address).ok_or(CUresult::ERROR_INVALID_VALUE)?;
    region.allocation.filter(|allocation| allocation.kind.on_host()).ok_or(CUresult::ERROR_INVALID_VALUE)
}

exports! {
    3020 fn cuMemGetInfo_v2(free: Out<'_, usize>, total: Out<'_, usize>) {
        let context = context::current()?;
        let usage = process()?.state.usage(context.device.physical);
        store_if(free, usage.free() as usize);
        store_if(total, usage.capacity as usize);
        Ok(())
    }
    3020 fn cuMemAlloc_v2(address: Out<'_, u64>, bytes: usize) {
        let address = given(address)?;
        let context = context::current()?;
        capture::refuse_unsafe()?;
        address.write(MEMORY.lock().allocate(process()?, &context, bytes as u64, Kind::Device)?);
        Ok(())
    }
    3020 fn cuMemAllocPitch_v2(
        address: Out<'_, u64>, pitch: Out<'_, usize>, width: usize, height: usize, element: c_uint,
    ) {
        let (address, pitch) = (given(address)?, given(pitch)?);
        if !matches!(element, 4 | 8 | 16) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let context = context::current()?;
        capture::refuse_unsafe()?;
        let row = width.checked_next_multiple_of(PITCH).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        let bytes = row.checked_mul(height).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        address.write(MEMORY.lock().allocate(process()?, &context, bytes as u64, Kind::Device)?);
        pitch.write(row);
        Ok(())
    }
    6000 fn cuMemAllocManaged(address: Out<'_, u64>, bytes: usize, flags: c_uint) {
        let address = given(address)?;
        if !matches!(flags, 1 | 2) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let context = context::current()?;
        address.write(MEMORY.lock().allocate(process()?, &context, bytes as u64, Kind::Managed)?);
        Ok(())
    }
    3020 fn cuMemFree_v2(address: u64) {
        capture::refuse_unsafe()?;
        stream::finish_all();
        free(address)
    }
    11020 fn cuMemAllocAsync(address: Out<'_, u64>, bytes: usize, stream: Handle) also cuMemAllocAsync_ptsz {
        allocate_in_order(address, bytes as u64, None, stream)
    }
    11020 fn cuMemAllocFromPoolAsync(
        address: Out<'_, u64>, bytes: usize, pool: Handle, stream: Handle,
    ) also cuMemAllocFromPoolAsync_ptsz {
        allocate_in_order(address, bytes as u64, Some(pool), stream)
    }
    11020 fn cuMemFreeAsync(address: u64, stream: Handle) also cuMemFreeAsync_ptsz {
        process()?;
        if capture::add(stream, |graph| graph::add_free(graph, address))?.is_none() {
            stream::ordered(stream)?;
            free(address)?;
        }
        Ok(())
    }
    3020 fn cuMemAllocHost_v2(pointer: Out<'_, u64>, bytes: usize) {
        let pointer = given(pointer)?;
        let context = context::current()?;
        pointer.write(host::allocate(&context, bytes as u64, 0)?);
        Ok(())
    }
    2020 fn cuMemHostAlloc(pointer: Out<'_, u64>, bytes: usize, flags: c_uint) {
        let pointer = given(pointer)?;
        if flags & !7 != 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let context = context::current()?;
        pointer.write(host::allocate(&context, bytes as u64, flags)?);
        Ok(())
    }
    2000 fn cuMemFreeHost(pointer: u64) { free_on_host(pointer) }
    6050 fn cuMemHostRegister_v2(pointer: u64, bytes: usize, flags: c_uint) {
        if flags & !0xf != 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let context = context::current()?;
        host::register(&context, pointer, bytes as u64, flags)
    }
    4000 fn cuMemHostUnregister(pointer: u64) {
        let process = process()?;
        let freed = MEMORY.lock().free(process, pointer, |kind| matches!(kind, Kind::Registered(_)));
        freed.map_err(|_| CUresult::ERROR_HOST_MEMORY_NOT_REGISTERED)
    }
    3020 fn cuMemHostGetDevicePointer_v2(address: Out<'_, u64>, pointer: u64, flags: c_uint) {
        process()?;
        if flags != 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        host_region(pointer)?;
        store(address, pointer)
    }
    2030 fn cuMemHostGetFlags(flags: Out<'_, c_uint>, pointer: u64) {
        process()?;
        match host_region(pointer)?.kind {
            Kind::Host(set) | Kind::Registered(set) => store(flags, set),
            _ => Err(CUresult::ERROR_INVALID_VALUE),
        }
    }
    8000 fn cuMemAdvise(address: u64, bytes: usize, _advice: c_int, _device: c_int) { managed(address, bytes) }
    12020 fn cuMemAdvise_v2(address: u64, bytes: usize, _advice: c_int, _location: u64) { managed(address, bytes) }
    8000 fn cuMemPrefetchAsync(
        address: u64, bytes: usize, _device: c_int, stream: Handle,
    ) also cuMemPrefetchAsync_ptsz {
        stream::ordered(stream)?;
        managed(address, bytes)
    }
    12020 fn cuMemPrefetchAsync_v2(
        address: u64, bytes: usize, _location: u64, _flags: c_uint, stream: Handle,
    ) also cuMemPrefetchAsync_v2_ptsz {
        stream::ordered(stream)?;
        managed(address, bytes)
    }
}

/// Advice and prefetches are for managed memory, which lives on the host here: nothing moves.
fn managed(address: u64, bytes: usize) -> Status {
    process()?;
    let memory = MEMORY.lock();
    let region = memory.region(address).ok_or(CUresult::ERROR_INVALID_VALUE)?;
    let is_managed = region.allocation.is_some_and(|allocation| allocation.kind == Kind::Managed);
    if is_managed && bytes > 0 && memory.covers(address, bytes as u64) {
        Ok(())
    } else {
        Err(CUresult::ERROR_INVALID_VALUE)
    }
}
