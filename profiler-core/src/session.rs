//! The session folder: where it lies, what is in it, how it is found, and how it goes away.
//!
//! Owns: `<output>.session/` with its manifest, the place of the logs, and the link by which `attach` finds a session.
//! Refuses: to read logs (`source`) and the journal's content; to decide when a session may be removed (the command line
//! does).
//!
//! ```text
//! <output>.session/        0700
//!   manifest.json          Manifest
//!   journal                journal::format
//!   transcript             the program's output, if it is kept
//!   logs                   a folder, or a link to /dev/shm/memscope-<uid>-<id>/ (0700), where the memory is shared
//! $XDG_RUNTIME_DIR/memscope/<id>   a link to the session folder
//! ```

mod reader;
mod standing;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use memscope_wire::log::READER_FILE;
use rustix::fs::{Access, access, statvfs};
use rustix::process::getuid;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::error::{Error, Result};
use crate::journal;
use crate::journal::entry::SessionInfo;
use crate::source;

pub use reader::Reader;
pub use standing::{Standing, allocated_bytes};

/// Suffix of a session folder: it lies beside its output.
pub const FOLDER_SUFFIX: &str = ".session";
/// Version of the manifest.
pub const SCHEMA_VERSION: u32 = 1;
/// Where memory is shared.
const SHARED_MEMORY: &str = "/dev/shm";
/// Free bytes that the shared memory must have to be used.
const LEAST_SHARED_BYTES: u64 = 16 << 20;

/// `manifest.json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the session in the folder of links.
    pub id: String,
    /// Whether the recording was ended in an orderly way.
    pub state: Recorded,
    /// Where the profile will be written.
    pub output: PathBuf,
    /// Folder of the logs.
    pub logs: PathBuf,
    /// The program's exit status once it is known.
    pub exit_status: Option<i32>,
    /// Start time of the recording memscope, in clock ticks since boot; with its pid it tells whether that one still runs.
    #[serde(default)]
    pub recorder_start_time: Option<u64>,
    /// What the session is; also the journal's first entry.
    pub session: SessionInfo,
}

/// How far a recording got, by its manifest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recorded {
    /// Begun. Whether it still runs, [`SessionFolder::state`] tells.
    Running,
    /// Ended; the journal is complete.
    Finished,
}

/// What a session is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// A memscope records it now.
    Running,
    /// Its journal is complete.
    Finished,
    /// Its memscope died: [`crate::recover`] completes the journal.
    Broken,
}

/// The file of the simulated device's state, beside the logs.
pub const SIMULATOR_FILE: &str = "simulator.state";

/// A session folder that exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionFolder {
    path: PathBuf,
}

impl SessionInfo {
    /// A session that begins now, in this process.
    pub fn begin(command: Vec<String>) -> SessionInfo {
        SessionInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command,
            compute: true,
            start_monotonic_ns: clock::monotonic_ns(),
            start_realtime_ns: clock::realtime_ns(),
            boot_id: clock::boot_id(),
            recorder_pid: std::process::id(),
            host: clock::host(),
            ..SessionInfo::default()
        }
    }
}

impl SessionFolder {
    /// Path of the session folder of this output.
    pub fn path_for(output: &Path) -> PathBuf {
        let mut path = output.as_os_str().to_owned();
        path.push(FOLDER_SUFFIX);
        path.into()
    }

    /// Creates the folder of the session that will write `output`, its manifest, the folder of logs, and the link by which
    /// it is found (quietly not, where there is no `$XDG_RUNTIME_DIR`).
    ///
    /// Errors: [`Error::Exists`] when there is one already, which may hold a session to be recovered; [`Error::Io`].
    pub fn create(output: &Path, session: &SessionInfo) -> Result<SessionFolder> {
        SessionFolder::create_at(output, session, Path::new(SHARED_MEMORY), links_folder().as_deref())
    }

    fn create_at(output: &Path, session: &SessionInfo, shared: &Path, links: Option<&Path>) -> Result<SessionFolder> {
        let path = SessionFolder::path_for(output);
        private_folder().create(&path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists {
                path: path.clone(),
                advice: "it may hold an unfinished session; `memscope recover` it, or remove it",
            },
            _ => Error::io("create the session folder", &path)(error),
        })?;
        let path = path.canonicalize().map_err(Error::io("find the session folder", &path))?;
        let folder = SessionFolder { path };
        let id = format!("{}-{:x}", session.recorder_pid, session.start_realtime_ns);
        let made = folder.make_logs(&id, shared).and_then(|logs| {
            let manifest = Manifest {
                schema_version: SCHEMA_VERSION,
                id: id.clone(),
                state: Recorded::Running,
                output: absolute(output),
                logs,
                exit_status: None,
                recorder_start_time: source::start_time(session.recorder_pid),
                session: session.clone(),
            };
            folder.write_manifest(&manifest)
        });
        if let Err(error) = made {
            // Nothing is in it yet; what cannot be removed is left to the user, who gets the first error.
            let _ = fs::remove_dir_all(&folder.path);
            return Err(error);
        }
        if let Some(links) = links {
            // Without the link, attach needs the path: no reason to stop.
            let _ = private_folder().recursive(true).create(links);
            let _ = symlink(&folder.path, links.join(id));
        }
        Ok(folder)
    }

    /// Makes the folder of logs, in shared memory if it is usable, and returns its path.
    fn make_logs(&self, id: &str, shared: &Path) -> Result<PathBuf> {
        let logs = self.path.join("logs");
        let roomy = statvfs(shared).is_ok_and(|is| is.f_bavail.saturating_mul(is.f_frsize) >= LEAST_SHARED_BYTES);
        let in_shared = shared.join(shared_name(id));
        if roomy && private_folder().create(&in_shared).is_ok() {
            // From a left-over folder back to its session: see `orphaned_logs`.
            let _ = symlink(&self.path, in_shared.join("session"));
            symlink(&in_shared, &logs).map_err(Error::io("create the link to the logs", &logs))?;
            return Ok(in_shared);
        }
        private_folder().create(&logs).map_err(Error::io("create the folder of logs", &logs))?;
        Ok(logs)
    }

    /// Opens an existing session. `path` is its folder, or the output beside which it lies.
    ///
    /// Errors: [`Error::NotFound`], [`Error::Version`], [`Error::Format`].
    pub fn open(path: &Path) -> Result<SessionFolder> {
        let candidates = [path.to_path_buf(), SessionFolder::path_for(path)];
        let found = candidates.into_iter().find(|path| path.join("manifest.json").is_file());
        let found = found.ok_or_else(|| Error::NotFound { what: "session", path: path.to_path_buf() })?;
        let folder = SessionFolder { path: found.canonicalize().unwrap_or(found) };
        folder.manifest()?;
        Ok(folder)
    }

    /// The sessions of this user that can be found, running or not, oldest first: by their links in `$XDG_RUNTIME_DIR`, and,
    /// since a container often has none, by their logs in shared memory.
    pub fn list() -> Vec<SessionFolder> {
        list_in(links_folder().as_deref(), Path::new(SHARED_MEMORY))
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Folder of the logs: the value for [`memscope_wire::env::LOG_DIR`].
    pub fn logs(&self) -> PathBuf {
        let logs = self.path.join("logs");
        fs::read_link(&logs).unwrap_or(logs)
    }

    /// The journal's path.
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    /// Path for the program's output, if it is kept.
    pub fn transcript(&self) -> PathBuf {
        self.path.join("transcript")
    }

    /// Reads the manifest. Errors: [`Error::Io`], [`Error::Version`], [`Error::Format`].
    pub fn manifest(&self) -> Result<Manifest> {
        let path = self.manifest_path();
        let bytes = fs::read(&path).map_err(Error::io("read the manifest", &path))?;
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| not_a_manifest(&path, error))?;
        let found = value.get("schema_version").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if found > SCHEMA_VERSION as u64 {
            let found = u32::try_from(found).unwrap_or(u32::MAX);
            return Err(Error::Version { path, found, supported: SCHEMA_VERSION });
        }
        serde_json::from_value(value).map_err(|error| not_a_manifest(&path, error))
    }

    /// What the session is doing. Errors: those of [`SessionFolder::manifest`].
    pub fn state(&self) -> Result<State> {
        if self.is_being_recorded() {
            return Ok(State::Running);
        }
        Ok(match self.manifest()?.state {
            Recorded::Finished => State::Finished,
            Recorded::Running => State::Broken,
        })
    }

    /// True while a memscope records the session. Its lock on the journal tells; where there are no locks, whether the
    /// process that the manifest names still runs.
    pub fn is_being_recorded(&self) -> bool {
        journal::is_being_written(&self.journal()).unwrap_or_else(|| {
            self.manifest().is_ok_and(|manifest| {
                let runs = |start_time| source::runs_since(manifest.session.recorder_pid, start_time);
                manifest.state == Recorded::Running && manifest.recorder_start_time.is_some_and(runs)
            })
        })
    }

    /// Notes in the manifest that the journal is complete.
    pub fn mark_finished(&self, exit_status: Option<i32>) -> Result<()> {
        let mut manifest = self.manifest()?;
        manifest.state = Recorded::Finished;
        manifest.exit_status = exit_status;
        self.write_manifest(&manifest)
    }

    /// Removes the logs, once the journal has everything that they had.
    ///
    /// Errors: [`Error::Io`]; [`Error::Format`] when `logs` leads to a folder that memscope did not make.
    pub fn remove_logs(&self) -> Result<()> {
        self.remove_logs_by(remove_tree)
    }

    fn remove_logs_by(&self, remove: impl Fn(&Path) -> Result<()>) -> Result<()> {
        let logs = self.path.join("logs");
        let Ok(target) = fs::read_link(&logs) else { return remove_tree(&logs) };
        // The link is followed only to a folder of this user that this very session made.
        let id = self.manifest()?.id;
        let is_ours = target.file_name().is_some_and(|name| name.to_str() == Some(&shared_name(&id)));
        match fs::symlink_metadata(&target) {
            Ok(metadata) if is_ours && metadata.is_dir() && metadata.uid() == getuid().as_raw() => remove(&target)?,
            Ok(_) => {
                return Err(Error::format(&logs, format!("leads to {}, not to this session's logs", target.display())));
            }
            Err(_) => {}
        }
        fs::remove_file(&logs).map_err(Error::io("remove the link to the logs", &logs))
    }

    /// Removes the session: logs, folder, link. What this leaves behind when it is killed can still be found, and removed.
    ///
    /// Errors: [`Error::Io`]; nothing is removed where the folder cannot be.
    pub fn remove(self) -> Result<()> {
        self.remove_by(remove_tree)
    }

    /// The same while processes of the session run on, on a simulated device: what they need of it stays in shared memory, as logs
    /// that are left of a session, and so does the word that nobody reads logs.
    ///
    /// Errors: those of [`SessionFolder::remove`].
    pub fn remove_around_the_device(self) -> Result<()> {
        let stays = [SIMULATOR_FILE, READER_FILE, "session"];
        self.remove_by(|logs| {
            for entry in fs::read_dir(logs).map_err(Error::io("read the folder", logs))?.flatten() {
                if !stays.iter().any(|name| entry.file_name() == *name) {
                    remove_file(&entry.path())?;
                }
            }
            Ok(())
        })
    }

    fn remove_by(self, remove_logs: impl Fn(&Path) -> Result<()>) -> Result<()> {
        let manifest = self.manifest()?;
        // In a folder that may only be read the logs alone would go.
        self.write_manifest(&manifest)?;
        for needed in [self.path.parent().unwrap_or(Path::new("/")), &self.path] {
            access(needed, Access::WRITE_OK)
                .map_err(|error| Error::io("remove from the folder", needed)(error.into()))?;
        }
        self.remove_logs_by(remove_logs)?;
        // A folder without its manifest is no session: it goes last.
        for entry in fs::read_dir(&self.path).map_err(Error::io("read the folder", &self.path))?.flatten() {
            let path = entry.path();
            if path != self.manifest_path() {
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_folder { remove_tree(&path)? } else { remove_file(&path)? }
            }
        }
        remove_tree(&self.path)?;
        if let Some(links) = links_folder() {
            // A link that is not there is what is wanted.
            let _ = fs::remove_file(links.join(manifest.id));
        }
        Ok(())
    }

    fn manifest_path(&self) -> PathBuf {
        self.path.join("manifest.json")
    }

    /// Replaces the manifest: at any moment the old or the new one is there, whole.
    fn write_manifest(&self, manifest: &Manifest) -> Result<()> {
        let path = self.manifest_path();
        let draft = self.path.join(".manifest.json");
        let mut text = serde_json::to_vec_pretty(manifest).map_err(|error| not_a_manifest(&path, error))?;
        text.push(b'\n');
        fs::write(&draft, text).map_err(Error::io("write the manifest", &draft))?;
        fs::rename(&draft, &path).map_err(Error::io("write the manifest", &path))
    }
}

/// Folders of logs in shared memory whose session folder is gone: memory that nobody will give back.
pub fn orphaned_logs() -> Vec<PathBuf> {
    orphaned_logs_in(Path::new(SHARED_MEMORY))
}

/// Where the session folder of such logs was.
pub fn session_of(logs: &Path) -> Option<PathBuf> {
    fs::read_link(logs.join("session")).ok()
}

fn orphaned_logs_in(shared: &Path) -> Vec<PathBuf> {
    logs_in(shared).filter(|path| !path.join("session").join("manifest.json").exists()).collect()
}

fn list_in(links: Option<&Path>, shared: &Path) -> Vec<SessionFolder> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let linked = links.into_iter().flat_map(entries);
    let sharing = logs_in(shared).map(|logs| logs.join("session"));
    let folders = linked.chain(sharing).filter_map(|link| {
        let folder = SessionFolder::open(&fs::read_link(link).ok()?).ok()?;
        Some((folder.manifest().ok()?.session.start_realtime_ns, folder))
    });
    let mut found: Vec<(u64, SessionFolder)> = folders.collect();
    found.sort_by(|a, b| (a.0, &a.1.path).cmp(&(b.0, &b.1.path)));
    found.dedup_by(|a, b| a.1 == b.1);
    found.into_iter().map(|(_, folder)| folder).collect()
}

/// This user's folders of logs in shared memory. What another user has put there under such a name is passed over.
fn logs_in(shared: &Path) -> impl Iterator<Item = PathBuf> {
    let prefix = shared_name("");
    let entries = fs::read_dir(shared).into_iter().flatten().flatten();
    let ours = entries.filter(move |entry| {
        let named = entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix));
        named && entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == getuid().as_raw())
    });
    ours.map(|entry| entry.path())
}

fn links_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty())?;
    Some(Path::new(&folder).join("memscope"))
}

fn shared_name(id: &str) -> String {
    format!("memscope-{}-{id}", getuid().as_raw())
}

fn private_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

fn not_a_manifest(path: &Path, error: serde_json::Error) -> Error {
    Error::format(path, format!("this is not a session's manifest: {error}"))
}

#[cfg(test)]
mod tests;
