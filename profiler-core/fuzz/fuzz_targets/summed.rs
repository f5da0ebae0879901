//! Any bytes as the sums of a profile of which not everything is kept: an error or a report, no panic, no more memory than the file
//! is worth.
//!
//! The first byte chooses how the rest is used in a sound profile: as the packed sums; as their JSON; or as changes of some of its
//! values.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use memscope_core_fuzz::{Members, changed, look_at};
use serde_json::Value;

/// A sound profile, and its sums.
static SOUND: LazyLock<(Members, usize, Value)> = LazyLock::new(|| {
    let members = Members::of(&include_bytes!("../seeds/profile/kept")[1..]);
    let position = members.position("summed.json.zst");
    let json = zstd::decode_all(&members.content(position)[..]).expect("zstd");
    (members, position, serde_json::from_slice(&json).expect("JSON"))
});

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, bytes)) = bytes.split_first() else { return };
    let (members, position, sound) = &*SOUND;
    let packed = |json: &[u8]| zstd::encode_all(json, 1).expect("packed");
    let sums = match mode % 3 {
        0 => bytes.to_vec(),
        1 => packed(bytes),
        _ => packed(&changed(sound, bytes)),
    };
    look_at(&members.with(*position, sums));
});
