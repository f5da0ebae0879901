//! Streams.

use super::memory::context_of;
use super::{Out, given, store, store_if};
use crate::capture::{self, Mode};
use crate::context;
use crate::error::{CUresult, Status};
use crate::memory::MEMORY;
use crate::process::process;
use crate::registry::Handle;
use crate::{event, stream};
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

type HostFunction = unsafe extern "C" fn(*mut c_void);
type Callback = unsafe extern "C" fn(Handle, CUresult, *mut c_void);

/// A pointer of the program that its own function gets back on another thread.
struct UserData(*mut c_void);

// SAFETY: the program gave the pointer to be handed to its function on a thread of the driver.
unsafe impl Send for UserData {}

impl UserData {
    fn pointer(&self) -> *mut c_void {
        self.0
    }
}

fn create(handle: Out<'_, Handle>, flags: c_uint, priority: c_int) -> Status {
    let handle = given(handle)?;
    let context = context::current()?;
    handle.write(stream::create(context.handle, flags, priority)?);
    Ok(())
}

fn found(handle: Handle) -> Result<std::sync::Arc<stream::Stream>, CUresult> {
    process()?;
    stream::find(handle)
}

fn uncaptured(handle: Handle) -> Result<std::sync::Arc<stream::Stream>, CUresult> {
    process()?;
    stream::uncaptured(handle)
}

/// The default stream of a function that takes the thread's own one.
fn of_thread(handle: Handle) -> Handle {
    if handle == 0 { stream::PER_THREAD } else { handle }
}

fn begin_capture(handle: Handle, mode: c_int, graph: Option<Handle>) -> Status {
    process()?;
    capture::begin(handle, &*context_of(handle)?, Mode::from_number(mode)?, graph)
}

fn capture_info(handle: Handle, status: Out<'_, c_int>, id: Out<'_, u64>, graph: Out<'_, Handle>) -> Status {
    found(handle)?;
    let (progress, number, captured) = capture::progress(handle)?;
    store_if(id, number);
    store_if(graph, captured);
    store(status, progress as c_int)
}

exports! {
    2000 fn cuStreamCreate(handle: Out<'_, Handle>, flags: c_uint) { create(handle, flags, 0) }
    5050 fn cuStreamCreateWithPriority(handle: Out<'_, Handle>, flags: c_uint, priority: c_int) {
        create(handle, flags, priority)
    }
    4000 fn cuStreamDestroy_v2(handle: Handle) { process()?; stream::destroy(handle) }
    2000 fn cuStreamSynchronize(handle: Handle) also cuStreamSynchronize_ptsz {
        found(handle)?;
        capture::refuse(handle, CUresult::ERROR_STREAM_CAPTURE_UNSUPPORTED)?;
        stream::ordered(handle).map(|_| ())
    }
    2000 fn cuStreamQuery(handle: Handle) also cuStreamQuery_ptsz {
        let stream = found(handle)?;
        capture::refuse(handle, CUresult::ERROR_STREAM_CAPTURE_UNSUPPORTED)?;
        match stream.pending() {
            Some(_) => Err(CUresult::ERROR_NOT_READY),
            None => Ok(()),
        }
    }
    3020 fn cuStreamWaitEvent(handle: Handle, event: Handle, _flags: c_uint) also cuStreamWaitEvent_ptsz {
        process()?;
        event::wait_in(handle, event)
    }
    5050 fn cuStreamGetPriority(handle: Handle, priority: Out<'_, c_int>) also cuStreamGetPriority_ptsz {
        store(priority, found(handle)?.priority)
    }
    5050 fn cuStreamGetFlags(handle: Handle, flags: Out<'_, c_uint>) also cuStreamGetFlags_ptsz {
        store(flags, found(handle)?.flags)
    }
    12000 fn cuStreamGetId(handle: Handle, id: Out<'_, c_ulonglong>) also cuStreamGetId_ptsz {
        store(id, found(handle)?.id)
    }
    9020 fn cuStreamGetCtx(handle: Handle, context: Out<'_, Handle>) also cuStreamGetCtx_ptsz {
        process()?;
        store(context, context_of(handle)?.handle)
    }
    12050 fn cuStreamGetCtx_v2(
        handle: Handle, context: Out<'_, Handle>, green: Out<'_, Handle>,
    ) also cuStreamGetCtx_v2_ptsz {
        process()?;
        store(context, context_of(handle)?.handle)?;
        store_if(green, 0);
        Ok(())
    }
    12080 fn cuStreamGetDevice(handle: Handle, device: Out<'_, c_int>) also cuStreamGetDevice_ptsz {
        process()?;
        store(device, context_of(handle)?.device.ordinal)
    }
    5000 fn cuStreamAddCallback(
        handle: Handle, callback: Option<Callback>, data: *mut c_void, flags: c_uint,
    ) also cuStreamAddCallback_ptsz {
        let callback = callback.filter(|_| flags == 0).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        let data = UserData(data);
        // SAFETY: the program's function, called as documented: once, with its data.
        uncaptured(handle)?.run_on_host(move || unsafe { callback(handle, CUresult::SUCCESS, data.pointer()) })
    }
    10000 fn cuLaunchHostFunc(
        handle: Handle, function: Option<HostFunction>, data: *mut c_void,
    ) also cuLaunchHostFunc_ptsz {
        let function = given(function)?;
        let data = UserData(data);
        // SAFETY: the program's function, called as documented: once, with its data.
        uncaptured(handle)?.run_on_host(move || unsafe { function(data.pointer()) })
    }
    6000 fn cuStreamAttachMemAsync(
        handle: Handle, address: u64, _bytes: usize, flags: c_uint,
    ) also cuStreamAttachMemAsync_ptsz {
        found(handle)?;
        let region = MEMORY.lock().region(address).filter(|region| region.on_host());
        if region.is_some() && matches!(flags, 1 | 2 | 4) { Ok(()) } else { Err(CUresult::ERROR_INVALID_VALUE) }
    }
    10000 fn cuStreamBeginCapture(handle: Handle) { begin_capture(handle, 0, None) }
    10000 fn cuStreamBeginCapture_ptsz(handle: Handle) { begin_capture(of_thread(handle), 0, None) }
    10010 fn cuStreamBeginCapture_v2(handle: Handle, mode: c_int) { begin_capture(handle, mode, None) }
    10010 fn cuStreamBeginCapture_v2_ptsz(handle: Handle, mode: c_int) {
        begin_capture(of_thread(handle), mode, None)
    }
    12030 fn cuStreamBeginCaptureToGraph(
        handle: Handle, graph: Handle, _after: usize, _edges: usize, _count: usize, mode: c_int,
    ) {
        begin_capture(handle, mode, Some(graph))
    }
    12030 fn cuStreamBeginCaptureToGraph_ptsz(
        handle: Handle, graph: Handle, _after: usize, _edges: usize, _count: usize, mode: c_int,
    ) {
        begin_capture(of_thread(handle), mode, Some(graph))
    }
    10000 fn cuStreamEndCapture(handle: Handle, graph: Out<'_, Handle>) also cuStreamEndCapture_ptsz {
        found(handle)?;
        let graph = given(graph)?;
        match capture::end(handle) {
            Ok(captured) => graph.write(captured),
            Err(result) => {
                graph.write(0);
                return Err(result);
            }
        };
        Ok(())
    }
    10000 fn cuStreamIsCapturing(handle: Handle, status: Out<'_, c_int>) also cuStreamIsCapturing_ptsz {
        found(handle)?;
        store(status, capture::progress(handle)?.0 as c_int)
    }
    10010 fn cuStreamGetCaptureInfo(
        handle: Handle, status: Out<'_, c_int>, id: Out<'_, u64>,
    ) also cuStreamGetCaptureInfo_ptsz {
        capture_info(handle, status, id, None)
    }
    11030 fn cuStreamGetCaptureInfo_v2(
        handle: Handle, status: Out<'_, c_int>, id: Out<'_, u64>, graph: Out<'_, Handle>, _nodes: usize, _count: usize,
    ) also cuStreamGetCaptureInfo_v2_ptsz {
        capture_info(handle, status, id, graph)
    }
    12030 fn cuStreamGetCaptureInfo_v3(
        handle: Handle, status: Out<'_, c_int>, id: Out<'_, u64>, graph: Out<'_, Handle>, _nodes: usize, _edges: usize,
        _count: usize,
    ) also cuStreamGetCaptureInfo_v3_ptsz {
        capture_info(handle, status, id, graph)
    }
    10010 fn cuThreadExchangeStreamCaptureMode(mode: Option<&mut c_int>) {
        process()?;
        let mode = given(mode)?;
        *mode = capture::exchange(Mode::from_number(*mode)?) as c_int;
        Ok(())
    }
    11000 fn cuStreamCopyAttributes(to: Handle, from: Handle) also cuStreamCopyAttributes_ptsz {
        found(to)?;
        found(from).map(|_| ())
    }
}
