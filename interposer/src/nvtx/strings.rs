//! What NVTX is given for a string or a domain that the program registers, and hands back with each range.
//!
//! Owns: a piece of memory of [`BYTES`] to which texts are only appended, and which a forked child has too: it has what it was given
//! before the fork. Refuses: to grow: what has no room has no name.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicPtr, AtomicUsize};

use crate::system;

/// Room for texts.
const BYTES: usize = 1 << 20;
/// Texts begin at multiples of this, with their length.
const UNIT: usize = 8;

static TEXTS: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static USED: AtomicUsize = AtomicUsize::new(0);

/// The memory, made at the first call; null when there is none.
fn texts() -> *mut u8 {
    let known = TEXTS.load(Acquire);
    if !known.is_null() {
        return known;
    }
    let Some(fresh) = system::map_zeroes(BYTES as u64) else { return null_mut() };
    match TEXTS.compare_exchange(null_mut(), fresh, AcqRel, Acquire) {
        Ok(_) => fresh,
        Err(other) => {
            // SAFETY: nobody has seen it.
            unsafe { system::unmap(fresh, BYTES as u64) };
            other
        }
    }
}

/// Keeps a text; what NVTX is given for it, null when there is no room.
pub fn keep(text: &[u8]) -> *const c_void {
    let texts = texts();
    let bytes = UNIT + text.len().next_multiple_of(UNIT);
    if texts.is_null() || USED.load(Relaxed).saturating_add(bytes) > BYTES {
        return core::ptr::null();
    }
    let at = USED.fetch_add(bytes, Relaxed);
    if at.saturating_add(bytes) > BYTES {
        return core::ptr::null();
    }
    // SAFETY: the piece lies in the mapping, is aligned for its length, and is this call's alone.
    unsafe {
        let place = texts.add(at);
        place.cast::<u64>().write(text.len() as u64);
        core::ptr::copy_nonoverlapping(text.as_ptr(), place.add(UNIT), text.len());
        place.cast_const().cast()
    }
}

/// The text behind what NVTX was given; `None` for anything else.
pub fn text<'a>(given: *const c_void) -> Option<&'a [u8]> {
    let texts = TEXTS.load(Acquire);
    let at = (given as usize).checked_sub(texts as usize)?;
    if texts.is_null() || at % UNIT != 0 || at.checked_add(UNIT)? > USED.load(Relaxed).min(BYTES) {
        return None;
    }
    // SAFETY: in the mapping and aligned. A number that is no length, as that of a pointer into the middle of a text, is refused below
    // or names bytes of other texts.
    unsafe {
        let place = texts.add(at);
        let length = place.cast::<u64>().read() as usize;
        if length > BYTES - UNIT - at {
            return None;
        }
        Some(core::slice::from_raw_parts(place.add(UNIT), length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_and_nothing_else_does() {
        let (one, other) = (keep(b"one"), keep(b""));
        assert_eq!((text(one), text(other)), (Some(&b"one"[..]), Some(&b""[..])));
        let outside = 0_u64;
        for given in
            [core::ptr::null(), (&raw const outside).cast(), one.wrapping_byte_add(1), usize::MAX as *const c_void]
        {
            assert_eq!(text(given), None);
        }
        // Far too much for what there is room for.
        let long = [b'x'; 1000];
        assert!((0..BYTES / 1000 + 1).any(|_| keep(&long).is_null()));
        assert_eq!(text(one), Some(&b"one"[..]));
    }
}
