//! Any bytes as a profile: an error or a report, no panic, no more memory than the file is worth.
//!
//! The first byte chooses how the rest is used: as the whole file; as one table of a sound profile; or as changes of some bytes
//! of one table. Checksums of the zip are right in the last two cases, so that the fuzzer gets behind them.

#![no_main]

use std::io::{Cursor, Read, Write};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use memscope_core::explorer::{At, Explorer, Query, RowsQuery, SegmentsQuery};
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::profile::Profile;
use memscope_core::report::{Instant, Style, text};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// The members of a sound profile: the seed without its first byte.
static SOUND: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let mut zip = ZipArchive::new(Cursor::new(&include_bytes!("../seeds/profile/whole")[1..])).expect("a zip");
    let members = zip.len();
    let member = |index| {
        let mut member = zip.by_index(index).expect("a member");
        let mut content = Vec::new();
        member.read_to_end(&mut content).expect("read");
        (member.name().expect("a name").into_owned(), content)
    };
    (0..members).map(member).collect()
});

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, bytes)) = bytes.split_first() else { return };
    let file = match (mode % 3, bytes.split_first()) {
        (0, _) => bytes.to_vec(),
        (1, Some((which, table))) => with_member(*which, |_| table.to_vec()),
        (_, Some((which, changes))) => with_member(*which, |content| changed(content, changes)),
        (_, None) => return,
    };
    let Ok(mut place) = tempfile::NamedTempFile::new_in("/dev/shm") else { return };
    place.write_all(&file).expect("shared memory for a few bytes");
    let Ok(profile) = Profile::open(place.path()) else { return };
    let moments = [Instant::Peak, Instant::End, Instant::Step(2), Instant::Time(Nanoseconds(1_025_000_000))];
    for report in moments.into_iter().filter_map(|moment| profile.report(moment).ok()) {
        let _ = text(&report, Style::Plain);
    }
    let _ = profile.verify();
    let Ok(mut explorer) = Explorer::of_profile(&profile) else { return };
    for at in [At::Live, At::Peak, At::Step(2), At::Time(Nanoseconds(1_025_000_000))] {
        let rows = Some(RowsQuery { window: 0..10, filter: "h".into(), ..RowsQuery::default() });
        let segments = Some(SegmentsQuery { slices: 5, window: 0..10, ..SegmentsQuery::default() });
        explorer.answer(&Query { at, steps: 0..10, rows, scopes: true, segments, ..Query::default() });
    }
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

fn with_member(which: u8, edit: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (index, (name, content)) in SOUND.iter().enumerate() {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        zip.start_file(name, options).expect("begun");
        let here = index == usize::from(which) % SOUND.len();
        let content = if here { edit(content.clone()) } else { content.clone() };
        zip.write_all(&content).expect("written");
    }
    zip.finish().expect("finished").into_inner()
}
