//! Stream capture: what a capturing stream is asked to do becomes nodes of a graph.
//!
//! Owns: which streams capture, how, and from which thread; which calls a capture forbids, and that such a call spoils it.
//! Refuses: to capture anything but stream-ordered allocations and frees, and the default stream of a thread, which is the
//! legacy one here; neither is silent, and a capture that was to hold it ends without a graph.

use crate::context::Context;
use crate::error::{CUresult, Status};
use crate::graph;
use crate::lock::Lock;
use crate::registry::{Handle, new_handle};
use crate::stream::{self, LEGACY, PER_THREAD};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{ThreadId, current};

/// What a thread may call while streams capture (CUstreamCaptureMode).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Nothing that is unsafe, in any thread.
    Global = 0,
    /// Nothing that is unsafe, in the capture's own thread.
    ThreadLocal = 1,
    /// Everything.
    Relaxed = 2,
}

impl Mode {
    /// The mode with this number, else CUDA_ERROR_INVALID_VALUE.
    pub fn from_number(number: i32) -> Result<Mode, CUresult> {
        let known = [Mode::Global, Mode::ThreadLocal, Mode::Relaxed].into_iter().find(|&mode| mode as i32 == number);
        known.ok_or(CUresult::ERROR_INVALID_VALUE)
    }
}

/// What is asked about a stream (CUstreamCaptureStatus).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It does not capture.
    None = 0,
    /// It captures.
    Active = 1,
    /// It captures, and a call has spoiled that.
    Invalidated = 2,
}

struct Capture {
    id: u64,
    mode: Mode,
    thread: ThreadId,
    graph: Handle,
    /// The graph is the program's, and stays when the capture is spoiled.
    is_given: bool,
    is_spoiled: bool,
    /// CU_STREAM_NON_BLOCKING was not asked for: the legacy stream waits for this one.
    is_blocking: bool,
}

static CAPTURES: Lock<BTreeMap<Handle, Capture>> = Lock::new(BTreeMap::new());
static CAPTURING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Global) };
}

fn is_legacy(stream: Handle) -> bool {
    stream == 0 || stream == LEGACY
}

/// Begins to capture a stream: into `graph`, or into a new one of the stream's context.
pub fn begin(stream: Handle, context: &Context, mode: Mode, graph: Option<Handle>) -> Status {
    if is_legacy(stream) {
        return Err(CUresult::ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if stream == PER_THREAD {
        return Err(CUresult::NOT_SIMULATED);
    }
    let is_blocking = stream::find(stream)?.flags & 1 == 0;
    let mut captures = CAPTURES.lock();
    if captures.contains_key(&stream) {
        return Err(CUresult::ERROR_ILLEGAL_STATE);
    }
    let is_given = graph.is_some();
    let graph = match graph {
        Some(graph) => graph::known(graph)?,
        None => graph::create(context),
    };
    let (id, thread) = (new_handle() as u64, current().id());
    captures.insert(stream, Capture { id, mode, thread, graph, is_given, is_spoiled: false, is_blocking });
    CAPTURING.store(captures.len(), Ordering::Release);
    Ok(())
}

/// Ends a stream's capture; its graph.
pub fn end(stream: Handle) -> Result<Handle, CUresult> {
    let mut captures = CAPTURES.lock();
    let capture = captures.get(&stream).ok_or(CUresult::ERROR_ILLEGAL_STATE)?;
    if capture.mode != Mode::Relaxed && capture.thread != current().id() {
        return Err(CUresult::ERROR_STREAM_CAPTURE_WRONG_THREAD);
    }
    let Capture { graph, is_given, is_spoiled, .. } = *capture;
    captures.remove(&stream);
    CAPTURING.store(captures.len(), Ordering::Release);
    if !is_spoiled {
        return Ok(graph);
    }
    if !is_given {
        graph::destroy(graph)?;
    }
    Err(CUresult::ERROR_STREAM_CAPTURE_INVALIDATED)
}

/// A stream that captures is destroyed: its capture ends without a graph.
pub fn forget(stream: Handle) {
    if is_idle() {
        return;
    }
    let mut captures = CAPTURES.lock();
    if let Some(Capture { graph, is_given: false, .. }) = captures.remove(&stream) {
        let _ = graph::destroy(graph);
    }
    CAPTURING.store(captures.len(), Ordering::Release);
}

fn is_idle() -> bool {
    CAPTURING.load(Ordering::Acquire) == 0
}

/// How far a stream's capture is, its number and its graph.
pub fn progress(stream: Handle) -> Result<(Progress, u64, Handle), CUresult> {
    if is_idle() {
        return Ok((Progress::None, 0, 0));
    }
    let captures = CAPTURES.lock();
    if is_legacy(stream) && captures.values().any(|capture| capture.is_blocking) {
        return Err(CUresult::ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    Ok(match captures.get(&stream) {
        None => (Progress::None, 0, 0),
        Some(Capture { id, graph, is_spoiled: false, .. }) => (Progress::Active, *id, *graph),
        Some(Capture { id, .. }) => (Progress::Invalidated, *id, 0),
    })
}

/// Adds to the graph that a stream captures; `None` if it captures none. What cannot be added spoils the capture.
pub fn add<T>(stream: Handle, node: impl FnOnce(Handle) -> Result<T, CUresult>) -> Result<Option<T>, CUresult> {
    if is_idle() {
        return Ok(None);
    }
    let mut captures = CAPTURES.lock();
    let Some(capture) = captures.get_mut(&stream) else { return Ok(None) };
    if capture.is_spoiled {
        return Err(CUresult::ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    let added = node(capture.graph);
    capture.is_spoiled = added.is_err();
    added.map(Some)
}

/// Refuses with `result` what a capturing stream cannot take, and what the legacy stream cannot while a stream captures that it
/// would wait for.
pub fn refuse(stream: Handle, result: CUresult) -> Status {
    if is_idle() {
        return Ok(());
    }
    let mut captures = CAPTURES.lock();
    if is_legacy(stream) {
        let mut is_implicit = false;
        for capture in captures.values_mut().filter(|capture| capture.is_blocking) {
            (capture.is_spoiled, is_implicit) = (true, true);
        }
        return if is_implicit { Err(CUresult::ERROR_STREAM_CAPTURE_IMPLICIT) } else { Ok(()) };
    }
    match captures.get_mut(&stream) {
        None => Ok(()),
        Some(capture) => {
            capture.is_spoiled = true;
            Err(result)
        }
    }
}

/// Refuses what is unsafe while streams capture (cuMemAlloc is what the documentation names), unless the thread may.
pub fn refuse_unsafe() -> Status {
    if is_idle() {
        return Ok(());
    }
    let (mine, of_thread) = (current().id(), MODE.get());
    let mut is_forbidden = false;
    for capture in CAPTURES.lock().values_mut() {
        let forbids = match of_thread {
            Mode::Relaxed => false,
            _ if capture.thread == mine => capture.mode != Mode::Relaxed,
            Mode::Global => capture.mode == Mode::Global,
            Mode::ThreadLocal => false,
        };
        if forbids {
            (capture.is_spoiled, is_forbidden) = (true, true);
        }
    }
    if is_forbidden { Err(CUresult::ERROR_STREAM_CAPTURE_UNSUPPORTED) } else { Ok(()) }
}

/// Sets what the thread may call while streams capture; what it was.
pub fn exchange(mode: Mode) -> Mode {
    MODE.replace(mode)
}
