//! Any bytes as a checkpoint: an error or a model, no panic, no more memory than the file is worth.
//!
//! The first byte chooses how the rest is used: as the whole file; as the JSON of its body; or as changes of some values of a sound
//! body. Checksums are right in the last two cases.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use memscope_core::explorer::{Explorer, Limits};
use memscope_core::journal::Checkpoint;
use memscope_core::journal::entry::{Entry, SessionEnd};
use memscope_core_fuzz::{ask, changed, interpret};
use serde_json::Value;

/// Bytes before the head.
const HEADER_BYTES: usize = 36;

/// Up to the body of a sound checkpoint, and its body.
static SOUND: LazyLock<(&[u8], Value)> = LazyLock::new(|| {
    let file = &include_bytes!("../seeds/checkpoint/whole")[1..];
    let head = u32::from_le_bytes(file[12..16].try_into().expect("four bytes")) as usize;
    let (before, body) = file.split_at(HEADER_BYTES + head);
    (before, serde_json::from_slice(&zstd::decode_all(body).expect("zstd")).expect("JSON"))
});

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, bytes)) = bytes.split_first() else { return };
    let file = match mode % 3 {
        0 => bytes.to_vec(),
        1 => with_body(bytes),
        _ => with_body(&changed(&SOUND.1, bytes)),
    };
    let place = tempfile::tempdir_in("/dev/shm").expect("shared memory");
    let path = place.path().join("journal.summed");
    std::fs::write(&path, file).expect("shared memory for a few bytes");
    let next = Checkpoint::next_segment(&path);
    let Ok(Some(checkpoint)) = Checkpoint::read(&path) else { return };
    assert_eq!(next.ok().flatten(), Some(checkpoint.head.next_segment));
    let entries = [Entry::Summed(checkpoint), Entry::End(SessionEnd::default())];
    interpret(&entries);
    let mut explorer = Explorer::new(Limits::default());
    entries.iter().for_each(|entry| explorer.apply(entry));
    ask(explorer);
});

/// A checkpoint with this body.
fn with_body(json: &[u8]) -> Vec<u8> {
    let body = zstd::encode_all(json, 1).expect("packed");
    let mut file = SOUND.0.to_vec();
    file[16..24].copy_from_slice(&(body.len() as u64).to_le_bytes());
    file[24..28].copy_from_slice(&crc32fast::hash(&body).to_le_bytes());
    let crc = crc32fast::hash(&file[..HEADER_BYTES - 4]);
    file[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    file.extend(body);
    file
}
