//! `memscope export`: a profile in forms that other tools read.

use anyhow::{Context, Result};
use memscope_core::export;
use memscope_core::profile::Profile;
use memscope_core::report::Instant;

use crate::arguments::ExportArguments;
use crate::commands::conclude::check_written;
use crate::output::{print, say};

/// Writes what was asked for.
pub fn export(arguments: ExportArguments) -> Result<i32> {
    check_written(&arguments.source)?;
    let profile = Profile::open(&arguments.source)?;
    if let Some(folder) = &arguments.parquet {
        export::export_parquet(&profile, folder, arguments.force)?;
        say(&format!("tables written to {}", folder.display()));
        if let Some(kept) = profile.kept().filter(|kept| kept.summed > 0) {
            say(&format!(
                "{}; allocations.parquet has rows of what is kept, and says so (memscope.kept)",
                kept.sentence()
            ));
        }
    }
    if arguments.json {
        let report = profile.report(Instant::Peak)?;
        print(&format!("{}\n", serde_json::to_string_pretty(&report).context("cannot turn the report into JSON")?))?;
    }
    Ok(0)
}
