//! Why nothing was captured: one reason, and what to do about it.
//!
//! Owns: which fact decides. What was seen before the launch says most; then what a process left in the place of its log; then what was
//! seen of the program while it ran; then how it ended, and the marks that the library leaves in a session (docs/wire-format.md).
//! Refuses: to guess. Where the facts leave it open, the sentence says what is known, and the advice names the command that finds out.

use crate::allocation::Model;
use crate::journal::entry::{DriverSeen, PassedOver, WithoutLogs};
use crate::report::units::shell_word;
use crate::source;

/// Characters of a command in an advice.
const LONGEST_COMMAND: usize = 60;

/// The reason and the advice, if nothing was captured.
pub(super) fn reason(model: &Model) -> Option<(String, String)> {
    if model.seen() > 0 || model.markers.iter().any(|marker| marker.failure().is_some()) {
        return None;
    }
    // A profile that was written knows no more than what was said then.
    if let Some(said) = &model.nothing {
        return Some(said.clone());
    }
    let (reason, advice) = if !model.processes.is_empty() {
        of_a_log(model)
    } else if let Some(obstacle) = &model.session.obstacle {
        (obstacle.clone(), format!("run {}, which checks it without a start", doctor(model)))
    } else {
        of_no_log(model)
    };
    Some((reason, advice))
}

/// A process has a log: it was met, and called something.
fn of_a_log(model: &Model) -> (String, String) {
    let reason = if model.devices.is_empty() {
        "the program made no recorded call of the CUDA driver"
    } else {
        "the program found a device and allocated nothing on it"
    };
    (reason.to_owned(), "if it should use a device, see what it says of it".to_owned())
}

fn of_no_log(model: &Model) -> (String, String) {
    let refusals = model.end.iter().flat_map(|end| end.refusals.iter()).map(|(name, _)| name.as_str());
    if let Some(refusal) = source::gravest(refusals) {
        let (reason, advice) = source::explained(refusal);
        return (reason.to_owned(), advice.to_owned());
    }
    if model.end.is_none() {
        let reason = "no process of the program has called the CUDA driver so far";
        return (reason.to_owned(), format!("wait; {} tells whether the program can be followed", doctor(model)));
    }
    let Some(known) = model.end.as_ref().and_then(|end| end.without_logs.clone()) else {
        let reason = "no process of the program was recorded, and the session does not tell why";
        return (reason.to_owned(), format!("run {}", doctor(model)));
    };
    // What a process with the library says of another one, which nobody has looked at.
    let uses_driver = matches!(known.seen.driver, DriverSeen::In(_));
    let is_told = !uses_driver && !known.started_without.is_empty();
    let started = is_told.then(|| PassedOver::by_environment(&known.started_without, "was started"));
    if let Some(passed_over) = known.seen.passed_over.clone().or(started) {
        return (passed_over.reason, passed_over.advice);
    }
    let (reason, advice) = of_marks(&known, model.end.as_ref().and_then(|end| end.exit_status));
    (reason, advice.replace("DOCTOR", &doctor(model)))
}

/// From how the program ended, what was seen of it, and what the library has left. `DOCTOR` stands for the command that finds out.
fn of_marks(known: &WithoutLogs, status: Option<i32>) -> (String, &'static str) {
    if !known.loaded {
        return without_the_library(known.signal);
    }
    let called_nothing = "any process with memscope's library called a CUDA function that memscope records";
    match (&known.seen.driver, known.signal, status) {
        (DriverSeen::In(program), ..) if known.deeply => (
            format!("{program} loaded the CUDA driver, and a library was opened with RTLD_DEEPBIND, which calls the driver past memscope"),
            "set MEMSCOPE_DEEPBIND=0",
        ),
        _ if known.deeply => (
            "no call of the CUDA driver came by memscope's library, and another one was opened with RTLD_DEEPBIND: what that calls of the \
             driver passes memscope by"
                .to_owned(),
            "if it uses the driver, set MEMSCOPE_DEEPBIND=0",
        ),
        (_, Some(signal), _) => (
            format!("{} ended the program before {called_nothing}", named(signal)),
            "see why it was ended: what it said, the system's log (dmesg) for want of memory, whoever sends signals",
        ),
        (DriverSeen::In(program), None, _) => (
            format!("{program} loaded the CUDA driver and called no function of it that memscope records"),
            "if it should use a device, see what it says of it",
        ),
        (driver, None, Some(status)) if status != 0 => (
            format!("the program ended with status {status} before {called_nothing}{}", seen(driver)),
            "see what it said as it ended; `memscope doctor` tells whether this machine has a driver",
        ),
        (driver, None, _) => (
            format!("no process with memscope's library called a CUDA function that memscope records{}", seen(driver)),
            "if the program should use a device, see what it says of it; if another program does that for it, look at that one: \
             `memscope doctor -- OTHER PROGRAM` tells whether it can be followed",
        ),
    }
}

fn without_the_library(signal: Option<i32>) -> (String, &'static str) {
    match signal {
        Some(signal) => (
            format!("{} ended the program before memscope's library was loaded into it", named(signal)),
            "start it without memscope: if it ends so too, memscope has no part in it; else report it as a defect of memscope, with \
             what DOCTOR says",
        ),
        None => (
            "memscope's library was loaded into no process that can reach the folder of the logs, though nothing spoke against it \
             before the start"
                .to_owned(),
            "read what the program's loader said on stderr of a library that cannot be preloaded; DOCTOR checks the program and the \
             folder in which the library lies",
        ),
    }
}

fn seen(driver: &DriverSeen) -> &'static str {
    if *driver == DriverSeen::Absent { "; none had loaded the CUDA driver when memscope last looked" } else { "" }
}

/// A signal by its number and name.
fn named(signal: i32) -> String {
    const NAMES: [(i32, &str); 12] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (15, "SIGTERM"),
        (31, "SIGSYS"),
    ];
    let name = NAMES.iter().find(|(number, _)| *number == signal).map(|(_, name)| format!(" ({name})"));
    format!("signal {signal}{}", name.unwrap_or_default())
}

/// The command that looks at the session's program, as a shell reads it.
fn doctor(model: &Model) -> String {
    let words: Vec<String> = model.session.command.iter().map(|word| shell_word(word)).collect();
    let whole = words.join(" ");
    let command = match words.first() {
        None => "PROGRAM",
        Some(_) if whole.chars().count() <= LONGEST_COMMAND => &whole,
        Some(program) => program,
    };
    format!("`memscope doctor -- {command}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::entry::Seen;

    #[test]
    fn each_state_of_the_marks_has_words_of_its_own() {
        let known = |loaded, signal, driver| {
            let seen = Seen { driver, passed_over: None };
            WithoutLogs { loaded, signal, seen, ..WithoutLogs::default() }
        };
        let uses = || DriverSeen::In("./train".to_owned());
        let deeply = |known: WithoutLogs| WithoutLogs { deeply: true, ..known };
        let said = [
            (known(false, None, DriverSeen::Unknown), "loaded into no process"),
            (
                known(false, Some(11), DriverSeen::Unknown),
                "signal 11 (SIGSEGV) ended the program before memscope's library was loaded",
            ),
            (known(true, Some(9), DriverSeen::Absent), "signal 9 (SIGKILL) ended the program before any process"),
            (known(true, Some(15), uses()), "signal 15 (SIGTERM) ended the program before any process"),
            (
                known(true, None, DriverSeen::Unknown),
                "no process with memscope's library called a CUDA function that memscope records",
            ),
            (known(true, None, DriverSeen::Absent), "none had loaded the CUDA driver when memscope last looked"),
            (known(true, None, uses()), "./train loaded the CUDA driver and called no function of it"),
            (
                deeply(known(true, Some(9), uses())),
                "./train loaded the CUDA driver, and a library was opened with RTLD_DEEPBIND",
            ),
            (deeply(known(true, None, DriverSeen::Unknown)), "no call of the CUDA driver came by memscope's library"),
        ];
        for (known, words) in said {
            let (reason, _) = of_marks(&known, Some(0));
            assert!(reason.contains(words), "{known:?}: {reason}");
        }
        let (reason, _) = of_marks(&known(true, None, DriverSeen::Unknown), Some(7));
        assert!(
            reason.contains("ended with status 7 before any process") && !reason.contains("last looked"),
            "{reason}"
        );
        assert_eq!(named(64), "signal 64");
    }

    #[test]
    fn the_advice_names_the_command_as_a_shell_reads_it() {
        let mut model = Model::new();
        assert_eq!(doctor(&model), "`memscope doctor -- PROGRAM`");
        model.session.command = ["sh", "-c", "exec ./a"].map(str::to_owned).into();
        assert_eq!(doctor(&model), "`memscope doctor -- sh -c 'exec ./a'`");
        model.session.command.push("x".repeat(60));
        assert_eq!(doctor(&model), "`memscope doctor -- sh`");
    }
}
