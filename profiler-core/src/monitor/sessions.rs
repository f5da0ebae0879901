//! What the memory of processes under memscope is for: the journals of this user's sessions, followed.
//!
//! Owns: finding the sessions that are being recorded, and a thread for each that reads its journal as it grows. Refuses: any
//! other way to learn it, and to keep more of a session than what is live.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::explorer::{Explorer, Holding, Limits};
use crate::ledger::EventRows;
use crate::recover;
use crate::session::SessionFolder;
use crate::telemetry::spawn;

/// Between two looks for new sessions.
const LOOK: Duration = Duration::from_secs(2);
/// Between two looks at a journal that grows, at least and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// How long a backlog is read before what is dead is forgotten.
const SLICE: Duration = Duration::from_millis(100);

/// The sessions that are followed. Dropping it ends the threads.
pub(super) struct Sessions(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    over: Condvar,
    ended: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Whether sessions have been looked for.
    looked: bool,
    followed: HashMap<PathBuf, Followed>,
}

#[derive(Default)]
struct Followed {
    /// The journal has been read up to its present end.
    is_current: bool,
    holdings: Vec<Holding>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits; false when all is over.
    fn pause(&self, time: Duration) -> bool {
        let running = |_: &mut State| !self.ended.load(Ordering::Relaxed);
        drop(self.over.wait_timeout_while(self.state(), time, running));
        !self.ended.load(Ordering::Relaxed)
    }
}

impl Sessions {
    /// Begins to look for sessions, on a thread of its own.
    pub fn start(interval: Duration) -> Sessions {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let pause = interval.clamp(PAUSES.0, PAUSES.1);
        let spawned = spawn("sessions".to_owned(), move || {
            loop {
                look(&of_thread, pause);
                if !of_thread.pause(LOOK) {
                    return;
                }
            }
        });
        // Without the thread nothing is known of any session.
        shared.state().looked |= spawned.is_err();
        Sessions(shared)
    }

    /// How many sessions are followed, and how many of them have not been read up to their present end; `None` before they have
    /// been looked for.
    pub fn count(&self) -> Option<(usize, usize)> {
        let state = self.0.state();
        let behind = state.followed.values().filter(|followed| !followed.is_current).count();
        state.looked.then_some((state.followed.len(), behind))
    }

    /// Calls `each` with every holding. Those of sessions that are not current are of an earlier moment, and are left out.
    pub fn each(&self, mut each: impl FnMut(&Holding)) {
        let state = self.0.state();
        let current = state.followed.values().filter(|followed| followed.is_current);
        current.flat_map(|followed| &followed.holdings).for_each(&mut each);
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Relaxed);
        // Whoever is about to wait has the lock, or sees the flag.
        drop(self.0.state());
        self.0.over.notify_all();
    }
}

/// Gives each session that is being recorded, and is not followed yet, a thread.
fn look(shared: &Arc<Shared>, pause: Duration) {
    for folder in SessionFolder::list() {
        let path = folder.path().to_path_buf();
        if shared.state().followed.contains_key(&path) || !folder.is_being_recorded() {
            continue;
        }
        shared.state().followed.insert(path.clone(), Followed::default());
        let of_thread = Arc::clone(shared);
        let name = path.clone();
        let spawned = spawn("session".to_owned(), move || {
            follow(&folder, &of_thread, pause);
            of_thread.state().followed.remove(&name);
        });
        if spawned.is_err() {
            shared.state().followed.remove(&path);
        }
    }
    shared.state().looked = true;
}

/// Reads a session's journal until the session is over.
fn follow(folder: &SessionFolder, shared: &Shared, pause: Duration) {
    // A session that cannot be read has no part in the view; whoever attaches to it learns why.
    let Ok(mut entries) = recover::entries(folder) else { return };
    let mut explorer = Explorer::new(Limits::LIVE_ONLY);
    let mut is_first = true;
    loop {
        // Asked before the journal is read: what was written before its end is then read, too.
        let recorded = folder.is_being_recorded();
        let mut changed = false;
        let mut begin = Instant::now();
        loop {
            match entries.next() {
                Some(Ok(entry)) => explorer.apply(&entry),
                Some(Err(Error::Io { .. })) => return,
                // A damaged piece is passed over.
                Some(Err(_)) => {}
                None => break,
            }
            changed = true;
            if begin.elapsed() > SLICE {
                explorer.advance();
                begin = Instant::now();
                if shared.ended.load(Ordering::Relaxed) {
                    return;
                }
            }
        }
        if changed || std::mem::take(&mut is_first) {
            let followed = Followed { is_current: true, holdings: explorer.holdings() };
            shared.state().followed.insert(folder.path().to_path_buf(), followed);
        }
        if !recorded || explorer.is_ended() || !shared.pause(pause) {
            return;
        }
    }
}

/// A device's UUID without the prefix that says what it is of.
pub(super) fn bare(uuid: &str) -> &str {
    uuid.split_once('-').filter(|(prefix, _)| matches!(*prefix, "GPU" | "MIG")).map_or(uuid, |(_, rest)| rest)
}

/// The rows of one process on one device, of all its sessions and programs together.
pub(super) fn rows(holdings: &[Holding], pid: u32, start_time: u64, device: &str) -> Option<EventRows> {
    let mut sum: Option<EventRows> = None;
    for holding in holdings {
        if holding.pid == pid && holding.start_time == start_time && bare(&holding.device) == device {
            sum.get_or_insert_default().merge(&holding.rows);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_on_a_device_is_found_by_all_that_names_it() {
        let holding = |pid, start_time, device: &str, reserved| Holding {
            pid,
            start_time,
            device: device.to_owned(),
            rows: EventRows { reserved, cached: reserved, ..EventRows::default() },
        };
        let holdings = [
            holding(7, 100, "GPU-a", 10),
            holding(7, 100, "GPU-b", 20),
            holding(7, 99, "GPU-a", 40),
            holding(7, 100, "GPU-a", 80),
        ];
        let found = |pid, start, device| rows(&holdings, pid, start, device).map(|rows| rows.reserved);
        assert_eq!(found(7, 100, "a"), Some(90), "before and after an exec");
        assert_eq!(found(7, 100, "b"), Some(20));
        assert_eq!((found(7, 98, "a"), found(8, 100, "a"), found(7, 100, "c")), (None, None, None));
        assert_eq!([bare("GPU-a-b"), bare("MIG-a-b"), bare("unknown-0")], ["a-b", "a-b", "unknown-0"]);
    }
}
