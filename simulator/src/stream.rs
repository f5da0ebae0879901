//! Streams: work runs when it is enqueued, which every ordering of a real device allows, save one thing: host functions.
//!
//! Owns: handles, flags and priorities; host functions, which run on a thread of their own because they may wait for the
//! program. What is enqueued behind a host function waits for it before it runs. Refuses: work of a stream that captures ([`capture`]).
//!
//! Limit: a program that enqueues work behind a host function and only then does what the host function waits for would
//! stop here, and not on a real device.

use crate::capture;
use crate::error::{CUresult, Status};
use crate::lock::Lock;
use crate::registry::{Handle, Registry};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::time::Instant;

/// CU_STREAM_LEGACY.
pub const LEGACY: Handle = 1;
/// CU_STREAM_PER_THREAD.
pub const PER_THREAD: Handle = 2;

/// A live stream.
pub struct Stream {
    /// Context it belongs to; 0 for the default streams.
    pub context: Handle,
    /// Flags of its creation.
    pub flags: u32,
    /// Its priority, clamped to the device's range.
    pub priority: i32,
    /// A number unique in the process.
    pub id: u64,
    last: Lock<Option<Arc<Ticket>>>,
}

/// A host function that may still run.
pub struct Ticket {
    finished: Mutex<Option<Instant>>,
    changed: Condvar,
}

static STREAMS: Registry<Stream> = Registry::new();
static DEFAULT: LazyLock<Arc<Stream>> = LazyLock::new(|| Arc::new(Stream::new(0, 0, 0)));
static NEXT_ID: AtomicU64 = AtomicU64::new(1);
static UNFINISHED: AtomicUsize = AtomicUsize::new(0);

impl Stream {
    fn new(context: Handle, flags: u32, priority: i32) -> Stream {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Stream { context, flags, priority, id, last: Lock::new(None) }
    }

    /// The host function that the stream's next work has to wait for.
    pub fn pending(&self) -> Option<Arc<Ticket>> {
        if UNFINISHED.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.last.lock().clone().filter(|ticket| ticket.finished_at().is_none())
    }

    /// Waits until all work of the stream is done.
    pub fn finish(&self) {
        if let Some(ticket) = self.pending() {
            ticket.wait();
        }
    }

    /// Makes later work wait for `ticket` too.
    pub fn follow(&self, ticket: Arc<Ticket>) {
        self.finish();
        *self.last.lock() = Some(ticket);
    }

    /// Runs `function` behind the stream's work, on a thread of its own.
    pub fn run_on_host(&self, function: impl FnOnce() + Send + 'static) -> Status {
        let ticket = Arc::new(Ticket { finished: Mutex::new(None), changed: Condvar::new() });
        let mut last = self.last.lock();
        let before = last.clone();
        let mine = Arc::clone(&ticket);
        UNFINISHED.fetch_add(1, Ordering::AcqRel);
        let started = std::thread::Builder::new().spawn(move || {
            if let Some(before) = before {
                before.wait();
            }
            function();
            mine.finish();
        });
        if started.is_err() {
            UNFINISHED.fetch_sub(1, Ordering::AcqRel);
            return Err(CUresult::ERROR_OPERATING_SYSTEM);
        }
        *last = Some(ticket);
        Ok(())
    }
}

impl Ticket {
    /// When the host function ended; `None` while it runs.
    pub fn finished_at(&self) -> Option<Instant> {
        *self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the host function.
    pub fn wait(&self) {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        while finished.is_none() {
            finished = self.changed.wait(finished).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finish(&self) {
        *self.finished.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        UNFINISHED.fetch_sub(1, Ordering::AcqRel);
        self.changed.notify_all();
    }
}

/// Makes a stream in a context.
pub fn create(context: Handle, flags: u32, priority: i32) -> Result<Handle, CUresult> {
    if flags > 1 {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    Ok(STREAMS.insert(Stream::new(context, flags, priority.clamp(-5, 0))))
}

/// The stream with this handle: one of ours, or one of the default streams (0, 1, 2).
pub fn find(handle: Handle) -> Result<Arc<Stream>, CUresult> {
    match handle {
        0 | LEGACY | PER_THREAD => Ok(Arc::clone(&DEFAULT)),
        handle => STREAMS.find(handle),
    }
}

/// The stream with this handle, for work that a capture cannot take.
pub fn uncaptured(handle: Handle) -> Result<Arc<Stream>, CUresult> {
    let stream = find(handle)?;
    capture::refuse(handle, CUresult::NOT_SIMULATED)?;
    Ok(stream)
}

/// The stream with this handle after all work before the caller's is done. The default streams wait for every stream.
pub fn ordered(handle: Handle) -> Result<Arc<Stream>, CUresult> {
    let stream = uncaptured(handle)?;
    match handle {
        0 | LEGACY | PER_THREAD => finish_all(),
        _ => stream.finish(),
    }
    Ok(stream)
}

/// Destroys a stream; its work goes on.
pub fn destroy(handle: Handle) -> Status {
    STREAMS.remove(handle)?;
    capture::forget(handle);
    Ok(())
}

/// Destroys the streams of a context.
pub fn destroy_all(context: Handle) {
    STREAMS.remove_where(|stream| stream.context == context);
}

/// Waits for all streams.
pub fn finish_all() {
    if UNFINISHED.load(Ordering::Acquire) == 0 {
        return;
    }
    DEFAULT.finish();
    for stream in STREAMS.all() {
        stream.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn host_functions_run_in_order_and_the_stream_waits() {
        let stream = Stream::new(1, 0, 0);
        let (release, wait) = channel::<()>();
        let (tell, told) = channel();
        let tell_again = tell.clone();
        stream
            .run_on_host(move || {
                wait.recv().unwrap();
                tell.send(1).unwrap();
            })
            .unwrap();
        stream.run_on_host(move || tell_again.send(2).unwrap()).unwrap();
        assert!(stream.pending().is_some());
        release.send(()).unwrap();
        stream.finish();
        assert!(stream.pending().is_none());
        assert_eq!(told.iter().take(2).collect::<Vec<_>>(), [1, 2]);
    }
}
