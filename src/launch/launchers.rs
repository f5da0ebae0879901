//! Programs that only execute another one: env, nice, a shell with one plain command, and the like.
//!
//! Owns: which words of a command are the program that it becomes, whether that one still has the environment, and whether it runs in
//! another place. Refuses: to read a shell's language. What is more than one plain command is not looked through.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use memscope_core::report::units::shell_word;

/// What a launcher does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Launch {
    /// The words that start the program.
    pub by: String,
    /// The program and its arguments; empty where the words do not tell them plainly.
    pub command: Vec<OsString>,
    /// True when LD_PRELOAD is not in the program's environment any more.
    pub empties: bool,
    /// True when the program is looked for in another root folder.
    pub other_root: bool,
    /// The user as whom the program runs, by name or number, where the launcher changes that.
    pub user: Option<String>,
}

impl Launch {
    /// The program that is looked at in its place.
    pub fn program(&self) -> Option<&[OsString]> {
        (!self.command.is_empty() && !self.other_root).then_some(&self.command)
    }
}

/// A launcher. In the lists, whose words stand between blanks, its own name stands for what it always does.
#[derive(Clone, Copy)]
struct Launcher {
    name: &'static str,
    /// Options that take a word of their own.
    valued: &'static str,
    /// Words that come before the program.
    before: usize,
    /// True where `NAME=VALUE` may come before the program.
    assigns: bool,
    /// Words with which what follows is not plainly the program.
    opaque: &'static str,
    /// Words with which LD_PRELOAD goes out of the environment.
    empties: &'static str,
    /// Words with which the root folder is another one.
    roots: &'static str,
    /// Options whose word is the user; the launcher's own name where that is the word before the program.
    users: &'static str,
}

const PLAIN: Launcher =
    Launcher { name: "", valued: "", before: 0, assigns: false, opaque: "", empties: "", roots: "", users: "" };

const LAUNCHERS: &[Launcher] = &[
    Launcher {
        name: "chroot",
        valued: "--userspec --groups",
        before: 1,
        roots: "chroot",
        users: "--userspec",
        ..PLAIN
    },
    Launcher {
        name: "env",
        valued: "-u --unset -C --chdir",
        assigns: true,
        opaque: "-S --split-string",
        empties: "- -i --ignore-environment",
        ..PLAIN
    },
    Launcher { name: "ionice", valued: "-c --class -n --classdata", opaque: "-p --pid -P --pgid -u --uid", ..PLAIN },
    Launcher { name: "nice", valued: "-n --adjustment", ..PLAIN },
    Launcher { name: "nohup", ..PLAIN },
    Launcher {
        name: "numactl",
        valued: "-i --interleave -w --weighted-interleave -p --preferred -P --preferred-many -m --membind -N --cpunodebind -C --physcpubind",
        opaque: "-s --show -H --hardware -S --shm -f --file -I --shmid",
        ..PLAIN
    },
    Launcher { name: "runuser", valued: "-u --user -g --group -G --supp-group", users: "-u --user", ..PLAIN },
    Launcher {
        name: "setpriv",
        valued: "--ambient-caps --inh-caps --bounding-set --ruid --euid --reuid --rgid --egid --regid --groups --pdeathsig \
                 --ptracer --securebits --selinux-label --apparmor-profile --landlock-access --landlock-rule --seccomp-filter",
        opaque: "-d --dump",
        empties: "--reset-env",
        users: "--euid --reuid",
        ..PLAIN
    },
    Launcher { name: "setsid", ..PLAIN },
    Launcher { name: "stdbuf", valued: "-i --input -o --output -e --error", ..PLAIN },
    Launcher {
        name: "su",
        valued: "-c --command --session-command -g --group -G --supp-group -s --shell -w --whitelist-environment",
        before: 1,
        opaque: "su",
        empties: "- -l --login",
        users: "su",
        ..PLAIN
    },
    Launcher {
        name: "sudo",
        valued: "-u --user -g --group -h --host -p --prompt -C --close-from -D --chdir -R --chroot -T --command-timeout -r --role -t --type",
        assigns: true,
        opaque: "-i --login -s --shell -e --edit -l --list -v -k -K",
        empties: "sudo",
        roots: "-R --chroot",
        users: "-u --user",
        ..PLAIN
    },
    Launcher { name: "taskset", before: 1, opaque: "-p --pid -cp -ap", ..PLAIN },
    Launcher { name: "time", valued: "-f --format -o --output", ..PLAIN },
    Launcher { name: "timeout", valued: "-k --kill-after -s --signal", before: 1, ..PLAIN },
    Launcher {
        name: "unshare",
        valued: "-R --root -w --wd -G --setgid --propagation --setgroups --map-user --map-users --map-group --map-groups --owner \
                 --monotonic --boottime",
        // Whether that is another user outside depends on the namespace.
        opaque: "-S --setuid",
        roots: "-R --root",
        ..PLAIN
    },
    Launcher {
        name: "xargs",
        valued: "-a --arg-file -d --delimiter -E -L -n --max-args -P --max-procs -s --max-chars --process-slot-var",
        // What is read may stand for the program, too.
        opaque: "-I -i --replace",
        ..PLAIN
    },
];

const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ksh", "zsh"];

/// How many launchers are looked through.
const MAX_LAUNCHERS: usize = 4;

/// `command`, what it only executes, what that does, and so on.
pub fn chain(command: &[OsString]) -> Vec<Vec<OsString>> {
    let next = |command: &Vec<OsString>| Some(launch(command)?.program()?.to_vec());
    std::iter::successors(Some(command.to_vec()), next).take(MAX_LAUNCHERS + 1).collect()
}

/// True for a shell, by its name.
pub fn is_shell(program: &OsStr) -> bool {
    SHELLS.contains(&&*name(program))
}

/// What `command` does as a launcher; `None` for any other.
pub fn launch(command: &[OsString]) -> Option<Launch> {
    let first = command.first()?;
    if is_shell(first) {
        return Some(of_shell(command));
    }
    let launcher = launcher(&name(first), command)?;
    let (mut found, mut is_opaque) = (Launch::default(), false);
    let mut see = |word: &str, value: Option<&str>, found: &mut Launch| {
        let is_preload = launcher.name == "env" && matches!(word, "-u" | "--unset") && value == Some("LD_PRELOAD");
        found.empties |= is_preload || lists(launcher.empties, word);
        found.other_root |= lists(launcher.roots, word);
        is_opaque |= lists(launcher.opaque, word);
        if let Some(user) = value.filter(|_| lists(launcher.users, word)) {
            found.user = user.split(':').next().map(str::to_owned).filter(|user| !user.is_empty());
        }
    };
    see(launcher.name, None, &mut found);
    let mut started_by = vec![name(first).into_owned()];
    let (mut before, mut options) = (launcher.before, true);
    let mut words = command.iter().skip(1).peekable();
    while let Some(word) = words.peek().map(|word| word.to_string_lossy().into_owned()) {
        let mut value = None;
        if options && word == "--" {
            options = false;
        } else if options && word.starts_with('-') {
            let (option, attached) = split(&word, &launcher);
            if attached.is_none() && lists(launcher.valued, option) {
                value = words.clone().nth(1).map(|value| value.to_string_lossy().into_owned());
                words.next();
            }
            see(option, attached.or(value.as_deref()), &mut found);
        } else if launcher.assigns && word.contains('=') {
            found.empties |= word.starts_with("LD_PRELOAD=");
        } else if before == 0 {
            break;
        } else {
            before -= 1;
            see(launcher.name, Some(&word), &mut found);
        }
        words.next();
        started_by.push(shell_word(&word));
        started_by.extend(value.as_deref().map(shell_word));
    }
    found.command = if is_opaque { Vec::new() } else { words.cloned().collect() };
    found.by = started_by.join(" ");
    Some(found)
}

fn launcher(name: &str, command: &[OsString]) -> Option<Launcher> {
    // Without an option that names the user, runuser is su.
    let names_user = |word: &OsString| {
        let word = word.to_string_lossy();
        word == "--user" || word.starts_with("--user=") || word.starts_with("-u")
    };
    let name = if name == "runuser" && !command.iter().any(names_user) { "su" } else { name };
    LAUNCHERS.iter().find(|launcher| launcher.name == name).copied()
}

fn lists(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|one| one == word)
}

/// An option, and the value that is a part of its word.
fn split<'a>(word: &'a str, launcher: &Launcher) -> (&'a str, Option<&'a str>) {
    if word.starts_with("--") {
        return word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
    }
    match word.split_at_checked(2) {
        Some((option, value))
            if !value.is_empty() && (lists(launcher.valued, option) || lists(launcher.opaque, option)) =>
        {
            (option, Some(value))
        }
        _ => (word, None),
    }
}

/// A shell, and its command where it has `-c` and one plain command.
fn of_shell(command: &[OsString]) -> Launch {
    let by = name(&command[0]).into_owned();
    let plain = |character: char| character.is_alphanumeric() || "/._-+,:@%= ".contains(character);
    let line = command.get(2).filter(|_| command[1] == "-c").and_then(|line| line.to_str());
    let mut words = line.filter(|line| line.chars().all(plain)).unwrap_or_default().split_ascii_whitespace().peekable();
    words.next_if_eq(&"exec");
    let is_program = words.peek().is_some_and(|word| !word.contains('='));
    let command = if is_program { words.map(OsString::from).collect() } else { Vec::new() };
    Launch { by, command, ..Launch::default() }
}

/// The name of a program without its folder.
fn name(program: &OsStr) -> Cow<'_, str> {
    Path::new(program).file_name().unwrap_or(program).to_string_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<Launch> {
        launch(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    fn joined(command: &[OsString]) -> String {
        command.join(OsStr::new(" ")).to_string_lossy().into_owned()
    }

    #[test]
    fn what_only_executes_another_program_is_looked_through() {
        for (line, command, emptied_by) in [
            ("env A=1 ./train -x", "./train -x", ""),
            ("/usr/bin/env -i ./train", "./train", "env -i"),
            ("env - A=1 ./train", "./train", "env - A=1"),
            ("env -u LD_PRELOAD ./train", "./train", "env -u LD_PRELOAD"),
            ("env -uLD_PRELOAD ./train", "./train", "env -uLD_PRELOAD"),
            ("env --unset=LD_PRELOAD -- ./train", "./train", "env --unset=LD_PRELOAD --"),
            ("env -u OTHER LD_PRELOAD= ./train", "./train", "env -u OTHER LD_PRELOAD="),
            ("nice -n 5 ./train -n", "./train -n", ""),
            ("timeout -k 5 10 ./train", "./train", ""),
            ("taskset -c 0-3 ./train", "./train", ""),
            ("sudo -u me ./train", "./train", "sudo -u me"),
            ("unshare -m --propagation slave --wd=/ ./train -m", "./train -m", ""),
            ("xargs -n 1 -P2 ./train a", "./train a", ""),
            ("time -f %M -o file ./train", "./train", ""),
            ("setpriv --reuid=1 --clear-groups ./train", "./train", ""),
            ("setpriv --reset-env --regid 1 ./train", "./train", "setpriv --reset-env --regid 1"),
            ("runuser -u me -- ./train -u", "./train -u", ""),
            ("stdbuf -oL -e 0 ./train", "./train", ""),
            ("ionice -c2 -n 7 ./train", "./train", ""),
            ("numactl --interleave=all -N 0 -- ./train", "./train", ""),
        ] {
            let seen = of(line).expect(line);
            assert_eq!(seen.program().map(joined).as_deref(), Some(command), "{line}");
            assert_eq!(if seen.empties { &*seen.by } else { "" }, emptied_by, "{line}");
        }
    }

    #[test]
    fn what_does_not_name_its_program_plainly_is_not_looked_through() {
        for line in [
            "env",
            "env -S x",
            "env -Sx y",
            "timeout 10",
            "sh script",
            "nice -n",
            "chroot root /train",
            "unshare --root=root /train",
            "unshare -S 1 ./train",
            "xargs -I{} {}",
            "su me",
            "su - me -c ./train",
            "runuser me -c ./train",
            "sudo -s ./train",
            "taskset -p 1",
        ] {
            assert_eq!(of(line).expect(line).program(), None, "{line}");
        }
        for line in ["python train.py", "./train", "strace ./train"] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn other_places_are_seen() {
        for (line, other_root, user) in [
            ("chroot root /train", true, None),
            ("chroot --userspec=me:us root /train", true, Some("me")),
            ("unshare -R root /train", true, None),
            ("unshare -r ./train", false, None),
            ("setpriv --reuid 7 ./train", false, Some("7")),
            ("su -l me -c ./train", false, Some("me")),
            ("su -c ./train", false, None),
            ("runuser me", false, Some("me")),
            ("runuser --user=me ./train", false, Some("me")),
            ("sudo -ume -R root ./train", true, Some("me")),
        ] {
            let seen = of(line).expect(line);
            assert_eq!((seen.other_root, seen.user.as_deref()), (other_root, user), "{line}");
        }
    }

    #[test]
    fn a_shell_is_looked_through_for_one_plain_command_only() {
        let seen = |line: &str| Some(launch(&["sh", "-c", line].map(OsString::from))?.program()?.to_vec());
        assert_eq!(seen("exec ./train --x=1"), Some(["./train", "--x=1"].map(OsString::from).into()));
        assert_eq!(seen("./train a"), Some(["./train", "a"].map(OsString::from).into()));
        for line in ["A=1 ./train", "./train; ./other", "cd x && ./train", "./train $X", "", "exec"] {
            assert_eq!(seen(line), None, "{line}");
        }
    }
}
