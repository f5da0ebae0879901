//! `memscope run --tui`: a run behind the dashboard.
//!
//! The program has a terminal of its own (`launch/terminal/`). One thread conducts: it waits for the program, then makes the
//! profile, while the dashboard may still be open. The main thread shows the dashboard and, when that is left while the program
//! runs, the program in plain form. See docs/adr/0006-the-programs-terminal.md.
//!
//! Owns: the order of things under `--tui`. Refuses: to let anything of the dashboard change the program's status or the
//! recording.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use memscope_core::explorer::{Follower, Limits};
use memscope_core::recorder::Recorder;
use memscope_core::session::SessionFolder;
use memscope_core::telemetry::Poller;
use memscope_tui::app::Left;
use memscope_tui::dashboard;
use memscope_tui::output::Output;
use memscope_tui::program::{End, Program};

use crate::alert::Alert;
use crate::arguments::RecordArguments;
use crate::commands::conclude::Outputs;
use crate::commands::{run, writing};
use crate::config::Config;
use crate::embedded;
use crate::launch::inherited::Inherited;
use crate::launch::lookout::Lookout;
use crate::launch::terminal::{Custody, Mover, OwnTerminal, Pair, Stage, relay};
use crate::launch::{self, environment, signals};
use crate::look;
use crate::output::{self, Failure, complain, describe_error, say};

/// How long the dashboard may take to notice that its terminal is gone.
const GRACE: Duration = Duration::from_secs(2);

/// A program that runs in a terminal of its own.
struct Running {
    pair: Arc<Pair>,
    mover: Arc<Mover>,
    custody: Arc<Custody>,
    output: Output,
    lookout: Lookout,
}

/// Runs `command` behind the dashboard; otherwise as [`run::record`].
pub fn record(arguments: &RecordArguments, config: &Config, command: &[OsString], name: &str) -> Result<i32> {
    let own = OwnTerminal::find().ok_or_else(|| {
        Failure::usage(
            "--tui needs a terminal to draw on and to read keys from, and there is none: run it without --tui",
        )
    })?;
    // Before the first thread: all threads inherit the mask.
    let inherited = signals::block();
    own.wait_for_foreground();

    let output = arguments.output.clone().unwrap_or_else(|| run::default_output(name));
    let outputs = Outputs::check(&output, arguments.json.as_deref(), true, arguments.force)?;
    run::announce_outer(arguments.quiet);
    let (folder, running, recorder, alert) = begin(arguments, command, &outputs, &inherited, &own)?;
    let Running { pair, mover, custody, output, lookout } = running;
    let session = folder.path().to_path_buf();
    output::keep_back();
    let conductor = conduct((recorder, alert, lookout), &mover, &custody, folder.clone(), outputs, arguments.clone())?;

    let options = look::options(config, &arguments.screen, Some(output.clone()));
    let shown = Shown { mover: Arc::clone(&mover), custody: Arc::clone(&custody) };
    // A panic has given the terminal back and said what it was; the program goes on in plain form.
    let view = || signals::with_resizes(|| show(folder, options, shown));
    let left =
        catch_unwind(AssertUnwindSafe(view)).unwrap_or_else(|_| bail!("the dashboard has a defect: please report it"));
    own.restore();
    let mut in_plain_form = false;
    if custody.stage() < Stage::Moved {
        if let Err(error) = left {
            complain(&describe_error(&error));
        }
        // Where the terminal is gone, nothing can be shown any more, and the program is waited for all the same.
        in_plain_form = relay(&own, &pair, &mover, &custody).is_ok();
    }
    let ended = custody.wait_for(Stage::Moved);
    if !in_plain_form {
        let _ = own.screen().write_all(&output.last_screen());
    }
    output::let_out();
    custody.stop_watching();
    if writing::wait(&session, arguments.quiet, || conductor.is_finished()) {
        // A conductor that panicked has said so; the session can be recovered.
        let _ = conductor.join();
    }
    signals::release(&inherited);
    if ended.signal() == Some(libc::SIGINT) {
        signals::die_of(libc::SIGINT);
    }
    Ok(launch::status(ended))
}

/// Starts the program and the recording.
fn begin(
    arguments: &RecordArguments,
    command: &[OsString],
    outputs: &Outputs,
    inherited: &Inherited,
    own: &OwnTerminal,
) -> Result<(SessionFolder, Running, memscope_core::Result<Recorder>, Alert)> {
    let libraries = embedded::install()?;
    let session = run::describe(arguments, command);
    let folder = SessionFolder::create(&outputs.profile, &session)?;
    if !arguments.quiet {
        run::announce(&session);
    }
    let variables = environment::variables(arguments, &libraries, folder.path(), &folder.logs());
    environment::adopt_simulator(&variables);
    let telemetry = run::telemetry_of(arguments, &libraries, &session);
    let reader = folder.reader();
    let running = match start(command, &variables, inherited, own, &folder) {
        Ok(running) => running,
        Err(error) => {
            folder.remove()?;
            return Err(error);
        }
    };
    let options = run::options(Poller::start(telemetry), reader, &folder);
    // That memory is out stands on the dashboard, and in the report that comes after it.
    let (alert, mut alarm) = Alert::start(&folder, true, &session.alerts);
    let listener = run::listener_of(None, move |entry| alarm.hear(entry));
    let recorder = Recorder::start(&folder, options, Some(listener));
    Ok((folder, running, recorder, alert))
}

/// Starts the program in a terminal of its own, and the thread that moves its bytes.
fn start(
    command: &[OsString],
    variables: &[environment::Variable],
    inherited: &Inherited,
    own: &OwnTerminal,
    folder: &SessionFolder,
) -> Result<Running> {
    let (rows, columns) = own.size();
    let size = dashboard::program_size(rows, columns);
    let pair = Arc::new(Pair::open(own.settings(), size).context("cannot make a terminal for the program")?);
    let replaced = [std::io::stdin().is_terminal(), std::io::stdout().is_terminal(), std::io::stderr().is_terminal()];
    let child = launch::start(command, variables, inherited, Some(pair.wiring(replaced)))?;
    let lookout = Lookout::start(child.id(), folder.logs());
    let custody = Arc::new(Custody::new(child.id(), Arc::clone(&pair)));
    let output = Output::new(size.0, size.1);
    let mover = Mover::start(Arc::clone(&pair), output.clone(), &folder.transcript());
    let mover = mover.inspect_err(|_| custody.send(libc::SIGKILL)).context("cannot keep the program's output")?;
    Ok(Running { pair, mover: Arc::new(mover), custody, output, lookout })
}

/// Starts the thread that sees the program to its end and makes the profile then.
fn conduct(
    (recorder, alert, lookout): (memscope_core::Result<Recorder>, Alert, Lookout),
    mover: &Arc<Mover>,
    custody: &Arc<Custody>,
    folder: SessionFolder,
    outputs: Outputs,
    arguments: RecordArguments,
) -> Result<JoinHandle<()>> {
    let (mover, custody) = (Arc::clone(mover), Arc::clone(custody));
    let work = move || {
        let ended = custody.wait();
        let moved = mover.finish();
        custody.reach(Stage::Moved);
        let recorded = recorder.and_then(|recorder| recorder.finish(run::as_recorded(ended, lookout)));
        alert.finish();
        match recorded {
            Ok(summary) => run::report_notices(&summary, ended, arguments.device.is_some(), arguments.quiet),
            Err(error) => complain(&error.to_string()),
        }
        if let Some(trouble) = moved.trouble {
            say(&format!("the transcript is not complete: {trouble}"));
        }
        run::conclude_session(&folder, &outputs, &arguments);
        custody.reach(Stage::Concluded);
        custody.watch();
        // Should the main thread be caught in a terminal that is gone, this one ends memscope: nobody sees it any more.
        if custody.has_hung_up() && !custody.is_over_within(GRACE) {
            std::process::exit(launch::status(ended));
        }
    };
    std::thread::Builder::new().name("conductor".into()).spawn(work).context("cannot start a thread")
}

/// Shows the dashboard until it is left.
fn show(folder: SessionFolder, options: dashboard::Options, program: Shown) -> Result<Left> {
    let follower = Follower::of_session(folder, Limits::default(), || {});
    dashboard::show(&follower, Some(Box::new(program)), options).context("the dashboard ended")
}

/// The program as the dashboard may touch it.
struct Shown {
    mover: Arc<Mover>,
    custody: Arc<Custody>,
}

impl Program for Shown {
    fn type_in(&mut self, bytes: &[u8]) {
        self.custody.go_on();
        self.mover.type_in(bytes);
    }

    fn resize(&mut self, rows: u16, columns: u16) {
        self.mover.resize((rows, columns));
    }

    fn end(&mut self, how: End) {
        self.custody.send(match how {
            End::Interrupt => libc::SIGINT,
            End::Terminate => libc::SIGTERM,
            End::Kill => libc::SIGKILL,
        });
        self.custody.go_on(); // a stopped program acts on it only then
    }

    fn status(&self) -> Option<i32> {
        self.custody.status().map(launch::status)
    }

    fn is_stopped(&self) -> bool {
        self.custody.is_stopped()
    }

    fn must_leave(&self) -> bool {
        self.custody.must_leave()
    }
}
