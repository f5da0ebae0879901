//! Whether the program of a command can be followed.
//!
//! Owns: what is said of a command, and of those that it only executes. Refuses: to say of a program that was not looked at that it
//! can be followed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::{Check, Health};
use crate::launch::{launchers, preflight, program};

const SUBJECT: &str = "program";

/// The program of a command, and those that it only executes.
pub(super) fn checks(command: &[OsString]) -> Vec<Check> {
    let chain = launchers::chain(command);
    let mut shown = Vec::new();
    for (position, command) in chain.iter().enumerate() {
        if let Some(trouble) = program::trouble(&command[0]) {
            // Of what is started by another program, that one gives the status.
            let status = match position {
                0 => format!("; `memscope run` fails with status {}", trouble.status),
                _ => String::new(),
            };
            let finding = format!("{} cannot be started: {}{status}", command[0].display(), trouble.reason);
            return vec![check(Health::Bad, finding, Some(trouble.advice))];
        }
        shown.extend(program::find(&command[0]).map(|path| path.display().to_string()));
    }
    let mut found: Vec<Check> = chain
        .iter()
        .filter_map(|command| preflight::elsewhere(command))
        .map(|elsewhere| check(Health::Limited, elsewhere.reason, Some(elsewhere.advice)))
        .collect();
    if let Some(obstacle) = preflight::obstacle(command) {
        found.insert(0, check(Health::Bad, obstacle.reason, Some(obstacle.advice)));
        return found;
    }
    let starts_more = chain.last().is_some_and(|command| may_start_another(command));
    if starts_more || found.is_empty() {
        found.insert(0, can_be_followed(&shown, starts_more));
    }
    found
}

fn can_be_followed(shown: &[String], starts_more: bool) -> Check {
    let mut finding = match shown.split_last() {
        Some((last, launchers)) if !launchers.is_empty() => {
            format!("{last}, which {} executes, can be followed", launchers.join(", "))
        }
        _ => format!("{} can be followed", shown.concat()),
    };
    if starts_more {
        finding += "; what it starts was not looked at";
    }
    let advice = starts_more.then(|| "look at that one: `memscope doctor -- THE PROGRAM`".to_owned());
    check(Health::Good, finding, advice)
}

/// True for a launcher or a shell that was not looked through, a script of a shell, and a program with another one among its arguments.
fn may_start_another(command: &[OsString]) -> bool {
    let is_of_shell = || {
        // Without a `#!` line it is a shell's, too.
        program::file(&command[0])
            .is_some_and(|(path, content)| launchers::is_shell(path.as_os_str()) || !content.starts_with(b"\x7fELF"))
    };
    launchers::launch(command).is_some() || is_of_shell() || command[1..].iter().any(|word| is_program(word))
}

fn is_program(word: &OsStr) -> bool {
    !word.as_bytes().starts_with(b"-") && program::find(word).is_some() && program::trouble(word).is_none()
}

fn check(health: Health, finding: String, advice: Option<String>) -> Check {
    Check { subject: SUBJECT, health, finding, advice }
}
