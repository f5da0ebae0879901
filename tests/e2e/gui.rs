//! `memscope gui`: where the window's program is looked for, and what is said without it. The window itself: gui/tests/.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::memscope::{Place, stderr};

/// A program that says that it was started, with what, and ends with a status of its own.
fn stand_in(folder: &Path, says: &str) {
    fs::create_dir_all(folder).expect("a folder");
    let program = folder.join("memscope-gui");
    fs::write(&program, format!("#!/bin/sh\necho \"{says}: $*\"\nexit 7\n")).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
}

/// memscope where nothing lies beside it.
fn alone(place: &Place) -> Command {
    let folder = place.path("bin");
    fs::create_dir_all(&folder).expect("a folder");
    let (built, here) = (env!("CARGO_BIN_EXE_memscope"), folder.join("memscope"));
    if !here.exists() {
        // A symbolic link would lead back to where the window may lie too.
        fs::hard_link(built, &here).or_else(|_| fs::copy(built, &here).map(drop)).expect("memscope in another place");
    }
    let mut command = place.command(here);
    command.env("PATH", place.path("empty"));
    command
}

#[test]
fn without_the_window_it_says_how_to_install_it() {
    let place = Place::new();
    let output = alone(&place).args(["gui", "run.mscope"]).output().expect("memscope starts");
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("memscope-gui is not installed"), "{said}");
    assert!(said.contains("cargo install --path gui") && said.contains("memscope view"), "{said}");
}

#[test]
fn the_window_beside_it_comes_before_one_on_the_path_and_its_status_is_returned() {
    let place = Place::new();
    stand_in(&place.path("path"), "on the path");
    // Of the same name, and no program.
    fs::create_dir_all(place.path("first/memscope-gui")).expect("a folder");
    let path = format!("{}:{}:/bin:/usr/bin", place.path("first").display(), place.path("path").display());
    let run = |place: &Place| {
        let output =
            alone(place).env("PATH", &path).args(["gui", "a.mscope", "b c"]).output().expect("memscope starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(run(&place), (Some(7), "on the path: a.mscope b c\n".into()));
    stand_in(&place.path("bin"), "beside");
    let output = alone(&place).env("PATH", &path).args(["gui", "--diff", "a", "b"]).output().expect("memscope starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "beside: --diff a b\n");
    assert_eq!(run(&place), (Some(7), "beside: a.mscope b c\n".into()));
}
