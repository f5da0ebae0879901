//! `memscope report`: of a profile, or of a session in any state.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use memscope_core::profile::Profile;
use memscope_core::report;
use memscope_core::session::SessionFolder;

use crate::arguments::{Format, ReportArguments};
use crate::commands::conclude;
use crate::output::{print, style};

/// Prints the report.
pub fn report(arguments: ReportArguments) -> Result<i32> {
    let report = if arguments.source.is_dir() {
        conclude::model_of(&SessionFolder::open(&arguments.source)?)?.report(arguments.at)?
    } else {
        conclude::check_written(&arguments.source)?;
        Profile::open(&arguments.source)?.report(arguments.at)?
    };
    match arguments.format {
        Format::Json => {
            let text = serde_json::to_string_pretty(&report).context("cannot turn the report into JSON")?;
            print(&format!("{text}\n"))?;
        }
        Format::Text => {
            let style = style(std::io::stdout().is_terminal());
            print(&report::text(&report, style))?;
        }
    }
    Ok(0)
}
