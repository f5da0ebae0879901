//! The hooks of what makes and ends contexts.
//!
//! Owns: when a primary context ends: with its last reference, which the driver counts, or by a reset. Refuses: to say which
//! allocations go with a context; who reads the log knows them, since each thread's context precedes its allocations.

use core::ffi::c_int;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use memscope_wire::{Event, Object};

use crate::driver::{self, SUCCESS};
use crate::state::State;
use crate::table::Row;

/// The record of a context that a program has made.
///
/// # Safety
/// After a success `out` points to a context.
pub unsafe fn made(row: Row, state: &State, out: *const u64, device: c_int, result: c_int) -> Option<Event> {
    if result != SUCCESS {
        return None;
    }
    driver::preserving_errno(|| driver::introduce(state, device as u32));
    // SAFETY: the caller's promise.
    Some(Event::Object { object: Object::Context, handle: unsafe { *out }, device: device as u32, row: row as u16 })
}

/// The record of a context that is no more. Its handle may be given again: threads look anew which device it means.
pub fn ended(row: Row, state: &State, handle: u64, result: c_int) -> Option<Event> {
    if result != SUCCESS || handle == 0 {
        return None;
    }
    state.contexts_ended.fetch_add(1, Relaxed);
    Some(Event::ObjectEnd { object: Object::Context, handle, row: row as u16 })
}

fn primary_of(state: &State, device: c_int) -> Option<&AtomicU64> {
    state.primaries.get(usize::try_from(device).ok()?)
}

/// The record of a device's primary context, at its first reference.
///
/// # Safety
/// After a success `out` points to a context.
pub unsafe fn retained(row: Row, state: &State, out: *const u64, device: c_int, result: c_int) -> Option<Event> {
    let known = primary_of(state, device).filter(|_| result == SUCCESS)?;
    // SAFETY: the caller's promise.
    let context = unsafe { *out };
    if known.swap(context, Relaxed) == context {
        return None;
    }
    // SAFETY: as before.
    unsafe { made(row, state, out, device, result) }
}

/// The record of a device's primary context that may have ended.
pub fn released(row: Row, state: &State, device: c_int, result: c_int) -> Option<Event> {
    let known = primary_of(state, device).filter(|_| result == SUCCESS)?;
    if driver::preserving_errno(|| driver::primary_is_alive(device)) {
        return None;
    }
    ended(row, state, known.swap(0, Relaxed), result)
}

macro_rules! context {
    ($name:ident) => {
        hook! { $name(out: *mut u64, flags: c_uint, device: c_int) |call| {
            // SAFETY: after a success the driver has filled `out`.
            observe(Row::$name, call, |state, result| unsafe { contexts::made(Row::$name, state, out, device, result) })
        } }
    };
}
pub(super) use context;

macro_rules! context_on {
    ($name:ident) => {
        hook! { $name(out: *mut u64, affinity: *mut c_void, count: c_int, flags: c_uint, device: c_int) |call| {
            // SAFETY: after a success the driver has filled `out`.
            observe(Row::$name, call, |state, result| unsafe { contexts::made(Row::$name, state, out, device, result) })
        } }
    };
}
pub(super) use context_on;

macro_rules! context_of {
    ($name:ident) => {
        hook! { $name(out: *mut u64, parameters: *mut c_void, flags: c_uint, device: c_int) |call| {
            // SAFETY: after a success the driver has filled `out`.
            observe(Row::$name, call, |state, result| unsafe { contexts::made(Row::$name, state, out, device, result) })
        } }
    };
}
pub(super) use context_of;

macro_rules! context_end {
    ($name:ident) => {
        hook! { $name(context: u64) |call| {
            observe(Row::$name, call, |state, result| contexts::ended(Row::$name, state, context, result))
        } }
    };
}
pub(super) use context_end;

macro_rules! primary {
    ($name:ident) => {
        hook! { $name(out: *mut u64, device: c_int) |call| {
            // SAFETY: after a success the driver has filled `out`.
            observe(Row::$name, call, |state, result| unsafe { contexts::retained(Row::$name, state, out, device, result) })
        } }
    };
}
pub(super) use primary;

macro_rules! primary_end {
    ($name:ident) => {
        hook! { $name(device: c_int) |call| {
            observe(Row::$name, call, |state, result| contexts::released(Row::$name, state, device, result))
        } }
    };
}
pub(super) use primary_end;
