//! Any bytes as a log: no panic, no signal, never more records than the file has slots, and what the records say adds up in a
//! report.
//!
//! The first byte chooses how the rest is used: as the fields of the header and then the slots, or as a short description of
//! records ([`memscope_core_fuzz::records`]), which gets behind the meaning of kinds and addresses. The magic and the version are
//! put right in both.

#![no_main]

use std::mem::offset_of;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use memscope_core::journal::entry::Entry;
use memscope_core::source::{Mode, Options, Source};
use memscope_core_fuzz::{FIELDS, interpret, records};
use memscope_wire::LogHeader;
use memscope_wire::log::{HEADER_BYTES, MAGIC, SLOT_BYTES, VERSION};

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, bytes)) = bytes.split_first() else { return };
    let mut file = vec![0; HEADER_BYTES];
    if mode % 2 == 0 {
        let (header, slots) = bytes.split_at(bytes.len().min(FIELDS));
        file[..header.len()].copy_from_slice(header);
        file.extend_from_slice(slots);
    } else {
        let slots: Vec<u8> = records(bytes).iter().flat_map(|record| record.to_bytes()).collect();
        let count = (slots.len() / SLOT_BYTES) as u64;
        for counter in [offset_of!(LogHeader, head), offset_of!(LogHeader, allocated)] {
            file[counter..counter + 8].copy_from_slice(&count.to_le_bytes());
        }
        file.extend_from_slice(&slots);
    }
    file[..8].copy_from_slice(&MAGIC.to_le_bytes());
    file[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let place = tempfile::tempdir_in("/dev/shm").expect("shared memory");
    std::fs::write(place.path().join("1-1-1.log"), &file).expect("shared memory for a few bytes");
    for mode in [Mode::Inspect, Mode::Record] {
        let options = Options { stall: Duration::ZERO, quiet: Duration::ZERO, ..Options::new(mode) };
        let mut source = Source::new(place.path(), options);
        let mut entries = Vec::new();
        let mut read = 0;
        for _ in 0..4 {
            source.round(&mut entries).expect("the folder is there");
            source.release();
        }
        for entry in &entries {
            match entry {
                Entry::Records { records: some, .. } => read += some.len(),
                Entry::Clock(_, clock) => drop(clock.time(u64::MAX / 3, 7)),
                _ => {}
            }
        }
        assert!(read <= (file.len() - HEADER_BYTES) / SLOT_BYTES);
        if mode == Mode::Inspect {
            interpret(&entries);
        }
    }
});
