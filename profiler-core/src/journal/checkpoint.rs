//! What the first segments of a long session come to, as one file that stands in their place.
//!
//! Owns: its bytes, and that it is there whole or not at all. Refuses: to know what is in it (`keep`), and to believe a length
//! that no checksum covers.
//!
//! ```text
//! MAGIC (8) · version u32 · bytes of the head u32 · bytes of the body u64 · crc of the body u32 · crc of the head u32
//! · crc of these 32 bytes u32 · head (JSON) · body (JSON, packed with zstd)
//! ```
//!
//! The body is memscope's own model, so only a memscope of the same [`VERSION`] reads it; every change of the model's fields
//! raises it, which a checkpoint in the repository enforces (tests/analysis/seeds.rs). The profile, which lasts, does not depend on it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::entry::{Calibration, Nanoseconds, ProcessInfo};
use crate::error::{Error, Result};
use crate::keep::packed;

/// First eight bytes.
const MAGIC: [u8; 8] = *b"MSCPSUMD";
/// Version of the body.
pub const VERSION: u32 = 5;
const HEADER_BYTES: usize = 36;
/// Longest head that is believed.
const MAX_HEAD_BYTES: u32 = 256 << 20;
/// Level of zstd: it is written while the program runs.
const LEVEL: i32 = 1;

/// What is known without reading the body: where the journal goes on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Head {
    /// Number of the first segment that is not in it.
    pub next_segment: u64,
    /// Records that are in it.
    pub records: u64,
    /// Time of the latest of them.
    pub last: Nanoseconds,
    /// The processes, in the order of their indices.
    pub processes: Vec<Standing>,
}

/// How far a process's log is in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Standing {
    /// Which.
    pub info: ProcessInfo,
    /// Its clock.
    pub calibration: Option<Calibration>,
    /// The first slot that is not in it.
    pub next_slot: u64,
    /// Slots that were claimed and never committed.
    pub uncommitted: u64,
}

/// A checkpoint that was read.
#[derive(Clone, PartialEq, Debug)]
pub struct Checkpoint {
    /// What is known of it at once.
    pub head: Head,
    body: Arc<[u8]>,
}

/// The fixed part.
struct Header {
    head: u32,
    body: u64,
    body_crc: u32,
    head_crc: u32,
}

impl Header {
    fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.head.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.body.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.body_crc.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.head_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..32]);
        bytes[32..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn read(file: &File, path: &Path) -> Result<Header> {
        let mut bytes = [0; HEADER_BYTES];
        let damaged = |what: &str| Error::format(path, what);
        let read = file.read_exact_at(&mut bytes, 0);
        read.map_err(|_| damaged("the sums of what is not kept are shorter than their header"))?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if bytes[..8] != MAGIC || crc32fast::hash(&bytes[..32]) != word(32) {
            return Err(damaged("the sums of what is not kept are damaged at their beginning"));
        }
        if word(8) != VERSION {
            return Err(Error::Version { path: path.to_path_buf(), found: word(8), supported: VERSION });
        }
        let body = u64::from(word(16)) | u64::from(word(20)) << 32;
        let header = Header { head: word(12), body, body_crc: word(24), head_crc: word(28) };
        let length = file.metadata().map_err(Error::io("read", path))?.len();
        let whole =
            u64::from(header.head).checked_add(header.body).and_then(|sum| sum.checked_add(HEADER_BYTES as u64));
        if header.head > MAX_HEAD_BYTES || whole != Some(length) {
            return Err(damaged("the sums of what is not kept are not as long as they say"));
        }
        Ok(header)
    }

    fn read_head(&self, file: &File, path: &Path) -> Result<Head> {
        let mut bytes = vec![0; self.head as usize];
        file.read_exact_at(&mut bytes, HEADER_BYTES as u64).map_err(Error::io("read", path))?;
        if crc32fast::hash(&bytes) != self.head_crc {
            return Err(Error::format(path, "the sums of what is not kept are damaged in their head"));
        }
        serde_json::from_slice(&bytes).map_err(|error| Error::format(path, error.to_string()))
    }
}

/// Counts and sums what goes through.
struct Summed<W> {
    to: W,
    bytes: u64,
    crc: crc32fast::Hasher,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.crc.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl Checkpoint {
    /// Puts a checkpoint in the place of the one that is there: at any moment one of the two is there, whole. Returns its size in
    /// bytes. `step` is called before each thing that is done, for tests.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn write(path: &Path, head: &Head, body: &impl Serialize, mut step: impl FnMut()) -> Result<u64> {
        let draft = path.with_extension("draft");
        let failed = |error: io::Error| Error::io("write", &draft)(error);
        step();
        let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&draft);
        let mut file = file.map_err(failed)?;
        let head = serde_json::to_vec(head).map_err(|error| failed(error.into()))?;
        step();
        file.write_all(&[0; HEADER_BYTES]).and_then(|()| file.write_all(&head)).map_err(failed)?;
        step();
        let summed = Summed { to: BufWriter::new(&file), bytes: 0, crc: crc32fast::Hasher::new() };
        let mut packer = zstd::Encoder::new(summed, LEVEL).map_err(failed)?;
        serde_json::to_writer(BufWriter::with_capacity(1 << 16, &mut packer), body)
            .map_err(|error| failed(error.into()))?;
        let mut summed = packer.finish().map_err(failed)?;
        summed.flush().map_err(failed)?;
        let Summed { bytes: body, crc, .. } = summed;
        let (head_crc, head) = (crc32fast::hash(&head), head.len() as u32);
        step();
        let header = Header { head, body, body_crc: crc.finalize(), head_crc };
        file.write_all_at(&header.to_bytes(), 0).map_err(failed)?;
        step();
        fs::rename(&draft, path).map_err(Error::io("write", path))?;
        step();
        Ok(HEADER_BYTES as u64 + u64::from(head) + body)
    }

    /// The checkpoint in this file; `None` when there is none.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`] when it is damaged, [`Error::Version`] when another memscope wrote it.
    pub fn read(path: &Path) -> Result<Option<Checkpoint>> {
        let Some(file) = open(path)? else { return Ok(None) };
        let header = Header::read(&file, path)?;
        let head = header.read_head(&file, path)?;
        // The file was found to be that long.
        let mut body = vec![0; header.body as usize];
        let begin = HEADER_BYTES as u64 + u64::from(header.head);
        file.read_exact_at(&mut body, begin).map_err(Error::io("read", path))?;
        if crc32fast::hash(&body) != header.body_crc {
            return Err(Error::format(path, "the sums of what is not kept are damaged"));
        }
        Ok(Some(Checkpoint { head, body: body.into() }))
    }

    /// The number of the first segment that is not in the checkpoint of this file; `None` when there is none.
    ///
    /// # Errors
    /// As [`Checkpoint::read`].
    pub fn next_segment(path: &Path) -> Result<Option<u64>> {
        let Some(file) = open(path)? else { return Ok(None) };
        let header = Header::read(&file, path)?;
        Ok(Some(header.read_head(&file, path)?.next_segment))
    }

    /// What is in it.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    pub(crate) fn body<T: DeserializeOwned>(&self) -> Result<T, String> {
        packed::read(&self.body)
    }
}

fn open(path: &Path) -> Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("open", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_and_any_flipped_bit_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.summed");
        assert_eq!(Checkpoint::read(&path).unwrap(), None);
        let head = Head { next_segment: 7, records: 9, last: Nanoseconds(5), processes: Vec::new() };
        let body: Vec<u64> = (0..50).collect();
        let bytes = Checkpoint::write(&path, &head, &body, || ()).unwrap();
        let whole = fs::read(&path).unwrap();
        assert_eq!(whole.len() as u64, bytes);
        let read = Checkpoint::read(&path).unwrap().unwrap();
        assert_eq!((read.head.clone(), read.body::<Vec<u64>>()), (head, Ok(body)));
        assert_eq!(Checkpoint::next_segment(&path).unwrap(), Some(7));
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, flipped).unwrap();
            assert!(Checkpoint::read(&path).is_err(), "bit {bit}");
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(Checkpoint::read(&path).is_err(), "{length} bytes");
        }
    }
}
