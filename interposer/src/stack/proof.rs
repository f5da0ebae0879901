//! What the shim calls to find out whether stacks can be read in this Python, and to begin.
//!
//! Owns: the functions of `python/stacks.py`. It walks through functions of all kinds, and compares what is found here with what
//! Python itself says, before anything of the program is read this way. Refuses: to begin without that.

use core::ffi::c_int;
use memscope_wire::text::MAX_TEXT_BYTES;

use super::{DEEPEST, begin_backward, end_backward, frames, known, layout, switch_on};
use crate::creation;

/// 0 when stacks were not asked for, 1 when they can be tried, 2 when this version of Python is not known, 3 when there is no
/// memory for the tables. `version` is Python's `sys.hexversion`.
///
/// # Safety
/// The caller holds Python's lock.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn memscope_shim_stacks(version: u32) -> c_int {
    let Some(most) = creation::wants_stacks() else { return 0 };
    // SAFETY: the caller's promise.
    if !unsafe { layout::find(version) } {
        return 2;
    }
    if known::make(most) { 1 } else { 3 }
}

/// Writes the calling thread's frames into a buffer, the innermost first, each as its file, line and function that end with NUL.
/// How many bytes.
///
/// # Safety
/// The caller holds Python's lock, and has been told 1 by `memscope_shim_stacks`; `buffer` has this room.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn memscope_shim_stack(buffer: *mut u8, room: usize) -> usize {
    let Some(layout) = layout::get() else { return 0 };
    // SAFETY: the caller's promise.
    let buffer = unsafe { core::slice::from_raw_parts_mut(buffer, room) };
    let (mut used, mut depth) = (0, 0);
    frames::for_all(layout, |frame| {
        let mut put = |bytes: &[u8]| {
            for byte in bytes.iter().chain(b"\0") {
                if let Some(place) = buffer.get_mut(used) {
                    *place = *byte;
                    used += 1;
                }
            }
        };
        let mut text = [0; MAX_TEXT_BYTES];
        put(frame.file(layout, &mut text));
        let mut digits = [b'0'; 10];
        let mut line = frame.line(layout);
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (line % 10) as u8;
            line /= 10;
        }
        put(&digits);
        put(frame.function(layout, &mut text));
        depth += 1;
        depth < DEEPEST
    });
    used
}

/// What was found was right: stacks are told from now on.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_shim_stacks_begin() {
    switch_on();
}

/// A backward pass begins in this thread. What is to be said at its end.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_shim_backward_begin() -> u64 {
    begin_backward()
}

/// It ends.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_shim_backward_end(before: u64) {
    end_backward(before);
}
