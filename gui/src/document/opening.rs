//! Opens a document on a thread of its own, in stages, and hands over what answers questions about it.
//!
//! Owns: what a path may mean, and what is known before everything is. Refuses: to make the window wait: also closing is done
//! elsewhere.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use memscope_core::Error;
use memscope_core::explorer::{Answer, Follower, Limits, Query, find_session, overview_of};
use memscope_core::profile::{Profile, Reading};

use super::Stage;

/// Calls the window.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// A document that is being opened, or is open.
pub struct Opening {
    board: Arc<Mutex<Board>>,
    /// Here once it is open.
    follower: Option<Follower>,
    /// What is to be asked as soon as it is open.
    query: Query,
}

/// What the thread has found out.
#[derive(Default)]
struct Board {
    reading: Arc<Reading>,
    overview: Option<Arc<Answer>>,
    opened: Option<Follower>,
    failure: Option<String>,
    /// Nobody waits for it any more.
    given_up: bool,
}

impl Opening {
    /// Starts the thread.
    pub fn start(path: PathBuf, wake: Wake) -> Opening {
        let board = Arc::new(Mutex::new(Board::default()));
        let theirs = Arc::clone(&board);
        let open = move || {
            if let Err(error) = open(&path, &theirs, &wake) {
                lock(&theirs).failure = Some(sentence(&path, &error));
            }
            wake();
        };
        if let Err(error) = thread::Builder::new().name("memscope-open".into()).spawn(open) {
            lock(&board).failure = Some(format!("no thread can be started to open it: {error}"));
        }
        Opening { board, follower: None, query: Query::default() }
    }

    /// How far it is.
    pub fn stage(&self) -> Stage {
        let board = lock(&self.board);
        board.failure.as_ref().map_or(Stage::Opening, |failure| Stage::Failed(failure.clone()))
    }

    /// What a profile tells before its rows are read: once.
    pub fn overview(&mut self) -> Option<Arc<Answer>> {
        lock(&self.board).overview.take()
    }

    /// How many allocations have been read.
    pub fn allocations_read(&self) -> u64 {
        lock(&self.board).reading.count()
    }

    /// The latest answer and its number, once there is one.
    pub fn answer(&mut self) -> Option<(u64, Arc<Answer>)> {
        if self.follower.is_none() {
            self.follower = lock(&self.board).opened.take();
            self.follower.as_ref()?.ask(self.query.clone());
        }
        let follower = self.follower.as_ref()?;
        let version = follower.version();
        (version > 0).then(|| (version, follower.answer()))
    }

    /// Asks something else from now on.
    pub fn ask(&mut self, query: Query) {
        if let Some(follower) = &self.follower {
            follower.ask(query.clone());
        }
        self.query = query;
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        let mut board = lock(&self.board);
        board.given_up = true;
        let followers = [self.follower.take(), board.opened.take()];
        drop(board);
        // A follower in the middle of a long answer ends when that is made.
        let _ = thread::Builder::new().name("memscope-close".into()).spawn(move || drop(followers));
    }
}

fn open(path: &Path, board: &Mutex<Board>, wake: &Wake) -> Result<(), Error> {
    let calls = {
        let wake = Arc::clone(wake);
        move || wake()
    };
    let follower = if path.is_file() {
        // What lies ready comes at once; what is made of all rows takes as long as there are rows.
        let profile = Profile::open(path)?;
        let overview = overview_of(&profile)?;
        let reading = {
            let mut board = lock(board);
            board.overview = Some(Arc::new(overview));
            Arc::clone(&board.reading)
        };
        wake();
        Follower::of_profile_counted(&profile, &reading, calls)?
    } else {
        Follower::of_session(find_session(Some(path))?, Limits::default(), calls)
    };
    let mut board = lock(board);
    if !board.given_up {
        board.opened = Some(follower);
    }
    Ok(())
}

/// What went wrong, with the path in it.
fn sentence(path: &Path, error: &Error) -> String {
    let shown = path.display().to_string();
    if path.is_dir() && matches!(error, Error::Choose { .. }) {
        return format!(
            "{shown} is a folder, but not that of a session; a profile is a file whose name ends in .mscope"
        );
    }
    let error = error.to_string();
    match (path.exists(), error.contains(&shown)) {
        (false, _) => format!("there is no file {shown}; and {error}"),
        (true, true) => error,
        (true, false) => format!("{shown}: {error}"),
    }
}

fn lock(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    // What is on the board is whole after each assignment.
    board.lock().unwrap_or_else(PoisonError::into_inner)
}
