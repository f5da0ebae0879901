//! Events.

use super::{Out, given, store};
use crate::context;
use crate::error::CUresult;
use crate::event;
use crate::process::process;
use crate::registry::Handle;
use std::ffi::c_uint;

exports! {
    2000 fn cuEventCreate(handle: Out<'_, Handle>, flags: c_uint) {
        let handle = given(handle)?;
        let context = context::current()?;
        handle.write(event::create(context.handle, flags)?);
        Ok(())
    }
    4000 fn cuEventDestroy_v2(handle: Handle) { process()?; event::destroy(handle) }
    2000 fn cuEventRecord(handle: Handle, stream: Handle) also cuEventRecord_ptsz {
        process()?;
        event::record(handle, stream)
    }
    11010 fn cuEventRecordWithFlags(handle: Handle, stream: Handle, flags: c_uint) also cuEventRecordWithFlags_ptsz {
        process()?;
        if flags > 1 { Err(CUresult::ERROR_INVALID_VALUE) } else { event::record(handle, stream) }
    }
    2000 fn cuEventQuery(handle: Handle) { process()?; event::query(handle) }
    2000 fn cuEventSynchronize(handle: Handle) { process()?; event::synchronise(handle) }
    2000 fn cuEventElapsedTime(milliseconds: Out<'_, f32>, start: Handle, end: Handle) {
        process()?;
        store(milliseconds, event::elapsed(start, end)?)
    }
    12080 fn cuEventElapsedTime_v2(milliseconds: Out<'_, f32>, start: Handle, end: Handle) {
        process()?;
        store(milliseconds, event::elapsed(start, end)?)
    }
}
