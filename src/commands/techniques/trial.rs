//! One run of a trainer under `memscope run`, and what it came to.
//!
//! Owns: the check of the flags before anything starts, the child process, and the figures of its profile. Refuses: to compare.
//!
//! The child is this same program, `memscope run -q … -- memscope sample …`, in a process group of its own: Ctrl-C comes to
//! memscope alone, which passes it on and remembers that it has to stop.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use clap::error::{ContextKind, ErrorKind};
use memscope_core::profile::Profile;
use memscope_core::report::{ByCategory, Instant, Report};
use memscope_samples::{gpt, resnet};

use crate::arguments::{Arguments, Command, Sample};
use crate::launch::inherited::Inherited;
use crate::launch::signals;

use super::comparison::{Figures, Outcome};

/// Signals that end a comparison; the others are passed on.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// A signal that ended the comparison.
#[derive(Debug)]
pub struct Stopped(pub i32);

impl std::fmt::Display for Stopped {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "stopped by signal {}", self.0)
    }
}

impl std::error::Error for Stopped {}

/// What a run came to: figures, or why there are none.
pub struct Ended {
    /// How it ended.
    pub outcome: Outcome,
    /// Why there are no figures.
    pub message: Option<String>,
    /// What was measured.
    pub figures: Option<Figures>,
    /// The device's product name.
    pub device: Option<String>,
}

impl Ended {
    fn without(outcome: Outcome, message: String) -> Ended {
        Ended { outcome, message: Some(message), figures: None, device: None }
    }
}

/// Where and how trials run.
pub struct Place {
    /// Arguments of `memscope run` that all share.
    pub run: Vec<OsString>,
    /// True when they name a simulated device.
    pub simulated: bool,
    /// True when it computes.
    pub compute: bool,
    /// Folder for what the trainers print.
    pub scratch: PathBuf,
    /// Signal mask and dispositions for the children.
    pub inherited: Inherited,
}

/// Checks the arguments of `memscope sample` as the sample itself does; a refusal ends the trial.
pub fn check(sample: &str, arguments: &[String]) -> Result<(), Box<Ended>> {
    let words = ["memscope", "sample", sample].into_iter().chain(arguments.iter().map(String::as_str));
    let parsed = Arguments::try_parse_from(words).map_err(|error| Box::new(refusal(sample, &error)))?;
    let checked = match parsed.command {
        Command::Sample(arguments) => match arguments.sample {
            Sample::Gpt(arguments) => gpt::Plan::new(&arguments).map(drop),
            Sample::Resnet(arguments) => resnet::Plan::new(&arguments).map(drop),
        },
        _ => Ok(()),
    };
    checked.map_err(|error| Box::new(Ended::without(Outcome::DoesNotCombine, error.to_string())))
}

/// What the command line did not take, as a sentence.
fn refusal(sample: &str, error: &clap::Error) -> Ended {
    let context = |kind| error.get(kind).map(|value| value.to_string());
    let flag = context(ContextKind::InvalidArg).unwrap_or_default();
    let name = flag.split_whitespace().next().unwrap_or_default();
    match (error.kind(), context(ContextKind::InvalidValue)) {
        (ErrorKind::UnknownArgument, _) => {
            Ended::without(Outcome::NotInSample, format!("the {sample} sample has no {name}"))
        }
        (ErrorKind::InvalidValue | ErrorKind::ValueValidation, Some(value)) => {
            Ended::without(Outcome::NotInSample, format!("the {sample} sample has no {name} {value}"))
        }
        _ => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            Ended::without(Outcome::DoesNotCombine, line.trim_start_matches("error: ").to_owned())
        }
    }
}

impl Place {
    /// Runs `memscope sample SAMPLE ARGUMENTS` into `profile`, and reads the profile.
    pub fn run(&self, devices: u32, sample: &str, arguments: &[String], profile: &Path) -> Result<Ended> {
        if devices > 1 && !self.simulated {
            let message = format!("it takes {devices} devices: --device simulates as many");
            return Ok(Ended::without(Outcome::DoesNotCombine, message));
        }
        if let Some(signal) = pending() {
            return Err(Stopped(signal).into());
        }
        let (output, errors) = (self.scratch.join("output"), self.scratch.join("errors"));
        let mut child = self
            .start(devices, sample, arguments, profile, [&output, &errors])
            .context("cannot start memscope for a run of its own")?;
        let ended = wait(&mut child)?;
        let text =
            |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let (output, errors) = (text(&output), text(&errors));
        if ended.success() {
            let report = report(profile, searched(arguments))?;
            let figures = figures(&report, &output);
            let Some(figures) = figures else {
                return Ok(Ended::without(Outcome::Failed, "the run allocated nothing".to_owned()));
            };
            let device = report.devices.iter().find(|device| device.uuid == figures.device);
            let device = device.and_then(|device| device.name.clone());
            return Ok(Ended { outcome: Outcome::Measured, message: None, figures: Some(figures), device });
        }
        Ok(failure(sample, ended, &errors))
    }

    fn start(
        &self,
        devices: u32,
        sample: &str,
        arguments: &[String],
        profile: &Path,
        [output, errors]: [&Path; 2],
    ) -> Result<Child> {
        let memscope = std::env::current_exe().context("cannot find memscope's own program file")?;
        let inherited = self.inherited;
        let mut process = Process::new(&memscope);
        process
            .args(["run", "--quiet", "--no-tui", "--force", "--keep", "all", "--output"])
            .arg(profile)
            .args(&self.run);
        if devices > 1 {
            process.arg("--devices").arg(devices.to_string());
        }
        if self.simulated && self.compute && searched(arguments) {
            // The batch that fills a device is too much for a CPU.
            process.arg("--no-compute");
        }
        process.arg("--").arg(&memscope).args(["sample", sample]).args(arguments);
        process.stdin(Stdio::null()).stdout(File::create(output)?).stderr(File::create(errors)?).process_group(0);
        // SAFETY: the closure runs between fork and exec and calls only async-signal-safe functions.
        unsafe {
            process.pre_exec(move || {
                // A comparison that is killed takes its run with it.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                inherited.restore()
            })
        };
        Ok(process.spawn()?)
    }
}

/// A signal that asks to stop and came while nobody waited.
pub fn pending() -> Option<i32> {
    while let Some(signal) = signals::next_apart(Some(Duration::ZERO)) {
        if ENDING.contains(&signal) {
            return Some(signal);
        }
    }
    None
}

/// Waits for the child, whose process group gets the signals that memscope gets.
fn wait(child: &mut Child) -> Result<ExitStatus> {
    let group = child.id() as i32;
    let mut stop = None;
    loop {
        if let Some(ended) = child.try_wait().context("cannot wait for a run")? {
            return match stop {
                Some(signal) => Err(Stopped(signal).into()),
                None => Ok(ended),
            };
        }
        let Some(signal) = signals::next_apart(None) else { continue };
        if !signals::is_passed_on(signal) {
            continue;
        }
        if ENDING.contains(&signal) {
            stop = stop.or(Some(signal));
        }
        // SAFETY: the group's leader has not been waited for, so its number is still its own; and a stop of ourselves.
        unsafe {
            libc::kill(-group, signal);
            if signal == libc::SIGTSTP {
                libc::raise(libc::SIGSTOP);
                libc::kill(-group, libc::SIGCONT);
            }
        }
    }
}

/// What a run that failed says of it.
fn failure(sample: &str, ended: ExitStatus, errors: &str) -> Ended {
    let own = format!("memscope sample {sample}: error: ");
    let told = errors.lines().rev().find_map(|line| line.strip_prefix(&own));
    // A panic says where in one line and why in the next; then comes advice for programmers.
    let panic = errors.lines().skip_while(|line| !line.contains("panicked at")).nth(1);
    let line = told.or(panic).or_else(|| errors.lines().rev().find(|line| !line.trim().is_empty()));
    let message = line.map_or_else(|| format!("the run ended with {ended} and said nothing"), str::to_owned);
    let outcome = match (told, ended.code()) {
        (Some(text), _) if text.starts_with("out of device memory") => Outcome::OutOfMemory,
        (Some(_), Some(crate::output::USAGE)) => Outcome::DoesNotCombine,
        _ => Outcome::Failed,
    };
    let message = match ended.signal() {
        Some(signal) => format!("{message} (ended by signal {signal})"),
        None => message,
    };
    Ended::without(outcome, message)
}

/// True when the trainer looks for the largest batch itself.
fn searched(arguments: &[String]) -> bool {
    arguments.windows(2).any(|pair| pair == ["--batch", "auto"]) || arguments.iter().any(|word| word == "--batch=auto")
}

/// The report of a profile. Where a batch was searched for, with the largest moment of the steps: the trials are in none, and one
/// that failed had filled the device.
fn report(profile: &Path, searched: bool) -> Result<Report> {
    let profile = Profile::open(profile)?;
    let report = profile.report(Instant::Peak)?;
    match report.steps.iter().max_by_key(|step| step.peak.bytes).filter(|_| searched) {
        Some(step) => Ok(profile.report(Instant::Step(step.step))?),
        None => Ok(report),
    }
}

/// The figures of a report and of what was printed; none when nothing was live.
fn figures(report: &Report, output: &str) -> Option<Figures> {
    let peak = report.at.as_ref().or(report.peak.as_ref())?;
    let loss = last_loss(output);
    let peaks = &report.category_peaks;
    let device = report.devices.iter().find(|device| device.uuid == peak.device);
    // Where a batch was searched for, the largest values of the whole run are those of a trial that filled the device.
    let reserved = match &report.at {
        Some(at) => at.ledger.rows.reserved,
        None => device.map(|device| device.peak.reserved.bytes).unwrap_or_default(),
    };
    let own_peaks = ByCategory {
        weights: peaks.weights.bytes,
        gradients: peaks.gradients.bytes,
        activations: peaks.activations.bytes,
        optimizer: peaks.optimizer.bytes,
        inputs: peaks.inputs.bytes,
        workspace: peaks.workspace.bytes,
        unknown: peaks.unknown.bytes,
    };
    Some(Figures {
        peak_bytes: peak.bytes,
        percent_of_baseline: None,
        device: peak.device.clone(),
        batch: told_batch(output),
        by_category: peak.by_category,
        phase: peak.phase.clone(),
        step: peak.step,
        reserved_bytes: reserved,
        category_peaks: if report.at.is_some() { peak.by_category } else { own_peaks },
        host_peak_bytes: report.host.peak.bytes,
        step_seconds: step_seconds(report, &peak.device).filter(|_| report.compute),
        step_time_ratio: None,
        loss: loss.filter(|_| report.compute),
        refused: report.totals.refused,
    })
}

/// The fastest of the steps after the first, which makes the optimizer's state: what else the machine does only adds.
fn step_seconds(report: &Report, device: &str) -> Option<f64> {
    let steps = report.steps.iter().filter(|step| step.device == device && step.step > 1);
    steps.filter_map(|step| Some(step.end_s? - step.begin_s)).min_by(f64::total_cmp)
}

/// The batch that a trainer told of when it began.
fn told_batch(output: &str) -> Option<u64> {
    let told = output.lines().find_map(|line| line.split_once("; batch "))?.1;
    told.split_whitespace().next()?.parse().ok()
}

/// The loss of the last step that a trainer told of.
fn last_loss(output: &str) -> Option<f64> {
    let told = output.lines().rev().find_map(|line| line.split_once("  loss "))?.1;
    told.split_whitespace().next()?.parse().ok()
}

/// The first error of a refusal, as an error of the command line.
pub fn as_usage(ended: Ended) -> anyhow::Error {
    anyhow!(crate::output::Failure::usage(ended.message.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_loss_is_read_as_the_trainers_print_it() {
        let time = Duration::from_millis(20);
        let line = |number, loss| gpt::Progress::Step { number, of: 2, loss, scaled: None, time }.to_string();
        let output = format!("{}\n{}\n", line(1, Some(5.5)), line(2, Some(4.25)));
        assert_eq!(last_loss(&output), Some(4.25));
        assert_eq!(last_loss(&format!("{}\n", line(2, None))), None);
        let line = resnet::Progress::Step { number: 1, of: 1, loss: Some(2.5), scaled: None, time }.to_string();
        assert_eq!(last_loss(&line), Some(2.5));
        assert_eq!(last_loss(""), None);
    }

    #[test]
    fn the_batch_is_read_as_the_trainers_print_it() {
        let plan = |line: &str| {
            let words = words(&format!("memscope sample gpt {line}"));
            match Arguments::try_parse_from(words).expect("a line").command {
                Command::Sample(arguments) => match arguments.sample {
                    Sample::Gpt(arguments) => gpt::Plan::new(&arguments).expect("a plan"),
                    Sample::Resnet(_) => panic!("a GPT"),
                },
                _ => panic!("a sample"),
            }
        };
        let started = gpt::Progress::Started(Box::new(gpt::Started {
            plan: plan("--batch 12"),
            parameters: 3,
            device: "a device".to_owned(),
            simulated: true,
        }));
        let output = format!("batch 16: out of device memory\nbatch 12: fits\n{started}\nstep 1/1  loss 2.0  0.1 s\n");
        assert_eq!(told_batch(&output), Some(12));
        assert_eq!(told_batch("batch 16: fits\n"), None);
        assert!(searched(&words("--model tiny --batch auto")) && searched(&words("--batch=auto")));
        assert!(!searched(&words("--batch 8 --checkpoint auto")));
    }

    #[test]
    fn flags_are_refused_as_the_sample_refuses_them() {
        let told = |line: &str| {
            let ended = check("gpt", &words(line)).expect_err("refused");
            (ended.outcome, ended.message.unwrap_or_default())
        };
        assert!(check("gpt", &words("--model tiny --optimizer sgd")).is_ok());
        assert_eq!(told("--no-such-flag 3"), (Outcome::NotInSample, "the gpt sample has no --no-such-flag".to_owned()));
        let (outcome, text) = told("--optimizer no-such");
        assert_eq!((outcome, text.as_str()), (Outcome::NotInSample, "the gpt sample has no --optimizer no-such"));
        let (outcome, text) = told("--foreach --optimizer sgd");
        assert_eq!(outcome, Outcome::DoesNotCombine);
        assert!(text.starts_with("--foreach is of --optimizer adamw"), "{text}");
        let (outcome, text) = told("--optimizer sgd --optimizer sgd");
        assert_eq!(outcome, Outcome::DoesNotCombine);
        assert!(text.contains("--optimizer"), "{text}");
    }

    #[test]
    fn a_failure_is_told_apart_by_what_the_trainer_says() {
        let status = |code: i32| ExitStatus::from_raw(code << 8);
        let told = |code, errors| failure("gpt", status(code), errors).outcome;
        assert_eq!(
            told(1, "memscope sample gpt: error: out of device memory: `x` needs 3 bytes\n"),
            Outcome::OutOfMemory
        );
        assert_eq!(told(2, "memscope sample gpt: error: --a does not combine with --b\n"), Outcome::DoesNotCombine);
        assert_eq!(told(1, "memscope sample gpt: error: libcuda was not found\n"), Outcome::Failed);
        assert_eq!(told(1, "memscope: error: cannot write\n"), Outcome::Failed);
        assert_eq!(
            failure("gpt", status(7), "").message.unwrap(),
            "the run ended with exit status: 7 and said nothing"
        );
    }
}
