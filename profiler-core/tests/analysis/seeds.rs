//! What the fuzzers begin with (fuzz/seeds): a profile, a journal, a log and a checkpoint that are sound; and that a checkpoint which
//! is written otherwise has another version.
//!
//! A seed is a file as its fuzz target takes it: a byte that chooses the way in, then the file; for a log, the fields of its
//! header, then its slots. They are made by this test with `MEMSCOPE_UPDATE_SEEDS=1`, which a new format needs. `described` are
//! records in the short description of fuzz/src/lib.rs, `frames` a journal whose checksums the target adds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use memscope_core::allocation::Model;
use memscope_core::journal::entry::{Entry, Nanoseconds, ProcessIndex};
use memscope_core::journal::format::{FILE_HEADER_BYTES, FRAME_HEADER_BYTES};
use memscope_core::journal::{CHECKPOINT_VERSION, Chain, Reader, Writer};
use memscope_core::keep::{Keep, write_in_segments};
use memscope_core::profile::{self, Profile};
use memscope_core::report::{Instant, Report};
use memscope_core::source::{Mode, Options, Source};
use memscope_wire::event::kind::OWNER;
use memscope_wire::log::{HEADER_BYTES, MAGIC, SLOT_BYTES, VERSION};
use memscope_wire::{LogHeader, Record};
use serde_json::{Map, Value};

use crate::trace::{Trace, UUID, training};

/// Bytes of a log's header that are a seed's.
const FIELDS: usize = std::mem::offset_of!(LogHeader, executable);

/// How seeds are made anew.
const UPDATE: &str = "run MEMSCOPE_UPDATE_SEEDS=1 cargo test -p memscope-core --test analysis seeds";

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

    let checkpoint = [&[0], &*checkpoint(folder)].concat();
    if let Ok(before) = std::fs::read(seed("checkpoint/whole")) {
        // A new one of the same version would hide what this test is for.
        has_its_version(&before[1..], &checkpoint[1..]);
    }
    write("checkpoint/whole", &checkpoint);
    // Two of its numbers changed, one of them from the end.
    write("checkpoint/changed", &[2, 40, 0, 0x57, 9, 0x80, 0x03]);
    write("checkpoint/json", b"\x01{}");

    let path = folder.join("kept.mscope");
    profile::write(&read_chain(&folder.join("chain")), &path, false).expect("written");
    write("profile/kept", &[&[0], &*std::fs::read(&path).expect("read")].concat());
    write("summed/changed", &[2, 40, 0, 0x57, 9, 0x80, 0x03]);
    write("summed/json", b"\x01{}");

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

/// A session in which most of what a model knows is there, and a part of which is kept.
fn varied() -> Vec<Entry> {
    let mut trace = training();
    trace.entries.truncate(trace.entries.len() - 2);
    trace.process(1, 4243);
    trace.device(1, 0, UUID, 80 << 30);
    let record = |(index, kind): (u64, u16)| {
        let words = [0x5_0000_0000 + index / 2 * 0x1000, 4096, 2, 1, index, 0];
        Record { head: u32::from(kind), thread: 1, ticks: trace.now + index, words }
    };
    let kinds = (1..=OWNER).flat_map(|kind| [kind, kind]);
    let records: Vec<Record> = (0..).zip(kinds).map(record).collect();
    trace.entries.push(Entry::Records { process: ProcessIndex(1), first_slot: 2, records });
    trace.now += 1_000_000;
    trace.ended(0);
    trace.end(0);
    let mut entries = trace.entries;
    if let Some(Entry::Session(session)) = entries.first_mut() {
        session.keep = Some(KEEP);
    }
    entries
}

const KEEP: Keep = Keep::Steps(Some(2), Some(2));

/// The journal of that session, in a new folder, and its checkpoint as a file.
fn checkpoint(folder: &Path) -> Vec<u8> {
    let journal = folder.join("chain");
    let entries = varied();
    let (summed, rest) = entries.split_at(entries.len() - 1);
    let segments = [(Nanoseconds(4_000_000_000), summed), (Nanoseconds(5_000_000_000), rest)];
    write_in_segments(&journal, KEEP, &segments, 0, &mut || ()).expect("written");
    std::fs::read(folder.join("chain.summed")).expect("there are sums")
}

fn read_chain(journal: &Path) -> Model {
    let mut model = Model::new();
    for entry in Chain::open(journal).expect("a journal") {
        model.apply(&entry.expect("whole"));
    }
    model
}

/// Version, head and body of a checkpoint; lists are sorted, since those that were maps have no order.
fn parts(checkpoint: &[u8]) -> (u32, Value) {
    let word = |at: usize| u32::from_le_bytes(checkpoint[at..at + 4].try_into().expect("four bytes"));
    let (head, body) = checkpoint[36..].split_at(word(12) as usize);
    let body = zstd::decode_all(body).expect("zstd");
    let [mut head, mut body] = [head, &body].map(|json| serde_json::from_slice::<Value>(json).expect("JSON"));
    sort(&mut head);
    sort(&mut body);
    (word(8), Value::Array(vec![head, body]))
}

fn sort(value: &mut Value) {
    match value {
        Value::Array(values) => {
            values.iter_mut().for_each(sort);
            if values.iter().all(|value| value.is_array() || value.is_object()) {
                values.sort_by_key(Value::to_string);
            }
        }
        Value::Object(values) => values.values_mut().for_each(sort),
        _ => {}
    }
}

/// Where two values first differ, and how.
fn difference(path: String, then: &Value, now: &Value) -> Option<String> {
    match (then, now) {
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            let pairs = before.iter().zip(after).enumerate();
            pairs.into_iter().find_map(|(at, (then, now))| difference(format!("{path}[{at}]"), then, now))
        }
        (Value::Object(before), Value::Object(after)) if before.keys().eq(after.keys()) => {
            let pairs = before.iter().zip(after.values());
            pairs.into_iter().find_map(|((key, then), now)| difference(format!("{path}.{key}"), then, now))
        }
        (Value::Object(before), Value::Object(after)) => {
            let only = |one: &Map<String, Value>, other: &Map<String, Value>| {
                one.keys().filter(|key| !other.contains_key(*key)).cloned().collect::<Vec<_>>().join(", ")
            };
            Some(format!("{path}: gone: {}; new: {}", only(before, after), only(after, before)))
        }
        _ => (then != now).then(|| format!("{path}: {then:.200} has become {now:.200}")),
    }
}

/// A checkpoint is read by every memscope of its version: of another form, it must have another version.
fn has_its_version(then: &[u8], now: &[u8]) {
    let ((version, then), (new_version, now)) = (parts(then), parts(now));
    let changed = difference("checkpoint".into(), &then, &now);
    if let Some(changed) = changed.filter(|_| version == new_version) {
        panic!(
            "checkpoints are written otherwise than version {version} is, first at {changed}. Raise VERSION in \
             profiler-core/src/journal/checkpoint.rs, so that no memscope takes them for what it knows; then {UPDATE}"
        );
    }
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
    let content = |name: &str| std::fs::read(seed(name)).unwrap_or_else(|error| panic!("{name}: {error}; {UPDATE}"));
    let path = folder.path().join("seed.mscope");
    let profile = |name: &str| {
        std::fs::write(&path, &content(name)[1..]).expect("written");
        let profile = Profile::open(&path).expect("opened");
        assert_eq!(profile.verify().expect("readable").disagreements, Vec::<String>::new(), "{name}");
        profile
    };
    assert_eq!(profile("profile/whole").allocations(), 12);
    let kept = profile("profile/kept").report(Instant::Peak).expect("a report").kept;
    assert!(kept.is_some_and(|kept| kept.summed > 0));

    let path = folder.path().join("seed.journal");
    std::fs::write(&path, &content("journal/whole")[1..]).expect("written");
    let entries: Vec<_> = Reader::open(&path).expect("opened").collect();
    assert_eq!(entries.len(), training().entries.len());

    let log = content("log/whole");
    let (fields, slots) = log[1..].split_at(FIELDS);
    let logs = tempfile::tempdir().expect("a temporary folder");
    let file = [fields, &vec![0; HEADER_BYTES - FIELDS], slots].concat();
    std::fs::write(logs.path().join("1-1-1.log"), file).expect("written");
    let options = Options { stall: Duration::ZERO, quiet: Duration::ZERO, ..Options::new(Mode::Inspect) };
    let mut entries = Vec::new();
    Source::new(logs.path(), options).round(&mut entries).expect("the folder is there");
    let read = entries.iter().map(|entry| match entry {
        Entry::Records { records, .. } => records.len(),
        _ => 0,
    });
    assert_eq!(read.sum::<usize>(), records(&training()).len());
}

#[test]
fn a_checkpoint_of_another_form_has_another_version() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let now = checkpoint(folder.path());
    let kept = std::fs::read(seed("checkpoint/whole")).unwrap_or_else(|error| panic!("{error}; {UPDATE}"));
    has_its_version(&kept[1..], &now);
    assert_eq!(parts(&kept[1..]).0, CHECKPOINT_VERSION, "VERSION was raised: {UPDATE}");
    // The one in the repository, in the place of what it stands for, is read to the figures of the whole.
    std::fs::write(folder.path().join("chain.summed"), &kept[1..]).expect("written");
    let report = |mut model: Model| Report { kept: None, findings: Vec::new(), ..model.finish() };
    let mut whole = Model::new();
    varied().iter().for_each(|entry| drop(whole.apply(entry)));
    assert_eq!(report(read_chain(&folder.path().join("chain"))), report(whole));
}
