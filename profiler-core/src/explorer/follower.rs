//! Answers questions about a session on a thread of its own, while the session runs and after.
//!
//! Owns: the thread, its pace, and how the session's end is noticed. Refuses: to write anything, and to make the asker wait.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::profile::{Profile, Reading};
use crate::recover::{self, Entries};
use crate::session::SessionFolder;

use super::answer::Answer;
use super::explorer::Explorer;
use super::limits::Limits;
use super::query::Query;
use super::turns::Turns;

/// Pause between two looks at the journal while it grows.
const PAUSE: Duration = Duration::from_millis(50);
/// Longest pause between two looks, when nothing has come for a while.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// How long entries are taken in before a look at what is asked.
const SLICE: Duration = Duration::from_millis(20);
/// How long nothing must come of a session that nobody records, before it counts as broken off.
const QUIET: Duration = Duration::from_secs(1);

/// Follows a session, or holds a profile, and keeps an answer to the latest question.
///
/// Dropping it ends its thread.
pub struct Follower {
    board: Arc<Board>,
    thread: Option<JoinHandle<()>>,
}

/// What both sides see.
struct Board {
    state: Mutex<State>,
    asked: Condvar,
}

struct State {
    query: Query,
    /// Counts questions.
    questions: u64,
    answer: Arc<Answer>,
    version: u64,
    stop: bool,
}

impl Follower {
    /// Follows a session from its beginning. `wake` is called on the follower's thread whenever there is a new answer. What goes
    /// wrong with the journal becomes a notice in the answers.
    pub fn of_session(folder: SessionFolder, limits: Limits, wake: impl Fn() + Send + 'static) -> Follower {
        Follower::start(move |board| Following::new(folder, limits).run(board, &wake))
    }

    /// Opens a profile. `wake` as in [`Follower::of_session`].
    ///
    /// # Errors
    /// Those of [`Profile::open`] and [`Explorer::of_profile`].
    pub fn of_profile(path: impl AsRef<Path>, wake: impl Fn() + Send + 'static) -> Result<Follower> {
        Follower::of_profile_counted(&Profile::open(path)?, &Reading::default(), wake)
    }

    /// The same of one that is open; `reading` counts its allocations while they are read, which is done when this returns.
    ///
    /// # Errors
    /// Those of [`Explorer::of_profile`].
    pub fn of_profile_counted(
        profile: &Profile,
        reading: &Reading,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Follower> {
        let explorer = Explorer::of_profile_counted(profile, reading)?;
        Ok(Follower::start(move |board| Following::of(explorer).run(board, &wake)))
    }

    fn start(run: impl FnOnce(&Board) + Send + 'static) -> Follower {
        let state = State { query: Query::default(), questions: 1, answer: Arc::default(), version: 0, stop: false };
        let board = Arc::new(Board { state: Mutex::new(state), asked: Condvar::new() });
        let theirs = Arc::clone(&board);
        let thread = thread::Builder::new().name("memscope-follow".into()).spawn(move || run(&theirs));
        // Without a thread there are no answers; the board then says so.
        let thread = thread.map_err(|error| board.publish_failure(&error)).ok();
        Follower { board, thread }
    }

    /// Asks something else from now on. It is answered at once.
    pub fn ask(&self, query: Query) {
        let mut state = self.board.lock();
        if state.query != query {
            state.query = query;
            state.questions += 1;
            self.board.asked.notify_one();
        }
    }

    /// The latest answer; empty until the first one is there.
    pub fn answer(&self) -> Arc<Answer> {
        Arc::clone(&self.board.lock().answer)
    }

    /// Counts answers: 0 until the first one is there.
    pub fn version(&self) -> u64 {
        self.board.lock().version
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.board.lock().stop = true;
        self.board.asked.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; there is nothing to add.
            let _ = thread.join();
        }
    }
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, State> {
        // What is on the board is whole after each assignment: a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, answer: Answer) {
        let mut state = self.lock();
        // The old answer is dropped outside of the lock: it may be large.
        let old = std::mem::replace(&mut state.answer, Arc::new(answer));
        state.version += 1;
        drop(state);
        drop(old);
    }

    fn publish_failure(&self, error: &std::io::Error) {
        let mut answer = Answer::default();
        answer.session.notices.push(format!("the session cannot be followed: {error}"));
        self.publish(answer);
    }
}

/// The thread's own state.
struct Following {
    explorer: Explorer,
    folder: Option<SessionFolder>,
    entries: Option<Entries>,
    /// When an entry came last, and when the journal was looked at last.
    moved: Instant,
    looked: Instant,
    /// What had been recorded when the reading began is still being read, or it is not known yet whether more will come.
    reading: bool,
}

impl Following {
    /// A session of which everything is known.
    fn of(explorer: Explorer) -> Following {
        let now = Instant::now();
        Following { explorer, folder: None, entries: None, moved: now, looked: now, reading: false }
    }

    fn new(folder: SessionFolder, limits: Limits) -> Following {
        let mut explorer = Explorer::with_symbols(limits);
        let entries = match recover::entries(&folder) {
            Ok(entries) => Some(entries),
            Err(error) => {
                explorer.journal_damaged(error.to_string());
                explorer.broke_off(Vec::new());
                None
            }
        };
        let reading = entries.is_some();
        let now = Instant::now();
        Following { explorer, folder: Some(folder), entries, moved: now, looked: now, reading }
    }

    fn run(mut self, board: &Board, wake: &dyn Fn()) {
        let mut answered: Option<u64> = None;
        let mut turns = Turns::new(Instant::now());
        let mut changed = false;
        loop {
            let more = self.take_in(&mut changed);
            let (query, questions) = {
                let state = board.lock();
                if state.stop {
                    return;
                }
                (state.query.clone(), state.questions)
            };
            let now = Instant::now();
            let new = answered != Some(questions);
            let turn = turns.next() <= now;
            let due = self.explorer.due().is_some_and(|due| due <= now);
            // In the middle of a backlog only what is asked anew is answered at once.
            if new || (turn && (changed || due)) {
                let mut answer = self.explorer.answer(&query);
                answer.session.reading = self.reading && !self.explorer.is_ended();
                board.publish(answer);
                wake();
                turns.answered(now, now.elapsed());
                answered = Some(questions);
                changed = false;
            }
            if !more && self.pause(board, questions, (turns.next(), changed)) {
                turns.woke(Instant::now());
            }
        }
    }

    /// Takes in entries for a while; true when there are more.
    fn take_in(&mut self, changed: &mut bool) -> bool {
        let begin = Instant::now();
        self.looked = begin;
        let Some(entries) = &mut self.entries else { return false };
        while begin.elapsed() < SLICE {
            match entries.next() {
                Some(Ok(entry)) => {
                    self.explorer.apply(&entry);
                    self.moved = begin;
                    *changed = true;
                }
                Some(Err(error)) => {
                    self.explorer.journal_damaged(error.to_string());
                    *changed = true;
                    if matches!(error, Error::Io { .. }) {
                        break;
                    }
                }
                None => {
                    for notice in entries.notices() {
                        *changed |= self.explorer.notice(notice);
                    }
                    *changed |= self.notice_the_end();
                    *changed |= self.has_read_all();
                    return false;
                }
            }
        }
        true
    }

    /// True when the session has just turned out to be over.
    fn notice_the_end(&mut self) -> bool {
        if self.explorer.is_ended() {
            if self.entries.as_ref().is_some_and(Entries::is_ended) {
                // Nothing more will come; the journal may go.
                self.entries = None;
            }
            return false;
        }
        let recorded = self.folder.as_ref().is_some_and(SessionFolder::is_being_recorded);
        if recorded || self.moved.elapsed() < QUIET {
            return false;
        }
        self.explorer.broke_off(self.entries.as_ref().map_or_else(Vec::new, Entries::refusals));
        if let Some(folder) = &self.folder {
            let path = folder.path().display();
            self.explorer.notice(&format!("its memscope has died: `memscope recover {path}` makes the profile"));
        }
        true
    }

    /// True when it has just turned out that what was recorded has been read: from now on what is shown is the present, or the end.
    fn has_read_all(&mut self) -> bool {
        let known = || self.explorer.is_ended() || self.folder.as_ref().is_some_and(SessionFolder::is_being_recorded);
        let turned = self.reading && known();
        self.reading &= !turned;
        turned
    }

    /// Waits for a question, for more entries, or for the turn of an answer: whether there is something new to tell is known,
    /// else it is when a list may be made anew. True when there was time to wait.
    fn pause(&self, board: &Board, questions: u64, (turn, changed): (Instant, bool)) -> bool {
        let now = Instant::now();
        // The longer nothing comes, the longer the pause. After an answer that took as long, what has come since is there.
        let quiet = now.duration_since(self.moved) / 8;
        let look = self.entries.is_some().then(|| self.looked + quiet.clamp(PAUSE, LONGEST_PAUSE));
        let answer = match changed {
            true => Some(turn),
            false => self.explorer.due().map(|due| due.max(turn)),
        };
        let until = look.into_iter().chain(answer).min();
        let nothing_new = |state: &mut State| !state.stop && state.questions == questions;
        let state = board.lock();
        match until {
            Some(until) => {
                let wait = until.saturating_duration_since(now);
                drop(board.asked.wait_timeout_while(state, wait, nothing_new));
            }
            None => drop(board.asked.wait_while(state, nothing_new)),
        }
        until.is_none_or(|until| until > now)
    }
}
