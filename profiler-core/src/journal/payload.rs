//! What is inside a frame: an entry as bytes, before packing.
//!
//! Owns: both directions of this translation. Refuses: checksums, packing and files.
//!
//! Records are turned into columns, and their clock readings into differences: packed with zstd, real streams then take
//! 8 bytes a record instead of 12, at the same speed. Every other entry is small and rare, and is JSON, so that a reader
//! in another language has little to do and a field can be added without a new version.

use memscope_wire::Record;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::entry::{Entry, ProcessIndex};
use super::format::{MAX_RECORDS, kind};

/// Bytes before the columns: process u32, count u32, first slot u64.
const RECORDS_HEADER_BYTES: usize = 16;
/// Columns of 64 bits in a record: head and thread, ticks, six words.
const COLUMNS: usize = 8;
/// The column of the clock readings.
const TICKS: usize = 1;

/// Appends the entry's payload to `out` and returns its kind; an entry of records must not have more than
/// [`MAX_RECORDS`].
pub(super) fn encode(entry: &Entry, out: &mut Vec<u8>) -> serde_json::Result<u8> {
    match entry {
        Entry::Session(session) => json(kind::SESSION, session, out),
        Entry::Process(process) => json(kind::PROCESS, process, out),
        Entry::Clock(process, calibration) => json(kind::CLOCK, &(process, calibration), out),
        Entry::Telemetry(sample) => json(kind::TELEMETRY, sample, out),
        Entry::Counters(process, counters) => json(kind::COUNTERS, &(process, counters), out),
        Entry::End(end) => json(kind::END, end, out),
        // It is a file of its own.
        Entry::Summed(_) => Err(serde::ser::Error::custom("sums of what is not kept are no frame")),
        Entry::Records { process, first_slot, records } => {
            encode_records(*process, *first_slot, records, out);
            Ok(kind::RECORDS)
        }
    }
}

/// Appends the payload of an entry of records.
pub(super) fn encode_records(process: ProcessIndex, first_slot: u64, records: &[Record], out: &mut Vec<u8>) {
    debug_assert!(records.len() <= MAX_RECORDS);
    out.reserve(RECORDS_HEADER_BYTES + records.len() * COLUMNS * 8);
    out.extend_from_slice(&process.0.to_le_bytes());
    out.extend_from_slice(&(records.len() as u32).to_le_bytes());
    out.extend_from_slice(&first_slot.to_le_bytes());
    for record in records {
        out.extend_from_slice(&(record.head as u64 | (record.thread as u64) << 32).to_le_bytes());
    }
    let mut before = 0;
    for record in records {
        out.extend_from_slice(&record.ticks.wrapping_sub(before).to_le_bytes());
        before = record.ticks;
    }
    for word in 0..record_words() {
        for record in records {
            out.extend_from_slice(&record.words[word].to_le_bytes());
        }
    }
}

/// The entry in a payload; `None` for a kind of a later version.
pub(super) fn decode(kind: u8, payload: &[u8]) -> Result<Option<Entry>, String> {
    Ok(Some(match kind {
        kind::SESSION => Entry::Session(parse(payload)?),
        kind::PROCESS => Entry::Process(parse(payload)?),
        kind::CLOCK => {
            let (process, calibration) = parse(payload)?;
            Entry::Clock(process, calibration)
        }
        kind::TELEMETRY => Entry::Telemetry(parse(payload)?),
        kind::COUNTERS => {
            let (process, counters) = parse(payload)?;
            Entry::Counters(process, counters)
        }
        kind::END => Entry::End(parse(payload)?),
        kind::RECORDS => decode_records(payload)?,
        _ => return Ok(None),
    }))
}

fn decode_records(payload: &[u8]) -> Result<Entry, String> {
    let (header, columns) =
        payload.split_first_chunk::<RECORDS_HEADER_BYTES>().ok_or("an entry of records without its header")?;
    let process = ProcessIndex(word(header, 0) as u32);
    let count = (word(header, 0) >> 32) as usize;
    let first_slot = word(header, 8);
    if count > MAX_RECORDS || columns.len() != count * COLUMNS * 8 || first_slot.checked_add(count as u64).is_none() {
        return Err(format!("an entry says {count} records from slot {first_slot}, in {} bytes", columns.len()));
    }
    let mut records = vec![Record::default(); count];
    for (column, values) in columns.chunks_exact((count * 8).max(1)).enumerate() {
        let values = values.chunks_exact(8).map(|eight| word(eight, 0));
        match column {
            0 => values.zip(&mut records).for_each(|(value, record)| {
                record.head = value as u32;
                record.thread = (value >> 32) as u32;
            }),
            TICKS => {
                let mut ticks = 0_u64;
                for (difference, record) in values.zip(&mut records) {
                    ticks = ticks.wrapping_add(difference);
                    record.ticks = ticks;
                }
            }
            _ => values.zip(&mut records).for_each(|(value, record)| record.words[column - 2] = value),
        }
    }
    Ok(Entry::Records { process, first_slot, records })
}

fn json(kind: u8, value: &impl Serialize, out: &mut Vec<u8>) -> serde_json::Result<u8> {
    serde_json::to_writer(out, value)?;
    Ok(kind)
}

fn parse<T: DeserializeOwned>(payload: &[u8]) -> Result<T, String> {
    serde_json::from_slice(payload).map_err(|error| error.to_string())
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

const fn record_words() -> usize {
    COLUMNS - 2
}
