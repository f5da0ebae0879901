//! `memscope config`: the configuration file, made, shown and found.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::arguments::ConfigAction;
use crate::config::{self, Config};
use crate::output::{print, say, shell_word};

/// Does what is asked for.
pub fn config(action: ConfigAction) -> Result<i32> {
    match action {
        ConfigAction::Init { force } => init(force)?,
        ConfigAction::Print => print(&format!("{}\n", Config::load()?.lines().join("\n")))?,
        ConfigAction::Path => print(&format!("{}\n", path()?.display()))?,
    }
    Ok(0)
}

fn path() -> Result<PathBuf> {
    config::path().context("there is no place for a configuration: set XDG_CONFIG_HOME or HOME to an absolute path")
}

fn init(force: bool) -> Result<()> {
    let path = path()?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(force).create_new(!force);
    let mut file = match options.open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            bail!("{} already exists: edit it, or replace it with -f", path.display())
        }
        Err(error) => return Err(error).with_context(|| format!("cannot write {}", path.display())),
    };
    file.write_all(config::TEMPLATE.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    say(&format!("wrote {}: every setting is in it, with its default", shell_word(&path)));
    Ok(())
}
