//! Whether the process that writes a log is still there.
//!
//! Owns: the look into /proc. Refuses: to signal anything.
//!
//! A process is known by its pid and start time. Both are those that the process sees; memscope may sit in another PID
//! namespace. So when /proc/PID does not fit, all of /proc is searched for a process whose innermost pid (the last number
//! of `NSpid` in its status) and start time fit: this finds a process in a container that memscope looks into from outside.
//! A process that memscope cannot see at all (memscope in one container, the program in another) cannot be told from a
//! dead one: `source::log` then waits until its log has been quiet for a while.

use std::fs;

use super::header::Identity;

/// What /proc says of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sight {
    /// It runs; here under this pid.
    Runs(u32),
    /// There is no such process to be seen.
    Nowhere,
}

/// Looks for the process; `seen_as` is the pid under which it was seen last. One that was never seen is searched for in all
/// of /proc, which takes milliseconds, only if `search_all`.
pub(super) fn look(identity: &Identity, seen_as: Option<u32>, search_all: bool) -> Sight {
    let runs = |pid: u32| runs_since(pid, identity.start_time);
    match seen_as {
        Some(pid) if runs(pid) => Sight::Runs(pid),
        // It was visible, and its pid is free or another's: it is gone, no need to search.
        Some(_) => Sight::Nowhere,
        None if runs(identity.pid) => Sight::Runs(identity.pid),
        None if search_all => search(identity).map_or(Sight::Nowhere, Sight::Runs),
        None => Sight::Nowhere,
    }
}

fn search(identity: &Identity) -> Option<u32> {
    let entries = fs::read_dir("/proc").ok()?;
    entries.flatten().find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        let mut numbers = numbers.split_ascii_whitespace();
        let innermost = numbers.next_back()?;
        // With one number only, the process is in memscope's own namespace, and was looked at already.
        numbers.next()?;
        let stat = fs::read(entry.path().join("stat")).ok()?;
        (innermost.parse() == Ok(identity.pid) && runs(&stat, identity.start_time)).then_some(pid)
    })
}

/// True when the line of /proc/PID/stat is of a process that began at `start_time` and still has a thread that runs.
fn runs(stat: &[u8], start_time: u64) -> bool {
    // The second field, the program's name in parentheses, may contain spaces and parentheses itself.
    let Some(end) = stat.iter().rposition(|byte| *byte == b')') else { return false };
    let text = String::from_utf8_lossy(&stat[end + 1..]);
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let (Some(state), Some(threads), Some(start)) = (fields.first(), fields.get(17), fields.get(19)) else {
        return false;
    };
    // A zombie leader with other threads is a process whose main thread has ended and which still works.
    let works = !matches!(*state, "Z" | "X") || threads.parse::<u32>().is_ok_and(|count| count > 1);
    works && start.parse() == Ok(start_time)
}

/// Start time of the process with this pid, in clock ticks since boot; `None` when there is none.
pub fn start_time(pid: u32) -> Option<u64> {
    after_name(pid, 19)
}

/// True while the process with this pid that began then runs: one that has ended and that nobody has waited for does not.
pub(crate) fn runs_since(pid: u32, start_time: u64) -> bool {
    fs::read(format!("/proc/{pid}/stat")).is_ok_and(|stat| runs(&stat, start_time))
}

/// Process id of the parent of the process with this pid; `None` when there is none.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    after_name(pid, 1)?.try_into().ok()
}

/// A number of /proc/PID/stat, counted from the field behind the program's name, which may contain anything.
fn after_name(pid: u32, field: usize) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    String::from_utf8_lossy(&stat[end + 1..]).split_ascii_whitespace().nth(field)?.parse().ok()
}

/// What the process calls itself (PR_SET_NAME, as setproctitle and systems of workers do it), where that tells more than its
/// program's name; `None` when there is no such process to be seen.
pub(super) fn own_name(pid: u32, started: u64, executable: &str) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    // Another one may have its pid, in this namespace.
    (start_time(pid) == Some(started)).then_some(())?;
    tells(name.trim_end(), executable).then(|| name.trim_end().to_owned())
}

/// False for a name that the kernel has made of the program's (cut at 15 bytes), and for what only says that PyTorch is there.
fn tells(name: &str, executable: &str) -> bool {
    let executable = executable.strip_suffix(" (deleted)").unwrap_or(executable);
    let program = executable.rsplit('/').next().unwrap_or(executable);
    !name.is_empty() && name != "pt_main_thread" && !program.starts_with(name) && !name.starts_with(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(state: &str, threads: u32, start: u64) -> Vec<u8> {
        format!("77 (odd) name) {state} 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 {threads} 0 {start} 1 1").into_bytes()
    }

    #[test]
    fn a_process_is_called_by_what_it_calls_itself_and_not_by_its_program() {
        for (name, executable, expected) in [
            ("python3", "/usr/bin/python3.11", false),
            ("a_very_long_pro", "/opt/a_very_long_program", false),
            ("node-MainThread", "/usr/bin/node", false),
            ("pt_main_thread", "/usr/bin/python3.11", false),
            ("train", "/tmp/train (deleted)", false),
            ("", "/usr/bin/x", false),
            ("VLLM::Worker_TP", "/usr/bin/python3.11", true),
            ("train.py", "/usr/bin/python3.11", true),
        ] {
            assert_eq!(tells(name, executable), expected, "{name} of {executable}");
        }
        let here = std::process::id();
        let started = start_time(here).unwrap();
        let name = fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(own_name(here, started, "/usr/bin/other").as_deref(), Some(name.trim_end()));
        assert_eq!(own_name(here, started + 1, "/usr/bin/other"), None, "another process with the same pid");
    }

    #[test]
    fn the_name_of_a_program_may_contain_anything() {
        assert!(runs(&line("R", 1, 4321), 4321));
        assert!(!runs(&line("R", 1, 4322), 4321), "another process with the same pid");
        assert!(!runs(b"garbage", 0));
        assert!(!runs(b"1 (x) R 1", 0));
    }

    #[test]
    fn a_zombie_is_gone_unless_threads_of_it_work() {
        assert!(!runs(&line("Z", 1, 9), 9));
        assert!(runs(&line("Z", 3, 9), 9));
    }

    #[test]
    fn this_process_runs_and_a_killed_child_does_not() {
        let me = std::process::id();
        let identity = |pid| Identity { pid, start_time: start_time(pid).unwrap(), exec_count: 0 };
        assert_eq!(look(&identity(me), None, true), Sight::Runs(me));
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let of_child = identity(child.id());
        assert_eq!(look(&of_child, None, true), Sight::Runs(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(look(&of_child, None, true), Sight::Nowhere);
        assert_eq!(look(&of_child, Some(child.id()), true), Sight::Nowhere);
    }
}
