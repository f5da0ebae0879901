//! That somebody reads a session's logs, for the programs that write them.
//!
//! Owns: the lock that says so ([`READER_FILE`]). The kernel takes it away when this process ends, however it ends; a process that
//! is stopped, or starved, keeps it. Refuses: to say anything where the file cannot be locked: programs then write as if they were
//! read.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use memscope_wire::log::READER_FILE;
use rustix::fs::{FlockOperation, OFlags, fcntl_lock};

use super::SessionFolder;

/// As long as it lives, the logs of a folder have a reader. At most one a process and folder: to close the file anywhere in the
/// process gives up the lock.
#[derive(Debug)]
pub struct Reader {
    _locked: File,
}

impl Reader {
    /// Of this folder of logs; `None` where there are no locks.
    pub fn of(logs: &Path) -> Option<Reader> {
        let path = logs.join(READER_FILE);
        let mut open = OpenOptions::new();
        open.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = open.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32).open(&path).ok()?;
        // Shared: whoever else reads the logs must not have to wait.
        if fcntl_lock(&file, FlockOperation::NonBlockingLockShared).is_err() {
            // A file without a lock would say that nobody reads.
            let _ = fs::remove_file(&path);
            return None;
        }
        Some(Reader { _locked: file })
    }
}

impl SessionFolder {
    /// Says that this process reads the session's logs: before the program starts, and until they are read no more.
    pub fn reader(&self) -> Option<Reader> {
        Reader::of(&self.logs())
    }
}
