//! The hooks of the driver's memory functions.
//!
//! Owns: what is recorded around the real call. An allocation is recorded after it, when it is known what the driver gave; a
//! free before it, because another thread may own the address the moment the driver returns, with a correction when the
//! driver refuses. Refuses: to change arguments, results or errors, to track which pointers are ours (every free is
//! forwarded), and to record calls that the driver makes to itself inside a hooked one.

mod arrays;
mod contexts;
mod elsewhere;
mod graphs;
mod objects;
mod pools;

use core::ffi::{c_int, c_uint, c_void};
use core::mem::transmute;
use memscope_wire::event::NO_DEVICE;
use memscope_wire::{Event, Measure, MemoryKind, Object};

use arrays::{Described, array, levels};
use contexts::{context, context_end, context_of, context_on, primary, primary_end};
use elsewhere::{buffered, levels_of, opened, pointed, received, retained};
use graphs::{alloc_node, capture, capture_in_mode, capture_into, graph_trim, launch, node, node_with_edges};
use objects::{
    object, object_by, object_end, object_of, object_or_text, object_shared, object_with_options,
    object_with_two_lists, pool,
};

use pools::{pool_end, pool_setting, pool_trim, wait, wait_for};

use crate::driver::{self, NOT_FOUND, OUT_OF_MEMORY, SUCCESS};
use crate::log;
use crate::owner;
use crate::python;
use crate::scope;
use crate::state::{self, State};
use crate::table::{Row, with_rows};
use crate::thread::{self, Frame};

/// What a call asked for.
#[derive(Clone, Copy)]
struct Request {
    row: Row,
    memory: MemoryKind,
    bytes: u64,
    stream: u64,
    device: DeviceSource,
    /// The pool that is asked; 0 for the current one, and for other memory.
    pool: u64,
}

/// Which device an allocation is on.
#[derive(Clone, Copy)]
enum DeviceSource {
    /// That of the thread's current context.
    Context,
    /// That of the stream: the current context's for the default streams, else what the driver says of the pointer.
    Stream,
    /// What the driver says of the pointer: a pool may be another device's.
    Pointer,
    /// None: memory of the host.
    Host,
}

/// Handles of the default streams: 0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD.
const LAST_DEFAULT_STREAM: u64 = 2;

/// Forwards an allocation and records its outcome. `granted` gives address and bytes after a success.
#[inline(always)]
fn allocate(
    request: Request,
    call: impl FnOnce(*const c_void) -> c_int,
    granted: impl FnOnce() -> Option<(u64, u64)>,
) -> c_int {
    let Some(real) = request.row.real() else { return no_driver() };
    let (thread, frame) = (thread::current(), Frame::default());
    if !thread.enter(&frame) {
        return call(real);
    }
    let caller = thread.caller.get();
    let result = call(real);
    // The driver may have called hooked functions itself.
    thread.caller.set(caller);
    if result == SUCCESS {
        if let Some((address, bytes)) = granted() {
            record(request, address, bytes);
        }
    } else if result == OUT_OF_MEMORY {
        record_failure(request, result);
    }
    thread.leave();
    result
}

/// Forwards a call and records its outcome, if there is any to record.
#[inline(always)]
fn observe(
    row: Row,
    call: impl FnOnce(*const c_void) -> c_int,
    event: impl FnOnce(&'static State, c_int) -> Option<Event>,
) -> c_int {
    let Some(real) = row.real() else { return no_driver() };
    let (thread, frame) = (thread::current(), Frame::default());
    if !thread.enter(&frame) {
        return call(real);
    }
    let caller = thread.caller.get();
    let result = call(real);
    thread.caller.set(caller);
    if let Some((state, _)) = state::recording()
        && let Some(event) = event(state, result)
    {
        log::append(&event);
    }
    thread.leave();
    result
}

#[inline(always)]
fn record(request: Request, address: u64, bytes: u64) {
    let Some((state, _)) = state::recording() else { return };
    let Request { row, memory, bytes: requested, stream, device, pool } = request;
    let is_captured = memory == MemoryKind::Pool && graphs::is_captured(row, state, stream);
    let device = match device {
        // A node's address is no memory yet, of which the driver could be asked.
        _ if is_captured => driver::preserving_errno(|| driver::current_device(state)),
        // Asked for its context: pinned memory goes with it.
        DeviceSource::Host => {
            driver::preserving_errno(|| driver::current_device(state));
            NO_DEVICE
        }
        DeviceSource::Stream if stream > LAST_DEFAULT_STREAM => driver::preserving_errno(|| driver::device_of(address)),
        DeviceSource::Pointer => driver::preserving_errno(|| driver::device_of(address)),
        DeviceSource::Context | DeviceSource::Stream => driver::preserving_errno(|| driver::current_device(state)),
    };
    driver::introduce(state, device);
    if is_captured {
        log::append(&graphs::planned(row, state, address, bytes, device));
        return;
    }
    if memory == MemoryKind::Pool {
        // Before the allocation: what it took of the pool's reserve must not count twice.
        let source = if pool == 0 { pools::Source::Current } else { pools::Source::Pool(pool) };
        pools::taken(row, state, source, device);
    }
    owner::settle();
    scope::settle();
    log::append(&Event::Alloc { address, bytes, requested, stream, device, row: row as u16, memory });
}

#[cold]
#[inline(never)]
fn record_failure(request: Request, result: c_int) {
    let Some((state, _)) = state::recording() else { return };
    let Request { row, memory, bytes: requested, .. } = request;
    let (device, (free, total)) = driver::preserving_errno(|| {
        let device = if memory == MemoryKind::Host { NO_DEVICE } else { driver::current_device(state) };
        (device, driver::memory_info())
    });
    driver::introduce(state, device);
    scope::settle();
    log::append(&Event::AllocFailed { requested, free, total, device, result, row: row as u16, memory });
    if memory == MemoryKind::Pool {
        python::refused_by_driver(device);
    }
}

/// Records a free and forwards it.
#[inline(always)]
fn release(row: Row, address: u64, stream: u64, call: impl FnOnce(*const c_void) -> c_int) -> c_int {
    give_back(row, address, &Event::Free { address, stream, row: row as u16 }, call)
}

/// The same of a stream-ordered free, which in a capturing stream only adds a node to a graph.
#[inline(always)]
fn release_in_order(row: Row, address: u64, stream: u64, call: impl FnOnce(*const c_void) -> c_int) -> c_int {
    if let Some((state, _)) = state::already_recording()
        && graphs::is_captured(row, state, stream)
    {
        return row.real().map_or_else(no_driver, call);
    }
    let result = release(row, address, stream, call);
    if !thread::current().is_inside()
        && let Some((state, _)) = state::already_recording()
    {
        pools::given_back(row, state);
    }
    result
}

/// Records that what `address` (or a handle) names is given back, and forwards the call.
#[inline(always)]
fn give_back(row: Row, address: u64, event: &Event, call: impl FnOnce(*const c_void) -> c_int) -> c_int {
    let Some(real) = row.real() else { return no_driver() };
    let (thread, frame) = (thread::current(), Frame::default());
    // Freeing null gives nothing back.
    if address == 0 || !thread.enter(&frame) {
        return call(real);
    }
    let slot = log::append(event);
    let result = call(real);
    if result != SUCCESS {
        record_refusal(row, address, slot, result);
    }
    thread.leave();
    result
}

#[cold]
#[inline(never)]
fn record_refusal(row: Row, address: u64, slot: Option<u64>, result: c_int) {
    if let Some(slot) = slot {
        log::append(&Event::FreeRefused { address, slot, result, row: row as u16 });
    }
}

/// The answer when there is no real function: only a program that links these names weakly, without a driver, gets here.
#[cold]
#[inline(never)]
pub fn no_driver() -> c_int {
    log::fault();
    NOT_FOUND
}

/// Address and bytes behind an out-parameter that the driver has filled.
///
/// # Safety
/// `out` is null or points to an address.
#[inline(always)]
unsafe fn filled(out: *const u64, bytes: u64) -> Option<(u64, u64)> {
    // SAFETY: the caller's promise.
    if out.is_null() { None } else { Some((unsafe { *out }, bytes)) }
}

/// Defines an exported function with NVIDIA's signature, whose body sees `real` as a function of that type.
macro_rules! hook {
    ($name:ident($($argument:ident: $type:ty),*) |$call:ident| $body:expr) => {
        /// NVIDIA's function of this name, observed. It notes who calls, and goes on in its body as if that had been called.
        ///
        /// # Safety
        /// As the driver's documentation demands of the caller.
        #[allow(non_snake_case, reason = "NVIDIA's spelling")]
        #[unsafe(naked)]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // Neither register carries an argument, and the callee may change both.
            core::arch::naked_asm!(
                "endbr64",
                "mov rax, qword ptr fs:[0]",
                "add rax, qword ptr [rip + memscope_thread@GOTTPOFF]",
                "mov r11, qword ptr [rsp]",
                "mov qword ptr [rax + {caller}], r11",
                "jmp {body}",
                caller = const thread::CALLER,
                body = sym $name::body,
            )
        }

        #[allow(non_snake_case, reason = "NVIDIA's spelling")]
        mod $name {
            use super::*;

            pub unsafe extern "C" fn body($($argument: $type),*) -> c_int {
                type Real = unsafe extern "C" fn($($type),*) -> c_int;
                #[allow(clippy::undocumented_unsafe_blocks, reason = "said here, for every expansion")]
                // SAFETY: `real` is the driver's function of this name, which has this type; the arguments are the program's own.
                let $call = |real: *const c_void| unsafe { transmute::<*const c_void, Real>(real)($($argument),*) };
                $body
            }
        }
    };
}

macro_rules! request {
    ($name:ident $memory:ident $bytes:expr, $stream:expr, $device:ident) => {
        Request {
            row: Row::$name,
            memory: MemoryKind::$memory,
            bytes: $bytes as u64,
            stream: $stream as u64,
            device: DeviceSource::$device,
            pool: 0,
        }
    };
}

macro_rules! linear {
    ($name:ident $memory:ident) => {
        hook! { $name(out: *mut u64, bytes: usize) |call| {
            // SAFETY: after a success the driver has filled `out`.
            allocate(request!($name $memory bytes, 0, Context), call, || unsafe { filled(out, bytes as u64) })
        } }
    };
}

macro_rules! pitched {
    ($name:ident $memory:ident) => {
        hook! { $name(out: *mut u64, pitch: *mut usize, width: usize, height: usize, element: c_uint) |call| {
            allocate(request!($name $memory width.wrapping_mul(height), 0, Context), call, || {
                // SAFETY: after a success the driver has filled `out` and `pitch`.
                unsafe { filled(out, if pitch.is_null() { width } else { *pitch }.wrapping_mul(height) as u64) }
            })
        } }
    };
}

macro_rules! flagged {
    ($name:ident $memory:ident) => {
        hook! { $name(out: *mut u64, bytes: usize, flags: c_uint) |call| {
            // SAFETY: after a success the driver has filled `out`.
            allocate(request!($name $memory bytes, 0, Context), call, || unsafe { filled(out, bytes as u64) })
        } }
    };
}

macro_rules! ordered {
    ($name:ident $memory:ident) => {
        hook! { $name(out: *mut u64, bytes: usize, stream: *mut c_void) |call| {
            // SAFETY: after a success the driver has filled `out`.
            allocate(request!($name $memory bytes, stream, Stream), call, || unsafe { filled(out, bytes as u64) })
        } }
    };
}

macro_rules! pooled {
    ($name:ident $memory:ident) => {
        hook! { $name(out: *mut u64, bytes: usize, pool: *mut c_void, stream: *mut c_void) |call| {
            let request = Request { pool: pool as u64, ..request!($name $memory bytes, stream, Pointer) };
            // SAFETY: after a success the driver has filled `out`.
            allocate(request, call, || unsafe { filled(out, bytes as u64) })
        } }
    };
}

macro_rules! host_flagged {
    ($name:ident $memory:ident) => {
        hook! { $name(out: *mut *mut c_void, bytes: usize, flags: c_uint) |call| {
            // SAFETY: after a success the driver has filled `out`.
            allocate(request!($name $memory bytes, 0, Host), call, || unsafe { filled(out.cast(), bytes as u64) })
        } }
    };
}

macro_rules! host {
    ($name:ident $memory:ident) => {
        hook! { $name(out: *mut *mut c_void, bytes: usize) |call| {
            // SAFETY: after a success the driver has filled `out`.
            allocate(request!($name $memory bytes, 0, Host), call, || unsafe { filled(out.cast(), bytes as u64) })
        } }
    };
}

macro_rules! registered {
    ($name:ident $memory:ident) => {
        hook! { $name(memory: *mut c_void, bytes: usize, flags: c_uint) |call| {
            allocate(request!($name $memory bytes, 0, Host), call, || Some((memory as u64, bytes as u64)))
        } }
    };
}

macro_rules! free {
    ($name:ident) => {
        hook! { $name(address: u64) |call| release(Row::$name, address, 0, call) }
    };
}

macro_rules! ordered_free {
    ($name:ident) => {
        hook! { $name(address: u64, stream: *mut c_void) |call| {
            release_in_order(Row::$name, address, stream as u64, call)
        } }
    };
}

macro_rules! host_free {
    ($name:ident) => {
        hook! { $name(memory: *mut c_void) |call| release(Row::$name, memory as u64, 0, call) }
    };
}

/// CUmemLocation's type of a device.
const ON_DEVICE: c_int = 1;

/// The beginning of CUmemAllocationProp and CUmemPoolProps, as far as their location.
#[repr(C)]
pub struct Properties {
    kind: c_int,
    handle_types: c_int,
    location: c_int,
    id: c_int,
}

impl Properties {
    /// Ordinal of the device that is the location; NO_DEVICE where it is none.
    fn device(&self) -> u32 {
        if self.location == ON_DEVICE { self.id as u32 } else { NO_DEVICE }
    }
}

/// The record of memory without an address of its own: made, or refused for want of memory.
///
/// # Safety
/// After a success `out` points to a handle.
unsafe fn made(
    row: Row,
    state: &State,
    out: *const u64,
    (bytes, measure): (u64, Measure),
    (device, memory): (u32, MemoryKind),
    result: c_int,
) -> Option<Event> {
    driver::introduce(state, device);
    owner::settle();
    scope::settle();
    let row = row as u16;
    if result == OUT_OF_MEMORY {
        let (free, total) = driver::preserving_errno(driver::memory_info);
        return Some(Event::AllocFailed { requested: bytes, free, total, device, result, row, memory });
    }
    // SAFETY: the caller's promise.
    (result == SUCCESS).then(|| Event::Create { handle: unsafe { *out }, bytes, measure, device, row, memory })
}

/// The record of an array.
///
/// # Safety
/// Unless `result` says that an argument is wrong, the driver has accepted them.
unsafe fn made_array(
    row: Row,
    state: &State,
    out: *const u64,
    description: *const impl Described,
    levels: c_uint,
    result: c_int,
) -> Option<Event> {
    if !matches!(result, SUCCESS | OUT_OF_MEMORY) {
        return None;
    }
    // SAFETY: null, or what the driver has read.
    let size = unsafe { description.as_ref() }?.bytes(levels);
    let place = (driver::preserving_errno(|| driver::current_device(state)), MemoryKind::Device);
    // SAFETY: the caller's promise.
    unsafe { made(row, state, out, size, place, result) }
}

macro_rules! created {
    ($name:ident) => {
        hook! { $name(out: *mut u64, bytes: usize, properties: *const Properties, flags: u64) |call| {
            observe(Row::$name, call, |state, result| {
                if !matches!(result, SUCCESS | OUT_OF_MEMORY) {
                    return None;
                }
                // SAFETY: null, or what the driver has read.
                let place = unsafe { properties.as_ref() }.map_or(NO_DEVICE, Properties::device);
                let memory = if place == NO_DEVICE { MemoryKind::Host } else { MemoryKind::Device };
                let place = (place, memory);
                // SAFETY: after a success the driver has filled `out`.
                unsafe { made(Row::$name, state, out, (bytes as u64, Measure::Told), place, result) }
            })
        } }
    };
}

macro_rules! handle_release {
    ($name:ident) => {
        hook! { $name(handle: u64) |call| {
            give_back(Row::$name, handle, &Event::Release { handle, row: Row::$name as u16 }, call)
        } }
    };
}

macro_rules! mapped {
    ($name:ident) => {
        hook! { $name(address: u64, bytes: usize, offset: usize, handle: u64, flags: u64) |call| {
            observe(Row::$name, call, |_, result| {
                let (bytes, offset, row) = (bytes as u64, offset as u64, Row::$name as u16);
                (result == SUCCESS).then_some(Event::Map { address, bytes, offset, handle, row })
            })
        } }
    };
}

macro_rules! unmapped {
    ($name:ident) => {
        hook! { $name(address: u64, bytes: usize) |call| {
            let event = Event::Unmap { address, bytes: bytes as u64, row: Row::$name as u16 };
            give_back(Row::$name, address, &event, call)
        } }
    };
}

// Look-ups are hooked in proc_address.rs.
macro_rules! look_up {
    ($name:ident) => {};
}
macro_rules! look_up_and_tell {
    ($name:ident) => {};
}

macro_rules! export_rows {
    ($($name:ident = $shape:ident($($what:ident)?), $base:literal, $since:literal, $per_thread:literal;)*) => {
        $($shape! { $name $($what)? })*
    };
}
with_rows!(export_rows);
