//! Starts the program, passes signals on, waits for it.
//!
//! Owns: everything between memscope and the program's process: the check before the start ([`preflight`], [`program`], [`glibc`],
//! [`launchers`]), the look at what runs ([`lookout`]), the environment
//! ([`environment`]), what is put back for the program ([`inherited`]), the job whose part it is ([`job`]), the signals ([`signals`]), the wait; and, under `--tui`,
//! the program's terminal ([`terminal`]). Refuses: to touch the program's terminal and descriptors otherwise: it inherits them as
//! they are.

pub mod environment;
pub mod glibc;
pub mod inherited;
pub mod job;
pub mod launchers;
pub mod lookout;
pub mod preflight;
pub mod program;
pub mod signals;
pub mod terminal;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

use crate::output::{CANNOT_START, Failure, NOT_FOUND};
use environment::Variable;
use inherited::Inherited;
use terminal::Wiring;

/// Starts `command` with `variables` added to the environment.
///
/// The program gets the signal mask, dispositions and closed descriptors that memscope was started with, not those that
/// memscope works with. With `wiring` it gets a terminal of its own.
pub fn start(
    command: &[OsString],
    variables: &[Variable],
    inherited: &Inherited,
    wiring: Option<Wiring>,
) -> Result<Child, Failure> {
    let (program, arguments) =
        command.split_first().ok_or_else(|| Failure::usage("no program given: put it after `--`"))?;
    let mut child = Command::new(program);
    child.args(arguments);
    let harms = |variable: &&Variable| variable.name == "LD_PRELOAD" && preflight::dies_of(&variable.value, program);
    for variable in variables.iter().filter(|variable| !harms(variable)) {
        child.env(variable.name, &variable.value);
    }
    let inherited = *inherited;
    // SAFETY: the closure runs between fork and exec and calls only async-signal-safe functions.
    unsafe {
        child.pre_exec(move || {
            wiring.map_or(Ok(()), |wiring| wiring.take())?;
            inherited.restore()
        })
    };
    child.spawn().map_err(|error| {
        let shown = program.to_string_lossy();
        let status = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { CANNOT_START };
        // What the files tell counts where it is the same that the kernel said.
        match program::trouble(program).filter(|trouble| trouble.status == status) {
            Some(trouble) => {
                Failure::new(status, format!("cannot start {shown}: {}; {}", trouble.reason, trouble.advice))
            }
            None if status == NOT_FOUND => Failure::new(
                status,
                format!("cannot start {shown}: it is there, and the interpreter or loader that it names is not"),
            ),
            None => Failure::new(status, format!("cannot start {shown}: {error}")),
        }
    })
}

/// The status that memscope returns for a program that ended: its own, or 128+N for signal N. (For SIGINT the caller goes
/// further: [`signals::die_of`].)
pub fn status(ended: ExitStatus) -> i32 {
    ended.code().or_else(|| ended.signal().map(|signal| 128 + signal)).unwrap_or(1)
}
