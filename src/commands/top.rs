//! `memscope top`: every GPU of this machine and every process on it.
//!
//! Owns: which form is printed, and the signals that the screen asks for. Refuses: to look (memscope-core's monitor) and to draw
//! (memscope-tui).

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use memscope_core::monitor::{Monitor, MonitorView, Options};
use memscope_tui::top::{self, Ended, Request, Signal};
use memscope_wire::env as names;

use crate::arguments::TopArguments;
use crate::config::Config;
use crate::look;
use crate::output::{Failure, print};
use crate::process;

/// How long a device may take for its first answer before what is printed once does without it; an interval is added.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two looks whether the reader has gone away.
const FAR: Duration = Duration::from_secs(3600);

/// Shows the machine: on the screen until the user leaves, printed once, or as lines of JSON.
///
/// # Errors
/// There is no NVML, with status 1 and what to do; the terminal or the output is gone.
pub fn top(arguments: TopArguments) -> Result<i32> {
    let config = Config::load()?;
    let interval = Duration::from_millis(arguments.interval.unwrap_or(config.top_interval.value));
    let library = std::env::var_os(names::NVML).filter(|path: &OsString| !path.is_empty()).map(PathBuf::from);
    let options = Options { library, interval, notify: None };
    let interactive = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if arguments.json && !arguments.once {
        return lines(&Monitor::start(options));
    }
    if arguments.once || !interactive {
        let view = once(&Monitor::start(options), PATIENCE + interval)?;
        let text = if arguments.json { json(&view)? } else { view.text() };
        print(&text)?;
        return Ok(0);
    }
    let look = look::options(&config, &arguments.screen, None);
    match top::show(options, &look, send).context("the terminal cannot be used")? {
        Ended::Left => Ok(0),
        Ended::Signal(signal) => Ok(128 + signal),
        Ended::Unavailable(reason) => Err(unavailable(Some(reason))),
    }
}

/// A view in which rates are known, and of which every device that answers and every session is a part.
fn once(monitor: &Monitor, patience: Duration) -> Result<Arc<MonitorView>> {
    let end = Instant::now() + patience;
    let mut round = 1;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let Some(view) = monitor.wait_after(round, left) else {
            let view = monitor.view();
            return if view.round > 0 { Ok(view) } else { Err(unavailable(monitor.unavailable())) };
        };
        let answered = view.devices.iter().all(|device| device.age_ms.is_some() || device.error.is_some());
        if answered && view.sessions_behind == Some(0) {
            return Ok(view);
        }
        round = view.round;
    }
}

/// One line of JSON a round, until nobody reads them any more.
fn lines(monitor: &Monitor) -> Result<i32> {
    let mut round = 0;
    loop {
        let Some(view) = monitor.wait_after(round, FAR) else {
            return Err(unavailable(monitor.unavailable()));
        };
        round = view.round;
        let mut line = serde_json::to_string(&*view)?;
        line.push('\n');
        let mut output = std::io::stdout().lock();
        match output.write_all(line.as_bytes()).and_then(|()| output.flush()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(0),
            other => other.context("cannot write to standard output")?,
        }
    }
}

fn json(view: &MonitorView) -> Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(view)?))
}

fn unavailable(reason: Option<String>) -> anyhow::Error {
    let reason = reason.unwrap_or_else(|| "NVML does not answer".to_owned());
    let advice = "install NVIDIA's driver, or give the container its GPUs (docker run --gpus all); \
                  `memscope doctor` checks this machine. To try it \
                  without a GPU: `memscope run --device 2GiB -- memscope top`";
    Failure::new(1, format!("{reason}. `memscope top` shows what NVML tells: {advice}")).into()
}

fn send(request: &Request) -> Result<String, String> {
    let signal = match request.signal {
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Interrupt => rustix::process::Signal::INT,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    process::send(request.pid, request.start_time, signal)?;
    Ok(format!("{} was sent to process {}", request.signal.name(), request.pid))
}
