//! The folder of the libraries: which one is taken, and that whoever runs a program of the session can read it.
//!
//! A program that root has started may become another user (setpriv, su, a daemon), and its loader then looks for what is
//! preloaded as that user: where the folder is root's alone, it writes a line about each file to the program's stderr. So root's
//! folder is the system's, /var/cache/memscope, which everybody can pass and read and only root can write; unless XDG_CACHE_HOME
//! names another one. A user who is not root has no such programs: the loader ignores preloads in set-user-ID files.
//!
//! Owns: the candidates, what a folder must be, the rights of what is made in it. Refuses: a folder that another user owns (what
//! is preloaded must be ours), one whose path the loader's variables cannot carry, one from which no code may be loaded.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::launch::program;

/// Characters that a path in LD_PRELOAD or LD_LIBRARY_PATH cannot have: they separate, or begin a name to be expanded.
const SEPARATORS: &[u8] = b" :;$\t\n";

/// Rights of folders and libraries: everybody reads, the owner writes.
pub const SHARED: u32 = 0o755;

/// The folder of memscope's libraries, created if need be.
pub fn choose() -> Result<PathBuf> {
    let user = rustix::process::getuid();
    let mut reasons = Vec::new();
    for candidate in candidates(user) {
        match take(&candidate, user.as_raw()) {
            Ok(()) => return Ok(candidate),
            Err(error) => reasons.push(format!("{error:#}")),
        }
    }
    bail!("no folder for the embedded libraries; set XDG_CACHE_HOME to a writable folder ({})", reasons.join("; "))
}

fn candidates(user: rustix::process::Uid) -> Vec<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let mut candidates = Vec::new();
    candidates.extend(absolute("XDG_CACHE_HOME").map(|base| base.join("memscope")));
    candidates.extend(user.is_root().then(|| PathBuf::from("/var/cache/memscope")));
    candidates.extend(absolute("HOME").map(|home| home.join(".cache/memscope")));
    candidates.push(std::env::temp_dir().join(format!("memscope-cache-{}", user.as_raw())));
    candidates
}

fn take(folder: &Path, user: u32) -> Result<()> {
    if folder.as_os_str().as_encoded_bytes().iter().any(|byte| SEPARATORS.contains(byte)) {
        bail!("{} has a character that LD_PRELOAD cannot carry", folder.display());
    }
    if let Some(above) = folder.parent() {
        // A user's own, as everything that they keep; root's is the system's.
        let mode = if user == 0 { SHARED } else { 0o700 };
        let made = fs::DirBuilder::new().recursive(true).mode(mode).create(above);
        made.with_context(|| format!("cannot create the folder {}", above.display()))?;
    }
    make(folder)?;
    // A link may be in the way, in a folder where everybody may make one.
    for metadata in [fs::symlink_metadata(folder), fs::metadata(folder)] {
        if metadata.with_context(|| format!("cannot look at {}", folder.display()))?.uid() != user {
            bail!("{} belongs to another user", folder.display());
        }
    }
    if program::is_noexec(folder) {
        bail!("{} is mounted so that no code may be loaded from it (noexec)", folder.display());
    }
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    fs::write(&probe, b"").with_context(|| format!("cannot write into {}", folder.display()))?;
    let _ = fs::remove_file(&probe);
    Ok(())
}

/// Makes one folder that everybody can read.
pub fn make(folder: &Path) -> Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(error).with_context(|| format!("cannot create the folder {}", folder.display()))
        }
        _ => share(folder),
    }
}

/// Gives a folder or file of ours its rights, whatever the umask has left of them. What a link leads to is left alone.
pub fn share(path: &Path) -> Result<()> {
    let metadata = fs::symlink_metadata(path).with_context(|| format!("cannot look at {}", path.display()))?;
    let is_ours = !metadata.is_symlink() && metadata.uid() == rustix::process::getuid().as_raw();
    if !is_ours || metadata.mode() & 0o777 == SHARED {
        return Ok(());
    }
    let shared = fs::set_permissions(path, fs::Permissions::from_mode(SHARED));
    shared.with_context(|| format!("cannot let others read {}", path.display()))
}
