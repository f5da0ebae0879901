//! The hooks of what the driver makes without telling its bytes: modules, libraries, pools, graphs, imported memory, multicast
//! objects.
//!
//! Owns: that they are recorded with their handle and device. Refuses: to invent bytes for them. Contexts, which end what is in
//! them, are in contexts.rs.

use core::ffi::c_int;
use memscope_wire::{Event, Object};

use super::Properties;
use crate::driver::{self, SUCCESS};
use crate::state::State;
use crate::table::Row;

/// Whose device an object is on: that of the thread's context, or the one that it was asked for on.
#[derive(Clone, Copy)]
pub enum Place {
    /// The device of the thread's context.
    Context,
    /// This one.
    Device(u32),
}

impl Place {
    /// Where a pool with these properties is.
    ///
    /// # Safety
    /// The driver has accepted them, or they are null.
    pub unsafe fn of_pool(properties: *const Properties) -> Place {
        // SAFETY: the caller's promise.
        match unsafe { properties.as_ref() } {
            Some(properties) => Place::Device(properties.device()),
            None => Place::Context,
        }
    }
}

/// The record of an object that was made.
///
/// # Safety
/// After a success `out` points to a handle.
pub unsafe fn made(
    row: Row,
    object: Object,
    state: &State,
    out: *const u64,
    place: impl FnOnce() -> Place,
    result: c_int,
) -> Option<Event> {
    if result != SUCCESS || out.is_null() {
        return None;
    }
    let device = match place() {
        Place::Context => driver::preserving_errno(|| driver::current_device(state)),
        Place::Device(device) => device,
    };
    driver::preserving_errno(|| driver::introduce(state, device));
    // SAFETY: the caller's promise.
    Some(Event::Object { object, handle: unsafe { *out }, device, row: row as u16 })
}

/// Defines a shape of hook: a function that fills its first argument with an object's handle. What stands behind the arguments is
/// where the object is.
macro_rules! makers {
    (($dollar:tt) $($shape:ident($($argument:ident: $type:ty),*) $place:expr;)*) => {
        $(makers! { @one $dollar $shape ($($argument: $type),*) $place })*
    };
    (@one $dollar:tt $shape:ident ($($argument:ident: $type:ty),*) $place:expr) => {
        macro_rules! $shape {
            ($dollar name:ident $dollar object:ident) => {
                hook! { $dollar name(out: *mut u64, $($argument: $type),*) |call| {
                    observe(Row::$dollar name, call, |state, result| {
                        // SAFETY: after a success the driver has filled `out`.
                        unsafe { objects::made(Row::$dollar name, Object::$dollar object, state, out, || $place, result) }
                    })
                } }
            };
        }
        pub(super) use $shape;
    };
}

makers! {
    ($)
    object(what: *const c_void) objects::Place::Context;
    object_with_options(what: *const c_void, count: c_uint, options: *mut c_void, values: *mut c_void)
        objects::Place::Context;
    object_with_two_lists(
        what: *const c_void, options: *mut c_void, values: *mut c_void, count: c_uint,
        library_options: *mut c_void, library_values: *mut c_void, library_count: c_uint
    ) objects::Place::Context;
    object_of(from: *mut c_void, flags: u64) objects::Place::Context;
    object_or_text(from: *mut c_void, node: *mut c_void, text: *mut c_void, bytes: usize) objects::Place::Context;
    object_by(from: *mut c_void, parameters: *mut c_void) objects::Place::Context;
    object_shared(shared: *mut c_void, kind: c_int, flags: u64) objects::Place::Context;
    pool(properties: *const Properties) objects::Place::of_pool(properties);
}

macro_rules! object_end {
    ($name:ident $object:ident) => {
        hook! { $name(handle: u64) |call| {
            observe(Row::$name, call, |_, result| {
                let (object, row) = (Object::$object, Row::$name as u16);
                (result == SUCCESS).then_some(Event::ObjectEnd { object, handle, row })
            })
        } }
    };
}
pub(super) use object_end;
