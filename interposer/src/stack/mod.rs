//! Which lines of the program a thread is at: told right before an allocation that is made elsewhere than the last one.
//!
//! Owns: the switch (`memscope run --stacks python` and `native`); of Python programs, the way from the calling thread's frames to a node of the log, and what
//! stands for a thread of PyTorch's that has no Python frames while it computes a backward pass. Refuses: Python's lock, and any
//! thread's frames but the caller's own: it is inside C code, so that they stay as they are.
//!
//! | file | what it owns |
//! | --- | --- |
//! | `layout.rs` | where the parts of Python's objects lie, by version |
//! | `frames.rs` | the calling thread's frames |
//! | `text.rs` | a str object as UTF-8 |
//! | `lines.rs` | the table of lines of a code object |
//! | `known.rs` | which nodes are in the log, in bounded memory |
//! | `proof.rs` | what the shim calls, to prove all this before it is used |
//! | `native/` | the calling thread's machine code |

mod frames;
mod known;
mod layout;
mod lines;
pub mod native;
mod proof;
mod text;

use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use memscope_wire::text::MAX_TEXT_BYTES;
use memscope_wire::{Event, TextId};

use crate::{creation, log, names, state, thread};
use frames::{Frame, Hash};
use known::{Known, Node};
use layout::Layout;

/// Most frames of a stack, the innermost ones.
const DEEPEST: usize = 128;

/// Remarks: nodes without a file.
const BACKWARD: &[u8] = b"<backward>";
const CUT: &[u8] = b"<deeper>";
const LOST: &[u8] = b"<lost>";
const NO_FILE: &[u8] = b"<no file>";

/// What is told, for good: set when it was asked for, and the layout of Python's objects was proved where they are read.
static ON: AtomicU8 = AtomicU8::new(OFF);
const OFF: u8 = 0;
const PYTHON: u8 = 1;
const NATIVE: u8 = 2;

/// Says where the thread is, if stacks are wanted and it is elsewhere than at its last allocation.
#[inline(always)]
pub fn settle() {
    let on = ON.load(Relaxed);
    if on != OFF {
        arrive(on);
    }
}

#[cold]
#[inline(never)]
fn arrive(on: u8) {
    let (Some((state, log)), Some(known)) = (state::recording(), known::get()) else { return };
    let thread = thread::current();
    if thread.generation.get() != state.generation.load(Relaxed) {
        // Else the first event would make the thread forget what is said here.
        log::introduce(state, log, thread);
    }
    let now = if on == NATIVE { native::own(known) } else { in_python(known) };
    if now.0 != thread.recorded_stack.get()
        && log::append(&Event::Stack { node: now.node(), whole: now.is_whole() }).is_some()
    {
        thread.recorded_stack.set(now.0);
    }
}

/// Where the calling thread is in a Python program.
fn in_python(known: &Known) -> Place {
    let Some(layout) = layout::get() else { return Place::NOWHERE };
    match own(layout, known) {
        Place::NOWHERE => known.backward(),
        place => place,
    }
}

/// A node of the log, and whether it is the whole truth.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Place(u64);

impl Place {
    const NOWHERE: Place = Place(0);
    /// Nodes have no such bit.
    const IN_PART: u64 = 1 << 63;

    fn node(self) -> u64 {
        self.0 & !Place::IN_PART
    }

    fn is_whole(self) -> bool {
        self.0 & Place::IN_PART == 0
    }

    fn in_part(self) -> Place {
        Place(self.0 | Place::IN_PART)
    }
}

/// Where the calling thread's own frames are.
fn own(layout: &Layout, known: &Known) -> Place {
    let mut hash = Hash::new();
    let mut any = false;
    let cut = frames::each(layout, DEEPEST, |frame| {
        any = true;
        frame.add_to(layout, &mut hash);
    });
    if !any {
        return Place::NOWHERE;
    }
    hash.add(cut as u64);
    let stack = hash.get();
    if let Some(place) = known.place(stack) {
        return place;
    }
    let place = tell(layout, known);
    known.remember(stack, place);
    place
}

/// Puts the nodes of the calling thread's stack into the log, as far as there is room.
#[cold]
#[inline(never)]
fn tell(layout: &Layout, known: &Known) -> Place {
    let mut stack = [Frame::NONE; DEEPEST];
    let mut depth = 0;
    let cut = frames::each(layout, DEEPEST, |frame| {
        if let Some(place) = stack.get_mut(depth) {
            *place = frame;
            depth += 1;
        }
    });
    let mut place = Place::NOWHERE;
    if cut {
        place = known.remark(place, CUT);
    }
    for frame in stack.iter().take(depth).rev() {
        let mut buffer = [0; MAX_TEXT_BYTES];
        let file = names::identify_text(frame.file(layout, &mut buffer));
        let function = names::identify_text(frame.function(layout, &mut buffer));
        place = known.go(place, Node::Line { file, function, line: frame.line(layout) });
        if !place.is_whole() {
            break;
        }
    }
    place
}

impl Known {
    /// Where a remark leads to.
    fn remark(&self, from: Place, text: &[u8]) -> Place {
        self.go(from, Node::Line { file: TextId::NONE, function: names::identify_text(text), line: 0 })
    }
}

/// A backward pass begins: what other threads allocate in it is the calling thread's doing. What was so before.
pub fn begin_backward() -> u64 {
    let (PYTHON, Some(layout), Some(known)) = (ON.load(Acquire), layout::get(), known::get()) else { return 0 };
    let here = own(layout, known);
    let place = if here == Place::NOWHERE || !here.is_whole() { here } else { known.remark(here, BACKWARD) };
    known.set_backward(place).0
}

/// It ends.
pub fn end_backward(before: u64) {
    if let (PYTHON, Some(known)) = (ON.load(Acquire), known::get()) {
        known.set_backward(Place(before));
    }
}

/// Stacks of Python are told from now on.
fn switch_on() {
    ON.store(PYTHON, Release);
}

/// Stacks of machine code are told from now on, if the environment asks for them and it can be done. To be called when a log is open.
pub fn begin() {
    let Some(most) = creation::wants_native_stacks() else { return };
    if known::make(most) && native::make() {
        ON.store(NATIVE, Release);
    } else {
        let text =
            b"native stacks are not recorded: there is no memory for their tables, or the kernel is older than 4.14";
        log::append(&Event::Notice { text: names::identify_text(text) });
    }
}
