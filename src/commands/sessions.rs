//! `memscope sessions`: which sessions there are, and away with those that nobody cares for any more.
//!
//! Owns: the list, and the question before anything is removed. Refuses: to remove a session that may still be recorded, or whose
//! program still runs.

use std::collections::HashSet;
use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Result, bail};
use memscope_core::clock;
use memscope_core::report::units;
use memscope_core::session::{SessionFolder, Standing};

use crate::arguments::SessionsArguments;
use crate::commands::run::outlived;
use crate::output::{Failure, complain, print, say, shell_word};

/// Characters of a program's command line that are shown.
const PROGRAM: usize = 32;

/// A session as the list shows it.
struct Row {
    folder: SessionFolder,
    standing: Standing,
    /// Processes that go on without a memscope.
    alive: Vec<u32>,
    program: String,
    pid: u32,
    age_s: u64,
    bytes: u64,
}

/// Lists sessions, and removes the abandoned ones when asked.
pub fn sessions(arguments: SessionsArguments) -> Result<i32> {
    let rows = find(&arguments)?;
    if !arguments.clean {
        print(&table(&rows))?;
        return Ok(0);
    }
    let (removed, kept): (Vec<Row>, Vec<Row>) =
        rows.into_iter().filter(|row| row.standing == Standing::Abandoned).partition(|row| row.alive.is_empty());
    for row in &kept {
        let pids: Vec<String> = row.alive.iter().map(u32::to_string).collect();
        say(&format!("{} is kept: its processes {} still run", row.folder.path().display(), pids.join(", ")));
    }
    if removed.is_empty() {
        say("no abandoned session to remove");
        return Ok(0);
    }
    if !arguments.yes && !is_agreed(&removed)? {
        say("nothing was removed");
        return Ok(0);
    }
    Ok(i32::from(!remove(removed)))
}

/// Those in the folders that were named; else all that can be found, and those in the current folder.
fn find(arguments: &SessionsArguments) -> Result<Vec<Row>> {
    let mut folders = Vec::new();
    for path in &arguments.folders {
        folders.extend(SessionFolder::list_in(path)?);
    }
    if arguments.folders.is_empty() {
        folders = SessionFolder::list();
        folders.extend(SessionFolder::list_in(".".as_ref()).unwrap_or_default());
    }
    let mut seen = HashSet::new();
    folders.retain(|folder| seen.insert(folder.path().to_path_buf()));
    // One that goes away meanwhile is none.
    Ok(folders.into_iter().filter_map(|folder| row(folder).ok()).collect())
}

fn row(folder: SessionFolder) -> memscope_core::Result<Row> {
    let (manifest, standing) = (folder.manifest()?, folder.standing()?);
    let session = manifest.session;
    let alive = if standing == Standing::Abandoned { outlived(folder.path()) } else { Vec::new() };
    Ok(Row {
        standing,
        alive,
        program: session.command.join(" "),
        pid: session.recorder_pid,
        age_s: clock::realtime_ns().saturating_sub(session.start_realtime_ns) / 1_000_000_000,
        bytes: folder.allocated_bytes(),
        folder,
    })
}

fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "No sessions: none is recorded now, and none was left behind.\n".to_owned();
    }
    let mut text =
        format!("{:<10} {:>8} {:>8} {:>11}  {:<PROGRAM$}  folder\n", "state", "memscope", "age", "size", "program");
    for row in rows {
        text += &format!(
            "{:<10} {:>8} {:>8} {:>11}  {:<PROGRAM$}  {}\n",
            row.standing.word(),
            row.pid,
            age(row.age_s),
            units::bytes(row.bytes),
            cut(&row.program),
            row.folder.path().display()
        );
    }
    if rows.iter().any(|row| row.standing == Standing::Abandoned) {
        text += "\nOf an abandoned one `memscope recover FOLDER` makes the profile; `memscope sessions --clean` removes them.\n";
    }
    text
}

fn cut(program: &str) -> String {
    let printable = program.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    match program.chars().count() {
        count if count > PROGRAM => printable.take(PROGRAM - 1).chain(['…']).collect(),
        _ => printable.collect(),
    }
}

fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Asks on the terminal; without one the user must have agreed before.
fn is_agreed(rows: &[Row]) -> Result<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        bail!(Failure::usage(
            "there is no terminal to ask on: say --yes to remove abandoned sessions, with what they recorded"
        ));
    }
    for row in rows {
        let program = cut(&row.program);
        say(&format!("abandoned: {} ({program}, {})", row.folder.path().display(), units::bytes(row.bytes)));
    }
    let which = units::count(rows.len() as u64, "session", "sessions");
    eprint!("memscope: remove {which}, with what they recorded? No profile was made of it. [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Removes each that is still abandoned; true when all went.
fn remove(rows: Vec<Row>) -> bool {
    let mut all = true;
    let (mut sessions, mut bytes) = (0, 0);
    for row in rows {
        let path = row.folder.path().to_path_buf();
        // Somebody may have begun to recover it.
        if !row.folder.standing().is_ok_and(|standing| standing == Standing::Abandoned) {
            continue;
        }
        match row.folder.remove() {
            Ok(()) => (sessions, bytes) = (sessions + 1, bytes + row.bytes),
            Err(error) => {
                all = false;
                complain(&format!("{} could not be removed whole: {error}", shell_word(&path)));
            }
        }
    }
    say(&format!("removed: {}, {}", units::count(sessions, "session", "sessions"), units::bytes(bytes)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_programs_are_short() {
        let ages: Vec<String> = [0, 119, 120, 7_199, 7_200, 172_799, 172_800].map(age).into();
        assert_eq!(ages, ["0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 d"]);
        assert_eq!(cut("a\nb"), "a b");
        assert_eq!(cut(&"x".repeat(33)), format!("{}…", "x".repeat(31)));
        assert_eq!(cut(&"ü".repeat(32)), "ü".repeat(32));
    }
}
