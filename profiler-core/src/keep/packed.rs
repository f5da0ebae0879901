//! Sums as they are written: JSON, packed with zstd.
//!
//! Owns: how much a file may unpack to. Refuses: to believe what the file says of that.

use std::io::{self, BufReader, Read};

use serde::de::DeserializeOwned;

/// Sums of what hardly changes are packed to a thousandth, and unpack to less than this.
const LEAST_BYTES: u64 = 1 << 30;
/// Larger ones unpack to less than this many times their size: lists of numbers hardly reach a tenth of it.
const MOST_TIMES: u64 = 256;
/// Largest window, as a power of two, that a file may ask for: levels up to 3 write with 2 MiB.
const WINDOW_LOG: u32 = 24;

/// What is in these bytes.
///
/// # Errors
/// What is wrong with them, as a sentence.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let unpacked = unpacked(bytes, LEAST_BYTES).map_err(|error| error.to_string())?;
    serde_json::from_reader(BufReader::with_capacity(1 << 16, unpacked)).map_err(|error| error.to_string())
}

fn unpacked(bytes: &[u8], least: u64) -> io::Result<impl Read> {
    let mut unpacked = zstd::Decoder::new(bytes)?;
    unpacked.window_log_max(WINDOW_LOG)?;
    Ok(unpacked.take(least.max((bytes.len() as u64).saturating_mul(MOST_TIMES))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_unpacks_to_no_more_than_its_bound() {
        let long = vec![b' '; 1 << 24];
        let bytes = zstd::encode_all(&long[..], 1).unwrap();
        for (least, expected) in [(1 << 20, 1 << 20), (1 << 30, 1 << 24), (0, bytes.len() * MOST_TIMES as usize)] {
            let mut text = Vec::new();
            unpacked(&bytes, least).unwrap().read_to_end(&mut text).unwrap();
            assert_eq!(text.len(), expected, "{least}");
        }
        assert!(read::<Vec<u64>>(&bytes).unwrap_err().contains("EOF"));
        assert_eq!(read::<Vec<u64>>(&zstd::encode_all(&b"[1,2]"[..], 1).unwrap()), Ok(vec![1, 2]));
    }
}
