//! Programs that only execute another one: env, nice, a shell with one plain command, and the like.
//!
//! Owns: which words of a command are the program that it becomes, and whether that one still has the environment. Refuses: to read a
//! shell's language. What is more than one plain command is not looked through.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What a command executes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Executed {
    /// The command that takes its place.
    pub command: Vec<OsString>,
    /// The words that start it, where LD_PRELOAD is not in its environment any more.
    pub emptied_by: Option<String>,
}

/// A launcher: its name, the options that take a word of their own, and how many words come before the program.
type Launcher = (&'static str, &'static [&'static str], usize);

const LAUNCHERS: [Launcher; 9] = [
    ("env", &["-u", "--unset", "-C", "--chdir"], 0),
    ("ionice", &["-c", "-n"], 0),
    ("nice", &["-n", "--adjustment"], 0),
    ("nohup", &[], 0),
    ("setsid", &[], 0),
    ("stdbuf", &["-i", "-o", "-e"], 0),
    ("sudo", &["-u", "-g", "-h", "-p", "-C", "-D"], 0),
    ("taskset", &[], 1),
    ("timeout", &["-k", "-s", "--kill-after", "--signal"], 1),
];

const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ksh", "zsh"];

/// How many launchers are looked through.
const MAX_LAUNCHERS: usize = 4;

/// `command`, what it only executes, what that does, and so on.
pub fn chain(command: &[OsString]) -> Vec<Vec<OsString>> {
    let next = |command: &Vec<OsString>| executed(command).map(|executed| executed.command);
    std::iter::successors(Some(command.to_vec()), next).take(MAX_LAUNCHERS + 1).collect()
}

/// The command that `command` only executes; `None` for any other.
pub fn executed(command: &[OsString]) -> Option<Executed> {
    let name = name(command.first()?);
    if SHELLS.contains(&&*name) {
        return of_shell(command);
    }
    let (name, valued, before) = LAUNCHERS.into_iter().find(|(launcher, ..)| *launcher == name)?;
    let mut words = command.iter().skip(1).peekable();
    let mut started_by = vec![name.to_owned()];
    let mut empties = name == "sudo";
    let mut before = before;
    while let Some(word) = words.peek().map(|word| word.to_string_lossy().into_owned()) {
        let is_option = word.starts_with('-') && word != "--";
        let is_assignment = name == "env" && word.contains('=') && !is_option;
        if !is_option && !is_assignment && word != "--" {
            if before == 0 {
                break;
            }
            before -= 1;
        }
        words.next();
        if name == "env" {
            // A string of words of its own is not looked into.
            if word.starts_with("-S") || word.starts_with("--split-string") {
                return None;
            }
            empties |= matches!(&*word, "-" | "-i" | "--ignore-environment" | "--unset=LD_PRELOAD" | "-uLD_PRELOAD")
                || word.starts_with("LD_PRELOAD=");
        }
        started_by.push(word.clone());
        if is_option && valued.contains(&&*word) {
            let value = words.next()?.to_string_lossy().into_owned();
            empties |= name == "env" && word.starts_with("-u") && value == "LD_PRELOAD";
            started_by.push(value);
        }
    }
    let command: Vec<OsString> = words.cloned().collect();
    (!command.is_empty()).then(|| Executed { command, emptied_by: empties.then(|| started_by.join(" ")) })
}

/// A shell with `-c` and one plain command.
fn of_shell(command: &[OsString]) -> Option<Executed> {
    let [_, option, line] = command.get(..3)? else { return None };
    let line = line.to_str().filter(|_| option == "-c")?;
    let plain = |character: char| character.is_alphanumeric() || "/._-+,:@%= ".contains(character);
    let mut words = line.split_ascii_whitespace().peekable();
    words.next_if_eq(&"exec");
    let words: Vec<OsString> = words.map(OsString::from).collect();
    let is_program = |word: &OsString| !word.to_string_lossy().contains('=');
    (line.chars().all(plain) && words.first().is_some_and(is_program))
        .then_some(Executed { command: words, emptied_by: None })
}

/// The name of a program without its folder.
fn name(program: &OsStr) -> Cow<'_, str> {
    Path::new(program).file_name().unwrap_or(program).to_string_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_executes_another_program_is_looked_through() {
        let seen = |line: &str| {
            let command: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let Executed { command, emptied_by } = executed(&command)?;
            let words: Vec<_> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            Some((words.join(" "), emptied_by.unwrap_or_default()))
        };
        for (line, command, emptied_by) in [
            ("env A=1 ./train -x", "./train -x", ""),
            ("/usr/bin/env -i ./train", "./train", "env -i"),
            ("env - A=1 ./train", "./train", "env - A=1"),
            ("env -u LD_PRELOAD ./train", "./train", "env -u LD_PRELOAD"),
            ("env -u OTHER LD_PRELOAD= ./train", "./train", "env -u OTHER LD_PRELOAD="),
            ("nice -n 5 ./train -n", "./train -n", ""),
            ("timeout -k 5 10 ./train", "./train", ""),
            ("taskset -c 0-3 ./train", "./train", ""),
            ("sudo -u me ./train", "./train", "sudo -u me"),
        ] {
            assert_eq!(seen(line), Some((command.to_owned(), emptied_by.to_owned())), "{line}");
        }
        for line in ["python train.py", "env", "env -S x", "timeout 10", "sh script", "nice -n"] {
            assert_eq!(seen(line), None, "{line}");
        }
    }

    #[test]
    fn a_shell_is_looked_through_for_one_plain_command_only() {
        let seen = |line: &str| Some(executed(&["sh", "-c", line].map(OsString::from))?.command);
        assert_eq!(seen("exec ./train --x=1"), Some(["./train", "--x=1"].map(OsString::from).into()));
        assert_eq!(seen("./train a"), Some(["./train", "a"].map(OsString::from).into()));
        for line in ["A=1 ./train", "./train; ./other", "cd x && ./train", "./train $X", "", "exec"] {
            assert_eq!(seen(line), None, "{line}");
        }
    }
}
