//! Appends entries to a journal.
//!
//! Owns: framing, packing, and that the file holds whole frames only, even after a write that failed half-way. Refuses: to
//! decide when (the recorder flushes at each round) and to force anything to the disk.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::entry::Entry;
use super::format::{self, FrameHeader, MAX_RECORDS};
use super::payload;
use crate::error::{Error, Result};

/// Level of zstd: the journal is written while the program runs.
const LEVEL: i32 = 1;
/// Payloads smaller than this are not packed: it would hardly gain.
const PACK_FROM_BYTES: usize = 128;

/// Tries to take the lock, and the pause between them.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The one writer of a journal. It holds a lock on the file (flock), by which others see that the session is being
/// recorded; the kernel lets go of it however this process ends.
pub struct Writer {
    file: File,
    path: PathBuf,
    /// Whole frames that are not yet in the file.
    buffer: Vec<u8>,
    /// Bytes of the file that are whole frames.
    written: u64,
    plain: Vec<u8>,
    packed: Vec<u8>,
    compressor: zstd::bulk::Compressor<'static>,
}

impl Writer {
    /// Creates the journal. Errors: [`Error::Exists`], [`Error::Io`].
    pub fn create(path: &Path) -> Result<Writer> {
        Writer::create_as(path, format::VERSION)
    }

    /// Creates the first file of a journal that goes on in other files. Errors: as [`Writer::create`].
    pub(crate) fn create_chain(path: &Path) -> Result<Writer> {
        Writer::create_as(path, format::CHAIN_VERSION)
    }

    fn create_as(path: &Path, version: u32) -> Result<Writer> {
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path).map_err(|error| {
                match error.kind() {
                    std::io::ErrorKind::AlreadyExists => Error::Exists {
                        path: path.to_path_buf(),
                        advice: "it is the journal of another session; `memscope recover` finishes that one",
                    },
                    _ => Error::io("create the journal", path)(error),
                }
            })?;
        let mut writer = Writer::over(file, path, 0)?;
        writer.buffer.extend_from_slice(&format::file_header(version));
        writer.flush()?;
        Ok(writer)
    }

    /// Opens the journal of a broken session to go on with it, and creates it if it is not there. `whole` is asked, once no
    /// other writer can come between, how many bytes from its start are whole (a [`super::Reader`]'s offset at its end);
    /// what lies behind, a torn frame, is cut off.
    ///
    /// Errors: [`Error::Busy`] when another writer is at work, [`Error::Io`], and those of `whole`.
    pub fn append(path: &Path, whole: impl FnOnce() -> Result<u64>) -> Result<Writer> {
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        let mut writer = Writer::over(open.map_err(Error::io("open the journal", path))?, path, 0)?;
        writer.written = whole()?;
        writer.file.set_len(writer.written).map_err(Error::io("cut the torn end off", path))?;
        if writer.written == 0 {
            writer.buffer.extend_from_slice(&format::file_header(format::VERSION));
            writer.flush()?;
        }
        Ok(writer)
    }

    fn over(file: File, path: &Path, written: u64) -> Result<Writer> {
        lock(&file, path)?;
        let compressor = zstd::bulk::Compressor::new(LEVEL).map_err(Error::io("prepare the packing of", path))?;
        let path = path.to_path_buf();
        Ok(Writer { file, path, buffer: Vec::new(), written, plain: Vec::new(), packed: Vec::new(), compressor })
    }

    /// Adds an entry; it is in the file after the next [`Writer::flush`]. More records than a frame
    /// takes are split, and no records are no frame.
    pub fn push(&mut self, entry: &Entry) -> Result<()> {
        if let Entry::Records { process, first_slot, records } = entry {
            for (index, part) in records.chunks(MAX_RECORDS).enumerate() {
                self.plain.clear();
                let first_slot = first_slot + (index * MAX_RECORDS) as u64;
                payload::encode_records(*process, first_slot, part, &mut self.plain);
                self.frame(format::kind::RECORDS)?;
            }
            return Ok(());
        }
        self.plain.clear();
        let kind = payload::encode(entry, &mut self.plain)
            .map_err(|error| Error::format(&self.path, format!("an entry cannot be written: {error}")))?;
        self.frame(kind)
    }

    /// Puts what was pushed into the file, with one write. After an error (a full disk) the file still ends with a whole
    /// frame and nothing is forgotten: the next call tries again.
    pub fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.file.write_all_at(&self.buffer, self.written) {
            // A reader takes what lies behind the last whole frame as torn; cutting it is only tidier.
            let _ = self.file.set_len(self.written);
            return Err(Error::io("write the journal", &self.path)(error));
        }
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Size of the file, in bytes.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Adds the payload in `self.plain` as a frame.
    fn frame(&mut self, kind: u8) -> Result<()> {
        if self.plain.len() > format::MAX_PAYLOAD_BYTES {
            let what = format!("an entry of {} bytes is too large for the journal", self.plain.len());
            return Err(Error::format(&self.path, what));
        }
        let mut packed = false;
        if self.plain.len() >= PACK_FROM_BYTES {
            self.packed.clear();
            self.packed.reserve(zstd::zstd_safe::compress_bound(self.plain.len()));
            let size = self
                .compressor
                .compress_to_buffer(&self.plain, &mut self.packed)
                .map_err(Error::io("pack an entry for", &self.path))?;
            packed = size < self.plain.len();
        }
        let stored = if packed { &self.packed } else { &self.plain };
        let header = FrameHeader {
            kind,
            packed,
            stored: stored.len() as u32,
            plain: self.plain.len() as u32,
            payload_crc: crc32fast::hash(stored),
        };
        self.buffer.extend_from_slice(&header.to_bytes());
        self.buffer.extend_from_slice(stored);
        Ok(())
    }
}

impl Drop for Writer {
    /// Lets go of the lock explicitly: a child of this process that was forked and has not yet become its program shares it,
    /// and would seem to go on recording.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Takes the writer's lock. Someone who asks whether the session is being recorded holds it for a moment: tries again.
fn lock(file: &File, path: &Path) -> Result<()> {
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            // Some network file systems have no locks. To record is worth more than to be sure of being alone.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
        }
    }
    Err(Error::Busy { path: path.to_path_buf() })
}

/// Whether a [`Writer`] holds the journal, in this or another process; `None` where the file system has no locks.
pub fn is_being_written(path: &Path) -> Option<bool> {
    let Ok(file) = File::open(path) else { return Some(false) };
    match file.try_lock_shared() {
        Ok(()) => Some(false),
        Err(TryLockError::WouldBlock) => Some(true),
        Err(TryLockError::Error(_)) => None,
    }
}
