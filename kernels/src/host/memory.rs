//! Device memory as the host references see it, and how they share work among cores.
//!
//! Owns: raw pointers and their slices. Refuses: to know shapes.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An array of `T` on the device. Copies of it may be used by several threads, each on its own part.
pub(super) struct Memory<T>(*mut T);

impl<T> Clone for Memory<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Memory<T> {}

// SAFETY: only an address; who dereferences it promises, in an unsafe call, that no other thread is in the way.
unsafe impl<T> Send for Memory<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Memory<T> {}

impl<T: Copy> Memory<T> {
    pub fn new(pointer: *mut T) -> Self {
        Memory(pointer)
    }

    /// The address of element `index`.
    pub fn at(self, index: usize) -> *mut T {
        self.0.wrapping_add(index)
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Elements `range`, to read.
    ///
    /// # Safety
    /// They exist, and nothing writes them while the slice lives.
    pub unsafe fn read<'a>(self, range: Range<usize>) -> &'a [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.at(range.start), range.len()) }
    }

    /// Elements `range`, to write.
    ///
    /// # Safety
    /// They exist, and nothing else reads or writes them while the slice lives.
    pub unsafe fn write<'a>(self, range: Range<usize>) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.at(range.start), range.len()) }
    }
}

/// Elements in a piece of elementwise work: enough that starting a piece costs little beside it.
const PIECE_ELEMENTS: usize = 16_384;

/// Calls `work` with disjoint ranges that together are 0..elements.
pub(super) fn for_pieces(elements: usize, work: impl Fn(Range<usize>) + Sync) {
    let piece = |index: usize| index * PIECE_ELEMENTS..elements.min((index + 1) * PIECE_ELEMENTS);
    for_each(elements.div_ceil(PIECE_ELEMENTS), 1, |index| work(piece(index)));
}

/// Calls `work` with every row of a matrix with `rows` rows of `width` elements.
pub(super) fn for_rows(rows: usize, width: usize, work: impl Fn(usize) + Sync) {
    for_each(rows, PIECE_ELEMENTS.div_ceil(width.max(1)), work);
}

/// Calls `work` with 0..count, at least `together` of them on one core.
pub(super) fn for_each(count: usize, together: usize, work: impl Fn(usize) + Sync) {
    let tasks = count.div_ceil(together.max(1));
    let cores = rayon::current_num_threads().min(tasks);
    if cores <= 1 {
        return (0..count).for_each(work);
    }
    // Tasks are taken as cores become free, four for each core so that none waits long for another.
    let together = together.max(count / (4 * cores));
    let next = AtomicUsize::new(0);
    let take_all = || {
        loop {
            let first = next.fetch_add(together, Ordering::Relaxed);
            if first >= count {
                break;
            }
            (first..count.min(first + together)).for_each(&work);
        }
    };
    // This thread begins at once, and does not wait for another to wake up.
    rayon::in_place_scope(|scope| {
        for _ in 1..cores {
            scope.spawn(|_| take_all());
        }
        take_all();
    });
}
