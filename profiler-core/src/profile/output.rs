//! The file that an archive is written to.
//!
//! Owns: that the first failure is the last one. The zip writer goes on after an error, and completes its archive when it is
//! dropped; where that fails again, on a full disk, it prints. So what comes after a failure goes nowhere, and seems to
//! succeed. Refuses: to let such a file pass for written.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};

const BUFFER_BYTES: usize = 1 << 20;

pub(super) struct Output {
    file: BufWriter<File>,
    /// Where the next byte goes, and how far the file reaches, whether or not bytes still go to it.
    position: u64,
    end: u64,
    /// The first failure; its text is what was told then.
    failure: Option<(io::ErrorKind, String)>,
}

impl Output {
    /// Over an empty file.
    pub fn new(file: File) -> Output {
        Output { file: BufWriter::with_capacity(BUFFER_BYTES, file), position: 0, end: 0, failure: None }
    }

    /// The file, when all that was written is in it.
    pub fn into_file(self) -> io::Result<File> {
        match self.failure {
            Some((kind, text)) => Err(io::Error::new(kind, text)),
            None => self.file.into_inner().map_err(io::IntoInnerError::into_error),
        }
    }

    /// Does this with the file, or only seems to when something has failed before.
    fn attempt<T>(&mut self, nowhere: T, action: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> io::Result<T> {
        if self.failure.is_some() {
            return Ok(nowhere);
        }
        let result = action(&mut self.file);
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::Interrupted
        {
            self.failure = Some((error.kind(), error.to_string()));
        }
        result
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.attempt(bytes.len(), |file| file.write(bytes))?;
        self.position += written as u64;
        self.end = self.end.max(self.position);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt((), BufWriter::flush)
    }
}

impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
            SeekFrom::End(distance) => self.end.checked_add_signed(distance),
        };
        let target = target.ok_or(io::ErrorKind::InvalidInput)?;
        self.attempt(target, |file| file.seek(SeekFrom::Start(target)))?;
        self.position = target;
        Ok(target)
    }

    fn stream_position(&mut self) -> io::Result<u64> {
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_once_and_at_the_end() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut output = Output::new(full);
        output.write_all(b"waits in the buffer").unwrap();
        assert_eq!(output.flush().unwrap_err().kind(), io::ErrorKind::StorageFull);
        output.write_all(b"goes nowhere").unwrap();
        output.flush().unwrap();
        assert_eq!(output.seek(SeekFrom::End(-1)).unwrap(), 30);
        assert_eq!(output.into_file().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn what_is_overwritten_lies_where_it_was_put() {
        let mut output = Output::new(tempfile::tempfile().unwrap());
        output.write_all(b"abcdef").unwrap();
        assert_eq!(output.seek(SeekFrom::Start(2)).unwrap(), 2);
        output.write_all(b"X").unwrap();
        assert_eq!(output.stream_position().unwrap(), 3);
        assert_eq!(output.seek(SeekFrom::Current(1)).unwrap(), 4);
        output.write_all(b"Y").unwrap();
        assert_eq!(output.seek(SeekFrom::End(0)).unwrap(), 6);
        let mut file = output.into_file().unwrap();
        file.rewind().unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "abXdYf");
    }
}
