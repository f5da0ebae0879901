//! `memscope sessions`: which sessions there are, and away with those that nobody cares for any more.
//!
//! Owns: the list, and the question before anything is removed. Refuses: to remove a session that may still be recorded, or whose
//! program still runs. What is left of sessions that are gone: `left_logs`.

mod left_logs;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use memscope_core::clock;
use memscope_core::journal::entry::{self, Survivor};
use memscope_core::report::units;
use memscope_core::session::{SessionFolder, Standing};

use crate::arguments::SessionsArguments;
use crate::commands::run::sessions_of_processes;
use crate::output::{Failure, complain, print, say, shell_word};
use left_logs::LeftLogs;

/// Characters of a program's command line that are shown.
const PROGRAM: usize = 32;
/// Folders that look abandoned are left alone for so long: a session that begins makes them first, and fills them then.
const YOUNG: Duration = Duration::from_secs(60);
/// Sessions that are named before they are removed, and folders that are no sessions; of more, how many there are.
const NAMED: usize = 20;

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

/// What was found.
#[derive(Default)]
struct Found {
    rows: Vec<Row>,
    /// Folders that are called sessions and cannot be read as such.
    unreadable: Vec<PathBuf>,
    /// Logs in shared memory whose session folder is gone, or in a container that shares the memory.
    left_logs: Vec<LeftLogs>,
    /// The processes of each session.
    alive: HashMap<PathBuf, Vec<u32>>,
    /// Those of sessions that have ended, and are not there any more.
    gone: BTreeMap<PathBuf, Vec<u32>>,
}

/// Lists sessions, and removes the abandoned ones when asked.
pub fn sessions(arguments: SessionsArguments) -> Result<i32> {
    let found = find(&arguments)?;
    if !arguments.clean {
        print(&table(&found))?;
        return Ok(0);
    }
    // What a removal has left that was killed at its very end is an empty folder.
    for path in found.unreadable.iter().take(NAMED) {
        let is_gone = is_old(path) && std::fs::remove_dir(path).is_ok();
        let what = if is_gone { "was empty, and is removed" } else { UNREADABLE };
        say(&format!("{} {what}", path.display()));
    }
    let (removed, kept): (Vec<Row>, Vec<Row>) =
        found.rows.into_iter().filter(|row| row.standing == Standing::Abandoned).partition(|row| row.alive.is_empty());
    for row in &kept {
        say(&format!("{} is kept: its processes {} still run", row.folder.path().display(), listed(&row.alive)));
    }
    let (left_logs, used): (Vec<LeftLogs>, Vec<LeftLogs>) =
        found.left_logs.into_iter().partition(|logs| logs.kept.is_none());
    used.iter().for_each(LeftLogs::tell_kept);
    if removed.is_empty() && left_logs.is_empty() {
        say("nothing to remove: no session is abandoned, and no logs are left of one");
        return Ok(0);
    }
    tell(&removed);
    left_logs::tell(&left_logs);
    if !arguments.yes && !is_agreed(removed.len(), left_logs.len())? {
        say("nothing was removed");
        return Ok(0);
    }
    let all = (removed.is_empty() || remove(removed)) & left_logs::remove(left_logs, &found.alive);
    Ok(i32::from(!all))
}

/// Why a folder is not listed, and not removed.
const UNREADABLE: &str = "belongs to another user, or holds no session that can be read";

/// Those in the folders that were named; else all that can be found, and those in the current folder.
fn find(arguments: &SessionsArguments) -> Result<Found> {
    let mut found = Found::default();
    let mut folders = Vec::new();
    let alive = sessions_of_processes();
    for path in &arguments.folders {
        let (sessions, unreadable) = SessionFolder::list_in(path)?;
        folders.extend(sessions);
        found.unreadable.extend(unreadable);
    }
    if arguments.folders.is_empty() {
        folders = SessionFolder::list();
        let (sessions, unreadable) = SessionFolder::list_in(".".as_ref()).unwrap_or_default();
        folders.extend(sessions);
        found.unreadable = unreadable;
        found.left_logs = left_logs::find(&alive);
        let gone = alive.iter().filter(|(session, _)| !session.exists());
        found.gone = gone.map(|(session, pids)| (session.clone(), pids.clone())).collect();
    }
    let mut seen = HashSet::new();
    folders.retain(|folder| seen.insert(folder.path().to_path_buf()));
    // One that goes away meanwhile is none.
    found.rows = folders.into_iter().filter_map(|folder| row(folder, &alive).ok()).collect();
    found.alive = alive;
    Ok(found)
}

fn row(folder: SessionFolder, alive: &HashMap<PathBuf, Vec<u32>>) -> memscope_core::Result<Row> {
    let (manifest, standing) = (folder.manifest()?, folder.standing()?);
    let session = manifest.session;
    let alive = alive.get(folder.path()).filter(|_| standing == Standing::Abandoned).cloned().unwrap_or_default();
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

/// True for a folder in which nothing has come or gone for a while: nobody is making a session of it.
fn is_old(folder: &Path) -> bool {
    let changed = std::fs::metadata(folder).and_then(|metadata| metadata.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > YOUNG))
}

/// `4711 (train), 4712 (sh)`.
fn listed(pids: &[u32]) -> String {
    let survivors: Vec<Survivor> = pids.iter().copied().map(Survivor::of).collect();
    entry::named(&survivors)
}

fn table(found: &Found) -> String {
    let rows = &found.rows;
    let mut text = match rows.is_empty() {
        true => "No sessions: none is recorded now, and none was left behind.\n".to_owned(),
        false => {
            format!("{:<10} {:>8} {:>8} {:>11}  {:<PROGRAM$}  folder\n", "state", "memscope", "age", "size", "program")
        }
    };
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
    for row in rows.iter().filter(|row| !row.alive.is_empty()) {
        text += &format!("\nProcesses {} of {} still run.\n", listed(&row.alive), row.folder.path().display());
    }
    for (session, pids) in &found.gone {
        let (session, pids) = (session.display(), listed(pids));
        text += &format!(
            "\nProcesses {pids} of {session} still run; its recording has ended, and has nothing of them since.\n"
        );
    }
    text += &left_logs::table(&found.left_logs);
    if !found.unreadable.is_empty() {
        text += &format!("\nNot listed, what {UNREADABLE}:\n");
        for path in found.unreadable.iter().take(NAMED) {
            text += &format!("  {}\n", path.display());
        }
        text += &more(found.unreadable.len(), "  ");
    }
    text
}

/// That there are more than were named.
fn more(count: usize, before: &str) -> String {
    match count.saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("{before}and {more} more\n"),
    }
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

/// Says what is going to be removed.
fn tell(rows: &[Row]) {
    for row in rows.iter().take(NAMED) {
        let (path, program) = (row.folder.path().display(), cut(&row.program));
        say(&format!("abandoned: {path} ({program}, {}); no profile was made of it", units::bytes(row.bytes)));
    }
    if rows.len() > NAMED {
        say(&format!("abandoned: {} more; no profiles were made of them", rows.len() - NAMED));
    }
}

/// Asks on the terminal; without one the user must have agreed before.
fn is_agreed(sessions: usize, logs: usize) -> Result<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        bail!(Failure::usage(
            "there is no terminal to ask on: say --yes to remove abandoned sessions, with what they recorded"
        ));
    }
    let which = [(sessions, "session", "sessions"), (logs, "folder of logs", "folders of logs")];
    let which = which.into_iter().filter(|(count, ..)| *count > 0);
    let which: Vec<String> = which.map(|(count, one, many)| units::count(count as u64, one, many)).collect();
    eprint!("memscope: remove {}, with what they recorded? [y/N] ", which.join(" and "));
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
                complain(&format!("{} could not be removed: {error}", shell_word(&path)));
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
