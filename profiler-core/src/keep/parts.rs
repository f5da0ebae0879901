//! The segments of a journal as the recorder writes them.
//!
//! Owns: their files, the lock, and that the next one is there before the last one is left. Refuses: to decide when, and what goes
//! (`keeper`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::journal::entry::{Entry, Nanoseconds};
use crate::journal::{Writer, chain};

use super::asked::Keep;
use super::keeper::{Closed, Keeper, births};

/// The segments of a journal of which not everything is kept.
pub(crate) struct Parts {
    keeper: Keeper,
    /// Holds the lock on the journal.
    _first: Writer,
    journal: PathBuf,
    /// Number of the segment that is written.
    number: u64,
    /// Bytes of those before.
    before: u64,
    /// Allocations and blocks so far, and when this segment began.
    births: u64,
    births_before: u64,
}

/// Most allocations and blocks of a segment: what is kept too much of is bounded in rows, however well they are packed.
const MOST_BIRTHS: u64 = 1 << 18;

impl Parts {
    /// Begins the first segment; `writer` writes it from now on.
    pub fn begin(writer: &mut Writer, journal: PathBuf, keep: Keep) -> Result<Parts> {
        let segment = Parts::segment(&journal, 1)?;
        let first = std::mem::replace(writer, segment);
        let keeper = Keeper::start(journal.clone(), keep)?;
        Ok(Parts { keeper, before: first.written(), _first: first, journal, number: 1, births: 0, births_before: 0 })
    }

    /// Creates a segment. It appears under its name when it can be read: whoever sees it leaves the one before.
    fn segment(journal: &Path, number: u64) -> Result<Writer> {
        let path = chain::segment(journal, number);
        let draft = path.with_extension("next");
        // Of an earlier try, which had no room.
        let _ = fs::remove_file(&draft);
        let writer = Writer::create(&draft)?;
        fs::rename(&draft, &path).map_err(Error::io("create the journal", &path))?;
        Ok(writer)
    }

    /// True when the segment is as large as one may be.
    pub fn is_full(&self, writer: &Writer, segment_bytes: u64) -> bool {
        writer.written() >= segment_bytes || self.births - self.births_before >= MOST_BIRTHS
    }

    /// Goes on with the next segment.
    pub fn turn(&mut self, writer: &mut Writer, time: Nanoseconds) -> Result<()> {
        let next = Parts::segment(&self.journal, self.number + 1)?;
        let closed = std::mem::replace(writer, next);
        let bytes = closed.written();
        self.keeper.closed(Closed { number: self.number, time, births: self.births, bytes });
        self.number += 1;
        self.births_before = self.births;
        self.before += bytes;
        Ok(())
    }

    /// Takes note of an entry that was written.
    pub fn note(&mut self, entry: &Entry) {
        self.births += births(entry);
    }

    /// Bytes of the files that are closed, those that are gone too.
    pub fn before(&self) -> u64 {
        self.before
    }

    /// The recording ends: waits until all that is not kept is summed. Returns what went wrong, as sentences.
    pub fn finish(&mut self, time: Nanoseconds) -> Vec<String> {
        self.keeper.end(time, self.births);
        self.keeper.finish();
        self.keeper.take_notices()
    }
}
