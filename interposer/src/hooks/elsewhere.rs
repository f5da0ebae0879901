//! The hooks of memory that this process uses and does not own: imports of another process, pool or interface.
//!
//! Owns: that its addresses and handles are known, so that their free is no riddle. Refuses: to count it: it is counted once, at its
//! exporter.

use core::ffi::{c_int, c_uint};
use memscope_wire::Event;

use crate::driver::{self, SUCCESS};
use crate::state::State;
use crate::table::Row;

/// CUipcMemHandle, passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IpcHandle([u64; 8]);

/// The beginning of CUDA_EXTERNAL_MEMORY_BUFFER_DESC.
#[repr(C)]
pub struct Buffer {
    offset: u64,
    size: u64,
    flags: c_uint,
}

/// What is known of memory that was imported.
#[derive(Clone, Copy)]
pub enum Import {
    /// An address; the driver tells its size.
    Address,
    /// An address, and its size.
    Sized(u64),
    /// A handle that may be mapped.
    Handle,
}

impl Import {
    /// A buffer in imported memory.
    ///
    /// # Safety
    /// The driver has accepted the description, or it is null.
    pub unsafe fn of(buffer: *const Buffer) -> Import {
        // SAFETY: the caller's promise.
        Import::Sized(unsafe { buffer.as_ref() }.map_or(0, |buffer| buffer.size))
    }
}

/// The record of an import.
///
/// # Safety
/// After a success `out` points to an address or a handle.
pub unsafe fn imported(
    row: Row,
    state: &State,
    out: *const u64,
    import: impl FnOnce() -> Import,
    result: c_int,
) -> Option<Event> {
    if result != SUCCESS || out.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let given = unsafe { *out };
    let device = driver::preserving_errno(|| driver::current_device(state));
    let row = row as u16;
    let (address, bytes, handle) = match import() {
        Import::Address => (given, driver::preserving_errno(|| driver::bytes_at(given)), 0),
        Import::Sized(bytes) => (given, bytes, 0),
        Import::Handle => (0, 0, given),
    };
    Some(Event::Elsewhere { address, bytes, handle, device, row })
}

/// Defines a shape of hook: a function that fills its first argument with the address or handle of an import.
macro_rules! imports {
    (($dollar:tt) $($shape:ident($($argument:ident: $type:ty),*) $import:expr;)*) => {
        $(imports! { @one $dollar $shape ($($argument: $type),*) $import })*
    };
    (@one $dollar:tt $shape:ident ($($argument:ident: $type:ty),*) $import:expr) => {
        macro_rules! $shape {
            ($dollar name:ident) => {
                hook! { $dollar name(out: *mut u64, $($argument: $type),*) |call| {
                    observe(Row::$dollar name, call, |state, result| {
                        // SAFETY: after a success the driver has filled `out`.
                        unsafe { elsewhere::imported(Row::$dollar name, state, out, || $import, result) }
                    })
                } }
            };
        }
        pub(super) use $shape;
    };
}

imports! {
    ($)
    opened(handle: elsewhere::IpcHandle, flags: c_uint) elsewhere::Import::Address;
    pointed(pool: *mut c_void, data: *mut c_void) elsewhere::Import::Address;
    buffered(memory: *mut c_void, buffer: *const elsewhere::Buffer) elsewhere::Import::of(buffer);
    levels_of(memory: *mut c_void, description: *const c_void) elsewhere::Import::Handle;
    received(shared: *mut c_void, kind: c_int) elsewhere::Import::Handle;
}

/// One more reference to memory that is mapped at an address.
macro_rules! retained {
    ($name:ident) => {
        hook! { $name(out: *mut u64, address: *mut c_void) |call| {
            observe(Row::$name, call, |_, result| {
                // SAFETY: after a success the driver has filled `out`.
                (result == SUCCESS).then(|| Event::Retain { handle: unsafe { *out }, row: Row::$name as u16 })
            })
        } }
    };
}
pub(super) use retained;
