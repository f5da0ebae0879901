//! Which nodes of stacks are in the log, in a bounded amount of memory.
//!
//! Owns: two tables without locks in a mapping that the kernel hands to a child as zeroes, since a child's log is another one:
//! the nodes, at most [`MOST_NODES`], and as a shortcut the stacks that were met, which may forget. Together they take
//! [`Known::BYTES`]. Refuses: to grow: what has no room is told as the deepest node that has.

use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};
use memscope_wire::{Event, TextId};

use super::Place;
use super::frames::Hash;
use crate::{log, system};

/// Most nodes of a process.
const MOST_NODES: u32 = 1 << 18;
/// Twice as many places, so that a search is short.
const NODE_PLACES: usize = 1 << 19;
/// Places that are tried for a node.
const NODE_PROBES: usize = 128;
/// Stacks that are known without a look at their nodes.
const STACK_PLACES: usize = 1 << 16;

/// One place on a stack, seen from the one that it was called from.
#[derive(Clone, Copy)]
pub enum Node {
    /// A line of a program's source, or a remark.
    Line { file: TextId, function: TextId, line: u32 },
    /// A place in machine code.
    Address { module: TextId, offset: u64 },
}

impl Node {
    /// What tells it from others with the same caller.
    fn words(self) -> [u64; 3] {
        match self {
            Node::Line { file, function, line } => [file.0, function.0, line as u64],
            Node::Address { module, offset } => [module.0, u64::MAX, offset],
        }
    }

    fn event(self, node: u64, parent: u64) -> Event {
        match self {
            Node::Line { file, function, line } => Event::StackNode { node, parent, file, function, line },
            Node::Address { module, offset } => Event::StackAddress { node, parent, module, offset },
        }
    }
}

/// The tables. All zero is empty.
#[repr(C)]
pub struct Known {
    /// The node of the backward pass that runs.
    backward: AtomicU64,
    count: AtomicU32,
    unused: AtomicU32,
    nodes: [AtomicU64; NODE_PLACES],
    /// Hash of a stack's frames and its place, and the place: a pair that two threads wrote at once fits no stack.
    stacks: [[AtomicU64; 2]; STACK_PLACES],
}

static KNOWN: AtomicPtr<Known> = AtomicPtr::new(null_mut());
/// What [`MOST_NODES`] is in this process.
static MOST: AtomicU32 = AtomicU32::new(MOST_NODES);

/// The tables, once they are there.
#[inline(always)]
pub fn get() -> Option<&'static Known> {
    // SAFETY: the mapping is never unmapped.
    unsafe { KNOWN.load(Acquire).as_ref() }
}

/// Makes the tables; false when there is no memory, or a kernel (before 4.14) that would hand them to a child.
pub fn make(most: Option<u32>) -> bool {
    if let Some(most) = most {
        MOST.store(most.min(MOST_NODES), Relaxed);
    }
    if get().is_some() {
        return true;
    }
    let Some(fresh) = system::map_zeroes(Known::BYTES) else { return false };
    // SAFETY: the mapping is new, and wiping it in a child is what it is for.
    if !unsafe { system::advise(fresh, Known::BYTES, libc::MADV_WIPEONFORK) } {
        // SAFETY: nobody has seen it.
        unsafe { system::unmap(fresh, Known::BYTES) };
        return false;
    }
    KNOWN.store(fresh.cast(), Release);
    true
}

impl Known {
    /// Size of the tables: 5 MiB.
    pub const BYTES: u64 = size_of::<Known>() as u64;

    fn pair(&self, stack: u64) -> Option<&[AtomicU64; 2]> {
        self.stacks.get(stack as usize % STACK_PLACES)
    }

    /// Where the stack with this hash is, if it was met.
    #[inline(always)]
    pub fn place(&self, stack: u64) -> Option<Place> {
        let [both, place] = self.pair(stack)?;
        let place = place.load(Relaxed);
        (place != 0 && both.load(Relaxed) ^ place == stack).then_some(Place(place))
    }

    /// The stack with this hash is here.
    pub fn remember(&self, stack: u64, here: Place) {
        if let Some([both, place]) = self.pair(stack) {
            both.store(stack ^ here.0, Relaxed);
            place.store(here.0, Relaxed);
        }
    }

    /// Goes from a node to the next one, which is in the log from now on; when there is no room, the way ends where it is.
    pub fn go(&self, from: Place, node: Node) -> Place {
        if !from.is_whole() {
            return from;
        }
        let mut hash = Hash::new();
        hash.add(from.0);
        for word in node.words() {
            hash.add(word);
        }
        let next = Place((hash.get() & !Place::IN_PART).max(1));
        let Some((place, known)) = self.find(next.0) else { return from.in_part() };
        if known {
            return next;
        }
        let told = self.count.load(Relaxed) < MOST.load(Relaxed) && log::append(&node.event(next.0, from.0)).is_some();
        if !told {
            return from.in_part();
        }
        // Only now: another thread that finds the node here must find it in the log before its own event. Where another node
        // has taken the place meanwhile, this one is told again at its next use.
        if place.compare_exchange(0, next.0, Release, Relaxed).is_ok() {
            self.count.fetch_add(1, Relaxed);
        }
        next
    }

    /// The place of a node and true, or a vacant one and false; `None` when there is neither.
    fn find(&self, node: u64) -> Option<(&AtomicU64, bool)> {
        for probe in 0..NODE_PROBES {
            let place = self.nodes.get((node as usize).wrapping_add(probe) % NODE_PLACES)?;
            match place.load(Acquire) {
                0 => return Some((place, false)),
                known if known == node => return Some((place, true)),
                _ => {}
            }
        }
        None
    }

    /// Where threads without frames are: where the backward pass that runs was called.
    pub fn backward(&self) -> Place {
        Place(self.backward.load(Acquire))
    }

    /// The place before.
    pub fn set_backward(&self, place: Place) -> Place {
        Place(self.backward.swap(place.0, Release))
    }
}
