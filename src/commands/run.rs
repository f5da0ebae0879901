//! `memscope run`: start, record, make the profile.
//!
//! Owns: the order of things. What can be refused is refused before the program starts; after that, no fault of memscope
//! changes the program's status, and the session stays on disk until its profile is written.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use memscope_core::explorer::{Explorer, Limits};
use memscope_core::journal::entry::{self, Entry, SessionInfo, Survivor};
use memscope_core::recorder::{self, Listener, Recorder};
use memscope_core::report::units;
use memscope_core::session::{Reader, SessionFolder};
use memscope_core::telemetry::{self, Poller};

use crate::alert::Alert;
use crate::arguments::{RecordArguments, RunArguments};
use crate::commands::conclude::{self, Outputs};
use crate::commands::{live, writing};
use crate::config::{self, Config};
use crate::embedded::{self, Libraries};
use crate::launch::inherited::Inherited;
use crate::launch::job;
use crate::launch::lookout::Lookout;
use crate::launch::signals::{self, Witness};
use crate::launch::{self, environment, preflight};
use crate::output::{complain, describe_error, say, shell_word};
use crate::progress::Line;

/// Characters of the program's name that go into the profile's.
const LONGEST_NAME: usize = 40;

/// Runs the command of the command line.
pub fn run(arguments: RunArguments) -> Result<i32> {
    let program = Path::new(&arguments.command[0]).file_name().unwrap_or(&arguments.command[0]);
    let name = program.to_string_lossy().into_owned();
    record(&arguments.record, &arguments.command, &name)
}

/// Runs `command` and records it; `name` stands for the program in the output's name. Returns the program's status.
pub fn record(arguments: &RecordArguments, command: &[OsString], name: &str) -> Result<i32> {
    let mut arguments = arguments.clone();
    let interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let config = Config::load()?;
    config.complete(&mut arguments, interactive);
    for path in arguments.output.iter_mut().chain(&mut arguments.json) {
        *path = job::named(path)?;
    }
    let arguments = &arguments;
    if arguments.tui {
        return live::record(arguments, &config, command, name);
    }

    // Before the first thread: all threads inherit the mask, and the witness is a fork.
    let inherited = signals::block();
    let mut witness = Witness::start().context("cannot start the witness of signals")?;

    let output = arguments.output.clone().unwrap_or_else(|| default_output(name));
    let outputs = Outputs::check(&output, arguments.json.as_deref(), false, arguments.force)?;
    announce_outer(arguments.quiet);
    let libraries = embedded::install()?;
    let session = describe(arguments, command);
    let folder = SessionFolder::create(&outputs.profile, &session)?;
    let ended = match start(arguments, command, &libraries, &folder, &session, &inherited, &mut witness) {
        Ok(ended) => ended,
        Err(error) => {
            folder.remove()?;
            return Err(error);
        }
    };
    drop(witness);
    signals::drop_pending();
    let session = folder.path().to_path_buf();
    let arguments = arguments.clone();
    let quiet = arguments.quiet;
    let conclusion = Arc::new(move || conclude_session(&folder, &outputs, &arguments));
    let work = Arc::clone(&conclusion);
    match std::thread::Builder::new().name("conclusion".into()).spawn(move || work()) {
        Ok(thread) => {
            if writing::wait(&session, quiet, || thread.is_finished()) {
                let _ = thread.join(); // a panic has said what it was
            }
        }
        Err(_) => conclusion(),
    }
    signals::release(&inherited);
    if ended.signal() == Some(libc::SIGINT) {
        signals::die_of(libc::SIGINT);
    }
    Ok(launch::status(ended))
}

/// Makes the profile. The program has run: what goes wrong from here on is told and changes nothing.
pub(super) fn conclude_session(folder: &SessionFolder, outputs: &Outputs, arguments: &RecordArguments) {
    if let Err(error) = conclude::conclude(folder, outputs, arguments, None) {
        complain(&describe_error(&error));
        if folder.manifest().is_ok() {
            say(&format!("nothing is lost: `memscope recover {}` makes the profile", shell_word(folder.path())));
        }
    }
}

/// Says that memscope itself runs under memscope, if it does.
pub(super) fn announce_outer(quiet: bool) {
    if let Some(outer) = std::env::var_os(memscope_wire::env::SESSION).filter(|_| !quiet) {
        say(&format!("this run is inside the session {}, which records nothing of it", outer.display()));
    }
}

/// Name of the profile in the current folder. A program's name may be as long as a file's name: it is cut.
pub(super) fn default_output(name: &str) -> PathBuf {
    let name: String = name.chars().take(LONGEST_NAME).collect();
    // Process ids of several machines may be equal, and their current folder the same.
    let rank = job::rank().map_or_else(String::new, |rank| format!("rank{rank}-"));
    PathBuf::from(format!("memscope-{name}-{rank}{}.mscope", std::process::id()))
}

/// What the session says of itself.
pub(super) fn describe(arguments: &RecordArguments, command: &[OsString]) -> SessionInfo {
    let words = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    SessionInfo {
        simulated: environment::simulated(arguments),
        compute: !arguments.no_compute,
        node: job::node(),
        alerts: arguments.alert.clone().unwrap_or_default().0,
        keep: arguments.keep.unwrap_or_default().0,
        obstacle: preflight::obstacle(command).map(|obstacle| obstacle.to_string()),
        ..SessionInfo::begin(words)
    }
}

/// How NVML is polled: that of the simulated device, where there is one.
pub(super) fn telemetry_of(
    arguments: &RecordArguments,
    libraries: &Libraries,
    session: &SessionInfo,
) -> telemetry::Options {
    telemetry::Options {
        library: arguments.device.map(|_| libraries.simulator.join("libnvidia-ml.so.1")),
        interval: Duration::from_millis(arguments.interval.unwrap_or(config::INTERVAL)),
        start_monotonic_ns: session.start_monotonic_ns,
    }
}

/// Starts the program, records until it has ended, and returns how it ended.
fn start(
    arguments: &RecordArguments,
    command: &[OsString],
    libraries: &Libraries,
    folder: &SessionFolder,
    session: &SessionInfo,
    inherited: &Inherited,
    witness: &mut Witness,
) -> Result<ExitStatus> {
    if !arguments.quiet {
        announce(session);
    }
    let variables = environment::variables(arguments, libraries, folder.path(), &folder.logs());
    environment::adopt_simulator(&variables);
    let reader = folder.reader();
    let mut child = launch::start(command, &variables, inherited, None)?;
    let lookout = Lookout::start(child.id(), folder.logs());

    let (alert, mut alarm) = Alert::start(folder, arguments.quiet, &session.alerts);
    let (listener, live) = live_model(Line::new(arguments.quiet));
    let listener = listener_of(listener, move |entry| alarm.hear(entry));
    let telemetry = Poller::start(telemetry_of(arguments, libraries, session));
    let options = options(telemetry, reader, folder);
    let recorder = Recorder::start(folder, options, Some(listener));

    let ended = signals::wait(child.id(), witness).or_else(|_| child.wait()).context("cannot wait for the program")?;
    let recorded = recorder.and_then(|recorder| recorder.finish(as_recorded(ended, lookout)));
    if let Some(mut line) = live.and_then(|live| live.lock().unwrap_or_else(PoisonError::into_inner).line.take()) {
        line.clear();
    }
    alert.finish();
    match recorded {
        Ok(summary) => report_notices(&summary, ended, arguments.device.is_some(), arguments.quiet),
        Err(error) => complain(&error.to_string()),
    }
    Ok(ended)
}

/// How the recorder records.
pub(super) fn options(telemetry: Poller, reader: Option<Reader>, folder: &SessionFolder) -> recorder::Options {
    let session = folder.path().to_path_buf();
    let outlived: recorder::Outlived = Box::new(move || outlived(&session));
    let default = recorder::Options::default();
    recorder::Options { telemetry: Some(telemetry), reader, outlived: Some(outlived), ..default }
}

/// How the program ended, and what was seen of it, as the recorder is told.
pub(super) fn as_recorded(ended: ExitStatus, lookout: Lookout) -> recorder::Ended {
    recorder::Ended { exit_status: Some(launch::status(ended)), signal: ended.signal(), seen: lookout.finish() }
}

/// What the user must know before the program speaks.
pub(super) fn announce(session: &SessionInfo) {
    if let Some(devices) = &session.simulated {
        let compute = if session.compute { "" } else { ", without computing" };
        let devices = units::simulated(devices);
        say(&format!("simulated device {devices}{compute}: what the program computes and saves is not to be trusted"));
    }
    if let Some(obstacle) = &session.obstacle {
        say(&format!("warning: {obstacle}"));
    }
}

pub(super) fn report_notices(summary: &recorder::Summary, ended: ExitStatus, simulated: bool, quiet: bool) {
    if summary.progress.dropped > 0 {
        say(&format!("{} events could not be recorded: the figures are too low", summary.progress.dropped));
    }
    if quiet {
        return;
    }
    if !summary.outlived.is_empty() {
        tell_outlived(&summary.outlived, ended, simulated);
    }
    for notice in &summary.notices {
        say(notice);
    }
}

/// Says who runs on, and how to record that.
fn tell_outlived(outlived: &[Survivor], ended: ExitStatus, simulated: bool) {
    let (run, them) = if outlived.len() == 1 { ("still runs, and is", "it") } else { ("still run, and are", "them") };
    say(&format!(
        "the program has ended with status {}; {} of it {run} no longer recorded: {}",
        launch::status(ended),
        units::count(outlived.len() as u64, "process", "processes"),
        entry::named(outlived)
    ));
    say(&format!("to record {them} to the end, let the program wait for {them} (`wait` in a shell)"));
    if simulated {
        say(&format!("the simulated device stays for {them}; then `memscope sessions --clean` removes it"));
    }
}

/// Processes of this session that still run.
pub(super) fn outlived(session: &Path) -> Vec<u32> {
    sessions_of_processes().remove(session).unwrap_or_default()
}

/// The processes of each session that run: those that carry its variable in their environment.
pub(super) fn sessions_of_processes() -> HashMap<PathBuf, Vec<u32>> {
    let mut found: HashMap<PathBuf, Vec<u32>> = HashMap::new();
    let prefix = [memscope_wire::env::SESSION.as_bytes(), b"="].concat();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    for pid in pids.filter(|pid| *pid != std::process::id()) {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let sessions = environment.split(|byte| *byte == 0).filter_map(|variable| variable.strip_prefix(&prefix[..]));
        for session in sessions {
            found.entry(PathBuf::from(OsStr::from_bytes(session))).or_default().push(pid);
        }
    }
    found
}

/// A listener that also tells `hear` of each entry.
pub(super) fn listener_of(listener: Option<Listener>, mut hear: impl FnMut(&Entry) + Send + 'static) -> Listener {
    let mut listener = listener.unwrap_or_else(|| Box::new(|_| {}));
    Box::new(move |entry| {
        listener(entry);
        hear(entry);
    })
}

/// The model that follows the run for the progress line; of what ended it keeps little.
struct Live {
    explorer: Explorer,
    line: Option<Line>,
}

/// A listener that shows progress, and its state; neither when there is no line to show.
fn live_model(line: Option<Line>) -> (Option<Listener>, Option<Arc<Mutex<Live>>>) {
    let Some(line) = line else { return (None, None) };
    let live = Arc::new(Mutex::new(Live { explorer: Explorer::new(Limits::LIVE_ONLY), line: Some(line) }));
    let of_listener = Arc::clone(&live);
    let listener: Listener = Box::new(move |entry| {
        // With the end the whole is walked, and the line is gone.
        if matches!(entry, Entry::End(_)) {
            return;
        }
        let mut live = of_listener.lock().unwrap_or_else(PoisonError::into_inner);
        let Live { explorer, line } = &mut *live;
        explorer.apply(entry);
        if explorer.is_long() {
            explorer.advance();
        }
        if let Some(line) = line.as_mut().filter(|line| line.is_due()) {
            line.show(&explorer.progress());
        }
    });
    (Some(listener), Some(live))
}
