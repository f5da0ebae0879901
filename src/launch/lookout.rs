//! Looks at the program's processes while none of them has a log: which of them memscope's library is not in, and why; and whether
//! those that have it have loaded the CUDA driver.
//!
//! Owns: the looks, ever more rarely (after a hundredth of the time that has passed: each millisecond at first), and the one process
//! that explains most. Refuses: to look on once there is a log, and to tell of a process whose reason it does not see: a program
//! that has just begun has no library in it either. What lives between two looks is not seen.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use memscope_core::journal::entry::{DriverSeen, PassedOver, Seen};
use memscope_wire::log::FILE_SUFFIX;

use super::preflight;
use crate::embedded::{INTERPOSER_FILE, preload};

/// The user who reaches every folder.
const ROOT: u32 = 0;

/// Of the time that has passed since the start, the part between two looks: what lives longer is seen.
const PART: u32 = 100;
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Processes of one look; a program that has more is not all seen.
const MOST_PROCESSES: usize = 1000;

/// The looks at one program.
pub struct Lookout {
    over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<Seen>>,
}

impl Lookout {
    /// Begins to look at process `pid`, our child, and what it starts, whose logs are in `logs`.
    pub fn start(pid: u32, logs: PathBuf) -> Lookout {
        let over: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let told = Arc::clone(&over);
        let work = move || look_on(pid, &logs, &told);
        // Without a thread there is a reason less.
        let thread = std::thread::Builder::new().name("lookout".into()).spawn(work).ok();
        Lookout { over, thread }
    }

    /// The program has ended: what was seen of it that explains why there is no log.
    pub fn finish(mut self) -> Seen {
        self.stop();
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }

    fn stop(&self) {
        *self.over.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.over.1.notify_all();
    }
}

impl Drop for Lookout {
    fn drop(&mut self) {
        self.stop();
    }
}

fn look_on(program: u32, logs: &Path, (over, told): &(Mutex<bool>, Condvar)) -> Seen {
    let mut passed_over = BTreeMap::new();
    let mut driver = DriverSeen::Unknown;
    let start = Instant::now();
    loop {
        let pause = (start.elapsed() / PART).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        let guard = over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = told.wait_timeout_while(guard, pause, |over| !*over);
        if *waited.unwrap_or_else(PoisonError::into_inner).0 {
            break;
        }
        if has_log(logs) {
            return Seen::default();
        }
        for pid in family(program) {
            match Sight::of(pid, logs) {
                Look::Fits(found) => {
                    passed_over.remove(&pid);
                    if !matches!(driver, DriverSeen::In(_)) {
                        driver = found;
                    }
                }
                Look::Passed(sight) => drop(passed_over.insert(pid, sight)),
                Look::Unknown => {}
            }
        }
    }
    // The one that uses a driver; else, where no driver was seen at all, what the program itself has become, or the last that it started.
    let explains = |(pid, sight): &(&u32, &Sight)| (sight.uses_driver, **pid == program, **pid);
    let one = passed_over.iter().max_by_key(explains).map(|(_, sight)| sight);
    let one = one.filter(|sight| sight.uses_driver || !matches!(driver, DriverSeen::In(_)));
    Seen { passed_over: one.map(|sight| sight.told(logs)), driver }
}

fn has_log(logs: &Path) -> bool {
    let entries = fs::read_dir(logs).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().ends_with(FILE_SUFFIX))
}

/// The process and all that descend from it.
fn family(program: u32) -> Vec<u32> {
    let mut family = vec![program];
    let mut next = 0;
    while let Some(pid) = family.get(next).copied().filter(|_| family.len() < MOST_PROCESSES) {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            family.extend(children.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
        next += 1;
    }
    family
}

/// What a look at a process gave.
enum Look {
    /// The library is in it, and it can reach the logs; whether the driver is in it too.
    Fits(DriverSeen),
    /// It cannot have a log.
    Passed(Sight),
    /// It has ended, or has just begun, or does not let itself be looked at.
    Unknown,
}

/// A process that cannot have a log.
struct Sight {
    program: PathBuf,
    why: Why,
    uses_driver: bool,
}

enum Why {
    /// LD_PRELOAD is not in its environment.
    Environment,
    /// The folder of logs is not there from its root folder.
    Root,
    /// The library is not there from its root folder, by this path.
    Preload(PathBuf),
    /// It runs as this user, who cannot reach the folder.
    User(u32),
    /// It has the rights of root, and memscope has not.
    Raised,
    /// What the check before the start would have said.
    Obstacle(String),
}

impl Sight {
    fn of(pid: u32, logs: &Path) -> Look {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let maps = fs::read_to_string(process.join("maps")).unwrap_or_default();
        let uses_driver = maps.contains("/libcuda.so");
        let program = match fs::read_link(process.join("exe")) {
            Ok(program) => program,
            // Another user's: its name is all that is told.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Sight::of_stranger(&process, logs),
            Err(_) => return Look::Unknown,
        };
        match why(&process, &program, &maps, logs) {
            Some(why) => Look::Passed(Sight { program, why, uses_driver }),
            None if maps.contains(INTERPOSER_FILE) && uses_driver => {
                Look::Fits(DriverSeen::In(program.display().to_string()))
            }
            None if maps.contains(INTERPOSER_FILE) => Look::Fits(DriverSeen::Absent),
            None => Look::Unknown,
        }
    }

    fn of_stranger(process: &Path, logs: &Path) -> Look {
        let why = match user_of(process) {
            Some(ROOT) => Some(Why::Raised),
            Some(_) => stranger(process, logs).map(Why::User),
            None => None,
        };
        let name = fs::read_to_string(process.join("comm")).ok().filter(|name| !name.is_empty());
        let sight = why.zip(name).map(|(why, name)| Sight { program: name.trim_end().into(), why, uses_driver: false });
        sight.map_or(Look::Unknown, Look::Passed)
    }

    fn told(&self, logs: &Path) -> PassedOver {
        let (program, logs) = (self.program.display(), logs.display());
        let what = if self.uses_driver { "uses the CUDA driver" } else { "was started" };
        let (reason, advice) = match &self.why {
            Why::Environment => return PassedOver::by_environment(&[program.to_string()], what),
            Why::Root => (
                format!(
                    "{program} {what} in another root folder (chroot, a container), from which the folder of the logs, {logs}, cannot be \
                     reached"
                ),
                format!("start memscope inside: memscope run -- {program}"),
            ),
            Why::Preload(library) => (
                format!(
                    "{program} {what} where memscope's library, {}, is not there (a container, another mount), and its loader said so on \
                     stderr",
                    library.display()
                ),
                format!("start memscope inside: memscope run -- {program}; or have that folder there too"),
            ),
            Why::User(user) => (
                format!("{program} {what} as another user ({user}), who cannot reach the folder of the logs, {logs}"),
                format!("start memscope as that user: memscope run -- {program}"),
            ),
            Why::Raised => (
                format!(
                    "{program} {what} with the rights of root (sudo, a set-user-ID file), and the loader ignores preloads for such programs"
                ),
                format!("start memscope with these rights: sudo memscope run -- {program}"),
            ),
            Why::Obstacle(obstacle) => (
                format!(
                    "{obstacle}; the program has started it, and nothing else that was seen has called the CUDA driver"
                ),
                format!("`memscope doctor -- {program}` checks it without a start"),
            ),
        };
        PassedOver { reason, advice }
    }
}

/// Why the process cannot have a log, where that is seen.
fn why(process: &Path, program: &Path, maps: &str, logs: &Path) -> Option<Why> {
    let has_library = maps.contains(INTERPOSER_FILE);
    if !has_library && let Some(raised) = preflight::privileges(&process.join("exe"), program) {
        return Some(Why::Obstacle(raised));
    }
    if let Some(user) = stranger(process, logs) {
        return Some(Why::User(user));
    }
    let root = process.join("root");
    let of = |path: &Path| fs::metadata(path).map(|data| (data.dev(), data.ino())).ok();
    // Of a process that has just ended nothing is there.
    if of(&root.join(logs.strip_prefix("/").ok()?)) != of(logs) && root.exists() {
        return Some(Why::Root);
    }
    if maps.is_empty() || has_library {
        return None;
    }
    if let Some(obstacle) = preflight::format(&process.join("exe"), program) {
        return Some(Why::Obstacle(obstacle));
    }
    // Arguments and environment come into sight together, and go together. A program that has just begun or ended has neither.
    let has_arguments = || fs::read(process.join("cmdline")).is_ok_and(|arguments| !arguments.is_empty());
    let environment = has_arguments().then(|| fs::read(process.join("environ")).ok()).flatten()?;
    if !has_arguments() {
        return None;
    }
    match library_in(&environment) {
        None => Some(Why::Environment),
        Some(library) => {
            let inside = root.join(library.strip_prefix("/").ok()?);
            let is_missing = fs::metadata(inside).is_err_and(|error| error.kind() == ErrorKind::NotFound);
            (is_missing && root.exists()).then_some(Why::Preload(library))
        }
    }
}

/// Where the loader finds memscope's library by LD_PRELOAD, if that names it.
fn library_in(environment: &[u8]) -> Option<PathBuf> {
    let variable = environment.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(b"LD_PRELOAD="))?;
    let paths = String::from_utf8_lossy(variable);
    let library = paths.split([':', ' ']).find(|path| path.ends_with(INTERPOSER_FILE))?;
    Some(preload::found(library))
}

/// The user as whom the process reaches files.
fn user_of(process: &Path) -> Option<u32> {
    const FILES: usize = 3;
    let status = fs::read_to_string(process.join("status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_ascii_whitespace().nth(FILES)?.parse().ok()
}

/// That user, if they cannot reach the folder of logs.
fn stranger(process: &Path, logs: &Path) -> Option<u32> {
    let owner = fs::metadata(logs).ok()?.uid();
    user_of(process).filter(|user| ![ROOT, owner].contains(user))
}
