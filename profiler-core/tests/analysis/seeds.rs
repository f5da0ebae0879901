//! What the fuzzers begin with (fuzz/seeds): a profile, a journal and a log that are sound.
//!
//! A seed is a file as its fuzz target takes it: a byte that chooses the way in, then the file; for a log, the fields of its
//! header, then its slots. They are made by this test with `MEMSCOPE_UPDATE_SEEDS=1`, which a new format needs. `described` are
//! records in the short description of fuzz/src/lib.rs, `frames` a journal whose checksums the target adds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use memscope_core::journal::entry::Entry;
use memscope_core::journal::format::{FILE_HEADER_BYTES, FRAME_HEADER_BYTES};
use memscope_core::journal::{Reader, Writer};
use memscope_core::profile::{self, Profile};
use memscope_core::source::{Mode, Options, Source};
use memscope_wire::LogHeader;
use memscope_wire::event::kind::OWNER;
use memscope_wire::log::{HEADER_BYTES, MAGIC, SLOT_BYTES, VERSION};

use crate::trace::{Trace, training};

/// Bytes of a log's header that are a seed's.
const FIELDS: usize = std::mem::offset_of!(LogHeader, executable);

fn seed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name)
}

/// The records of a session's process 0.
fn records(trace: &Trace) -> Vec<[u8; SLOT_BYTES]> {
    let of = |entry: &Entry| match entry {
        Entry::Records { records, .. } => records.iter().map(|record| record.to_bytes()).collect(),
        _ => Vec::new(),
    };
    trace.entries.iter().flat_map(of).collect()
}

fn update(folder: &Path) {
    let trace = training();
    let write = |name: &str, content: &[u8]| {
        std::fs::create_dir_all(seed(name).parent().expect("a folder")).expect("created");
        std::fs::write(seed(name), content).expect("written");
    };
    let path = folder.join("x.mscope");
    profile::write(&trace.model(), &path, false).expect("written");
    write("profile/whole", &[&[0], &*std::fs::read(&path).expect("read")].concat());
    // Table 7 with one byte changed; table 1 replaced.
    write("profile/changed", &[2, 7, 20, 0x80, 1]);
    write("profile/replaced", b"\x01\x01PAR1PAR1");

    let path = folder.join("journal");
    let mut journal = Writer::create(&path).expect("created");
    trace.entries.iter().for_each(|entry| journal.push(entry).expect("pushed"));
    journal.flush().expect("flushed");
    let journal = std::fs::read(&path).expect("read");
    write("journal/whole", &[&[0], &*journal].concat());
    write("journal/frames", &[&[2], &*frames(&journal)].concat());
    write("journal/described", &[&[3], &*described()].concat());
    write("log/described", &[&[1], &*described()].concat());

    let mut log = vec![0; FIELDS];
    let mut field = |at: usize, bytes: &[u8]| log[at..at + bytes.len()].copy_from_slice(bytes);
    let slots = records(&trace);
    field(0, &MAGIC.to_le_bytes());
    field(8, &VERSION.to_le_bytes());
    field(std::mem::offset_of!(LogHeader, pid), &4_194_304_u32.to_le_bytes());
    field(std::mem::offset_of!(LogHeader, rank), &(-1_i32).to_le_bytes());
    for counter in [std::mem::offset_of!(LogHeader, head), std::mem::offset_of!(LogHeader, allocated)] {
        field(counter, &(slots.len() as u64).to_le_bytes());
    }
    log.extend(slots.concat());
    write("log/whole", &[&[0], &*log].concat());
}

/// The frames of a journal, unpacked and without their checksums: kind, flags, plain size (u16), stored size (u16), payload.
fn frames(journal: &[u8]) -> Vec<u8> {
    let (mut rest, mut frames) = (&journal[FILE_HEADER_BYTES..], Vec::new());
    while let Some((header, tail)) = rest.split_first_chunk::<FRAME_HEADER_BYTES>() {
        let [_, _, kind, packed, sizes @ ..] = header;
        let size = |at: usize| u32::from_le_bytes(sizes[at..at + 4].try_into().expect("four bytes")) as usize;
        let (stored, tail) = tail.split_at(size(0));
        let plain = if *packed == 0 { stored.to_vec() } else { zstd::bulk::decompress(stored, size(4)).expect("zstd") };
        // A frame that is too long for the description is cut out of it.
        if let Ok(bytes) = u16::try_from(plain.len()) {
            frames.extend_from_slice(&[*kind, 0, 0, 0]);
            frames.extend_from_slice(&bytes.to_le_bytes());
            frames.extend(plain);
        }
        rest = tail;
    }
    frames
}

/// Two records of every kind.
fn described() -> Vec<u8> {
    (0..=OWNER as u8)
        .flat_map(|kind| [kind, 0, 0x20, 0x12, 0x12, 0, 0, 0, kind, 0, 0x30, 0x11, 0x11, 0x40, 1, 2])
        .collect()
}

#[test]
fn seeds_are_sound() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    if std::env::var_os("MEMSCOPE_UPDATE_SEEDS").is_some() {
        update(folder.path());
    }
    let content = |name: &str| {
        std::fs::read(seed(name)).unwrap_or_else(|error| panic!("{name}: {error}; run with MEMSCOPE_UPDATE_SEEDS=1"))
    };
    let path = folder.path().join("seed.mscope");
    std::fs::write(&path, &content("profile/whole")[1..]).expect("written");
    let verification = Profile::open(&path).expect("opened").verify().expect("readable");
    assert_eq!((verification.allocations, verification.disagreements), (12, Vec::new()));

    let path = folder.path().join("seed.journal");
    std::fs::write(&path, &content("journal/whole")[1..]).expect("written");
    let entries: Vec<_> = Reader::open(&path).expect("opened").collect();
    assert_eq!(entries.len(), training().entries.len());

    let log = content("log/whole");
    let (fields, slots) = log[1..].split_at(FIELDS);
    let logs = tempfile::tempdir().expect("a temporary folder");
    let file = [fields, &vec![0; HEADER_BYTES - FIELDS], slots].concat();
    std::fs::write(logs.path().join("1-1-1.log"), file).expect("written");
    let options = Options { mode: Mode::Inspect, stall: Duration::ZERO, quiet: Duration::ZERO };
    let mut entries = Vec::new();
    Source::new(logs.path(), options).round(&mut entries).expect("the folder is there");
    let read = entries.iter().map(|entry| match entry {
        Entry::Records { records, .. } => records.len(),
        _ => 0,
    });
    assert_eq!(read.sum::<usize>(), records(&training()).len());
}
