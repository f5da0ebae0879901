//! Keeps the Parquet decoder's panics, which only a file made to deceive can provoke, from the user.
//!
//! Owns: silence for the thread that decodes. Refuses: to hush any other panic.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Runs a decoder; `None` when it panicked. Nothing is printed of a panic inside, on this thread.
pub(super) fn survive<T>(decode: impl FnOnce() -> T) -> Option<T> {
    let _decoding = Decoding::begin();
    catch_unwind(AssertUnwindSafe(decode)).ok()
}

/// Lasts while this thread decodes.
struct Decoding {
    outer: bool,
}

impl Decoding {
    fn begin() -> Decoding {
        // A hook belongs to the whole process. This one is set once, asks for the thread, and leaves the rest to the hook
        // that was there.
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                if !DECODING.get() {
                    hook(panic);
                }
            }));
        });
        Decoding { outer: DECODING.replace(true) }
    }
}

impl Drop for Decoding {
    fn drop(&mut self) {
        DECODING.set(self.outer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_panics_inside_are_silent() {
        assert_eq!(survive(|| 7), Some(7));
        assert_eq!(survive(|| survive(|| -> u8 { panic!("silent") })), Some(None));
        assert!(!DECODING.get(), "a panic after it is heard");
        assert_eq!(survive(|| DECODING.get()), Some(true));
    }
}
