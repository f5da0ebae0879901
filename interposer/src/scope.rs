//! The module that a thread of a Python program is in: a word of the thread, which the shim writes without a call.
//!
//! Owns: telling the log of it, right before an allocation that belongs there: a module that allocates nothing costs the
//! program one store. Refuses: the scopes of the C API, which are events of their own.

use memscope_wire::{Event, TextId};

use crate::{creation, log, stack, thread};

/// Says where the thread is, in modules and in lines, if it is elsewhere than at its last allocation.
#[inline(always)]
pub fn settle() {
    stack::settle();
    let thread = thread::current();
    let now = thread.scope.get();
    if now != thread.recorded_scope.get() {
        moved(now);
    }
}

#[cold]
#[inline(never)]
fn moved(now: u64) {
    if creation::wants_no_places() {
        thread::current().recorded_scope.set(now);
        return;
    }
    // The first event of a thread in a log forgets what was said in another one.
    if log::append(&Event::Scope { path: TextId(now) }).is_some() {
        thread::current().recorded_scope.set(now);
    }
}
