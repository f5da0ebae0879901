//! The file around the tables: a stored zip, written beside its place and moved there, read in parts.
//!
//! Owns: atomic writing, limits and checksums of reading. Refuses: the tables' content.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::output::Output;
use crate::error::{Error, Result};
use crate::session::SessionFolder;

/// Largest member that is read into memory as a whole.
const MAX_MEMBER: u64 = 256 << 20;
/// What the end of a zip begins with, and its bytes.
const END: &[u8] = b"PK\x05\x06";
const END_BYTES: u64 = 22;
const NEEDS_FORCE: &str = "give another name, or -f to overwrite it";

/// A file that appears under its name only when it is complete.
#[derive(Debug)]
pub(crate) struct Pending {
    temporary: PathBuf,
    path: PathBuf,
    force: bool,
    placed: bool,
}

impl Pending {
    /// Reserves a name. Without `force` an existing file is in the way.
    pub fn new(path: &Path, force: bool) -> Result<Pending> {
        if !force && path.symlink_metadata().is_ok() {
            return Err(Error::Exists { path: path.to_path_buf(), advice: NEEDS_FORCE });
        }
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{}.tmp", std::process::id()));
        Ok(Pending { temporary: path.with_file_name(name), path: path.to_path_buf(), force, placed: false })
    }

    /// Creates the file under its temporary name.
    pub fn create(&self) -> Result<File> {
        File::create(&self.temporary).map_err(Error::io("create", &self.path))
    }

    /// Gives the file its name.
    pub fn place(mut self) -> Result<()> {
        if self.force {
            std::fs::rename(&self.temporary, &self.path).map_err(Error::io("write", &self.path))?;
            self.placed = true;
            return Ok(());
        }
        // A link refuses to replace a file that came in the meantime.
        match std::fs::hard_link(&self.temporary, &self.path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Error::Exists { path: self.path.clone(), advice: NEEDS_FORCE })
            }
            // A file system without links.
            Err(_) => {
                std::fs::rename(&self.temporary, &self.path).map_err(Error::io("write", &self.path))?;
                self.placed = true;
                Ok(())
            }
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.placed {
            // Nothing more can be done about a temporary file that does not go away.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// An archive that is being written.
pub(super) struct Writing {
    pending: Pending,
    zip: ZipWriter<Output>,
}

impl Writing {
    pub fn new(path: &Path, force: bool) -> Result<Writing> {
        let pending = Pending::new(path, force)?;
        let file = pending.create()?;
        Ok(Writing { pending, zip: ZipWriter::new(Output::new(file)) })
    }

    /// Begins a member and gives the place to write it to.
    pub fn member(&mut self, name: &str) -> Result<&mut (impl Write + Send + use<>)> {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
        self.zip.start_file(name, options).map_err(|error| self.failed(error))?;
        Ok(&mut self.zip)
    }

    fn failed(&self, error: impl Into<io::Error>) -> Error {
        Error::io("write", &self.pending.path)(error.into())
    }

    pub fn finish(self) -> Result<()> {
        let Writing { pending, zip } = self;
        let written = zip.finish().map_err(io::Error::from);
        let file = written.and_then(Output::into_file);
        file.and_then(|file| file.sync_data()).map_err(Error::io("write", &pending.path))?;
        pending.place()
    }
}

/// An archive that is being read.
#[derive(Debug)]
pub(super) struct Archive {
    path: PathBuf,
    file: Arc<File>,
    zip: ZipArchive<File>,
}

impl Archive {
    pub fn open(path: &Path) -> Result<Archive> {
        let mut file = File::open(path).map_err(Error::io("open", path))?;
        let mut magic = [0; 4];
        let read = file.read(&mut magic).map_err(Error::io("read", path))?;
        if read == 0 {
            return Err(Error::format(path, format!("the file is empty; {}", anew(path))));
        }
        if &magic[..read] != b"PK\x03\x04" {
            return Err(Error::format(path, "this is not a memscope profile (it does not begin like a zip file)"));
        }
        file.rewind().map_err(Error::io("read", path))?;
        let whole = file.try_clone().map_err(Error::io("read", path))?;
        let length = file.metadata().map_err(Error::io("read", path))?.len();
        if !has_end(&whole, length).map_err(Error::io("read", path))? {
            let what = "the file is cut short, as by a copy or a download that broke off, or a disk that was full";
            let ends = format!("it ends after {length} bytes, before the list of its parts");
            return Err(Error::format(path, format!("{what}: {ends}; {}", anew(path))));
        }
        let broken = |error| Error::format(path, format!("the file is damaged: {error}; {}", anew(path)));
        let zip = ZipArchive::new(file).map_err(broken)?;
        Ok(Archive { path: path.to_path_buf(), file: Arc::new(whole), zip })
    }

    pub fn damaged(&self, member: &str, what: impl std::fmt::Display) -> Error {
        Error::format(&self.path, format!("{member} is damaged: {what}"))
    }

    /// A small member as a whole; its checksum holds.
    pub fn read(&mut self, name: &str) -> Result<Vec<u8>> {
        let slice = self.slice(name)?;
        if slice.length > MAX_MEMBER {
            return Err(self.damaged(name, format!("its size of {} bytes is absurd", slice.length)));
        }
        let mut content = Vec::new();
        let member = self.zip.by_name(name).map_err(io::Error::from);
        let read = member.and_then(|mut member| member.read_to_end(&mut content));
        read.map_err(|error| self.damaged(name, error))?;
        Ok(content)
    }

    /// True when there is such a member.
    pub fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(name).is_some()
    }

    /// A member as a part of the file; its checksum holds.
    pub fn checked_slice(&mut self, name: &str) -> Result<Slice> {
        let slice = self.slice(name)?;
        let member = self.zip.by_name(name).map_err(io::Error::from);
        let read = member.and_then(|mut member| {
            let mut buffer = vec![0; 1 << 18];
            loop {
                if member.read(&mut buffer)? == 0 {
                    return Ok(());
                }
            }
        });
        read.map_err(|error| self.damaged(name, error))?;
        Ok(slice)
    }

    fn slice(&mut self, name: &str) -> Result<Slice> {
        let total = self.file.metadata().map_err(Error::io("read", &self.path))?.len();
        if self.zip.index_for_name(name).is_none() {
            return Err(Error::format(&self.path, format!("{name} is missing; this is no complete memscope profile")));
        }
        let place =
            self.zip.by_name(name).map(|member| Some((member.data_start()?, member.size(), member.compression())));
        let place = place.map_err(|error| self.damaged(name, error))?;
        match place {
            Some((start, length, CompressionMethod::Stored))
                if start.checked_add(length).is_some_and(|end| end <= total) =>
            {
                Ok(Slice { file: Arc::clone(&self.file), start, length })
            }
            Some((_, _, CompressionMethod::Stored)) => Err(self.damaged(name, "it reaches beyond the end of the file")),
            _ => Err(self.damaged(name, "it is compressed by the zip, which memscope never does")),
        }
    }
}

/// True when the list of a zip's parts is there: its end stands in front of a comment of at most 64 KiB.
fn has_end(file: &File, length: u64) -> io::Result<bool> {
    let mut tail = vec![0; length.min(END_BYTES + (1 << 16)) as usize];
    let start = length - tail.len() as u64;
    file.read_exact_at(&mut tail, start)?;
    Ok(tail.windows(END.len()).any(|bytes| bytes == END))
}

/// How a profile comes that cannot be read.
fn anew(path: &Path) -> String {
    let session = SessionFolder::path_for(path);
    match session.is_dir() {
        true => format!("its session is there yet: `memscope recover -f` makes it anew from {}", session.display()),
        false => "copy it again from where it was made, or run the program again".to_owned(),
    }
}

/// A part of a file, for the Parquet reader.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    file: Arc<File>,
    start: u64,
    length: u64,
}

impl Slice {
    /// Reads it from its beginning.
    pub fn into_read(self) -> SliceReader {
        SliceReader { slice: self }
    }
}

impl Length for Slice {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Slice {
    type T = SliceReader;

    fn get_read(&self, start: u64) -> Result<SliceReader, ParquetError> {
        let rest = self.length.checked_sub(start).ok_or_else(beyond)?;
        Ok(SliceReader { slice: Slice { start: self.start + start, length: rest, ..self.clone() } })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Err(beyond());
        }
        let mut content = vec![0; length];
        self.file.read_exact_at(&mut content, self.start + start)?;
        Ok(content.into())
    }
}

fn beyond() -> ParquetError {
    ParquetError::EOF("a part of the table lies beyond its end".into())
}

/// Reads a slice from its beginning.
#[derive(Debug)]
pub(super) struct SliceReader {
    slice: Slice,
}

impl Read for SliceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = (buffer.len() as u64).min(self.slice.length) as usize;
        let read = self.slice.file.read_at(&mut buffer[..wanted], self.slice.start)?;
        self.slice.start += read as u64;
        self.slice.length -= read as u64;
        Ok(read)
    }
}
