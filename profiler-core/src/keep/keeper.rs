//! Puts sums in the place of segments that are not kept, while the program runs.
//!
//! Owns: a thread, the model that it holds of what is live, and when a segment goes. Refuses: to hold up the recorder, and to
//! remove a segment before the sums that stand for it are in their place.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use memscope_wire::event::kind;

use crate::error::{Error, Result};
use crate::explorer::Summing;
use crate::journal::entry::{Entry, Nanoseconds};
use crate::journal::{Reader, Writer, chain};

use super::asked::{Keep, Span};

/// What ended within so many changes may still be told something of: a refused free, a late tag.
const RECENT: u32 = 4096;

/// A segment to which nothing is added any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Closed {
    pub number: u64,
    /// Everything in it was recorded by then.
    pub time: Nanoseconds,
    /// Allocations and blocks that began in it and before.
    pub births: u64,
    /// Its size.
    pub bytes: u64,
}

/// What the recorder says.
enum News {
    Closed(Closed),
    /// The recording ends, with so many allocations and blocks.
    End {
        time: Nanoseconds,
        births: u64,
    },
}

/// The thread's handle. Dropping it lets it finish what is closed.
pub(crate) struct Keeper {
    news: Option<Sender<News>>,
    thread: Option<JoinHandle<()>>,
    notices: Arc<Mutex<Vec<String>>>,
}

impl Keeper {
    /// Begins to keep so much of a journal.
    ///
    /// # Errors
    /// [`Error::Io`] when there is no thread.
    pub fn start(journal: PathBuf, keep: Keep) -> Result<Keeper> {
        let notices = Arc::new(Mutex::new(Vec::new()));
        let (sender, news) = channel();
        let (theirs, path) = (Arc::clone(&notices), journal.clone());
        let work = move || Keeping::new(journal, keep, Summing::new(keep, RECENT, 0)).run(&news, &theirs);
        let thread = std::thread::Builder::new().name("keeper".into()).spawn(work);
        let thread = thread.map_err(Error::io("start the thread that sums", &path))?;
        Ok(Keeper { news: Some(sender), thread: Some(thread), notices })
    }

    /// Says that a segment is closed.
    pub fn closed(&self, closed: Closed) {
        self.tell(News::Closed(closed));
    }

    /// Says that no more segments are closed.
    pub fn end(&self, time: Nanoseconds, births: u64) {
        self.tell(News::End { time, births });
    }

    fn tell(&self, news: News) {
        if let Some(sender) = &self.news {
            // A thread that is gone has said why.
            let _ = sender.send(news);
        }
    }

    /// What went wrong, as sentences.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until all that was closed is looked at.
    pub fn finish(&mut self) {
        self.news = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic has said what it was
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The thread's own state.
struct Keeping {
    journal: PathBuf,
    keep: Keep,
    summing: Summing,
    /// Segments that are still in the journal, the oldest first.
    segments: VecDeque<Closed>,
    /// How many of the first of them are taken in, and wait for the sums to be written.
    taken: usize,
    /// Size of the sums that were written last, and how many allocations and blocks had begun by then.
    written: u64,
    summed: u64,
    /// The latest that is known: when, and how many allocations and blocks.
    now: (Nanoseconds, u64),
    begun: bool,
    /// No more segments are closed.
    ended: bool,
}

impl Keeping {
    fn new(journal: PathBuf, keep: Keep, summing: Summing) -> Keeping {
        Keeping {
            journal,
            keep,
            summing,
            segments: VecDeque::new(),
            taken: 0,
            written: 0,
            summed: 0,
            now: Default::default(),
            begun: false,
            ended: false,
        }
    }

    fn run(mut self, news: &Receiver<News>, notices: &Mutex<Vec<String>>) {
        while let Ok(first) = news.recv() {
            for news in std::iter::once(first).chain(news.try_iter()) {
                match news {
                    News::Closed(closed) => self.close(closed),
                    News::End { time, births } => (self.now, self.ended) = ((time, births), true),
                }
            }
            if let Err(error) = self.look(&mut || ()) {
                let notice = format!("{error}: what is not kept is not dropped yet");
                let mut notices = notices.lock().unwrap_or_else(PoisonError::into_inner);
                if !notices.contains(&notice) {
                    notices.push(notice);
                }
            }
        }
    }

    fn close(&mut self, closed: Closed) {
        self.now = (closed.time, closed.births);
        self.segments.push_back(closed);
    }

    /// Sums what is not kept, once it is worth it: the sums are written anew as a whole, so as many bytes must go, or as many
    /// allocations as are in the sums. At the end all of it goes.
    fn look(&mut self, step: &mut dyn FnMut()) -> Result<()> {
        let (time, births) = self.now;
        let old = |segment: &&Closed| match self.keep {
            Keep::Last(Span::Time(span)) => time.0.saturating_sub(segment.time.0) >= span.0,
            Keep::Last(Span::Allocations(count)) => births.saturating_sub(segment.births) >= count,
            Keep::Steps(..) | Keep::Peaks => true,
        };
        let gone = self.segments.iter().take_while(old).count();
        let bytes: u64 = self.segments.iter().take(gone).map(|segment| segment.bytes).sum();
        let Some(last) = gone.checked_sub(1).map(|last| self.segments[last]) else { return Ok(()) };
        let few = bytes < self.written && last.births - self.summed < self.summing.rows();
        if few && !self.ended {
            return Ok(());
        }
        if !self.begun {
            self.take(&self.journal.clone())?;
            self.begun = true;
        }
        while self.taken < gone {
            self.take(&chain::segment(&self.journal, self.segments[self.taken].number))?;
            self.taken += 1;
        }
        self.written = self.summing.write(&chain::summed(&self.journal), last.number + 1, &mut *step)?;
        self.summed = last.births;
        for segment in self.segments.drain(..std::mem::take(&mut self.taken)) {
            step();
            // One that stays is never read again, and goes with the session.
            let _ = fs::remove_file(chain::segment(&self.journal, segment.number));
        }
        Ok(())
    }

    fn take(&mut self, path: &Path) -> Result<()> {
        for entry in Reader::open(path)? {
            match entry {
                Ok(entry) => self.summing.apply(&entry),
                Err(error @ Error::Format { .. }) => self.summing.damaged(&error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Writes a journal of these segments as a recorder does that keeps so much, on this thread, for tests. `changes` are behind its
/// beginning. `step` is called before each thing that is done to a file of sums, and before each segment that goes.
///
/// # Errors
/// When a file cannot be written.
#[doc(hidden)]
pub fn write_in_segments(
    journal: &Path,
    keep: Keep,
    segments: &[(Nanoseconds, &[Entry])],
    changes: u32,
    step: &mut dyn FnMut(),
) -> Result<()> {
    let mut first = Writer::create_chain(journal)?;
    let mut keeping = Keeping::new(journal.to_path_buf(), keep, Summing::new(keep, 0, changes));
    let mut so_far = 0;
    for (position, (time, entries)) in segments.iter().enumerate() {
        let number = position as u64 + 1;
        let mut writer = Writer::create(&chain::segment(journal, number))?;
        for entry in *entries {
            // As the recorder does: the session is what the first file says.
            let to = if matches!(entry, Entry::Session(_)) { &mut first } else { &mut writer };
            to.push(entry)?;
            to.flush()?;
            so_far += births(entry);
        }
        if position + 1 < segments.len() {
            let closed = Closed { number, time: *time, births: so_far, bytes: writer.written() };
            keeping.close(closed);
            keeping.look(step)?;
        }
    }
    Ok(())
}

/// How many allocations and blocks begin in an entry.
pub(crate) fn births(entry: &Entry) -> u64 {
    let Entry::Records { records, .. } = entry else { return 0 };
    let begins = |kind: u16| matches!(kind, kind::ALLOC | kind::CREATE | kind::BLOCK_ALLOC);
    records.iter().filter(|record| begins(record.kind())).count() as u64
}
