//! `memscope doctor`: each line that is not good has its advice, and nothing is said of a program that was not looked at; and what
//! `memscope run` says of a program that cannot be started.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use crate::harmless::skip;
use crate::memscope::{Place, stderr, stdout};

#[test]
fn doctor_says_what_to_do() {
    let place = Place::new();
    let output = place.run("doctor");
    let text = stdout(&output);
    for subject in ["CUDA driver", "NVML", "permissions", "shared memory", "glibc", "cache"] {
        assert!(text.contains(subject), "{subject} in {text}");
    }
    // Every line that is not good is followed by advice.
    let lines: Vec<_> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        if line.starts_with("limited") || line.starts_with("problem") {
            assert!(lines.get(index + 1).is_some_and(|next| next.contains('→')), "no advice after: {line}");
        }
    }
}

/// What doctor says of a command, each line behind its mark, and its status.
fn told(place: &Place, words: &[&str]) -> (String, i32) {
    let output = place.memscope().args(["doctor", "--"]).args(words).output().expect("memscope starts");
    let text = stdout(&output);
    let of_program = text.lines().skip_while(|line| !line.get(9..).is_some_and(|rest| rest.starts_with("program")));
    let lines: Vec<&str> = of_program.collect();
    (lines.join("\n"), output.status.code().expect("a status"))
}

#[track_caller]
fn expect(place: &Place, words: &[&str], status: i32, parts: &[&str]) -> String {
    let (said, ended) = told(place, words);
    for part in parts {
        assert!(said.contains(part), "{words:?} misses {part:?}:\n{said}");
    }
    assert_eq!(ended, status, "{words:?}:\n{said}");
    said
}

/// A file with these permissions.
fn file(place: &Place, name: &str, content: &str, mode: u32) {
    fs::write(place.path(name), content).unwrap();
    fs::set_permissions(place.path(name), fs::Permissions::from_mode(mode)).unwrap();
}

/// `command` is refused with `status`, by doctor and by run, and both say these parts.
#[track_caller]
fn refused(place: &Place, command: &str, status: i32, parts: &[&str]) {
    let foretold = format!("`memscope run` fails with status {status}");
    expect(place, &[command], 1, &[parts, &[&foretold]].concat());
    let output = place.memscope().args(["run", "-q", "-o", "x.mscope", "--", command]).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{said}");
    for part in parts {
        assert!(said.contains(part), "{command} misses {part:?}: {said}");
    }
}

#[test]
fn a_script_without_its_interpreter_is_told_as_what_a_run_does() {
    let place = Place::new();
    file(&place, "gone", "#!/no/such -x\n", 0o755);
    refused(&place, "./gone", 127, &["the interpreter that its first line names, /no/such, is not there", "install"]);
    file(&place, "ends", "#!/bin/sh\r\ntrue\r\n", 0o755);
    refused(&place, "./ends", 127, &["a carriage return (CRLF)", r"sed -i 's/\r$//' ./ends"]);
    // The interpreter of this one is env, which looks for another and ends with that status itself.
    for (name, line, part) in [
        ("by-env", "#!/usr/bin/env no-such-interpreter\n", "no-such-interpreter, is not there"),
        ("ends-by-env", "#!/usr/bin/env sh\r\n", "a carriage return (CRLF)"),
    ] {
        file(&place, name, line, 0o755);
        let name = format!("./{name}");
        expect(&place, &[&name], 1, &[part, "fails with status 127"]);
        let output = place.memscope().args(["run", "-q", "-o", "y.mscope", "-f", "--", &name]).output().unwrap();
        assert_eq!(output.status.code(), Some(127), "{}", stderr(&output));
    }
    file(&place, "second", "#!./gone\n", 0o755);
    refused(&place, "./second", 127, &["./gone"]);
    // To these nothing happens.
    file(&place, "good", "#!/usr/bin/env python3\n", 0o755);
    let said = expect(&place, &["./good"], 0, &["./good can be followed"]);
    assert!(!said.contains("looked at"), "{said}");
}

#[test]
fn a_program_that_may_not_be_executed_is_refused_with_the_cause() {
    let place = Place::new();
    file(&place, "plain", "#!/bin/sh\n", 0o644);
    refused(&place, "./plain", 126, &["it is not executable", "chmod +x ./plain"]);
    fs::create_dir(place.path("folder")).unwrap();
    refused(&place, "./folder", 126, &["it is a folder", "name the program in it"]);
    file(&place, "behind", "#!./plain\n", 0o755);
    refused(&place, "./behind", 126, &["its interpreter ./plain cannot be started: it is not executable"]);
    refused(&place, "./nowhere", 127, &["no such program"]);
    file(&place, "train", "#!/bin/sh\n", 0o755);
    refused(&place, "train", 127, &["no such program", "name it by its path: ./train"]);
}

#[test]
fn a_file_system_without_programs_is_named_as_the_cause() {
    let place = Place::new();
    fs::create_dir(place.path("disk")).unwrap();
    let script =
        "mount -t tmpfs -o noexec none disk && cp /bin/true disk || exit 99; \"$RUN\" run -q -o x.mscope -- disk/true";
    let mut command = place.command("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", script]).env("RUN", env!("CARGO_BIN_EXE_memscope"));
    match command.output() {
        Ok(output) if output.status.code() != Some(99) && !output.stderr.starts_with(b"unshare") => {
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(126), "{said}");
            assert!(said.contains("its file system is mounted noexec; start a copy"), "{said}");
        }
        refused => skip(&format!("a file system mounted noexec: none can be mounted here: {refused:?}")),
    }
}

#[test]
fn a_folder_that_may_not_be_passed_is_named_as_the_cause() {
    let place = Place::new();
    fs::create_dir_all(place.path("closed/in")).unwrap();
    fs::copy("/bin/true", place.path("closed/in/x")).unwrap();
    fs::set_permissions(place.path("closed"), fs::Permissions::from_mode(0o600)).unwrap();
    let run = [env!("CARGO_BIN_EXE_memscope"), "run", "-q", "-o", "x.mscope", "--", "./closed/in/x"];
    // Root passes every folder unless that is taken from it.
    let less =
        ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"];
    let words: Vec<&str> = match fs::metadata(place.path("closed")).unwrap().uid() {
        0 => less.iter().copied().chain(run).collect(),
        _ => run.into(),
    };
    let Ok(output) = place.command(words[0]).args(&words[1..]).output() else {
        return skip("a folder that may not be passed: there is no setpriv");
    };
    let said = stderr(&output);
    fs::set_permissions(place.path("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(output.status.code(), Some(126), "{said}");
    assert!(said.contains("you may not pass the folder ./closed; ") && said.contains("chmod a+x ./closed"), "{said}");
}

#[test]
fn launchers_are_looked_through_to_the_program() {
    let place = Place::new();
    static_program(&place);
    for line in [
        "unshare -m ./still",
        "xargs -n 1 ./still a",
        "time -f %M ./still",
        "setpriv --bounding-set +all ./still",
        "stdbuf -oL ./still",
        "ionice -c 3 ./still",
        "taskset -c 0 ./still",
        "nice env A=1 timeout -k 1 5 ./still",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        if is_missing(words[0]) {
            skip(&format!("{line}: {} is not installed", words[0]));
            continue;
        }
        expect(&place, &words, 1, &["./still is statically linked"]);
        let ordinary: Vec<&str> = words.iter().map(|word| if *word == "./still" { "/bin/ls" } else { word }).collect();
        let said = expect(&place, &ordinary, 0, &["ls, which ", "executes, can be followed"]);
        assert!(!said.contains("looked at"), "{said}");
    }
}

#[test]
fn what_was_not_looked_at_is_said() {
    let place = Place::new();
    static_program(&place);
    file(&place, "script", "#!/bin/sh\n./still\n", 0o755);
    file(&place, "bare", "./still\n", 0o755);
    for words in [
        &["sh", "-c", "./still; true"][..],
        &["bash", "script"],
        &["./script"],
        &["./bare"],
        &["python3", "./still"],
        &["env", "-S", "./still"],
        &["xargs", "-I{}", "{}"],
    ] {
        let parts = ["can be followed; what it starts was not looked at", "`memscope doctor -- THE PROGRAM`"];
        expect(&place, words, 0, &parts);
    }
    let said = expect(&place, &["ls", "-l"], 0, &["ls can be followed"]);
    assert!(!said.contains("looked at"), "{said}");
}

#[test]
fn another_place_is_a_warning() {
    let place = Place::new();
    let parts = ["limited  program", "chroot can be followed; what it starts was not looked at"];
    let more = ["`chroot root` starts /still in another root folder", "inside: chroot root memscope run -- /still"];
    expect(&place, &["chroot", "root", "/still"], 0, &[parts, more].concat());
    let another = if fs::metadata("/proc/self").unwrap().uid() == 65534 { "1" } else { "65534" };
    let by = format!("--reuid={another}");
    let user = format!("as another user ({another}), who cannot reach");
    let parts = [user.as_str(), "memscope run -- sleep", "limited  program"];
    let said = expect(&place, &["setpriv", &by, "--clear-groups", "sleep", "1"], 0, &parts);
    assert!(!said.contains("can be followed"), "{said}");
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        let parts = [
            "su can be followed; what it starts was not looked at",
            "`su nobody -c ./x` starts THE PROGRAM as another",
        ];
        expect(&place, &["su", "nobody", "-c", "./x"], 0, &parts);
        let parts = ["sleep as another user (nobody)", "runuser -u nobody memscope run -- sleep"];
        expect(&place, &["runuser", "-u", "nobody", "sleep", "1"], 0, &parts);
        expect(&place, &["setpriv", "--reuid=0", "sleep", "1"], 0, &["can be followed"]);
    }
}

#[test]
fn obstacles_have_the_next_step_below_them() {
    let place = Place::new();
    static_program(&place);
    let second = |said: String| said.lines().nth(1).map(|line| line.trim().to_owned()).expect("advice");
    let said = expect(&place, &["./still"], 1, &["./still is statically linked"]);
    assert!(second(said).starts_with("→ link it dynamically, with glibc"));
    let said = expect(&place, &["env", "-i", "./script"], 1, &["no such program"]);
    assert!(second(said).starts_with("→ look at its path"));
    let said = expect(&place, &["env", "-i", "/bin/ls"], 1, &["`env -i` takes LD_PRELOAD out of the environment"]);
    let advice = second(said);
    assert!(
        advice.contains("LD_PRELOAD and MEMSCOPE_*") && advice.ends_with("env -i memscope run -- /bin/ls"),
        "{advice}"
    );
    match place.command("musl-gcc").args(["-o", "musl", "still.c"]).status() {
        Ok(made) if made.success() => {
            let said = expect(&place, &["./musl"], 1, &["./musl uses musl"]);
            assert!(second(said).starts_with("→ build it for glibc"));
        }
        _ => skip("a program of musl: there is no musl-gcc (Debian: musl-tools)"),
    }
    let copied = place.command("sh").args(["-c", "cp /bin/true own && chown 1:1 own"]).output().unwrap();
    if !copied.status.success() {
        return skip("a set-user-ID program: only root can make one of another user");
    }
    fs::set_permissions(place.path("own"), fs::Permissions::from_mode(0o4755)).unwrap();
    let said = expect(&place, &["./own"], 1, &["./own is set-user-ID"]);
    assert!(second(said).contains("as its owner (user 1, group 1)"));
}

#[test]
fn logs_that_were_left_are_counted_and_the_command_that_removes_them_named() {
    let place = Place::new();
    let user = fs::metadata("/proc/self").unwrap().uid();
    let script = "mount -t tmpfs -o size=1g none /dev/shm || exit 99; for i in $(seq 42); do of=/dev/shm/memscope-$(id -u)-$i; mkdir $of; \
                  head -c 4096 /dev/zero >$of/log; done; \"$RUN\" doctor";
    let mut command = place.command("unshare");
    command.arg("--mount").args((user != 0).then_some("--map-root-user"));
    command.args(["sh", "-c", script]).env("RUN", env!("CARGO_BIN_EXE_memscope"));
    let output = command.output().expect("unshare starts");
    if output.status.code() == Some(99) || output.stderr.starts_with(b"unshare") {
        return skip("logs that are left behind: no shared memory of its own here");
    }
    let text = stdout(&output);
    let at = text.lines().position(|line| line.contains("shared memory")).expect("a line of shared memory");
    let lines: Vec<&str> = text.lines().skip(at).take(2).collect();
    assert!(lines[0].contains("42 folders of logs of sessions that are gone, 168.0 KiB"), "{lines:#?}");
    assert!(lines[0].len() < 140, "{lines:#?}");
    assert!(lines[1].contains("`memscope sessions --clean` removes"), "{lines:#?}");
}

fn static_program(place: &Place) {
    fs::write(place.path("still.c"), "int main(void) { return 0; }\n").unwrap();
    let made = place.command("cc").args(["-static", "-o", "still", "still.c"]).status().expect("cc starts");
    assert!(made.success(), "a static C library is there");
}

fn is_missing(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_err()
}
