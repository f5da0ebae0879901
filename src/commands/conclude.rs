//! From a session to its profile and reports: the end of `run`, and the whole of `recover`.
//!
//! Owns: the check of the outputs before a run, and writing them after it. Refuses: to touch a session whose profile could
//! not be written.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use memscope_core::allocation::Model;
use memscope_core::journal::Tail;
use memscope_core::profile;
use memscope_core::recover;
use memscope_core::report::{self, Report};
use memscope_core::session::SessionFolder;

use crate::arguments::RecordArguments;
use crate::output::{say, style};

/// Refuses what cannot be written, before anything starts: existing files without `force`, folders without write permission.
pub fn check_outputs(output: &Path, json: Option<&Path>, force: bool) -> Result<()> {
    for path in std::iter::once(output).chain(json) {
        if path.is_dir() {
            bail!("{} is a folder: name a file", path.display());
        }
        if path.exists() && !force {
            bail!("{} already exists: choose another name, or replace it with -f", path.display());
        }
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let probe = folder.join(format!(".memscope-{}", std::process::id()));
        fs::write(&probe, b"")
            .and_then(|()| fs::remove_file(&probe))
            .with_context(|| format!("cannot write into the folder {}", folder.display()))?;
    }
    Ok(())
}

/// The model of a session, whatever its state.
pub fn model_of(folder: &SessionFolder) -> Result<Model> {
    let mut model = Model::new();
    let mut entries = recover::entries(folder)?;
    let mut damage = Vec::new();
    for entry in entries.by_ref() {
        match entry {
            Ok(entry) => {
                model.apply(&entry);
            }
            Err(memscope_core::Error::Format { what, .. }) => damage.push(what),
            Err(error) => return Err(error.into()),
        }
    }
    damage.extend(entries.notices().iter().cloned());
    if let Tail::Truncated { offset } = entries.tail() {
        damage.push(format!("the journal ends in a torn entry at offset {offset}"));
    }
    for what in damage {
        model.journal_truncated(what);
    }
    Ok(model)
}

/// Writes profile, report and JSON of a finished session and removes it.
pub fn conclude(folder: SessionFolder, output: &Path, arguments: &RecordArguments) -> Result<()> {
    let model = model_of(&folder)?;
    let report = profile::write(&model, output, arguments.force)?;
    if let Some(path) = &arguments.json {
        write_json(&report, path)?;
    }
    folder.remove()?;
    if !arguments.quiet {
        let style = style(std::io::stderr().is_terminal());
        let _ = write!(std::io::stderr(), "\n{}\n", report::text(&report, style));
        say(&format!("profile: {}", output.display()));
        if let Some(path) = &arguments.json {
            say(&format!("report:  {}", path.display()));
        }
        say(&format!("look again: memscope report {}", output.display()));
    }
    Ok(())
}

/// Writes the report as JSON, by another name and rename.
fn write_json(report: &Report, path: &Path) -> Result<()> {
    let mut text = serde_json::to_string_pretty(report).context("cannot turn the report into JSON")?;
    text.push('\n');
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}", std::process::id()));
    fs::write(&temporary, text)
        .and_then(|()| fs::rename(&temporary, path))
        .with_context(|| format!("cannot write {}", path.display()))
}
