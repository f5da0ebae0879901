//! How memscope speaks on its own behalf: always on stderr, always with its name, one voice.
//!
//! Owns: the prefix and the statuses of memscope's own failures. Refuses: reports, which go to stdout.

use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use memscope_core::report::{Style, units};

/// Status for wrong usage, as clap uses it.
pub const USAGE: i32 = 2;
/// Status when the program exists and could not be started.
pub const CANNOT_START: i32 = 126;
/// Status when the program was not found.
pub const NOT_FOUND: i32 = 127;

/// An error that ends memscope with a status of its own.
#[derive(Debug)]
pub struct Failure {
    status: i32,
    message: String,
}

impl Failure {
    /// An error with a status other than 1.
    pub fn new(status: i32, message: impl Into<String>) -> Failure {
        Failure { status, message: message.into() }
    }

    /// Wrong usage: status 2.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(USAGE, message)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The status with which memscope ends on `error`.
pub fn status_of(error: &anyhow::Error) -> i32 {
    error.downcast_ref::<Failure>().map_or(1, |failure| failure.status)
}

/// An error with its causes. Many messages already end with their cause, which is then not said twice.
pub fn describe_error(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// A path as a shell reads it.
pub fn shell_word(path: &Path) -> String {
    units::shell_word(&path.display().to_string())
}

/// What memscope has to say while a dashboard has the terminal; `None` while nothing is kept back.
static KEPT: Mutex<Option<String>> = Mutex::new(None);

/// Keeps back what memscope says from now on.
pub fn keep_back() {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
}

/// Writes what was kept back, and keeps nothing back any more.
pub fn let_out() {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take();
    let _ = std::io::stderr().write_all(kept.unwrap_or_default().as_bytes());
}

/// Writes text of memscope's own to stderr. A closed stderr is not an error.
pub fn write_own(text: &str) {
    match KEPT.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        Some(kept) => kept.push_str(text),
        None => drop(std::io::stderr().write_all(text.as_bytes())),
    }
}

/// Writes one line to stderr.
pub fn say(message: &str) {
    write_own(&format!("memscope: {message}\n"));
}

/// Writes an error to stderr.
pub fn complain(message: &str) {
    say(&format!("error: {message}"));
}

/// Writes an error of a part of memscope that runs as a program of its own.
pub fn complain_as(part: &str, message: &str) {
    write_own(&format!("memscope {part}: error: {message}\n"));
}

/// Prints to stdout; a reader that went away (a closed pipe) ends the output quietly.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// How a report is dressed: coloured on a terminal, unless `NO_COLOR` is set (to anything) or the terminal is dumb.
pub fn style(is_terminal: bool) -> Style {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let plain = set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb");
    if is_terminal && !plain { Style::Ansi } else { Style::Plain }
}
