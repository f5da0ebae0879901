//! The folder's life, in temporary places instead of /dev/shm and $XDG_RUNTIME_DIR.

use std::os::unix::fs::PermissionsExt;

use super::*;

struct Place {
    _folder: tempfile::TempDir,
    output: PathBuf,
    shared: PathBuf,
    links: PathBuf,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let place = Place {
            output: folder.path().join("out.mscope"),
            shared: folder.path().join("shm"),
            links: folder.path().join("run").join("memscope"),
            _folder: folder,
        };
        fs::create_dir(&place.shared).unwrap();
        place
    }

    fn create(&self) -> Result<SessionFolder> {
        let session = SessionInfo::begin(vec!["train".into()]);
        SessionFolder::create_at(&self.output, &session, &self.shared, Some(&self.links))
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_session_is_private_complete_and_found_again() {
    let place = Place::new();
    let folder = place.create().unwrap();
    assert_eq!(folder.path(), SessionFolder::path_for(&place.output).canonicalize().unwrap());
    assert_eq!((mode(folder.path()), mode(&folder.logs())), (0o700, 0o700));
    assert!(folder.logs().starts_with(&place.shared));
    let manifest = folder.manifest().unwrap();
    assert_eq!((manifest.schema_version, manifest.state, &manifest.output), (1, Recorded::Running, &place.output));
    assert_eq!(manifest.session.command, ["train"]);
    assert_eq!(manifest.session.recorder_pid, std::process::id());
    assert_eq!(folder.state().unwrap(), State::Broken, "nobody records it");

    assert_eq!(SessionFolder::open(folder.path()).unwrap(), folder);
    assert_eq!(SessionFolder::open(&place.output).unwrap(), folder, "the output's name will do");
    let found = std::slice::from_ref(&folder);
    assert_eq!(list_in(Some(&place.links), &place.shared), found, "found twice, told once");
    assert_eq!(list_in(None, &place.shared), found, "where there is no folder of links");
    assert_eq!(list_in(Some(&place.links), Path::new("/no/such")), found, "where there is no shared memory");

    folder.mark_finished(Some(3)).unwrap();
    assert_eq!(folder.state().unwrap(), State::Finished);
    assert_eq!(folder.manifest().unwrap().exit_status, Some(3));
    let logs = folder.logs();
    folder.remove_logs().unwrap();
    folder.remove_logs().unwrap();
    assert!(!logs.exists());
    let path = folder.path().to_path_buf();
    folder.remove().unwrap();
    assert!(!path.exists());
    assert_eq!(list_in(Some(&place.links), &place.shared), [], "a link that leads nowhere is no session");
}

#[test]
fn a_session_that_is_there_is_not_overwritten() {
    let place = Place::new();
    place.create().unwrap();
    let error = place.create().unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error}");
}

#[test]
fn without_shared_memory_the_logs_are_in_the_session_folder() {
    let place = Place::new();
    fs::remove_dir(&place.shared).unwrap();
    let folder = place.create().unwrap();
    assert_eq!(folder.logs(), folder.path().join("logs"));
    assert_eq!(mode(&folder.logs()), 0o700);
    folder.remove_logs().unwrap();
    assert!(!folder.logs().exists());
}

#[test]
fn an_output_in_a_folder_that_is_not_there_says_so_and_leaves_nothing() {
    let place = Place::new();
    let session = SessionInfo::begin(Vec::new());
    let output = place.output.join("deeper");
    let error = SessionFolder::create_at(&output, &session, &place.shared, None).unwrap_err();
    let expected = format!("cannot create the session folder {}.session: No such file", output.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert_eq!(fs::read_dir(&place.shared).unwrap().count(), 0);
}

#[test]
fn only_this_sessions_own_logs_are_ever_removed() {
    let place = Place::new();
    let folder = place.create().unwrap();
    let precious = place.shared.join("precious");
    fs::create_dir(&precious).unwrap();
    fs::remove_file(folder.path().join("logs")).unwrap();
    symlink(&precious, folder.path().join("logs")).unwrap();
    let error = folder.remove_logs().unwrap_err();
    assert!(error.to_string().contains("not to this session's logs"), "{error}");
    assert!(folder.remove().is_err());
    assert!(precious.exists());
}

#[test]
fn logs_without_a_session_are_found() {
    let place = Place::new();
    let folder = place.create().unwrap();
    assert_eq!(orphaned_logs_in(&place.shared), [] as [PathBuf; 0]);
    let logs = folder.logs();
    fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(orphaned_logs_in(&place.shared), [logs]);
}

#[test]
fn a_manifest_of_the_future_and_one_that_is_none_are_told_apart() {
    let place = Place::new();
    let folder = place.create().unwrap();
    let path = folder.path().join("manifest.json");
    fs::write(&path, r#"{"schema_version": 2, "anything": []}"#).unwrap();
    assert!(matches!(SessionFolder::open(folder.path()), Err(Error::Version { found: 2, supported: 1, .. })));
    for text in ["", "{}", "[1]", r#"{"schema_version": 1}"#, "\0\u{fffd}"] {
        fs::write(&path, text).unwrap();
        assert!(matches!(folder.manifest(), Err(Error::Format { .. })), "{text}");
    }
    assert!(matches!(SessionFolder::open(Path::new("/no/such")), Err(Error::NotFound { .. })));
}
