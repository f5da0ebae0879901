//! What the operating system says about the processes that NVML lists.
//!
//! Owns: the files of /proc, each opened once a process, and the names of users. Refuses: processes that nobody listed, and
//! signals. A file of /proc stays with the process for which it was opened: when that one ends, reading fails, and another
//! process with the same pid is never taken for it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Instant;

use rustix::param::{clock_ticks_per_second, page_size};

/// Longest command line that is kept, in bytes.
const COMMAND_BYTES: usize = 4096;
/// Files that are kept open; of further processes each round opens and closes its own.
const OPEN_FILES: usize = 256;
/// Room for one line of /proc/PID/stat: 52 numbers and a name of 16 bytes.
const STAT_BYTES: usize = 2048;

/// A process as the operating system sees it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct HostProcess {
    pub start_time: u64,
    pub user: Option<String>,
    pub cpu_percent: Option<f64>,
    pub host_memory: u64,
    pub command: Option<String>,
}

/// The processes of the last round.
pub(super) struct Host {
    known: HashMap<u32, Known>,
    users: HashMap<u32, String>,
    round: u64,
    ticks_per_second: f64,
    page_bytes: u64,
}

struct Known {
    /// /proc/PID/stat; `None` while it is not kept open.
    file: Option<File>,
    /// Its short name, which changes when it becomes another program.
    name: Vec<u8>,
    ticks: u64,
    read: Instant,
    round: u64,
    process: HostProcess,
}

impl Host {
    pub fn new() -> Host {
        Host {
            known: HashMap::new(),
            users: HashMap::new(),
            round: 0,
            ticks_per_second: clock_ticks_per_second() as f64,
            page_bytes: page_size() as u64,
        }
    }

    /// Begins a round: what is not looked at until the next one is forgotten.
    pub fn begin(&mut self) {
        let round = self.round;
        self.known.retain(|_, known| known.round == round);
        self.round += 1;
    }

    /// The process with this pid; `None` when there is none here.
    pub fn look(&mut self, pid: u32) -> Option<&HostProcess> {
        // A process on several devices is read once a round.
        if self.known.get(&pid).is_none_or(|known| known.round != self.round) && !self.read(pid) {
            self.known.remove(&pid);
            return None;
        }
        self.known.get(&pid).map(|known| &known.process)
    }

    /// Reads a process anew; false when there is none.
    fn read(&mut self, pid: u32) -> bool {
        let mut buffer = [0; STAT_BYTES];
        let kept = self.known.get(&pid).and_then(|known| known.file.as_ref());
        if let Some(stat) = kept.and_then(|file| read_stat(file, &mut buffer)) {
            return self.update(pid, &stat, None);
        }
        // It is new, its file is not kept open, or it is gone and its pid may belong to another one.
        let Ok(file) = File::open(format!("/proc/{pid}/stat")) else { return false };
        let Some(stat) = read_stat(&file, &mut buffer) else { return false };
        self.update(pid, &stat, Some(file))
    }

    fn update(&mut self, pid: u32, stat: &Stat<'_>, file: Option<File>) -> bool {
        let now = Instant::now();
        let host_memory = stat.pages.saturating_mul(self.page_bytes);
        if let Some(known) = self.known.get_mut(&pid).filter(|known| known.process.start_time == stat.start_time) {
            let seconds = now.duration_since(known.read).as_secs_f64();
            let ticks = stat.ticks.saturating_sub(known.ticks) as f64;
            known.process.cpu_percent =
                (seconds > 0.0).then(|| tenths(ticks / self.ticks_per_second / seconds * 100.0));
            known.process.host_memory = host_memory;
            if known.name != stat.name {
                known.name = stat.name.to_vec();
                known.process.command = command(pid, stat.name);
            }
            (known.ticks, known.read, known.round) = (stat.ticks, now, self.round);
            return true;
        }
        let process = HostProcess {
            start_time: stat.start_time,
            user: fs::metadata(format!("/proc/{pid}")).ok().map(|data| self.user(data.uid())),
            cpu_percent: None,
            host_memory,
            command: command(pid, stat.name),
        };
        let file = file.filter(|_| self.known.len() < OPEN_FILES);
        let (name, ticks) = (stat.name.to_vec(), stat.ticks);
        self.known.insert(pid, Known { file, name, ticks, read: now, round: self.round, process });
        true
    }

    /// The user's name. Asked once a user: where names come from a network, this may take a while.
    fn user(&mut self, number: u32) -> String {
        let name = || {
            let user = uzers::get_user_by_uid(number)?;
            Some(user.name().to_string_lossy().into_owned())
        };
        self.users.entry(number).or_insert_with(|| name().unwrap_or_else(|| number.to_string())).clone()
    }
}

/// What is wanted of /proc/PID/stat.
#[derive(PartialEq, Debug)]
struct Stat<'a> {
    name: &'a [u8],
    /// Processor time in user and kernel mode, in clock ticks.
    ticks: u64,
    start_time: u64,
    /// Resident pages.
    pages: u64,
}

fn read_stat<'a>(file: &File, buffer: &'a mut [u8; STAT_BYTES]) -> Option<Stat<'a>> {
    let length = file.read_at(buffer, 0).ok()?;
    parse_stat(&buffer[..length])
}

/// See proc_pid_stat(5). The name stands in parentheses and may contain any bytes, so that the last parenthesis ends it.
fn parse_stat(line: &[u8]) -> Option<Stat<'_>> {
    let begin = line.iter().position(|byte| *byte == b'(')? + 1;
    let end = line.iter().rposition(|byte| *byte == b')')?;
    // The first field behind the name is the third of the line.
    let mut fields = line.get(end + 2..)?.split(|byte| *byte == b' ');
    let mut position = 3;
    let mut field = |number: usize| {
        let bytes = fields.nth(number - position)?;
        position = number + 1;
        bytes.iter().try_fold(0u64, |value, digit| {
            let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
            value.checked_mul(10)?.checked_add(digit)
        })
    };
    let ticks = field(14)?.checked_add(field(15)?)?;
    Some(Stat { name: line.get(begin..end)?, ticks, start_time: field(22)?, pages: field(24)? })
}

/// The command line, its words joined by blanks; of a process without one (a kernel thread, a zombie) its name in brackets.
fn command(pid: u32, name: &[u8]) -> Option<String> {
    let mut line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    line.truncate(COMMAND_BYTES);
    while line.last() == Some(&0) {
        line.pop();
    }
    if line.is_empty() {
        return Some(format!("[{}]", String::from_utf8_lossy(name)));
    }
    let text = String::from_utf8_lossy(&line);
    // A command line may contain anything; what would move a terminal's cursor becomes a blank.
    Some(text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect())
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process that waits until it is killed.
    struct Waiting(Child);

    impl Waiting {
        fn new() -> Waiting {
            let mut command = Command::new("sleep");
            Waiting(command.arg("3600").stdin(Stdio::null()).spawn().expect("sleep starts"))
        }
    }

    impl Drop for Waiting {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn the_name_of_a_program_may_contain_anything() {
        let line = b"77 (odd) name ( 5) S 1 77 77 0 -1 4194560 1 0 0 0 12 30 0 0 20 0 3 0 4321 999 25 1 1\n";
        let expected = Stat { name: b"odd) name ( 5", ticks: 42, start_time: 4321, pages: 25 };
        assert_eq!(parse_stat(line), Some(expected));
        assert_eq!(parse_stat(b"77 (cut) S 1 77 77"), None);
        assert_eq!(parse_stat(b"77 (cut)"), None);
        assert_eq!(parse_stat(b""), None);
    }

    #[test]
    fn a_process_is_described_and_its_rate_needs_two_rounds() {
        let waiting = Waiting::new();
        let pid = waiting.0.id();
        let mut host = Host::new();
        host.begin();
        // Between fork and exec the child is still the test.
        let is_sleep = |process: &HostProcess| process.command.as_deref() == Some("sleep 3600");
        while !host.look(pid).is_some_and(is_sleep) {
            host.begin();
            host.known.clear();
        }
        let first = host.look(pid).expect("it runs").clone();
        assert_eq!(Some(first.start_time), crate::source::start_time(pid));
        assert_eq!((first.cpu_percent, first.user.is_some()), (None, true));
        // The kernel counts pages in batches: one that has just begun may have none yet. This test has had time.
        assert!(host.look(std::process::id()).expect("this test runs").host_memory > 0);
        host.begin();
        assert!(host.look(pid).expect("it runs").cpu_percent.is_some());
    }

    #[test]
    fn a_process_that_ended_is_not_there_and_its_pid_is_not_trusted() {
        let waiting = Waiting::new();
        let pid = waiting.0.id();
        let mut host = Host::new();
        host.begin();
        host.look(pid).expect("it runs");
        // As if the pid had been given to another process since.
        host.known.get_mut(&pid).expect("known").process.start_time -= 1;
        host.known.get_mut(&pid).expect("known").process.command = Some("another".into());
        host.begin();
        let now = host.look(pid).expect("it runs");
        assert_eq!((now.cpu_percent, now.command.as_deref() == Some("another")), (None, false));
        drop(waiting);
        host.begin();
        assert_eq!(host.look(pid), None);
        assert!(host.known.is_empty());
    }

    #[test]
    fn processes_that_are_not_listed_any_more_are_forgotten() {
        let mut host = Host::new();
        host.begin();
        host.look(std::process::id()).expect("the test itself");
        host.begin();
        host.begin();
        assert!(host.known.is_empty());
    }
}
