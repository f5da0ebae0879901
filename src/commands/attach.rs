//! `memscope attach`: the dashboard of a session that another memscope records.

use anyhow::{Context, Result};
use memscope_core::explorer::{Follower, Limits, find_session};
use memscope_core::session::{SessionFolder, State};
use memscope_tui::dashboard;

use crate::arguments::{AttachArguments, ScreenArguments};
use crate::commands::conclude::transcript_of;
use crate::commands::view;
use crate::config::Config;
use crate::look;

/// Shows the session until the user leaves; reads only.
pub fn attach(arguments: AttachArguments) -> Result<i32> {
    let folder = find_session(arguments.session.as_deref())?;
    session(folder, &arguments.screen)
}

/// Shows a session in whatever state.
pub(super) fn session(folder: SessionFolder, screen: &ScreenArguments) -> Result<i32> {
    let profile = folder.manifest()?.output;
    let transcript = folder.transcript();
    // A transcript that has been moved beside its profile in the meantime is found there.
    let transcript = if transcript.exists() { transcript } else { transcript_of(&profile) };
    let grows = {
        let folder = folder.clone();
        move || folder.state().is_ok_and(|state| state == State::Running)
    };
    let output = view::output(&transcript, grows)?;
    let options = look::options(&Config::load()?, screen, output);
    let follower = Follower::of_session(folder, Limits::default(), || {});
    view::left(dashboard::show(&follower, None, options).context("the dashboard ended"))
}
