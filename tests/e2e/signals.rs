//! Signals and job control: what a program sees under memscope is what it sees without, each signal once.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::memscope::Place;

/// Starts the signal counter (`tests/programs/count_signals.c`) under memscope in a process group of its own, and waits until it is ready.
fn start(place: &Place) -> (Child, BufReader<std::process::ChildStdout>, i32) {
    let program = place.compile("count_signals", &[]);
    let mut command = place.memscope();
    command.args(["run", "-q", "-f", "-o", "x", "--"]).arg(program).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().expect("memscope starts");
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("the program speaks");
    let pid = line.trim().strip_prefix("ready ").expect(&line).parse().expect("a pid");
    (child, reader, pid)
}

fn kill(pid: i32, signal: i32) {
    // SAFETY: plain numbers; the process is a child (or its group) of this test.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "kill {pid} {signal}");
    sleep(Duration::from_millis(250)); // longer than memscope waits for its witness
}

/// State letter of a process, from /proc.
fn state(pid: i32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('-')
}

fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Ends the counter with SIGUSR2 and returns what it counted.
fn counts(mut child: Child, mut reader: impl Read, pid: i32) -> String {
    kill(pid, libc::SIGUSR2);
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("the program's counts");
    assert_eq!(child.wait().expect("memscope ends").code(), Some(9));
    text
}

#[test]
fn a_signal_to_memscope_reaches_the_program_once() {
    let place = Place::new();
    let (child, reader, pid) = start(&place);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1] {
        kill(child.id() as i32, signal);
    }
    assert_eq!(counts(child, reader, pid), "HUP 1 INT 1 QUIT 1 USR1 1 TERM 1 CONT 0\n");
}

#[test]
fn a_signal_to_the_group_reaches_the_program_once() {
    let place = Place::new();
    let (child, reader, pid) = start(&place);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1] {
        kill(-(child.id() as i32), signal);
    }
    assert_eq!(counts(child, reader, pid), "HUP 1 INT 1 QUIT 1 USR1 1 TERM 1 CONT 0\n");
}

#[test]
fn memscope_stops_and_continues_with_the_program() {
    let place = Place::new();
    let (child, reader, pid) = start(&place);
    let memscope = child.id() as i32;
    for target in [memscope, -memscope] {
        kill(target, libc::SIGTSTP);
        wait_for("both stop", || state(pid) == 'T' && state(memscope) == 'T');
        kill(target, libc::SIGCONT);
        wait_for("both go on", || state(pid) != 'T' && state(memscope) != 'T');
    }
    assert_eq!(counts(child, reader, pid), "HUP 0 INT 0 QUIT 0 USR1 0 TERM 0 CONT 2\n");
}

#[test]
fn a_program_that_is_stopped_and_continued_by_its_pid_takes_memscope_with_it() {
    let place = Place::new();
    let (child, reader, pid) = start(&place);
    kill(pid, libc::SIGSTOP);
    wait_for("the program stops", || state(pid) == 'T');
    kill(pid, libc::SIGCONT);
    assert_eq!(counts(child, reader, pid), "HUP 0 INT 0 QUIT 0 USR1 0 TERM 0 CONT 1\n");
}

/// As a terminal does it: again and again, the signal to the whole group, and memscope must stop once for each.
#[test]
fn stopping_the_group_stops_memscope_once() {
    let place = Place::new();
    let (child, reader, pid) = start(&place);
    let memscope = child.id() as i32;
    for _ in 0..8 {
        kill(-memscope, libc::SIGTSTP);
        wait_for("both stop", || state(pid) == 'T' && state(memscope) == 'T');
        kill(-memscope, libc::SIGCONT);
        wait_for("both go on", || state(pid) != 'T' && state(memscope) != 'T');
        sleep(Duration::from_millis(100));
        assert_ne!(state(memscope), 'T', "memscope stopped again");
    }
    assert_eq!(counts(child, reader, pid), "HUP 0 INT 0 QUIT 0 USR1 0 TERM 0 CONT 8\n");
}

#[test]
fn a_signal_that_ends_the_program_is_in_the_status() {
    let place = Place::new();
    for (signal, status) in [(libc::SIGINT, 130), (libc::SIGTERM, 143), (libc::SIGKILL, 137)] {
        let mut command = place.memscope();
        command.args(["run", "-q", "-f", "-o", "x", "--", "sh", "-c", "echo $$; exec sleep 60"]);
        let mut child = command.stdout(Stdio::piped()).process_group(0).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let program: i32 = line.trim().parse().unwrap();
        let target = if signal == libc::SIGKILL { program } else { -(child.id() as i32) };
        kill(target, signal);
        let ended = child.wait().unwrap();
        // Of SIGINT memscope dies itself: a shell's loop stops only then. The shell shows 130 in either case.
        let seen = ended.code().or(ended.signal().map(|number| 128 + number));
        assert_eq!((seen, ended.signal()), (Some(status), (signal == libc::SIGINT).then_some(signal)));
        assert!(place.path("x").exists(), "no profile after signal {signal}");
    }
}

#[test]
fn ctrl_c_stops_a_shell_loop() {
    let place = Place::new();
    for wrapper in ["", concat!(env!("CARGO_BIN_EXE_memscope"), " run -q -f -o x -- ")] {
        let script = format!("for i in 1 2 3; do echo $i; {wrapper}sleep 30; done; echo end");
        let mut command = place.command("bash");
        let mut child = command.args(["-c", &script]).stdout(Stdio::piped()).process_group(0).spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        sleep(Duration::from_millis(700)); // memscope has started its program
        kill(-(child.id() as i32), libc::SIGINT);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert_eq!((line.as_str(), rest.as_str()), ("1\n", ""), "`{wrapper}`");
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGINT), "`{wrapper}`");
    }
}

#[test]
fn an_ignored_sigchld_is_no_obstacle() {
    let place = Place::new();
    let script = format!("trap '' CHLD; {} run -q -f -o x -- sh -c 'exit 5'; echo $?", env!("CARGO_BIN_EXE_memscope"));
    let output = place.command("timeout").args(["20", "bash", "-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "5\n");
    assert!(place.path("x").exists());
}

#[test]
fn dispositions_and_mask_reach_the_program() {
    let place = Place::new();
    // SigBlk, SigIgn of a program started by a shell that ignores HUP, USR1 and CHLD; SIGPIPE is at its default.
    let script = "trap '' HUP USR1 CHLD; grep -E 'SigBlk|SigIgn' /proc/self/status";
    let plain = place.command("sh").args(["-c", script]).output().unwrap().stdout;
    let script = format!(
        "trap '' HUP USR1 CHLD; {} run -q -f -o x -- grep -E 'SigBlk|SigIgn' /proc/self/status",
        env!("CARGO_BIN_EXE_memscope")
    );
    let under = place.command("sh").args(["-c", &script]).output().unwrap().stdout;
    assert!(!plain.is_empty());
    assert_eq!(String::from_utf8(plain), String::from_utf8(under));
}
