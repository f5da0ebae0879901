//! Any bytes as a profile: an error or a report, no panic, no more memory than the file is worth.
//!
//! The first byte chooses how the rest is used: as the whole file; as one table of a sound profile; or as changes of some bytes
//! of one table. Checksums of the zip are right in the last two cases, so that the fuzzer gets behind them.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use memscope_core_fuzz::{Members, look_at};

/// A sound profile: the seed without its first byte.
static SOUND: LazyLock<Members> = LazyLock::new(|| Members::of(&include_bytes!("../seeds/profile/whole")[1..]));

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, bytes)) = bytes.split_first() else { return };
    let with_member = |which: u8, edit: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        let here = usize::from(which) % SOUND.len();
        SOUND.with(here, edit(SOUND.content(here)))
    };
    look_at(&match (mode % 3, bytes.split_first()) {
        (0, _) => bytes.to_vec(),
        (1, Some((which, table))) => with_member(*which, &|_| table.to_vec()),
        (_, Some((which, changes))) => with_member(*which, &|content| changed(content, changes)),
        (_, None) => return,
    });
});

/// A table with some bytes changed: each change is a position (u16, from the end when the top bit is set) and a value.
fn changed(mut content: Vec<u8>, changes: &[u8]) -> Vec<u8> {
    for change in changes.chunks_exact(3) {
        let position = usize::from(change[0]) | usize::from(change[1] & 0x7f) << 8;
        let length = content.len().max(1);
        let position = if change[1] & 0x80 == 0 { position % length } else { length - 1 - position % length };
        if let Some(byte) = content.get_mut(position) {
            *byte = change[2];
        }
    }
    content
}
