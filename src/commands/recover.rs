//! `memscope recover`: the profile of a session that was broken off.

use anyhow::{Result, bail};
use memscope_core::recover;
use memscope_core::report::units::{grouped, time};
use memscope_core::session::SessionFolder;

use crate::arguments::{RecordArguments, RecoverArguments};
use crate::commands::conclude::{self, Outputs, resolve, transcript_of};
use crate::output::say;
use crate::progress::Work;

/// Completes the journal, then does what the end of `run` does.
pub fn recover(arguments: RecoverArguments) -> Result<i32> {
    let folder = SessionFolder::open(&arguments.session)?;
    let manifest = folder.manifest()?;
    let output = arguments.output.unwrap_or(manifest.output);
    let profile = resolve(&output, arguments.force)?;
    let has_transcript = folder.transcript().exists();
    let transcript = has_transcript.then(|| resolve(&transcript_of(&profile), arguments.force)).transpose()?;
    let work = Work::begin("completing the journal");
    let recovered = recover::recover(&folder);
    drop(work);
    let recovery = match recovered {
        Ok(recovery) => recovery,
        // Its own disk is full or cannot be written: the profile can still be made elsewhere, from what is there.
        Err(error @ memscope_core::Error::Io { .. }) => {
            say(&format!("{error}: the session stays as it is"));
            recover::Recovery::default()
        }
        Err(error) => return Err(error.into()),
    };
    for notice in &recovery.notices {
        say(notice);
    }
    if !recovery.running.is_empty() {
        bail!(
            "the session's processes {:?} still run, and their log is still written to: recover again when they have ended",
            recovery.running
        );
    }
    say(&format!(
        "{} events were in the journal, {} more in the logs",
        recovery.records_before, recovery.records_added
    ));
    if recovery.dropped > 0 {
        let lost = format!("{} events were not recorded", grouped(recovery.dropped));
        say(&match recovery.gone {
            None => format!("{lost}: the figures are too low"),
            Some(gone) => format!(
                "memscope was gone, and from {} on {lost}: figures of later moments are wrong",
                time(gone.0 as f64 / 1e9)
            ),
        });
    }
    let record = RecordArguments { force: arguments.force, ..RecordArguments::default() };
    conclude::conclude(
        &folder,
        &Outputs { profile, json: None, transcript },
        &record,
        Some(Work::begin("reading the session")),
    )?;
    Ok(0)
}
