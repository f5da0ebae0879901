//! Reads and continues a journal that may be a chain of segments.
//!
//! Owns: the names of the files, their order, and that a segment which was summed while it was looked for is not missed. Refuses:
//! frames (`reader`), and to decide what is summed (`keep`).
//!
//! ```text
//! journal          of a session that keeps all: every entry. Of one that does not: its first entry, and the lock
//! journal.summed   what the first segments come to, once there were some to be summed (`checkpoint`)
//! journal.N, …     the segments after those, from 1 on
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::checkpoint::Checkpoint;
use super::entry::Entry;
use super::reader::{Reader, Tail};
use crate::error::{Error, Result};

/// The path of a segment.
pub(crate) fn segment(journal: &Path, number: u64) -> PathBuf {
    beside(journal, &number.to_string())
}

/// The path of the checkpoint.
pub(crate) fn summed(journal: &Path) -> PathBuf {
    beside(journal, "summed")
}

fn beside(journal: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(journal);
    name.push(".");
    name.push(ending);
    name.into()
}

/// The file to which entries are appended: the last segment, which may not be there yet, or the journal itself.
///
/// # Errors
/// As [`Chain::open`].
pub(crate) fn last_file(journal: &Path) -> Result<PathBuf> {
    match Reader::open(journal) {
        Ok(reader) if !reader.is_chained() => return Ok(journal.to_path_buf()),
        Ok(_) => {}
        Err(Error::NotFound { .. }) => return Ok(journal.to_path_buf()),
        Err(error) => return Err(error),
    }
    let mut last = Checkpoint::next_segment(&summed(journal))?.unwrap_or(1);
    while segment(journal, last + 1).exists() {
        last += 1;
    }
    Ok(segment(journal, last))
}

/// An iterator over the entries of a journal, whatever it is made of; else as [`Reader`].
pub struct Chain {
    journal: PathBuf,
    base: Reader,
    /// The number of the segment that is read, and its reader.
    at: Option<(u64, Reader)>,
    /// The number of the next segment; 0 before the first look.
    next: u64,
    /// What follows cannot be told: there is nothing to go on with.
    failed: bool,
}

impl Chain {
    /// Opens a journal. Errors: as [`Reader::open`].
    pub fn open(journal: &Path) -> Result<Chain> {
        Ok(Chain { journal: journal.to_path_buf(), base: Reader::open(journal)?, at: None, next: 0, failed: false })
    }

    /// How the file ends that is read now; meaningful when `next` has given `None`.
    pub fn tail(&self) -> Tail {
        self.reader().tail()
    }

    /// Where the next frame of that file begins, in bytes: at the end, the size of the part that is whole.
    pub fn offset(&self) -> u64 {
        self.reader().offset()
    }

    /// True when what follows cannot be told: the file that is read now is not the last one.
    pub(crate) fn is_broken(&self) -> bool {
        self.failed
    }

    fn reader(&self) -> &Reader {
        self.at.as_ref().map_or(&self.base, |(_, reader)| reader)
    }

    /// Goes to the next segment; `None` while there is none.
    fn go_on(&mut self) -> Option<Result<Option<Entry>>> {
        if self.next == 0 {
            self.next = 1;
            if let Some(summed) = self.summed_beyond(0) {
                return Some(summed.map(Some));
            }
        }
        match Reader::open(&segment(&self.journal, self.next)) {
            Ok(reader) => {
                self.at = Some((self.next, reader));
                Some(Ok(None))
            }
            // It is not there yet, or was summed since the last look.
            Err(Error::NotFound { .. }) => self.summed_beyond(self.next).map(|summed| summed.map(Some)),
            Err(error) => Some(Err(error)),
        }
    }

    /// The checkpoint, if it goes beyond this segment.
    fn summed_beyond(&mut self, segment: u64) -> Option<Result<Entry>> {
        let path = summed(&self.journal);
        let beyond = match Checkpoint::next_segment(&path) {
            Ok(next) => next.is_some_and(|next| next > segment),
            Err(error) => return Some(Err(error)),
        };
        if !beyond {
            return None;
        }
        let checkpoint = Checkpoint::read(&path).transpose()?;
        Some(checkpoint.map(|checkpoint| {
            self.next = checkpoint.head.next_segment;
            Entry::Summed(checkpoint)
        }))
    }

    /// Leaves the segment that is read, if no more comes to it.
    fn leave(&mut self) -> bool {
        let Some((number, _)) = &self.at else { return false };
        let next = number + 1;
        let summed = || Checkpoint::next_segment(&summed(&self.journal)).is_ok_and(|first| first > Some(next));
        segment(&self.journal, next).exists() || summed()
    }
}

impl Iterator for Chain {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        if self.failed {
            return None;
        }
        loop {
            let Some((number, reader)) = &mut self.at else {
                let next = self.base.next();
                if next.is_some() || !self.base.is_chained() {
                    return next;
                }
                match self.go_on()? {
                    Ok(Some(entry)) => return Some(Ok(entry)),
                    Ok(None) => continue,
                    Err(error) => {
                        self.failed = true;
                        return Some(Err(error));
                    }
                }
            };
            if let Some(next) = reader.next() {
                return Some(next);
            }
            let number = *number;
            if !self.leave() {
                return None;
            }
            // The writer may have added its last entries between the two looks.
            if let Some(next) = self.at.as_mut().and_then(|(_, reader)| reader.next()) {
                return Some(next);
            }
            (self.at, self.next) = (None, number + 1);
        }
    }
}
