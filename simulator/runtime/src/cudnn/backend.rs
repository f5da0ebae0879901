//! The graph API: descriptors with attributes. An operation graph has one engine, which does nothing and wants no workspace.
//!
//! Owns: what was set, and the few answers that an engine would give. Refuses: to judge whether a real engine would take the
//! graph: every graph is supported here.

use super::Handle;
use crate::api::{Out, store};
use crate::calls;
use crate::status::CudnnStatus;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// Attributes whose values are the engine's (cudnnBackendAttributeName_t).
mod name {
    pub const HEURISTIC_RESULTS: i32 = 202;
    pub const ENGINE_OF_CONFIGURATION: i32 = 300;
    pub const KNOBS: [i32; 2] = [302, 1302];
    pub const WORKSPACE: [i32; 2] = [303, 402];
    pub const SHARED_MEMORY: i32 = 304;
    pub const JSON: i32 = 405;
    pub const ENGINE_COUNT: i32 = 802;
    pub const ENGINE_INDEX: i32 = 1301;
    pub const NOTES: [i32; 2] = [1303, 1305];
}

const ENGINE_CONFIGURATION: c_int = 3;
const JSON: &[u8] = b"{\"memscope\":1}\0";

struct Attribute {
    count: i64,
    bytes: Vec<u8>,
}

/// A descriptor; its attributes, and whether it was finalized.
pub struct Descriptor {
    kind: Mutex<c_int>,
    attributes: Mutex<BTreeMap<i32, Attribute>>,
}

/// Bytes of an element of an attribute type (cudnnBackendAttributeType_t).
fn element(kind: c_int) -> usize {
    match kind {
        // handle, int64, double, pointer, descriptor
        0 | 3 | 5 | 6 | 15 => 8,
        // boolean, char
        2 | 24 => 1,
        // fraction: two int64
        26 => 16,
        _ => 4,
    }
}

/// # Safety
/// The pointer must be null or a descriptor of cudnnBackendCreateDescriptor: they are never freed, since others refer to them.
unsafe fn descriptor<'a>(pointer: *const Descriptor) -> Result<&'a Descriptor, CudnnStatus> {
    // SAFETY: as the caller says.
    unsafe { pointer.as_ref() }.ok_or(CudnnStatus::BAD_PARAM)
}

/// A place for `room` elements, of which `count` are told.
struct Answer<'a> {
    kind: c_int,
    room: i64,
    count: Out<'a, i64>,
    place: *mut u8,
}

impl Answer<'_> {
    /// Gives `elements` elements, as many as there is room for.
    ///
    /// # Safety
    /// The place must be null or have the room, and `bytes` hold the elements.
    unsafe fn give(self, elements: i64, bytes: &[u8]) -> Result<(), CudnnStatus> {
        store(self.count, elements);
        let given = usize::try_from(elements.min(self.room)).unwrap_or(0) * element(self.kind);
        if !self.place.is_null() {
            // SAFETY: as the caller says.
            unsafe { self.place.copy_from_nonoverlapping(bytes.as_ptr(), given.min(bytes.len())) };
        }
        Ok(())
    }
}

/// The engine's answers, and else what was set.
///
/// # Safety
/// As [`Answer::give`].
unsafe fn answer(asked: &Descriptor, attribute: c_int, answer: Answer<'_>) -> Result<(), CudnnStatus> {
    // SAFETY: as the caller says; for descriptors, the program gives one to be filled.
    unsafe {
        match attribute {
            name::HEURISTIC_RESULTS | name::ENGINE_OF_CONFIGURATION => {
                if !answer.place.is_null() && answer.room > 0 && attribute == name::HEURISTIC_RESULTS {
                    let filled = descriptor(*answer.place.cast::<*const Descriptor>())?;
                    *filled.kind.lock().unwrap_or_else(PoisonError::into_inner) = ENGINE_CONFIGURATION;
                }
                store(answer.count, 1);
                Ok(())
            }
            name::ENGINE_INDEX => answer.give(1, &0_i64.to_ne_bytes()),
            name::ENGINE_COUNT => answer.give(1, &1_i64.to_ne_bytes()),
            name::SHARED_MEMORY => answer.give(1, &[0; 8]),
            name::JSON => answer.give(JSON.len() as i64, JSON),
            attribute if name::WORKSPACE.contains(&attribute) => answer.give(1, &0_i64.to_ne_bytes()),
            attribute if name::NOTES.contains(&attribute) || name::KNOBS.contains(&attribute) => answer.give(0, &[]),
            _ => {
                let attributes = asked.attributes.lock().unwrap_or_else(PoisonError::into_inner);
                match attributes.get(&attribute) {
                    Some(set) => answer.give(set.count, &set.bytes),
                    None => answer.give(0, &[]),
                }
            }
        }
    }
}

api! {
    simulated fn cudnnBackendCreateDescriptor(kind: c_int, place: Out<'_, *const Descriptor>) -> CudnnStatus {
        let made = Descriptor { kind: Mutex::new(kind), attributes: Mutex::new(BTreeMap::new()) };
        store(place, Box::into_raw(Box::new(made)).cast_const());
        Ok(())
    }
    no_op fn cudnnBackendDestroyDescriptor(_pointer: *const Descriptor) -> CudnnStatus { Ok(()) }
    no_op fn cudnnBackendFinalize(pointer: *const Descriptor) -> CudnnStatus {
        // SAFETY: the program gives a descriptor.
        unsafe { descriptor(pointer) }.map(|_| ())
    }
    simulated fn cudnnBackendSetAttribute(
        pointer: *const Descriptor, attribute: c_int, kind: c_int, count: i64, elements: *const u8,
    ) -> CudnnStatus {
        // SAFETY: the program gives a descriptor, and `count` elements of that type.
        unsafe {
            let set = descriptor(pointer)?;
            let size = usize::try_from(count).map_err(|_| CudnnStatus::BAD_PARAM)? * element(kind);
            let bytes = if elements.is_null() || size == 0 {
                Vec::new()
            } else {
                std::slice::from_raw_parts(elements, size).to_vec()
            };
            set.attributes.lock().unwrap_or_else(PoisonError::into_inner).insert(attribute, Attribute { count, bytes });
        }
        Ok(())
    }
    size fn cudnnBackendGetAttribute(
        pointer: *const Descriptor, attribute: c_int, kind: c_int, room: i64, count: Out<'_, i64>, place: *mut u8,
    ) -> CudnnStatus {
        // SAFETY: the program gives a descriptor, and room for that many elements or null.
        unsafe { answer(descriptor(pointer)?, attribute, Answer { kind, room, count, place }) }
    }
    no_op fn cudnnBackendExecute(
        _handle: *mut Handle, _plan: *const Descriptor, _variant: *const c_void,
    ) -> CudnnStatus {
        calls::computed::<CudnnStatus>("cudnnBackendExecute");
        Ok(())
    }
}
