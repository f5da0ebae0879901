//! Stream capture and graphs.
//!
//! Owns: which streams capture into which graph: what begins a capture, and what joins one by waiting for an event recorded in
//! it. A graph holds nothing, and launching it does nothing: work that is captured would compute, and what it allocates while
//! captured is allocated by the driver at once. Refuses: conditional nodes and nodes that a program adds itself.

use crate::api::{Out, store};
use crate::calls;
use crate::status::CudaError;
use crate::version;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const NONE: c_int = 0;
const ACTIVE: c_int = 1;

#[derive(Clone, Copy)]
struct Capture {
    id: u64,
    graph: usize,
}

struct Captures {
    streams: BTreeMap<usize, Capture>,
    events: BTreeMap<usize, Capture>,
    next: u64,
}

static CAPTURES: Mutex<Captures> = Mutex::new(Captures { streams: BTreeMap::new(), events: BTreeMap::new(), next: 1 });
/// How many streams capture: mostly none, and then nobody takes the lock.
static CAPTURING: AtomicUsize = AtomicUsize::new(0);
static NEXT_HANDLE: AtomicUsize = AtomicUsize::new(0x6150_0000_0040);

fn captures() -> MutexGuard<'static, Captures> {
    CAPTURES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn handle() -> usize {
    NEXT_HANDLE.fetch_add(0x40, Ordering::Relaxed)
}

fn of(stream: usize) -> Option<Capture> {
    if CAPTURING.load(Ordering::Acquire) == 0 {
        return None;
    }
    captures().streams.get(&stream).copied()
}

/// True while the stream's work goes into a graph.
pub fn is_capturing(stream: usize) -> bool {
    of(stream).is_some()
}

/// Notes an event that is recorded in a stream.
pub fn recorded(event: usize, stream: usize) {
    if CAPTURING.load(Ordering::Acquire) > 0 {
        let mut captures = captures();
        match captures.streams.get(&stream).copied() {
            Some(capture) => captures.events.insert(event, capture),
            None => captures.events.remove(&event),
        };
    }
}

/// Makes a stream join the capture in which the event was recorded.
pub fn joined_by(stream: usize, event: usize) {
    if CAPTURING.load(Ordering::Acquire) > 0 {
        let mut captures = captures();
        if let Some(capture) = captures.events.get(&event).copied()
            && captures.streams.insert(stream, capture).is_none()
        {
            CAPTURING.fetch_add(1, Ordering::AcqRel);
        }
    }
}

fn begin(stream: usize, graph: usize) {
    let mut captures = captures();
    let id = captures.next;
    captures.next += 1;
    if captures.streams.insert(stream, Capture { id, graph }).is_none() {
        CAPTURING.fetch_add(1, Ordering::AcqRel);
    }
}

fn end(stream: usize) -> Option<usize> {
    let mut captures = captures();
    let capture = captures.streams.get(&stream).copied()?;
    let before = captures.streams.len();
    captures.streams.retain(|_, other| other.id != capture.id);
    captures.events.retain(|_, other| other.id != capture.id);
    CAPTURING.fetch_sub(before - captures.streams.len(), Ordering::AcqRel);
    Some(capture.graph)
}

fn tell(stream: usize, status: Out<'_, c_int>, id: Out<'_, c_ulonglong>, graph: Out<'_, usize>) {
    let capture = of(stream);
    store(status, if capture.is_some() { ACTIVE } else { NONE });
    if let Some(capture) = capture {
        store(id, capture.id);
        store(graph, capture.graph);
    }
}

api! {
    simulated fn cudaStreamBeginCapture(stream: usize, _mode: c_int) -> CudaError {
        begin(stream, handle());
        Ok(())
    }
    simulated fn cudaStreamBeginCaptureToGraph(stream: usize, graph: usize) -> CudaError {
        begin(stream, graph);
        Ok(())
    }
    simulated fn cudaStreamEndCapture(stream: usize, graph: Out<'_, usize>) -> CudaError {
        store(graph, end(stream).ok_or(CudaError(401))?);
        Ok(())
    }
    simulated fn cudaStreamIsCapturing(stream: usize, status: Out<'_, c_int>) -> CudaError {
        tell(stream, status, None, None);
        Ok(())
    }
    simulated fn cudaStreamGetCaptureInfo(
        stream: usize, status: Out<'_, c_int>, id: Out<'_, c_ulonglong>, graph: *mut usize, dependencies: *mut usize,
        edges: *mut usize, count: *mut usize,
    ) -> CudaError {
        if version::is_twelve() {
            // In CUDA 12 this name has three arguments.
            tell(stream, status, id, None);
            return Ok(());
        }
        // SAFETY: CUDA 13 gives seven arguments, each a place or null.
        unsafe {
            tell(stream, status, id, graph.cast::<std::mem::MaybeUninit<usize>>().as_mut());
            for place in [dependencies, edges, count] {
                if let Some(place) = place.as_mut() {
                    *place = 0;
                }
            }
        }
        Ok(())
    }
    simulated fn cudaStreamGetCaptureInfo_v2(
        stream: usize, status: Out<'_, c_int>, id: Out<'_, c_ulonglong>, graph: Out<'_, usize>,
        dependencies: Out<'_, usize>, count: Out<'_, usize>,
    ) -> CudaError {
        tell(stream, status, id, graph);
        store(dependencies, 0);
        store(count, 0);
        Ok(())
    }
    simulated fn cudaStreamGetCaptureInfo_v3(
        stream: usize, status: Out<'_, c_int>, id: Out<'_, c_ulonglong>, graph: Out<'_, usize>,
        dependencies: Out<'_, usize>, edges: Out<'_, usize>, count: Out<'_, usize>,
    ) -> CudaError {
        tell(stream, status, id, graph);
        store(dependencies, 0);
        store(edges, 0);
        store(count, 0);
        Ok(())
    }
    no_op fn cudaStreamUpdateCaptureDependencies() -> CudaError { Ok(()) }
    simulated fn cudaThreadExchangeStreamCaptureMode(mode: *mut c_int) -> CudaError {
        thread_local! {
            static MODE: std::cell::Cell<c_int> = const { std::cell::Cell::new(0) };
        }
        // SAFETY: the program gives a mode, and wants the one before.
        let mode = unsafe { mode.as_mut() }.ok_or(CudaError::INVALID_VALUE)?;
        *mode = MODE.replace(*mode);
        Ok(())
    }
    simulated fn cudaGraphCreate(graph: Out<'_, usize>, _flags: c_uint) -> CudaError {
        store(graph, handle());
        Ok(())
    }
    simulated fn cudaGraphInstantiate(executable: Out<'_, usize>, _graph: usize) -> CudaError {
        store(executable, handle());
        Ok(())
    }
    simulated fn cudaGraphInstantiateWithFlags(executable: Out<'_, usize>, _graph: usize) -> CudaError {
        store(executable, handle());
        Ok(())
    }
    no_op fn cudaGraphLaunch(_executable: usize, _stream: usize) -> CudaError {
        calls::computed::<CudaError>("cudaGraphLaunch").result()
    }
    no_op fn cudaGraphUpload(_executable: usize, _stream: usize) -> CudaError { Ok(()) }
    simulated fn cudaGraphDestroy(_graph: usize) -> CudaError { Ok(()) }
    simulated fn cudaGraphExecDestroy(_executable: usize) -> CudaError { Ok(()) }
    simulated fn cudaGraphGetNodes(_graph: usize, nodes: *mut usize, count: *mut usize) -> CudaError {
        // One node stands for all that was captured.
        // SAFETY: the program gives a count, and room for as many nodes or null.
        let count = unsafe { count.as_mut() }.ok_or(CudaError::INVALID_VALUE)?;
        if !nodes.is_null() && *count > 0 {
            // SAFETY: see above.
            unsafe { nodes.write(handle()) };
        }
        *count = 1;
        Ok(())
    }
    simulated fn cudaGraphNodeGetDependencies(
        _node: usize, _dependencies: *mut usize, third: *mut usize, fourth: *mut usize,
    ) -> CudaError {
        // The count is the last argument: the third in CUDA 12, the fourth in CUDA 13.
        let count = if version::is_twelve() { third } else { fourth };
        // SAFETY: the program gives a place for a count.
        *unsafe { count.as_mut() }.ok_or(CudaError::INVALID_VALUE)? = 0;
        Ok(())
    }
    no_op fn cudaGraphDebugDotPrint() -> CudaError { Ok(()) }
    no_op fn cudaUserObjectCreate(
        object: Out<'_, usize>, _data: *mut c_void, _destroy: *const c_void, _references: c_uint, _flags: c_uint,
    ) -> CudaError {
        // Never destroyed: what the program gave lives as long as the process.
        store(object, handle());
        Ok(())
    }
    no_op fn cudaUserObjectRelease(_object: usize, _count: c_uint) -> CudaError { Ok(()) }
    no_op fn cudaGraphRetainUserObject(
        _graph: usize, _object: usize, _count: c_uint, _flags: c_uint,
    ) -> CudaError { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_waits_for_a_captured_event_joins_the_capture() {
        begin(11, 99);
        recorded(5, 11);
        joined_by(12, 5);
        assert!(is_capturing(11) && is_capturing(12) && !is_capturing(13));
        assert_eq!(end(12), Some(99));
        assert!(!is_capturing(11) && !is_capturing(12));
        assert_eq!(end(11), None);
        assert_eq!(CAPTURING.load(Ordering::Relaxed), 0);
    }
}
