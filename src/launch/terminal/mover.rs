//! The threads that move bytes between the program's terminal, the transcript, the emulated screen and, once the dashboard was
//! left, the real terminal.
//!
//! One thread reads the program's terminal, writes the transcript and gives the program what is typed; another one shows, since
//! the emulator takes as long as the rest. Between them there is a short queue. Nothing is dropped: when the queue is full no
//! more is read, and the program waits for its terminal as it would for any other.
//!
//! Owns: the order, the queues, and when all that the program wrote has been moved. Refuses: to decide when the program has
//! ended (`custody.rs`).

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use memscope_tui::output::Output;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use super::{Pair, Size};

/// Bytes that are moved at once. A read of a pseudo-terminal gives 4 KiB at most.
const BATCH: usize = 64 << 10;
/// Batches that wait to be shown: what a key typed into a program that floods its terminal has to wait for, a few hundredths
/// of a second.
const QUEUE: usize = 8;
/// Typed bytes that wait for a program that does not read. What is typed beyond that is lost, as in a terminal whose buffer
/// is full.
const MOST_TYPED: usize = 1 << 20;
/// After the program's end: how long something that it wrote may be on its way. The kernel moves what is written by a work
/// queue, which takes microseconds.
const ON_ITS_WAY: Duration = Duration::from_millis(100);
/// After the program's end: bytes after which what comes is from processes that outlive it. The kernel's buffers hold less.
const MOST_LEFT: usize = 1 << 20;

/// The thread and what it shares.
pub struct Mover {
    shared: Arc<Shared>,
}

/// What became of the transcript.
#[derive(Clone, Default)]
pub struct Moved {
    /// Why it is not complete, if it is not.
    pub trouble: Option<String>,
}

struct Shared {
    pair: Arc<Pair>,
    output: Output,
    /// Wakes the thread: there is something typed, or the program has ended.
    wake: OwnedFd,
    typed: Mutex<VecDeque<u8>>,
    /// The real terminal, while the program is shown in it. Held while bytes go to screen and terminal, so that a change of
    /// it falls between two pieces.
    real: Mutex<Option<File>>,
    ended: AtomicBool,
    moved: Mutex<Option<Moved>>,
    is_moved: Condvar,
}

impl Mover {
    /// Starts the thread. Errors: the transcript cannot be created; no descriptor or thread is left.
    pub fn start(pair: Arc<Pair>, output: Output, transcript: &Path) -> io::Result<Mover> {
        let file = File::options().create(true).write(true).truncate(true).open(transcript)?;
        let shared = Arc::new(Shared {
            pair,
            output,
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            typed: Mutex::default(),
            real: Mutex::default(),
            ended: AtomicBool::new(false),
            moved: Mutex::default(),
            is_moved: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        let transcript = Transcript { file: Some(file), path: transcript.to_owned(), moved: Moved::default() };
        let (show, shown) = sync_channel(QUEUE);
        let of_shower = Arc::clone(&shared);
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        thread("screen").spawn(move || of_shower.show(&shown))?;
        thread("terminal").spawn(move || Thread::new(of_thread, transcript, show).run())?;
        Ok(Mover { shared })
    }

    /// Gives the program typed bytes. Never waits.
    pub fn type_in(&self, bytes: &[u8]) {
        self.shared.push_typed(bytes);
        self.shared.wake();
    }

    /// How many typed bytes the program has not taken yet.
    pub fn waiting(&self) -> usize {
        lock(&self.shared.typed).len()
    }

    /// Gives the program's terminal and its screen another size.
    pub fn resize(&self, size: Size) {
        // First the screen: what the program writes for the new size must find it.
        self.shared.output.resize(size.0, size.1);
        self.shared.pair.resize(size);
    }

    /// From now on what the program writes goes to the real terminal too. `begin` is written first, of the screen as it is
    /// then.
    pub fn show_in(&self, mut terminal: File, begin: impl FnOnce(&Output) -> Vec<u8>) -> io::Result<()> {
        let mut real = lock(&self.shared.real);
        terminal.write_all(&begin(&self.shared.output))?;
        *real = Some(terminal);
        Ok(())
    }

    /// Ends [`Mover::show_in`]; `end` is written last.
    pub fn show_no_more(&self, end: impl FnOnce(&Output) -> Vec<u8>) {
        let mut real = lock(&self.shared.real);
        if let Some(mut terminal) = real.take() {
            // The terminal may be gone: then nobody sees that it was not tidied.
            let _ = terminal.write_all(&end(&self.shared.output));
        }
    }

    /// The program has ended: waits until everything that it wrote has been moved.
    pub fn finish(&self) -> Moved {
        self.shared.pair.let_go();
        self.shared.ended.store(true, Ordering::Release);
        self.shared.wake();
        let mut moved = lock(&self.shared.moved);
        loop {
            if let Some(moved) = moved.as_ref() {
                return moved.clone();
            }
            moved = self.shared.is_moved.wait(moved).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What the reading thread sends to the one that shows.
enum Show {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Tell that all before this has been shown.
    Tell(std::sync::mpsc::Sender<()>),
}

impl Shared {
    /// Shows what comes, until nothing comes any more.
    fn show(&self, queue: &Receiver<Show>) {
        for show in queue {
            let bytes = match show {
                Show::Bytes(bytes) => bytes,
                Show::Tell(whom) => {
                    let _ = whom.send(());
                    continue;
                }
            };
            let mut real = lock(&self.real);
            let replies = self.output.feed(&bytes);
            match real.as_mut().map(|terminal| terminal.write_all(&bytes)) {
                // The real terminal answers by itself. When it is gone, the program goes on all the same.
                Some(Ok(())) => {}
                Some(Err(_)) => *real = None,
                None if replies.is_empty() => {}
                None => {
                    self.push_typed(&replies);
                    self.wake();
                }
            }
        }
    }

    fn push_typed(&self, bytes: &[u8]) {
        let mut typed = lock(&self.typed);
        let room = MOST_TYPED.saturating_sub(typed.len());
        typed.extend(&bytes[..bytes.len().min(room)]);
    }

    fn wake(&self) {
        // Full only when it has not been read for 2^64 wakes.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The transcript's file.
struct Transcript {
    file: Option<File>,
    path: PathBuf,
    moved: Moved,
}

impl Transcript {
    /// A full disk ends the transcript and not the program.
    fn write(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = file.write_all(bytes) {
            self.moved.trouble = Some(format!("{}: cannot be written any more: {error}", self.path.display()));
            self.file = None;
        }
    }
}

/// The state of the thread that reads.
struct Thread {
    shared: Arc<Shared>,
    transcript: Transcript,
    show: SyncSender<Show>,
    buffer: Vec<u8>,
    /// Bytes that were moved since the program's end.
    left: usize,
}

/// What a look at the program's terminal gave.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    /// There may be more.
    Full,
    /// There is no more now.
    Empty,
    /// Nobody has the program's end open any more.
    Closed,
}

impl Thread {
    fn new(shared: Arc<Shared>, transcript: Transcript, show: SyncSender<Show>) -> Thread {
        Thread { shared, transcript, show, buffer: vec![0; BATCH], left: 0 }
    }

    fn run(mut self) {
        let mut ended: Option<Instant> = None;
        let mut told = false;
        loop {
            self.wait(ended.is_some() && !told);
            if ended.is_none() && self.shared.ended.load(Ordering::Acquire) {
                ended = Some(Instant::now());
                self.left = 0;
            }
            // Looked at before the read: what has arrived by then is read for certain.
            let arrived = ended.is_some_and(|ended| ended.elapsed() >= ON_ITS_WAY);
            let read = self.move_output();
            self.move_typed();
            let done = match read {
                Read::Closed => true,
                Read::Empty => arrived,
                Read::Full => self.left >= MOST_LEFT,
            };
            if ended.is_some() && done && !told {
                told = true;
                self.tell();
            }
            match read {
                Read::Closed if ended.is_some() => return,
                // Not while memscope has its own copy open; were it so all the same, it must not take a whole core.
                Read::Closed => std::thread::sleep(Duration::from_millis(10)),
                _ => {}
            }
        }
    }

    /// Says that everything has been moved, once it has been shown too.
    fn tell(&self) {
        let (tell, told) = channel();
        if self.show.send(Show::Tell(tell)).is_ok() {
            let _ = told.recv();
        }
        *lock(&self.shared.moved) = Some(self.transcript.moved.clone());
        self.shared.is_moved.notify_all();
    }

    /// Waits until there is something to do; not for long, if `briefly`.
    fn wait(&self, briefly: bool) {
        let mut wanted = PollFlags::IN;
        if !lock(&self.shared.typed).is_empty() {
            wanted |= PollFlags::OUT;
        }
        let master = self.shared.pair.master();
        let mut polled = [PollFd::from_borrowed_fd(master, wanted), PollFd::new(&self.shared.wake, PollFlags::IN)];
        let patience = Timespec { tv_sec: 0, tv_nsec: ON_ITS_WAY.as_nanos() as i64 };
        // Whatever comes of it, the next thing is to look.
        let _ = poll(&mut polled, briefly.then_some(&patience));
        if !polled[1].revents().is_empty() {
            let _ = rustix::io::read(&self.shared.wake, &mut [0; 8]);
        }
    }

    /// Moves what there is to read, a batch at most.
    fn move_output(&mut self) -> Read {
        let mut count = 0;
        let mut read = Read::Full;
        while count < BATCH {
            match rustix::io::read(self.shared.pair.master(), &mut self.buffer[count..]) {
                Ok(0) => read = Read::Closed,
                Ok(more) => {
                    count += more;
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => read = Read::Empty,
                // EIO is how Linux says that the other end is closed; of any other error nothing better can be made.
                Err(_) => read = Read::Closed,
            }
            break;
        }
        if count > 0 {
            let bytes = &self.buffer[..count];
            self.transcript.write(bytes);
            // The other thread ends only with this one.
            let _ = self.show.send(Show::Bytes(bytes.to_vec()));
            self.left += count;
        }
        read
    }

    /// Moves what was typed, as far as the program's terminal takes it.
    fn move_typed(&self) {
        let mut typed = lock(&self.shared.typed);
        while !typed.is_empty() {
            let (bytes, _) = typed.as_slices();
            match rustix::io::write(self.shared.pair.master(), bytes) {
                Ok(count) => drop(typed.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => typed.clear(),
            }
        }
    }
}
