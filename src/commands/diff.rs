//! `memscope diff`: what one profile holds less what another holds.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use memscope_core::diff::{self, Diff, Side};
use memscope_core::explorer::{At, Explorer, Query, SideAt};
use memscope_core::profile::Profile;
use memscope_core::report::Instant;

use crate::arguments::DiffArguments;
use crate::commands::conclude;
use crate::output::{print, say};

/// Prints the difference.
pub fn diff(arguments: DiffArguments) -> Result<i32> {
    let json = arguments.json.as_deref().map(|path| conclude::resolve(path, arguments.force)).transpose()?;
    let asked = arguments.step.map(Instant::Step).or(arguments.at);
    let at = asked.map_or(SideAt::Fullest, |instant| SideAt::At(At::from(instant)));
    // One after the other: each is let go before the next is read.
    let before = side(&arguments.before, at)?;
    let after = side(&arguments.after, at)?;
    let name = |path: &Path| path.display().to_string();
    let diff = Diff::of((&name(&arguments.before), &before), (&name(&arguments.after), &after));
    print(&diff::text(&diff))?;
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&diff).context("cannot turn the difference into JSON")?;
        fs::write(&path, format!("{text}\n")).with_context(|| format!("cannot write {}", path.display()))?;
        say(&format!("written to {}", path.display()));
    }
    Ok(0)
}

fn side(path: &Path, at: SideAt) -> Result<Side> {
    conclude::check_written(path)?;
    let answer = Explorer::of_profile(&Profile::open(path)?)?.answer(&Query { side: Some(at), ..Query::default() });
    let side = answer.side.map(|side| Side::clone(&side)).unwrap_or_default();
    match at {
        SideAt::At(At::Step(number)) if !side.exists => bail!("{} has no step {number}", path.display()),
        _ => Ok(side),
    }
}
