//! Whether anybody still cares for a session: what stands in a list of sessions, and what may be cleaned.
//!
//! Owns: which sessions are in a folder, how each stands, and how much disk and shared memory it takes. Refuses: to remove any
//! (the command line does), and to judge sessions of another machine on a shared disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{FOLDER_SUFFIX, Recorded, SessionFolder};
use crate::clock;
use crate::error::Result;
use crate::journal;
use crate::source;

/// How a session stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Standing {
    /// A memscope of this machine records it.
    Running,
    /// Its recording has ended, and its memscope is still there: it makes the profile.
    Ended,
    /// It belongs to another machine: from here nobody can tell.
    Elsewhere,
    /// Its memscope is gone and has not made its profile; `memscope recover` can.
    Abandoned,
}

impl Standing {
    /// In one word.
    pub const fn word(self) -> &'static str {
        match self {
            Standing::Running => "running",
            Standing::Ended => "ended",
            Standing::Elsewhere => "elsewhere",
            Standing::Abandoned => "abandoned",
        }
    }
}

impl SessionFolder {
    /// The sessions in a folder, or the one that the folder itself is; and what is called a session there and cannot be read as one:
    /// another user's, or one whose manifest is gone.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list_in(folder: &Path) -> Result<(Vec<SessionFolder>, Vec<PathBuf>)> {
        if let Ok(session) = SessionFolder::open(folder) {
            return Ok((vec![session], Vec::new()));
        }
        let entries = fs::read_dir(folder).map_err(crate::Error::io("read the folder", folder))?;
        let named = |path: &PathBuf| path.as_os_str().to_string_lossy().ends_with(FOLDER_SUFFIX);
        let paths = entries.flatten().map(|entry| entry.path()).filter(named);
        let (mut found, mut unreadable) = (Vec::new(), Vec::new());
        for path in paths.filter(|path| path.is_dir()) {
            match SessionFolder::open(&path) {
                Ok(session) => found.push(session),
                // One that goes away meanwhile is neither.
                Err(_) if path.exists() => unreadable.push(path),
                Err(_) => {}
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        unreadable.sort();
        Ok((found, unreadable))
    }

    /// How it stands. Errors: those of [`SessionFolder::manifest`].
    pub fn standing(&self) -> Result<Standing> {
        let manifest = self.manifest()?;
        let host = clock::host();
        if manifest.session.host.is_some() && manifest.session.host != host {
            return Ok(Standing::Elsewhere);
        }
        let same_boot = manifest.session.boot_id == clock::boot_id();
        let runs = |start_time| source::runs_since(manifest.session.recorder_pid, start_time);
        let cared_for = same_boot && manifest.recorder_start_time.is_some_and(runs);
        // Where there are no locks, a process of this boot must be the one that the manifest names.
        let locked = journal::is_being_written(&self.journal());
        Ok(match (locked.unwrap_or(false), manifest.state) {
            (true, _) => Standing::Running,
            // Between the manifest and the journal there is a moment.
            (false, Recorded::Running) if cared_for => Standing::Running,
            (false, Recorded::Finished) if cared_for => Standing::Ended,
            _ => Standing::Abandoned,
        })
    }

    /// Bytes that it takes on disk and in shared memory.
    pub fn allocated_bytes(&self) -> u64 {
        let logs = self.logs();
        let shared = if logs.starts_with(&self.path) { 0 } else { allocated_bytes(&logs) };
        allocated_bytes(&self.path) + shared
    }
}

/// Bytes that the files in a folder take.
pub fn allocated_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |path: PathBuf| match fs::symlink_metadata(&path) {
        Ok(metadata) if metadata.is_dir() => allocated_bytes(&path),
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(|entry| of(entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Writer;
    use crate::journal::entry::SessionInfo;

    /// A session of a memscope with this process id, in a folder of its own.
    fn session(place: &Path, name: &str, change: impl FnOnce(&mut SessionInfo)) -> SessionFolder {
        let mut info = SessionInfo::begin(vec!["train".into()]);
        change(&mut info);
        SessionFolder::create_at(&place.join(name), &info, Path::new("/no/such"), None).expect("a session")
    }

    #[test]
    fn a_session_is_abandoned_when_its_memscope_is_gone() {
        let place = tempfile::tempdir().expect("a folder");
        let mine = session(place.path(), "a", |_| {});
        assert_eq!(mine.standing().expect("known"), Standing::Running, "this process may still begin to record it");
        let writer = Writer::create(&mine.journal()).expect("a journal");
        assert_eq!(mine.standing().expect("known"), Standing::Running);
        drop(writer);
        mine.mark_finished(Some(0)).expect("marked");
        assert_eq!(mine.standing().expect("known"), Standing::Ended, "the profile is not made yet");

        // No process has the number 2^22: it is one more than the largest.
        let gone = session(place.path(), "b", |info| info.recorder_pid = 1 << 22);
        assert_eq!(gone.standing().expect("known"), Standing::Abandoned);
        let writer = Writer::create(&gone.journal()).expect("a journal");
        assert_eq!(gone.standing().expect("known"), Standing::Running, "somebody recovers it");
        drop(writer);
        gone.mark_finished(Some(0)).expect("marked");
        assert_eq!(gone.standing().expect("known"), Standing::Abandoned, "and died before the profile was made");

        // A memscope that was killed stays a process until somebody waits for it, which in a container may be never.
        let mut killed = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
        let left = session(place.path(), "bb", |info| info.recorder_pid = killed.id());
        assert_eq!(left.standing().expect("known"), Standing::Running, "it runs, and may begin to record");
        killed.kill().expect("killed");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while left.standing().expect("known") != Standing::Abandoned {
            assert!(std::time::Instant::now() < deadline, "a dead memscope cares for nothing");
        }
        assert!(!left.is_being_recorded());
        killed.wait().expect("it was there all the time");

        // After a new start of the machine another process may have its number and start time.
        let before = session(place.path(), "c", |info| info.boot_id[0] ^= 1);
        assert_eq!(before.standing().expect("known"), Standing::Abandoned);
        let far = session(place.path(), "d", |info| {
            info.recorder_pid = 1 << 22;
            info.host = Some("another-host".into());
        });
        assert_eq!(far.standing().expect("known"), Standing::Elsewhere);

        // A removal that was killed at its very end, or another user's.
        let half = place.path().join("half.session");
        fs::create_dir(&half).expect("a folder");
        fs::write(place.path().join("no.session"), "a file is no session").expect("written");
        let listed = SessionFolder::list_in(place.path()).expect("readable");
        assert_eq!(listed, (vec![mine.clone(), gone, left, before, far], vec![half]));
        assert_eq!(SessionFolder::list_in(mine.path()).expect("readable"), (vec![mine], Vec::new()));
    }

    #[test]
    fn the_size_is_what_is_allocated() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = session(place.path(), "a", |_| {});
        let before = folder.allocated_bytes();
        fs::write(folder.logs().join("1-2-0.log"), vec![1; 100_000]).expect("written");
        let sparse = fs::File::create(folder.logs().join("2-2-0.log")).expect("created");
        sparse.set_len(1 << 30).expect("holes take nothing");
        let grown = folder.allocated_bytes() - before;
        assert!((100_000..200_000).contains(&grown), "{grown}");
    }
}
