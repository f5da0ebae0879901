//! Events: points in a stream, with their time.
//!
//! Owns: what was recorded when. Times are of the host, since the work ran there. Refuses: to share one with another
//! process, though an event may be made for that.

use crate::error::{CUresult, Status};
use crate::lock::Lock;
use crate::registry::{Handle, Registry};
use crate::stream::{self, Ticket};
use std::sync::Arc;
use std::time::Instant;

const BLOCKING_SYNC: u32 = 1;
const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;

/// A live event.
pub struct Event {
    context: Handle,
    flags: u32,
    record: Lock<Option<Record>>,
}

#[derive(Clone)]
struct Record {
    at: Instant,
    behind: Option<Arc<Ticket>>,
}

static EVENTS: Registry<Event> = Registry::new();

/// Makes an event in a context.
pub fn create(context: Handle, flags: u32) -> Result<Handle, CUresult> {
    if flags & !(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS) != 0 {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    if flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0 {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    Ok(EVENTS.insert(Event { context, flags, record: Lock::new(None) }))
}

/// Destroys an event.
pub fn destroy(handle: Handle) -> Status {
    EVENTS.remove(handle).map(|_| ())
}

/// Destroys the events of a context.
pub fn destroy_all(context: Handle) {
    EVENTS.remove_where(|event| event.context == context);
}

/// Records the event behind the work of a stream.
pub fn record(handle: Handle, stream: Handle) -> Status {
    let event = EVENTS.find(handle)?;
    let behind = stream::uncaptured(stream)?.pending();
    *event.record.lock() = Some(Record { at: Instant::now(), behind });
    Ok(())
}

/// CUDA_ERROR_NOT_READY while work before the event runs. An event never recorded is done.
pub fn query(handle: Handle) -> Status {
    match EVENTS.find(handle)?.unfinished() {
        Some(_) => Err(CUresult::ERROR_NOT_READY),
        None => Ok(()),
    }
}

/// Waits for the event.
pub fn synchronise(handle: Handle) -> Status {
    if let Some(ticket) = EVENTS.find(handle)?.unfinished() {
        ticket.wait();
    }
    Ok(())
}

/// Makes a stream's later work wait for the event.
pub fn wait_in(stream: Handle, handle: Handle) -> Status {
    let event = EVENTS.find(handle)?;
    let stream = stream::uncaptured(stream)?;
    if let Some(ticket) = event.unfinished() {
        stream.follow(ticket);
    }
    Ok(())
}

/// Milliseconds from one event to another.
pub fn elapsed(start: Handle, end: Handle) -> Result<f32, CUresult> {
    let (start, end) = (EVENTS.find(start)?.time()?, EVENTS.find(end)?.time()?);
    let forwards = end.saturating_duration_since(start).as_secs_f64();
    let backwards = start.saturating_duration_since(end).as_secs_f64();
    Ok(((forwards - backwards) * 1e3) as f32)
}

impl Event {
    fn unfinished(&self) -> Option<Arc<Ticket>> {
        let record = self.record.lock().clone()?;
        record.behind.filter(|ticket| ticket.finished_at().is_none())
    }

    fn time(&self) -> Result<Instant, CUresult> {
        if self.flags & DISABLE_TIMING != 0 {
            return Err(CUresult::ERROR_INVALID_HANDLE);
        }
        let record = self.record.lock().clone().ok_or(CUresult::ERROR_INVALID_HANDLE)?;
        match record.behind {
            None => Ok(record.at),
            Some(ticket) => ticket.finished_at().map(|end| end.max(record.at)).ok_or(CUresult::ERROR_NOT_READY),
        }
    }
}
