//! `memscope gui`: the window. It is a program of its own, so that a server installs no window toolkit.
//!
//! Owns: where that program is looked for, and what is said when it is nowhere. Refuses: to check what shall be opened: the
//! window says what is wrong with it.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::arguments::GuiArguments;

/// The program's name.
const PROGRAM: &str = "memscope-gui";

/// Becomes the window.
pub fn gui(arguments: GuiArguments) -> Result<i32> {
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent);
    let path = env::var_os("PATH").unwrap_or_default();
    let Some(program) = find(beside, env::split_paths(&path)) else {
        bail!(
            "{PROGRAM} is not installed: it is looked for beside this program and on PATH. The window is a program of its own, so \
             that a server needs no window toolkit. From memscope's sources, `cargo install --path gui` installs it; \
             `memscope view` shows the same in a terminal"
        );
    };
    let error = Command::new(&program).args(arguments.diff.then_some("--diff")).args(&arguments.sources).exec();
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}

/// The first that can be executed.
fn find(beside: Option<&Path>, path: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let places = beside.map(Path::to_path_buf).into_iter().chain(path);
    places.map(|folder| folder.join(PROGRAM)).find(|program| is_executable(program))
}

fn is_executable(program: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    program.metadata().is_ok_and(|known| known.is_file() && known.permissions().mode() & 0o111 != 0)
}
