//! Any bytes as a log: no panic, no signal, and never more records than the file has slots.
//!
//! The magic and the version are put right; the rest of the header page is the fuzzer's, spread over the fields that are
//! read, and what follows it are slots.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use memscope_core::journal::entry::Entry;
use memscope_core::source::{Mode, Options, Source};
use memscope_wire::log::{HEADER_BYTES, MAGIC, SLOT_BYTES, VERSION};

fuzz_target!(|bytes: &[u8]| {
    const FIELDS: usize = 576;
    let (header, slots) = bytes.split_at(bytes.len().min(FIELDS));
    let mut file = vec![0; HEADER_BYTES];
    file[..header.len()].copy_from_slice(header);
    file[..8].copy_from_slice(&MAGIC.to_le_bytes());
    file[8..12].copy_from_slice(&VERSION.to_le_bytes());
    file.extend_from_slice(slots);
    let place = tempfile::tempdir_in("/dev/shm").expect("shared memory");
    std::fs::write(place.path().join("1-1-1.log"), &file).expect("shared memory for a few bytes");
    for mode in [Mode::Inspect, Mode::Record] {
        let options = Options { mode, stall: Duration::ZERO, quiet: Duration::ZERO };
        let mut source = Source::new(place.path(), options);
        let mut entries = Vec::new();
        let mut records = 0;
        for _ in 0..4 {
            source.round(&mut entries).expect("the folder is there");
            source.release();
        }
        for entry in &entries {
            match entry {
                Entry::Records { records: some, .. } => records += some.len(),
                Entry::Clock(_, clock) => drop(clock.time(u64::MAX / 3, 7)),
                _ => {}
            }
        }
        assert!(records <= slots.len() / SLOT_BYTES);
    }
});
