//! What the targets share: records from a short description, what becomes of entries and of profiles, and changes of JSON.

use std::io::{Cursor, Read, Write};

use memscope_core::allocation::Model;
use memscope_core::explorer::{At, Explorer, Query, RowsQuery, SegmentsQuery};
use memscope_core::journal::entry::{Entry, Nanoseconds};
use memscope_core::profile::Profile;
use memscope_core::report::{Instant, Style, text};
use memscope_wire::event::kind;
use memscope_wire::{LogHeader, Record};
use serde_json::Value;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Bytes of a log's header that an input may choose.
pub const FIELDS: usize = std::mem::offset_of!(LogHeader, executable);

/// Bytes that describe a record: kind, flags and thread, and one for each word.
const RECORD_BYTES: usize = 8;
/// Kinds end here, with some that nobody knows.
const KINDS: u16 = kind::OWNER + 4;

/// Records, in 8 bytes each. Words come from a small set, so that a free meets its allocation and a name its text.
pub fn records(bytes: &[u8]) -> Vec<Record> {
    let record = |(index, bytes): (usize, &[u8])| {
        let mut words = [0; 6];
        for (word, byte) in words.iter_mut().zip(&bytes[2..]) {
            *word = number(*byte);
        }
        let head = u32::from(u16::from(bytes[0]) % KINDS) | u32::from(bytes[1] >> 2) << 16;
        Record { head, thread: 1 + u32::from(bytes[1] & 3), ticks: 1000 + 10 * index as u64, words }
    };
    bytes.chunks_exact(RECORD_BYTES).enumerate().map(record).collect()
}

/// A number that means something somewhere: small ones, sizes, addresses that lie in each other, text, and the ends of ranges.
fn number(byte: u8) -> u64 {
    let low = u64::from(byte & 0x0f);
    match byte >> 4 {
        0 => low,
        1 => low << 9,
        2 => 0x7000_0000_0000 + (low << 20),
        3 => 0x7000_0000_0000 + (low << 9),
        4 => (low << 32) | 1,
        5 => 1 << (4 * low),
        6 => (1 << (4 * low)) - 1,
        7 => u64::MAX - low,
        8 => low << 48,
        9 => u64::from_le_bytes(*b"blocks.0") + low,
        10 => 0x0101_0101_0101_0101 * low,
        _ => u64::from(byte) << 20,
    }
}

/// Applies the entries as every view does, and makes the report and its text of them.
pub fn interpret(entries: &[Entry]) {
    let mut model = Model::new();
    for entry in entries {
        model.apply(entry);
    }
    let report = model.finish();
    let _ = text(&report, Style::Plain);
}

/// Opens a file as a profile, and asks it what views and reports ask.
pub fn look_at(file: &[u8]) {
    let mut place = tempfile::NamedTempFile::new_in("/dev/shm").expect("shared memory");
    place.write_all(file).expect("shared memory for a few bytes");
    let Ok(profile) = Profile::open(place.path()) else { return };
    let moments = [Instant::Peak, Instant::End, Instant::Step(2), Instant::Time(Nanoseconds(1_025_000_000))];
    for report in moments.into_iter().filter_map(|moment| profile.report(moment).ok()) {
        let _ = text(&report, Style::Plain);
    }
    let _ = profile.verify();
    if let Ok(explorer) = Explorer::of_profile(&profile) {
        ask(explorer);
    }
}

/// Asks for every list at several moments.
pub fn ask(mut explorer: Explorer) {
    for at in [At::Live, At::Peak, At::Step(2), At::Time(Nanoseconds(1_025_000_000))] {
        let rows = Some(RowsQuery { window: 0..10, filter: "h".into(), ..RowsQuery::default() });
        let segments = Some(SegmentsQuery { slices: 5, window: 0..10, ..SegmentsQuery::default() });
        explorer.answer(&Query { at, steps: 0..10, rows, scopes: true, segments, ..Query::default() });
    }
}

/// The members of a profile.
pub struct Members(Vec<(String, Vec<u8>)>);

impl Members {
    /// Of a sound one.
    pub fn of(profile: &[u8]) -> Members {
        let mut zip = ZipArchive::new(Cursor::new(profile)).expect("a zip");
        let members = zip.len();
        let member = |index| {
            let mut member = zip.by_index(index).expect("a member");
            let mut content = Vec::new();
            member.read_to_end(&mut content).expect("read");
            (member.name().expect("a name").into_owned(), content)
        };
        Members((0..members).map(member).collect())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never true.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Position of a member.
    pub fn position(&self, name: &str) -> usize {
        self.0.iter().position(|(member, _)| member == name).expect("a member of every such profile")
    }

    /// What is in one.
    pub fn content(&self, position: usize) -> Vec<u8> {
        self.0[position].1.clone()
    }

    /// The profile with another content of one member.
    pub fn with(&self, position: usize, content: Vec<u8>) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (index, (name, sound)) in self.0.iter().enumerate() {
            let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
            zip.start_file(name, options).expect("begun");
            zip.write_all(if index == position { &content } else { sound }).expect("written");
        }
        zip.finish().expect("finished").into_inner()
    }
}

/// Bytes that describe a change of JSON: which value (u16, from the end when the top bit is set), and another one.
const CHANGE_BYTES: usize = 3;

/// The JSON with some values changed: numbers to others, everything else to nothing.
pub fn changed(sound: &Value, changes: &[u8]) -> Vec<u8> {
    let mut json = sound.clone();
    let mut values = Vec::new();
    leaves(&mut json, &mut values);
    for change in changes.chunks_exact(CHANGE_BYTES) {
        let (which, count) = (usize::from(change[0]) | usize::from(change[1] & 0x7f) << 8, values.len().max(1));
        let which = if change[1] & 0x80 == 0 { which % count } else { count - 1 - which % count };
        if let Some(value) = values.get_mut(which) {
            **value = if value.is_number() { number(change[2]).into() } else { Value::Null };
        }
    }
    serde_json::to_vec(&json).expect("JSON")
}

/// All numbers, texts, truths and nothings in it.
fn leaves<'v>(value: &'v mut Value, found: &mut Vec<&'v mut Value>) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| leaves(value, found)),
        Value::Object(values) => values.values_mut().for_each(|value| leaves(value, found)),
        value => found.push(value),
    }
}
