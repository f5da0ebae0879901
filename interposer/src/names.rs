//! Names travel once, in parts, and then as a hash.
//!
//! Owns: the record of which names this log has already. It is a fixed table without locks: when it is full, or two threads
//! meet a name at once, the text is sent again, which a reader takes as the same. Refuses: to judge a name: bytes that are not
//! UTF-8 are sent as they are.

use core::ffi::c_char;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, Release};
use memscope_wire::text::{MAX_TEXT_BYTES, PART_BYTES};
use memscope_wire::{Event, TextId};

use crate::state::State;
use crate::{creation, log, state};

const PLACES: usize = 4096;
/// Places that are tried for a name.
const PROBES: usize = 8;

/// Hashes of the names that are in the log. All zero is the empty table.
pub struct Sent([AtomicU64; PLACES]);

impl Sent {
    /// The places where `id` may be.
    #[inline(always)]
    fn places(&self, id: TextId) -> impl Iterator<Item = &AtomicU64> {
        (0..PROBES).filter_map(move |probe| self.0.get((id.0 as usize).wrapping_add(probe) % PLACES))
    }

    fn contains(&self, id: TextId) -> bool {
        for place in self.places(id) {
            match place.load(Relaxed) {
                0 => return false,
                known if known == id.0 => return true,
                _ => {}
            }
        }
        false
    }

    fn insert(&self, id: TextId) {
        for place in self.places(id) {
            match place.compare_exchange(0, id.0, Release, Relaxed) {
                Ok(_) => return,
                Err(known) if known == id.0 => return,
                Err(_) => {}
            }
        }
    }

    /// Forgets all names.
    pub fn clear(&self) {
        for place in &self.0 {
            place.store(0, Relaxed);
        }
    }
}

/// The hash of a C string, whose text is in the log from now on. [`TextId::NONE`] for null and the empty string.
///
/// # Safety
/// `name` is null or a terminated string.
pub unsafe fn identify(name: *const c_char) -> TextId {
    let Some((state, _)) = state::recording() else { return TextId::NONE };
    // SAFETY: the caller's promise.
    identify_in(state, unsafe { creation::bytes_of(name, MAX_TEXT_BYTES) })
}

/// The hash of a text of at most [`MAX_TEXT_BYTES`], which is in the log from now on.
pub fn identify_text(text: &[u8]) -> TextId {
    state::recording().map_or(TextId::NONE, |(state, _)| identify_in(state, text))
}

/// True when the text with this hash is in the log.
pub fn is_sent(id: TextId) -> bool {
    state::recording().is_some_and(|(state, _)| state.sent.contains(id))
}

fn identify_in(state: &State, text: &[u8]) -> TextId {
    let id = TextId::of(text);
    if !id.is_none() && !state.sent.contains(id) && send(id, text) {
        // Only now: another thread that finds the name in the table must find its text before its own event.
        state.sent.insert(id);
    }
    id
}

/// Appends the parts of a text. False when one did not fit: then it is sent again at its next use.
fn send(id: TextId, text: &[u8]) -> bool {
    let mut complete = true;
    for (part, piece) in text.chunks(PART_BYTES).enumerate() {
        let mut bytes = [0; PART_BYTES];
        for (place, byte) in bytes.iter_mut().zip(piece) {
            *place = *byte;
        }
        complete &=
            log::append(&Event::Text { id, total_bytes: text.len() as u32, part: part as u32, bytes }).is_some();
    }
    complete
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Box<Sent> {
        Box::new(Sent(std::array::from_fn(|_| AtomicU64::new(0))))
    }

    #[test]
    fn a_name_is_known_once_it_was_inserted() {
        let sent = empty();
        let id = TextId::of(b"layer 3");
        assert!(!sent.contains(id));
        sent.insert(id);
        sent.insert(id);
        assert!(sent.contains(id));
        assert!(!sent.contains(TextId::of(b"layer 4")));
        assert_eq!(sent.0.iter().filter(|place| place.load(Relaxed) != 0).count(), 1);
        sent.clear();
        assert!(!sent.contains(id));
    }

    #[test]
    fn a_full_neighbourhood_forgets_instead_of_failing() {
        let sent = empty();
        let same_place = |turn: u64| TextId(PLACES as u64 * (turn + 1) + PLACES as u64 - 2);
        for turn in 0..PROBES as u64 + 3 {
            sent.insert(same_place(turn));
        }
        let known = (0..PROBES as u64 + 3).filter(|turn| sent.contains(same_place(*turn))).count();
        assert_eq!(known, PROBES);
    }
}
