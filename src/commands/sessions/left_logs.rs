//! Logs in shared memory whose session is gone: who still uses them, and away with the others.
//!
//! Owns: the question whether a log is nobody's. The kernel answers it, for processes in every namespace: it gives no lease on a file
//! that somebody has open for writing, or mapped. Refuses: logs of a living process, another user's, and what the kernel does not
//! tell of.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use memscope_core::report::units;
use memscope_core::session;

use super::{is_old, listed, more};
use crate::output::{complain, say, shell_word};

/// A folder of logs without a session.
pub(super) struct LeftLogs {
    path: PathBuf,
    bytes: u64,
    /// Why it is left alone; `None` when it is nobody's.
    pub kept: Option<String>,
}

impl LeftLogs {
    /// Says why it stays.
    pub fn tell_kept(&self) {
        if let Some(why) = &self.kept {
            say(&format!("{} is kept: {why}", self.path.display()));
        }
    }
}

/// Those of this user. `alive`: the processes of each session.
pub(super) fn find(alive: &HashMap<PathBuf, Vec<u32>>) -> Vec<LeftLogs> {
    let logs = |path: PathBuf| LeftLogs { bytes: session::allocated_bytes(&path), kept: kept(&path, alive), path };
    let mut found: Vec<LeftLogs> = session::orphaned_logs().into_iter().map(logs).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Why a folder of logs must stay.
fn kept(path: &Path, alive: &HashMap<PathBuf, Vec<u32>>) -> Option<String> {
    let of_session = session::session_of(path).and_then(|session| alive.get(&session).cloned());
    if let Some(pids) = of_session {
        return Some(format!("its processes {} still run", listed(&pids)));
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let file = entry.path();
        if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        match is_written(&file) {
            Ok(false) => {}
            Ok(true) => {
                let pids = users(path);
                return Some(match pids.is_empty() {
                    true => "a process that cannot be seen from here has it open (in another container?)".to_owned(),
                    false => format!("processes {} have it open", listed(&pids)),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Some(format!("whether a process still uses {} cannot be told: {error}", file.display()));
            }
        }
    }
    let pids = users(path);
    if !pids.is_empty() {
        return Some(format!("processes {} have it open", listed(&pids)));
    }
    (!is_old(path)).then(|| "it has just been made: its session may be about to come".to_owned())
}

/// True when a process has the file open for writing, or mapped.
fn is_written(path: &Path) -> io::Result<bool> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    // SAFETY: plain numbers, and a descriptor that is open. The lease ends with it, a moment later.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) } == 0 {
        return Ok(false);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        error => Err(error),
    }
}

/// Processes that have something in this folder open or mapped, as far as they can be seen.
fn users(folder: &Path) -> Vec<u32> {
    let inside = |path: &Path| path.starts_with(folder);
    let opens = |pid: u32| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|path| inside(&path))
    };
    let maps = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        text.lines().filter_map(|line| line.split_once('/')).any(|(_, path)| inside(Path::new(&format!("/{path}"))))
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<u32> = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.retain(|pid| *pid != std::process::id() && (maps(*pid) || opens(*pid)));
    pids.sort_unstable();
    pids
}

/// For the list.
pub(super) fn table(found: &[LeftLogs]) -> String {
    if found.is_empty() {
        return String::new();
    }
    let mut text = "\nIn shared memory, of sessions whose folders are gone, or are not seen from here:\n".to_owned();
    for logs in found {
        let what = logs.kept.as_deref().unwrap_or("nobody uses it");
        text += &format!("{:>11}  {}  {what}\n", units::bytes(logs.bytes), logs.path.display());
    }
    if found.iter().any(|logs| logs.kept.is_none()) {
        text += "`memscope sessions --clean` removes what nobody uses.\n";
    }
    text
}

/// Says which are going to be removed.
pub(super) fn tell(removed: &[LeftLogs]) {
    for logs in removed.iter().take(super::NAMED) {
        let session =
            session::session_of(&logs.path).map_or_else(String::new, |path| format!(" of {}", path.display()));
        say(&format!(
            "left behind: {} ({}): logs{session}, which is gone",
            logs.path.display(),
            units::bytes(logs.bytes)
        ));
    }
    let rest = more(removed.len(), "left behind: ");
    if !rest.is_empty() {
        say(rest.trim_end());
    }
}

/// Removes those that are still nobody's; true when all went that should.
pub(super) fn remove(removed: Vec<LeftLogs>, alive: &HashMap<PathBuf, Vec<u32>>) -> bool {
    let mut all = true;
    let (mut folders, mut bytes) = (0, 0);
    for logs in removed {
        // Somebody may have come meanwhile.
        let logs = LeftLogs { kept: kept(&logs.path, alive), ..logs };
        if logs.kept.is_some() {
            logs.tell_kept();
            continue;
        }
        match fs::remove_dir_all(&logs.path) {
            Ok(()) => (folders, bytes) = (folders + 1, bytes + logs.bytes),
            Err(error) => {
                all = false;
                complain(&format!("{} could not be removed: {error}", shell_word(&logs.path)));
            }
        }
    }
    if folders > 0 {
        say(&format!(
            "removed: {}, {}",
            units::count(folders, "folder of logs", "folders of logs"),
            units::bytes(bytes)
        ));
    }
    all
}
