//! Any bytes as a journal: no panic, no endless loop, no more memory than the file is worth, and a report of what it says.
//!
//! The first byte chooses how the rest is used: as the whole file; as what follows the file header; as frames whose checksums
//! are made right (so that the fuzzer gets behind them); or as entries of records in a short description, written by the
//! journal's own writer after a sound session's first entries.

#![no_main]

use std::io::Write;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use memscope_core::journal::entry::{Calibration, Entry, ProcessIndex, ProcessInfo, SessionInfo};
use memscope_core::journal::{Reader, Writer};
use memscope_core_fuzz::{interpret, records};

/// A frame's header in an input: kind, flag, plain size (u16), stored size (u16).
const FRAME_BYTES: usize = 6;

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, bytes)) = bytes.split_first() else { return };
    let place = tempfile::tempdir_in("/dev/shm").expect("shared memory");
    let path = place.path().join("journal");
    match mode % 4 {
        0 => std::fs::write(&path, bytes).expect("shared memory for a few bytes"),
        1 => std::fs::write(&path, [HEADER, bytes].concat()).expect("shared memory for a few bytes"),
        2 => std::fs::write(&path, [HEADER, &frames(bytes)].concat()).expect("shared memory for a few bytes"),
        _ => written(&path, bytes),
    }
    let length = std::fs::metadata(&path).expect("it was written").len();
    let Ok(mut reader) = Reader::open(&path) else { return };
    let items: Vec<_> = reader.by_ref().take(length as usize + 1).collect();
    assert!(items.len() as u64 <= length, "more items than bytes");
    assert!(reader.offset() <= length);
    let entries: Vec<Entry> = items.into_iter().flatten().collect();
    interpret(&entries);
});

const HEADER: &[u8] = b"MSCPJRNL\x01\0\0\0\0\0\0\0";

/// Frames with right checksums.
fn frames(mut rest: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    while let Some((header, tail)) = rest.split_first_chunk::<FRAME_BYTES>() {
        let [kind, flag, plain_low, plain_high, stored_low, stored_high] = *header;
        let (payload, tail) = tail.split_at(tail.len().min(u16::from_le_bytes([stored_low, stored_high]).into()));
        let packed = flag & 1;
        let plain = if packed == 0 { payload.len() as u32 } else { u16::from_le_bytes([plain_low, plain_high]).into() };
        let begin = file.len();
        file.write_all(&[0x7e, 0x4d, kind % 16, packed]).expect("memory");
        file.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        file.extend_from_slice(&plain.to_le_bytes());
        file.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
        let crc = crc32fast::hash(&file[begin..]);
        file.extend_from_slice(&crc.to_le_bytes());
        file.extend_from_slice(payload);
        rest = tail;
    }
    file
}

/// A journal of two processes, whose records come in turns of up to 32.
fn written(path: &Path, bytes: &[u8]) {
    let mut writer = Writer::create(path).expect("created");
    let session = SessionInfo { version: "0.1.0".into(), start_monotonic_ns: 1, ..SessionInfo::default() };
    writer.push(&Entry::Session(session)).expect("pushed");
    for index in 0..2 {
        let process = ProcessIndex(index);
        let pid = 70 + index;
        writer
            .push(&Entry::Process(ProcessInfo {
                process,
                pid,
                parent_pid: 1,
                start_time: 7,
                began_ns: Some(1 + u64::from(index)),
                exec_count: 0,
                rank: Some(index),
                local_rank: None,
                world_size: None,
                name: None,
                executable: "/usr/bin/train".into(),
                command: vec!["train".into()],
            }))
            .expect("pushed");
        let calibration = Calibration { first_ticks: 0, first_ns: 1, last_ticks: 10, last_ns: 11 };
        writer.push(&Entry::Clock(process, calibration)).expect("pushed");
    }
    let mut slots = [0; 2];
    for (turn, some) in records(bytes).chunks(32).enumerate() {
        let slot: &mut u64 = &mut slots[turn % 2];
        let process = ProcessIndex(turn as u32 % 2);
        writer.push(&Entry::Records { process, first_slot: *slot, records: some.to_vec() }).expect("pushed");
        *slot += some.len() as u64;
    }
    writer.flush().expect("flushed");
}
