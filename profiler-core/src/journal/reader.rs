//! Reads a journal: of a finished session, of a running one (it grows), or of a broken one (its end is torn, or its middle
//! damaged).
//!
//! Owns: telling these apart. Refuses: to allocate by a number that no checksum covers, and to repair.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::entry::Entry;
use super::format::{self, FILE_HEADER_BYTES, FRAME_HEADER_BYTES, FrameHeader};
use super::payload;
use crate::error::{Error, Result};

/// How far behind damage the next good frame is looked for, in bytes.
const SEARCH_BYTES: u64 = 64 << 20;

/// How the file ends, as far as it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tail {
    /// After a whole frame.
    Whole,
    /// Within a frame that begins at `offset`: torn by a death in the middle of a write, or still being written.
    Truncated {
        /// Where the torn frame begins, in bytes from the start of the file.
        offset: u64,
    },
}

/// An iterator over a journal's entries.
///
/// `next` gives `None` at the end of what is there; called again later, it goes on with what has been added since. An
/// error names the offset of the damage; the call after it goes on behind the damage, so a caller that wants everything
/// that can be had just continues, and one that wants the truth or nothing stops.
pub struct Reader {
    file: File,
    path: PathBuf,
    offset: u64,
    length: u64,
    tail: Tail,
    unknown: u64,
    /// The system refused a read: there is nothing to go on with.
    failed: bool,
    chained: bool,
    stored: Vec<u8>,
    decompressor: zstd::bulk::Decompressor<'static>,
}

/// What lies at the reader's offset.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and most are entries")]
enum Frame {
    Entry(Entry),
    Unknown,
    None,
}

impl Reader {
    /// Opens the journal. One that is shorter than its header (memscope died at once) has no entries and a torn tail.
    ///
    /// Errors: [`Error::NotFound`], [`Error::Io`], [`Error::Format`] when it is no journal, [`Error::Version`].
    pub fn open(path: &Path) -> Result<Reader> {
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NotFound { what: "journal", path: path.to_path_buf() },
            _ => Error::io("open the journal", path)(error),
        })?;
        let decompressor = zstd::bulk::Decompressor::new().map_err(Error::io("prepare the unpacking of", path))?;
        let path = path.to_path_buf();
        let mut reader = Reader {
            file,
            path,
            offset: 0,
            length: 0,
            tail: Tail::Whole,
            unknown: 0,
            failed: false,
            chained: false,
            stored: Vec::new(),
            decompressor,
        };
        reader.read_file_header()?;
        Ok(reader)
    }

    /// How the file ends; meaningful when `next` has given `None`.
    pub fn tail(&self) -> Tail {
        self.tail
    }

    /// Where the next frame begins, in bytes: at the end, the size of the part that is whole.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// True when the journal goes on in other files.
    pub fn is_chained(&self) -> bool {
        self.chained
    }

    /// Frames of a kind that this version does not know, skipped so far.
    pub fn unknown_frames(&self) -> u64 {
        self.unknown
    }

    /// True when the file header is whole and of this version.
    fn read_file_header(&mut self) -> Result<bool> {
        self.measure()?;
        let mut header = [0; FILE_HEADER_BYTES];
        let present = (self.length as usize).min(FILE_HEADER_BYTES);
        self.file.read_exact_at(&mut header[..present], 0).map_err(Error::io("read the journal", &self.path))?;
        let magic = present.min(8);
        if header[..magic] != format::MAGIC[..magic] {
            return Err(Error::format(&self.path, "this is not a journal of memscope (wrong first bytes)"));
        }
        if present < FILE_HEADER_BYTES {
            self.tail = if present == 0 { Tail::Whole } else { Tail::Truncated { offset: 0 } };
            return Ok(false);
        }
        let found = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        if !matches!(found, format::VERSION | format::CHAIN_VERSION) {
            return Err(Error::Version { path: self.path.clone(), found, supported: format::CHAIN_VERSION });
        }
        self.chained = found == format::CHAIN_VERSION;
        self.offset = FILE_HEADER_BYTES as u64;
        self.tail = Tail::Whole;
        Ok(true)
    }

    fn measure(&mut self) -> Result<()> {
        let metadata = self.file.metadata().map_err(Error::io("read the journal", &self.path))?;
        self.length = metadata.len();
        Ok(())
    }

    /// True when `bytes` more are in the file.
    fn has(&mut self, bytes: u64) -> Result<bool> {
        if self.length.saturating_sub(self.offset) < bytes {
            self.measure()?;
        }
        Ok(self.length.saturating_sub(self.offset) >= bytes)
    }

    fn read_frame(&mut self) -> Result<Frame> {
        if self.offset == 0 && !self.read_file_header()? {
            return Ok(Frame::None);
        }
        if !self.has(FRAME_HEADER_BYTES as u64)? {
            return Ok(self.end());
        }
        let mut header = [0; FRAME_HEADER_BYTES];
        self.read_at(&mut header, self.offset)?;
        let Some(header) = FrameHeader::from_bytes(&header) else { return self.damage() };
        if !self.has(header.frame_bytes())? {
            return Ok(self.end());
        }
        let begin = self.offset;
        let mut stored = std::mem::take(&mut self.stored);
        stored.resize(header.stored as usize, 0);
        let read = self.read_at(&mut stored, begin + FRAME_HEADER_BYTES as u64);
        self.stored = stored;
        read?;
        if crc32fast::hash(&self.stored) != header.payload_crc {
            self.measure()?;
            if begin + header.frame_bytes() >= self.length {
                return Ok(self.end());
            }
            self.offset = begin + header.frame_bytes();
            return Err(self.damaged(begin, "the checksum of the entry does not match"));
        }
        self.offset = begin + header.frame_bytes();
        self.tail = Tail::Whole;
        match self.unpack(&header) {
            Ok(Some(entry)) => Ok(Frame::Entry(entry)),
            Ok(None) => Ok(Frame::Unknown),
            Err(what) => Err(self.damaged(begin, &what)),
        }
    }

    fn unpack(&mut self, header: &FrameHeader) -> Result<Option<Entry>, String> {
        if !header.packed {
            return payload::decode(header.kind, &self.stored);
        }
        let plain = self
            .decompressor
            .decompress(&self.stored, header.plain as usize)
            .map_err(|error| format!("the entry cannot be unpacked: {error}"))?;
        if plain.len() != header.plain as usize {
            return Err(format!("the entry unpacks to {} bytes instead of {}", plain.len(), header.plain));
        }
        payload::decode(header.kind, &plain)
    }

    /// No frame begins at the offset: damage in the middle if one begins later, a torn tail otherwise.
    fn damage(&mut self) -> Result<Frame> {
        self.measure()?;
        let begin = self.offset;
        let mut rest = vec![0; self.length.saturating_sub(begin).min(SEARCH_BYTES) as usize];
        self.read_at(&mut rest, begin)?;
        match format::find_frame(&rest, 1) {
            Some(distance) => {
                self.offset = begin + distance as u64;
                Err(self.damaged(begin, &format!("no entry for {distance} bytes")))
            }
            None => Ok(self.end()),
        }
    }

    fn end(&mut self) -> Frame {
        self.tail = if self.offset >= self.length { Tail::Whole } else { Tail::Truncated { offset: self.offset } };
        Frame::None
    }

    fn damaged(&self, offset: u64, what: &str) -> Error {
        Error::format(&self.path, format!("the journal is damaged at offset {offset}: {what}"))
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(bytes, offset).map_err(Error::io("read the journal", &self.path))
    }
}

impl Iterator for Reader {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        loop {
            if self.failed {
                return None;
            }
            match self.read_frame() {
                Ok(Frame::Entry(entry)) => return Some(Ok(entry)),
                Ok(Frame::Unknown) => self.unknown += 1,
                Ok(Frame::None) => return None,
                Err(error) => {
                    self.failed = !matches!(error, Error::Format { .. });
                    return Some(Err(error));
                }
            }
        }
    }
}
