//! `memscope view`: the dashboard of a finished profile, or of a session folder.

use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use memscope_core::explorer::Follower;
use memscope_core::session::SessionFolder;
use memscope_tui::app::Left;
use memscope_tui::dashboard;
use memscope_tui::output::Output;

use crate::arguments::ViewArguments;
use crate::commands::attach;
use crate::commands::conclude::{check_written, transcript_of};
use crate::config::Config;
use crate::launch::signals;
use crate::look;

/// Size of a transcript's screen until the dashboard knows its own.
const SCREEN: (u16, u16) = (24, 80);

/// Shows the profile until the user leaves.
pub fn view(arguments: ViewArguments) -> Result<i32> {
    if arguments.source.is_dir() {
        return attach::session(SessionFolder::open(&arguments.source)?, &arguments.screen);
    }
    check_written(&arguments.source)?;
    let follower = Follower::of_profile(&arguments.source, || {})?;
    let output = output(&transcript_of(&arguments.source), || false)?;
    let options = look::options(&Config::load()?, &arguments.screen, output);
    left(dashboard::show(&follower, None, options).context("the dashboard ended"))
}

/// What the program wrote, where that was kept.
pub(super) fn output(transcript: &Path, grows: impl Fn() -> bool + Send + 'static) -> Result<Option<Output>> {
    match Output::of_transcript(transcript, SCREEN.0, SCREEN.1, grows) {
        Ok(output) => Ok(Some(output)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read the transcript {}", transcript.display())),
    }
}

/// The status after a dashboard that had no program: a signal that ended it ends memscope too.
pub(super) fn left(left: Result<Left>) -> Result<i32> {
    if let Left::Signal(signal) = left? {
        signals::die_of(signal);
    }
    Ok(0)
}
