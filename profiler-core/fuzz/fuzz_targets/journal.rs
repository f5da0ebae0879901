//! Any bytes as a journal: no panic, no endless loop, no more memory than the file is worth.
//!
//! The first byte chooses how the rest is used: as the whole file, as what follows the file header, or as the payloads of
//! frames whose checksums are right (so that the fuzzer gets behind them).

#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use memscope_core::journal::Reader;

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, bytes)) = bytes.split_first() else { return };
    let mut file = Vec::new();
    if mode % 3 > 0 {
        file.extend_from_slice(b"MSCPJRNL\x01\0\0\0\0\0\0\0");
    }
    if mode % 3 < 2 {
        file.extend_from_slice(bytes);
    } else {
        // Each frame: kind, flag, plain size (u16), then the payload up to 255 bytes whose length comes first.
        let mut rest = bytes;
        while let [kind, flag, low, high, length, tail @ ..] = rest {
            let (payload, tail) = tail.split_at(tail.len().min(*length as usize));
            let plain = if flag & 1 == 0 { payload.len() as u32 } else { u32::from(*low) | u32::from(*high) << 8 };
            frame(&mut file, kind % 9, flag & 1, plain, payload);
            rest = tail;
        }
    }
    let Ok(mut place) = tempfile::NamedTempFile::new_in("/dev/shm") else { return };
    place.write_all(&file).expect("shared memory for a few bytes");
    let Ok(mut reader) = Reader::open(place.path()) else { return };
    let items = reader.by_ref().take(file.len() + 1).count();
    assert!(items <= file.len(), "more items than bytes");
    assert!(reader.offset() <= file.len() as u64);
});

fn frame(file: &mut Vec<u8>, kind: u8, flag: u8, plain: u32, payload: &[u8]) {
    let begin = file.len();
    file.extend_from_slice(&[0x7e, 0x4d, kind, flag]);
    file.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    file.extend_from_slice(&plain.to_le_bytes());
    file.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
    let crc = crc32fast::hash(&file[begin..]);
    file.extend_from_slice(&crc.to_le_bytes());
    file.extend_from_slice(payload);
}
