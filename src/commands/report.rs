//! `memscope report`: of a profile, or of a session in any state; of several, the ranks of a job.

use std::io::IsTerminal;
use std::path::Path;

use anyhow::{Context, Result, bail};
use memscope_core::journal::entry::SessionInfo;
use memscope_core::profile::Profile;
use memscope_core::ranks::{self, Ranks, Source};
use memscope_core::report::{self, Instant, Report};
use memscope_core::session::SessionFolder;

use crate::arguments::{Format, ReportArguments};
use crate::commands::conclude;
use crate::output::{Failure, describe_error, print, say, style};
use crate::progress::Work;

/// Prints the report.
pub fn report(arguments: ReportArguments) -> Result<i32> {
    match &arguments.sources[..] {
        [source] => of_one(source, &arguments),
        _ if arguments.at != Instant::Peak => {
            let why = "--at is a moment of one session: name one file, or leave it away";
            Err(Failure::usage(why).into())
        }
        _ => of_several(&arguments),
    }
}

fn of_one(source: &Path, arguments: &ReportArguments) -> Result<i32> {
    let (_, report) = open(source, arguments.at)?;
    arguments.at.check_end(&report)?;
    match arguments.format {
        Format::Json => print_json(&report)?,
        Format::Text => print(&report::text(&report, style(std::io::stdout().is_terminal())))?,
    }
    Ok(0)
}

/// One that cannot be read is told, and the others are shown: of a job that went wrong it is often just one.
fn of_several(arguments: &ReportArguments) -> Result<i32> {
    let mut sources = Vec::new();
    for path in &arguments.sources {
        let file = path.display().to_string();
        match open(path, Instant::Peak) {
            Ok((session, report)) => sources.push(Source { file, session, report }),
            Err(error) => say(&format!("{file} is left out: {}", describe_error(&error))),
        }
    }
    if sources.is_empty() {
        bail!("none of these files can be read");
    }
    let job = Ranks::of(&sources);
    match arguments.format {
        Format::Json => print_json(&job)?,
        Format::Text => print(&ranks::text(&job))?,
    }
    Ok(i32::from(sources.len() < arguments.sources.len()))
}

fn open(source: &Path, at: Instant) -> Result<(SessionInfo, Report)> {
    if source.is_dir() {
        let folder = SessionFolder::open(source)?;
        let session = folder.manifest()?.session;
        let work = Work::begin("reading the session");
        let model = conclude::model_of(&folder, Some(&work))?;
        let counted = work.goes_on_with("making the report", "changes", model.changes());
        return Ok((session, model.report_counted(at, &counted)?));
    }
    conclude::check_written(source)?;
    let profile = Profile::open(source)?;
    Ok((profile.session().clone(), profile.report(at)?))
}

fn print_json(report: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(report).context("cannot turn the report into JSON")?;
    print(&format!("{text}\n"))
}
