//! The C API of include/memscope.h: what a program says about its own memory.
//!
//! Owns: the exported functions, which tolerate null pointers, unknown categories and names in any encoding. Refuses: to
//! look at the memory that a pointer names.

use core::ffi::{c_char, c_int, c_void};
use memscope_wire::{Category, Event, Origin};

use crate::log::append;
use crate::names::identify;
use crate::{scope, state};

/// The category with this number, and how it is known: an unassigned number is none at all.
fn category_of(number: c_int) -> (Category, Origin) {
    match u8::try_from(number).map(Category::from_number) {
        Ok(Category::Unknown) | Err(_) => (Category::Unknown, Origin::None),
        Ok(category) => (category, Origin::Tagged),
    }
}

/// See memscope.h.
///
/// # Safety
/// `name` is null or a terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn memscope_tag(address: *const c_void, category: c_int, name: *const c_char) {
    if address.is_null() {
        return;
    }
    let (category, origin) = category_of(category);
    // SAFETY: the caller's promise.
    let name = unsafe { identify(name) };
    append(&Event::Tag { address: address as u64, name, category, origin });
}

/// See memscope.h.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_block_alloc(address: *const c_void, bytes: u64, stream: *mut c_void) {
    if !address.is_null() {
        let (address, stream) = (address as u64, stream as u64);
        if state::recording().is_some() {
            scope::settle();
        }
        append(&Event::BlockAlloc { address, bytes, requested: bytes, stream, origin: Origin::Tagged });
    }
}

/// See memscope.h.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_block_free(address: *const c_void) {
    if !address.is_null() {
        append(&Event::BlockFree { address: address as u64, origin: Origin::Tagged });
    }
}

/// See memscope.h.
///
/// # Safety
/// `name` is null or a terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn memscope_scope_push(name: *const c_char) {
    // SAFETY: the caller's promise.
    let name = unsafe { identify(name) };
    append(&Event::ScopePush { name });
}

/// See memscope.h.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_scope_pop() {
    append(&Event::ScopePop);
}

/// See memscope.h.
///
/// # Safety
/// `name` is null or a terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn memscope_phase(name: *const c_char) {
    // SAFETY: the caller's promise.
    let name = unsafe { identify(name) };
    append(&Event::Phase { name });
}

/// See memscope.h.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_step(number: u64) {
    append(&Event::Step { number });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_a_category_are_unknown() {
        assert_eq!(category_of(1), (Category::Weights, Origin::Tagged));
        assert_eq!(category_of(6), (Category::Workspace, Origin::Tagged));
        for number in [0, 7, 255, 257, -1, c_int::MAX, c_int::MIN] {
            assert_eq!(category_of(number), (Category::Unknown, Origin::None), "{number}");
        }
    }
}
