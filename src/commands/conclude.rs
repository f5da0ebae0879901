//! From a session to its profile and reports: the end of `run`, and the whole of `recover`.
//!
//! Owns: the check of the outputs before a run, and writing them after it. Refuses: to touch a session whose profile could
//! not be written.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use memscope_core::allocation::Model;
use memscope_core::explorer::ended_as;
use memscope_core::journal::Tail;
use memscope_core::journal::entry::Entry;
use memscope_core::profile;
use memscope_core::recover;
use memscope_core::report::{self, Report};
use memscope_core::session::{SessionFolder, State};

use crate::arguments::RecordArguments;
use crate::commands::run::outlived;
use crate::output::{Failure, say, shell_word, style, write_own};
use crate::progress::Work;

/// Where a run or a recovery writes. Symbolic links are followed, so that the file behind one is replaced and not the link.
pub struct Outputs {
    /// The profile.
    pub profile: PathBuf,
    /// The report as JSON.
    pub json: Option<PathBuf>,
    /// What the program wrote to the terminal that memscope gave it, if it does.
    pub transcript: Option<PathBuf>,
}

impl Outputs {
    /// Refuses what cannot be written, before anything starts: existing files without `force`, whatever is no ordinary file,
    /// folders without write permission, the same file twice, and a session that is in the way.
    pub fn check(profile: &Path, json: Option<&Path>, transcript: bool, force: bool) -> Result<Outputs> {
        let json = json.map(|path| resolve(path, force)).transpose()?;
        let profile = resolve(profile, force)?;
        let transcript = transcript.then(|| resolve(&transcript_of(&profile), force)).transpose()?;
        let outputs = Outputs { profile, json, transcript };
        if outputs.json.as_ref() == Some(&outputs.profile) {
            let profile = outputs.profile.display();
            return Err(Failure::usage(format!("{profile}: profile and JSON report need two files")).into());
        }
        if outputs.json.is_some() && outputs.json == outputs.transcript {
            let transcript = transcript_of(&outputs.profile);
            let message = format!("{}: transcript and JSON report need two files", transcript.display());
            return Err(Failure::usage(message).into());
        }
        let session = SessionFolder::path_for(&outputs.profile);
        match SessionFolder::open(&session).and_then(|folder| folder.state()) {
            Ok(State::Running) => {
                bail!("another memscope is recording to {}: choose another name with -o", outputs.profile.display())
            }
            Ok(_) => bail!(
                "{} holds a session that was broken off: `memscope recover {}` makes its profile (into another file with -o)",
                session.display(),
                shell_word(&session)
            ),
            Err(_) => Ok(outputs), // none, or none that memscope knows: creating the session will tell
        }
    }
}

/// Where the transcript of a profile lies.
pub fn transcript_of(profile: &Path) -> PathBuf {
    let mut path = profile.as_os_str().to_owned();
    path.push(".transcript");
    path.into()
}

/// The file that `path` stands for: its folder is made where there is none and must be writable, and what is there must be an
/// ordinary file and wanted gone.
pub fn resolve(path: &Path, force: bool) -> Result<PathBuf> {
    let shown = path.display();
    let resolved = match fs::symlink_metadata(path) {
        Ok(_) => path.canonicalize().with_context(|| format!("{shown} is a link that leads nowhere: name a file"))?,
        Err(_) => path.to_path_buf(),
    };
    if let Ok(metadata) = fs::metadata(&resolved) {
        if metadata.is_dir() {
            bail!("{shown} is a folder: name a file");
        }
        if !metadata.is_file() {
            bail!(
                "{shown} is a device, a pipe or a socket, and a profile is a file that is put in place whole: name a file"
            );
        }
        if !force {
            bail!("{shown} already exists: choose another name, or replace it with -f");
        }
    }
    let folder = match resolved.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // As ranks do on a disk that they share, in `run/{rank}.mscope`.
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let probe = folder.join(format!(".memscope-{}", std::process::id()));
    fs::write(&probe, b"")
        .and_then(|()| fs::remove_file(&probe))
        .with_context(|| format!("cannot write into the folder {}", folder.display()))?;
    let folder = folder.canonicalize().with_context(|| format!("cannot find the folder {}", folder.display()))?;
    let name = resolved.file_name().with_context(|| format!("{shown} names no file"))?;
    Ok(folder.join(name))
}

/// Refuses a profile that is not there yet though its session is, with what to do about it.
pub fn check_written(profile: &Path) -> Result<()> {
    let session = SessionFolder::path_for(profile);
    if profile.exists() {
        return Ok(());
    }
    if let Some(now) = ended_as(profile) {
        bail!("the session {} has ended, and become the profile {}: name that", profile.display(), now.display());
    }
    // Any other file that is missing is told of by whoever opens it.
    let Ok(state) = SessionFolder::open(&session).and_then(|folder| folder.state()) else { return Ok(()) };
    let (shown, word) = (profile.display(), shell_word(&session));
    match state {
        State::Running => bail!(
            "{shown} is still being recorded: `memscope attach {word}` shows it now, `memscope report {word}` what is known so far"
        ),
        State::Finished => bail!(
            "{shown} is not written yet, though its program has ended: wait for its memscope, or, if that has died, \
             `memscope recover {word}` makes the profile"
        ),
        State::Broken => bail!(
            "{shown} was never written, because its recording was broken off: `memscope recover {word}` makes the profile; \
             `memscope view {word}` and `memscope report {word}` show what is there"
        ),
    }
}

/// The model of a session, whatever its state. `work` is told how far it is read.
pub fn model_of(folder: &SessionFolder, work: Option<&Work>) -> Result<Model> {
    let mut model = Model::with_symbols();
    let mut entries = recover::entries(folder)?;
    let mut damage = Vec::new();
    for entry in entries.by_ref() {
        match entry {
            Ok(entry) => {
                model.apply(&entry);
                if let (Entry::Records { records, .. }, Some(work)) = (&entry, work) {
                    work.count(records.len() as u64);
                }
            }
            Err(memscope_core::Error::Format { what, .. }) => damage.push(what),
            Err(error) => return Err(error.into()),
        }
    }
    model.refusals(entries.refusals());
    damage.extend(entries.notices().iter().cloned());
    if let Tail::Truncated { offset } = entries.tail() {
        damage.push(format!("the journal ends in a torn entry at offset {offset}"));
    }
    for what in damage {
        model.journal_truncated(what);
    }
    Ok(model)
}

/// Writes profile, report and JSON of a session, and removes it when its journal is complete. `work` ends where there is
/// something to say.
pub fn conclude(
    folder: &SessionFolder,
    outputs: &Outputs,
    arguments: &RecordArguments,
    work: Option<Work>,
) -> Result<()> {
    // What recording has freed is not held beside what the profile takes.
    // SAFETY: it touches nothing but memory that is free.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
    let model = model_of(folder, work.as_ref())?;
    if let Some(work) = &work {
        work.goes_on("writing the profile");
    }
    let report = profile::write(&model, &outputs.profile, arguments.force)?;
    if let Some(path) = &outputs.json {
        write_json(&report, path)?;
    }
    let transcript = outputs.transcript.as_ref().filter(|_| folder.transcript().exists());
    if let Some(path) = transcript {
        // Beside the session, so in the same file system. Whoever reads the file goes on reading it.
        fs::rename(folder.transcript(), path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if folder.state()? == State::Finished {
        // Whoever runs on may not have begun to use its device yet.
        if model.session().simulated.is_some() && !outlived(folder.path()).is_empty() {
            folder.clone().remove_around_the_device()?;
        } else {
            folder.clone().remove()?;
        }
    }
    drop(work);
    if !arguments.quiet {
        if let Some(path) = transcript {
            say(&format!("the program's output: {}", path.display()));
        }
        let style = style(std::io::stderr().is_terminal());
        write_own(&format!("\n{}\n", report::text(&report, style)));
        say(&format!("profile: {}", outputs.profile.display()));
        if let Some(path) = &outputs.json {
            say(&format!("report:  {}", path.display()));
        }
        say(&format!("look again: memscope report {}", shell_word(&outputs.profile)));
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
