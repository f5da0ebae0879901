//! Contexts.

use super::{Out, given, store, store_if};
use crate::context;
use crate::error::{CUresult, Status};
use crate::process::process;
use crate::registry::Handle;
use crate::{event, stream};
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

/// Limits and their values when none was set: stack and printf buffer as on a fresh device; no heap on the device.
fn default_limit(limit: c_uint) -> Result<usize, CUresult> {
    Ok(match limit {
        0 => 1024,    // stack of a thread
        1 => 1 << 20, // printf buffer
        2 => 8 << 20, // malloc heap
        3 => 2,       // depth of synchronisation
        4 => 2048,    // pending launches
        5 => 64,      // L2 fetch granularity
        6 => 0,       // persisting L2
        _ => return Err(CUresult::ERROR_UNSUPPORTED_LIMIT),
    })
}

fn create(handle: Out<'_, Handle>, flags: c_uint, device: c_int) -> Status {
    let handle = given(handle)?;
    if flags & !0xff != 0 {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    handle.write(context::create(device, flags)?);
    Ok(())
}

exports! {
    7000 fn cuDevicePrimaryCtxRetain(handle: Out<'_, Handle>, device: c_int) {
        let handle = given(handle)?;
        handle.write(context::retain_primary(device)?);
        Ok(())
    }
    11000 fn cuDevicePrimaryCtxRelease_v2(device: c_int) { context::release_primary(device) }
    7000 fn cuDevicePrimaryCtxRelease(device: c_int) { context::release_primary(device) }
    11000 fn cuDevicePrimaryCtxReset_v2(device: c_int) { context::reset_primary(device) }
    7000 fn cuDevicePrimaryCtxReset(device: c_int) { context::reset_primary(device) }
    11000 fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint) { context::set_primary_flags(device, flags) }
    7000 fn cuDevicePrimaryCtxSetFlags(device: c_int, flags: c_uint) { context::set_primary_flags(device, flags) }
    7000 fn cuDevicePrimaryCtxGetState(device: c_int, flags: Out<'_, c_uint>, active: Out<'_, c_int>) {
        let state = context::primary_state(device)?;
        store(flags, state.0)?;
        store(active, c_int::from(state.1))
    }
    3020 fn cuCtxCreate_v2(handle: Out<'_, Handle>, flags: c_uint, device: c_int) { create(handle, flags, device) }
    11040 fn cuCtxCreate_v3(
        handle: Out<'_, Handle>, affinity: *const c_void, _count: c_int, flags: c_uint, device: c_int,
    ) {
        if affinity.is_null() { create(handle, flags, device) } else { Err(CUresult::ERROR_UNSUPPORTED_EXEC_AFFINITY) }
    }
    12050 fn cuCtxCreate_v4(handle: Out<'_, Handle>, parameters: Option<&[usize; 3]>, flags: c_uint, device: c_int) {
        // Affinity and interoperation parameters, both pointers, are not simulated.
        match parameters {
            Some([affinity, _, interoperation]) if *affinity != 0 || *interoperation != 0 => {
                Err(CUresult::NOT_SIMULATED)
            }
            _ => create(handle, flags, device),
        }
    }
    4000 fn cuCtxDestroy_v2(handle: Handle) { context::destroy(handle) }
    4000 fn cuCtxPushCurrent_v2(handle: Handle) { process()?; context::push(handle) }
    4000 fn cuCtxPopCurrent_v2(handle: Out<'_, Handle>) {
        process()?;
        let popped = context::pop()?;
        store_if(handle, popped);
        Ok(())
    }
    4000 fn cuCtxSetCurrent(handle: Handle) { process()?; context::set_current(handle) }
    4000 fn cuCtxGetCurrent(handle: Out<'_, Handle>) { process()?; store(handle, context::current_handle()) }
    2000 fn cuCtxGetDevice(device: Out<'_, c_int>) { store(device, context::current()?.device.ordinal) }
    13000 fn cuCtxGetDevice_v2(device: Out<'_, c_int>, handle: Handle) {
        store(device, context::find(handle)?.device.ordinal)
    }
    7000 fn cuCtxGetFlags(flags: Out<'_, c_uint>) { store(flags, context::current()?.flags) }
    12010 fn cuCtxSetFlags(_flags: c_uint) { context::current().map(|_| ()) }
    12000 fn cuCtxGetId(handle: Handle, id: Out<'_, c_ulonglong>) { store(id, context::find(handle)?.id) }
    3020 fn cuCtxGetApiVersion(handle: Handle, version: Out<'_, c_uint>) {
        context::find(handle)?;
        store(version, 3020)
    }
    2000 fn cuCtxSynchronize() { context::current()?; stream::finish_all(); Ok(()) }
    13000 fn cuCtxSynchronize_v2(handle: Handle) { context::find(handle)?; stream::finish_all(); Ok(()) }
    3010 fn cuCtxSetLimit(limit: c_uint, value: usize) {
        default_limit(limit)?;
        context::current()?.limits.lock().insert(limit, value);
        Ok(())
    }
    3010 fn cuCtxGetLimit(value: Out<'_, usize>, limit: c_uint) {
        let default = default_limit(limit)?;
        let set = context::current()?.limits.lock().get(&limit).copied();
        store(value, set.unwrap_or(default))
    }
    3020 fn cuCtxGetCacheConfig(configuration: Out<'_, c_int>) { context::current()?; store(configuration, 0) }
    3020 fn cuCtxSetCacheConfig(_configuration: c_int) { context::current().map(|_| ()) }
    4020 fn cuCtxGetSharedMemConfig(configuration: Out<'_, c_int>) { context::current()?; store(configuration, 1) }
    4020 fn cuCtxSetSharedMemConfig(_configuration: c_int) { context::current().map(|_| ()) }
    5050 fn cuCtxGetStreamPriorityRange(least: Out<'_, c_int>, greatest: Out<'_, c_int>) {
        context::current()?;
        store_if(least, 0);
        store_if(greatest, -5);
        Ok(())
    }
    11000 fn cuCtxResetPersistingL2Cache() { context::current().map(|_| ()) }
    4000 fn cuCtxEnablePeerAccess(peer: Handle, flags: c_uint) {
        let (ours, theirs) = (context::current()?, context::find(peer)?);
        if flags != 0 || peer == 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        if ours.device == theirs.device { Err(CUresult::ERROR_INVALID_DEVICE) } else { Ok(()) }
    }
    4000 fn cuCtxDisablePeerAccess(peer: Handle) { context::current()?; context::find(peer).map(|_| ()) }
    12050 fn cuCtxRecordEvent(handle: Handle, event: Handle) { context::find(handle)?; event::record(event, 0) }
    12050 fn cuCtxWaitEvent(handle: Handle, event: Handle) { context::find(handle)?; event::wait_in(0, event) }
}
