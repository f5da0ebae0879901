//! Which session is meant.
//!
//! Owns: finding one by its folder, its output, its id, or a process of it, and what became of one that has ended. Refuses: to follow
//! it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::session::{FOLDER_SUFFIX, Manifest, SessionFolder};
use crate::source::parent;

/// Finds the session that `name` means: its folder, the output beside which that lies, its id, or the id of a process of it:
/// memscope's own, or the program's, or that of a descendant. Without a name, the only one that is running.
///
/// # Errors
/// [`Error::Choose`] when none is running, when several are, or when none is meant; those of [`SessionFolder::open`] for a
/// folder that is damaged or of another version.
pub fn find_session(name: Option<&Path>) -> Result<SessionFolder> {
    find_among(SessionFolder::list(), name)
}

/// The profile that the session in this folder has become: the folder is gone then, and the profile stands in its place.
pub fn ended_as(session: &Path) -> Option<PathBuf> {
    if session.exists() {
        return None;
    }
    let profile = session.as_os_str().as_bytes().strip_suffix(FOLDER_SUFFIX.as_bytes())?;
    Some(PathBuf::from(OsStr::from_bytes(profile))).filter(|profile| profile.is_file())
}

fn find_among(sessions: Vec<SessionFolder>, name: Option<&Path>) -> Result<SessionFolder> {
    match name {
        None => the_only_one(sessions),
        Some(name) => match SessionFolder::open(name) {
            Err(Error::NotFound { .. }) => by_id(name, sessions),
            found => found,
        },
    }
}

fn the_only_one(sessions: Vec<SessionFolder>) -> Result<SessionFolder> {
    let mut running: Vec<SessionFolder> = sessions.into_iter().filter(SessionFolder::is_being_recorded).collect();
    match running.len() {
        1 => Ok(running.remove(0)),
        0 => Err(Error::Choose { what: "no session is running; start one with `memscope run -- PROGRAM`".into() }),
        _ => Err(Error::Choose { what: format!("several sessions are running; say which one:{}", lines(&running)) }),
    }
}

fn by_id(name: &Path, sessions: Vec<SessionFolder>) -> Result<SessionFolder> {
    if let Some(profile) = ended_as(name) {
        let (name, profile) = (name.display(), profile.display());
        let what = format!("the session {name} has ended, and become the profile {profile}: open that");
        return Err(Error::Choose { what });
    }
    let text = name.to_string_lossy();
    let pids: Vec<u32> = text.parse().map(ancestors).unwrap_or_default();
    let known = |session: &SessionFolder| Some((session.manifest().ok()?, session.clone()));
    let found = sessions.iter().filter_map(known);
    // By process id the latest one: an older session may have had the same.
    let mut found: Vec<(Manifest, SessionFolder)> =
        found.filter(|(is, _)| is.id == text || pids.contains(&is.session.recorder_pid)).collect();
    if let Some((_, session)) = found.pop() {
        return Ok(session);
    }
    let rest = if sessions.is_empty() { String::new() } else { format!("; there are:{}", lines(&sessions)) };
    Err(Error::Choose { what: format!("there is no session `{text}`, neither a folder nor an id nor a process{rest}") })
}

/// One line a session.
fn lines(sessions: &[SessionFolder]) -> String {
    let line = |session: &SessionFolder| {
        let manifest = session.manifest().ok()?;
        let command = manifest.session.command.join(" ");
        Some(format!("\n  {}  {}  {}", manifest.id, session.path().display(), command))
    };
    sessions.iter().filter_map(line).collect()
}

/// A process and those above it.
fn ancestors(pid: u32) -> Vec<u32> {
    let mut pids = vec![pid];
    // Process ids may be reused while they are read: a cycle must end.
    while let Some(parent) = pids.last().copied().and_then(parent).filter(|parent| *parent > 1 && pids.len() < 64) {
        pids.push(parent);
    }
    pids
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Writer;
    use crate::journal::entry::SessionInfo;

    #[test]
    fn the_process_above_this_one_is_found() {
        let pids = ancestors(std::process::id());
        assert_eq!(pids[..2], [std::process::id(), std::os::unix::process::parent_id()]);
        assert_eq!(ancestors(u32::MAX), [u32::MAX]);
    }

    /// A session that is being recorded, as long as the writer lives.
    fn session(place: &Path, name: &str) -> (SessionFolder, Writer) {
        let folder =
            SessionFolder::create(&place.join(name), &SessionInfo::begin(vec![name.into()])).expect("a session");
        let writer = Writer::create(&folder.journal()).expect("a journal");
        (folder, writer)
    }

    #[test]
    fn a_session_is_found_by_what_it_may_be_called() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let (first, writing) = session(place.path(), "first");
        let find = |sessions: &[&SessionFolder], name: Option<&Path>| {
            find_among(sessions.iter().copied().cloned().collect(), name).map_err(|error| error.to_string())
        };
        let none = "no session is running; start one with `memscope run -- PROGRAM`";
        assert_eq!(find(&[], None), Err(none.into()));
        assert_eq!(find(&[&first], None).as_ref(), Ok(&first));
        let (id, pid) = (first.manifest().expect("a manifest").id, std::process::id().to_string());
        for name in [Path::new(&id), Path::new(&pid), first.path(), &place.path().join("first")] {
            assert_eq!(find(&[&first], Some(name)).as_ref(), Ok(&first), "{}", name.display());
        }
        let (second, other) = session(place.path(), "second");
        let several = find(&[&first, &second], None).expect_err("two are running");
        assert!(several.starts_with("several sessions are running; say which one:\n  "), "{several}");
        assert!(several.contains(&id) && several.contains(second.path().to_str().expect("UTF-8")), "{several}");
        let unknown = find(&[&first], Some(Path::new("no-such-session"))).expect_err("there is none");
        assert!(unknown.starts_with("there is no session `no-such-session`") && unknown.contains(&id), "{unknown}");
        // One that has become a profile, and one of which nothing is left.
        let profile = place.path().join("ended.mscope");
        let gone = place.path().join("ended.mscope.session");
        assert_eq!(ended_as(&gone), None);
        let nothing = find(&[&first], Some(&gone)).expect_err("it is gone");
        assert!(nothing.starts_with("there is no session `"), "{nothing}");
        std::fs::write(&profile, "a profile").expect("written");
        assert_eq!(ended_as(&gone), Some(profile.clone()));
        let ended = find(&[&first], Some(&gone)).expect_err("it has ended");
        let expected = format!(
            "the session {} has ended, and become the profile {}: open that",
            gone.display(),
            profile.display()
        );
        assert_eq!(ended, expected);
        assert_eq!(ended_as(first.path()), None, "it is there");
        // One that has broken off is found by its id, but is not running.
        drop(other);
        assert_eq!(find(&[&first, &second], None).as_ref(), Ok(&first));
        drop(writing);
        assert_eq!(find(&[&first, &second], None), Err(none.into()));
        assert_eq!(find(&[&first, &second], Some(Path::new(&id))).as_ref(), Ok(&first));
        for folder in [first, second] {
            folder.remove().expect("removed");
        }
    }
}
